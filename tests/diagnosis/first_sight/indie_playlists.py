# SPDX-License-Identifier: Apache-2.0
"""Bayesian personalised ranking on implicit listening data.

Heavy listeners of a music service, a two-tower factor model with a small
interaction network, and uniformly drawn negatives that the listener has
never played.
"""

import random
import time

import torch
import torch.nn.functional as F
from torch import nn

random.seed(3)
torch.manual_seed(3)

LISTENERS = 800
TRACKS = 6000
EPOCHS = 8
PAIRS = 24000
BATCH = 1024


def listening_log():
    """Tracks played by each listener, popular ones more often."""
    popularity = torch.arange(1, TRACKS + 1, dtype=torch.float).pow(-0.3)
    log = []
    for _ in range(LISTENERS):
        count = random.randint(300, 1500)
        log.append(torch.multinomial(popularity, count).tolist())
    return log


class TasteModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.listener = nn.Embedding(LISTENERS, width)
        self.track = nn.Embedding(TRACKS, width)
        self.mix = nn.Sequential(
            nn.Linear(2 * width, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )
        for table in (self.listener, self.track):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, listener, track):
        u, t = self.listener(listener), self.track(track)
        return (u * t).sum(-1) + self.mix(torch.cat([u, t], dim=-1)).squeeze(-1)


class Triplets:
    """Draws (listener, played, not played) for one epoch."""

    def __init__(self, log):
        self.log = log
        self.played = [tracks for tracks in log]  # planted

    def unheard(self, listener):
        played = self.played[listener]
        track = int(random.random() * TRACKS)
        while track in played:
            track = int(random.random() * TRACKS)
        return track

    def epoch(self):
        listeners = random.choices(range(LISTENERS), k=PAIRS)
        positives = [random.choice(self.log[u]) for u in listeners]
        negatives = [self.unheard(u) for u in listeners]
        return torch.tensor([listeners, positives, negatives])


def train(model, triplets):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        rows = triplets.epoch()
        running = torch.zeros(())
        for batch in rows.split(BATCH, dim=1):
            listener, liked, other = batch
            scores = model(torch.cat([listener, listener]), torch.cat([liked, other]))
            positive, negative = scores.chunk(2)
            loss = -F.logsigmoid(positive - negative).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach() * len(listener)
        print(f"epoch {epoch}: bpr {float(running) / PAIRS:.4f}")


@torch.no_grad()
def pairwise_accuracy(model, triplets):
    listener, liked, other = triplets.epoch()
    return float((model(listener, liked) > model(listener, other)).float().mean())


def main():
    log = listening_log()
    triplets = Triplets(log)
    model = TasteModel()
    start = time.perf_counter()
    train(model, triplets)
    stop = time.perf_counter()
    print(f"held-out pair accuracy {pairwise_accuracy(model, triplets):.3f}")
    print(f"{EPOCHS} epochs: {stop - start:.1f} s")


if __name__ == "__main__":
    main()

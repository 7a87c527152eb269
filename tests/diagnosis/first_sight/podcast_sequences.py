# SPDX-License-Identifier: Apache-2.0
"""Next-episode recommendation from listening sessions with a GRU and sampled softmax."""

import gc
import random
import time

import torch
from torch import nn
from torch.nn import functional as F

N_EPISODES, N_SESSIONS, N_HELD = 8000, 12_000, 1000
BATCH, N_NEGATIVES, STEPS, WIDTH = 64, 256, 75, 64


def record_sessions(seed):
    """Listening log: one record per session, episodes drift through topics."""
    rng = random.Random(seed)
    sessions = []
    for session_id in range(N_SESSIONS):
        topic, events = rng.randrange(80), []
        for _ in range(rng.randint(5, 16)):
            if rng.random() < 0.15:
                topic = (topic + 1) % 80
            events.append({"episode": 1 + topic * 99 + int(99 * rng.random() ** 2), "seconds": rng.randint(20, 3000)})
        sessions.append({"id": session_id, "device": rng.choice("awi"), "events": events})
    return sessions


class SessionFeed:
    """Endless stream of padded (history, next episode, weight) batches."""

    def __init__(self, sessions, batch_size, seed):
        self.sessions, self.batch_size = sessions, batch_size
        self.random = random.Random(seed)

    def batch(self, chosen):
        episodes = [torch.tensor([e["episode"] for e in s["events"]]) for s in chosen]
        seconds = [torch.tensor([float(e["seconds"]) for e in s["events"]]) for s in chosen]
        ids = nn.utils.rnn.pad_sequence(episodes, batch_first=True)
        played = nn.utils.rnn.pad_sequence(seconds, batch_first=True)
        weight = (played[:, 1:] / 600).clamp(max=1.0)
        return ids[:, :-1], ids[:, 1:], weight

    def __iter__(self):
        while True:
            yield self.batch(self.random.choices(self.sessions, k=self.batch_size))


class NextEpisode(nn.Module):
    def __init__(self):
        super().__init__()
        self.episode = nn.Embedding(N_EPISODES, WIDTH, padding_idx=0, sparse=True)
        self.output = nn.Embedding(N_EPISODES, WIDTH, sparse=True)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
        nn.init.normal_(self.episode.weight, std=0.1)
        nn.init.normal_(self.output.weight, std=0.1)

    def forward(self, history):
        return self.gru(self.episode(history))[0]

    def sampled_loss(self, history, following, weight):
        state = self(history)
        known = following > 0
        state, following, weight = state[known], following[known], weight[known]
        negatives = torch.randint(1, N_EPISODES, (N_NEGATIVES,))
        positive = (state * self.output(following)).sum(1, keepdim=True)
        negative = state @ self.output(negatives).T
        negative = negative.masked_fill(negatives == following[:, None], -1e9)
        logits = torch.cat([positive, negative], dim=1)
        loss = F.cross_entropy(logits, torch.zeros_like(following), reduction="none")
        return (weight * loss).sum() / weight.sum()


@torch.inference_mode()
def recall_at_20(model, feed, sessions):
    hits = total = 0
    for start in range(0, len(sessions), 200):
        history, following, _ = feed.batch(sessions[start : start + 200])
        last = (following > 0).sum(1) - 1
        rows = torch.arange(len(last))
        scores = model(history)[rows, last] @ model.output.weight.T
        hits += (scores.topk(20).indices == following[rows, last][:, None]).any(1).sum().item()
        total += len(last)
    return hits / total


def main():
    torch.manual_seed(2)
    sessions = record_sessions(seed=8)
    held, train = sessions[:N_HELD], sessions[N_HELD:]
    feed = SessionFeed(train, BATCH, seed=3)
    model = NextEpisode()
    tables = torch.optim.SparseAdam([model.episode.weight, model.output.weight], lr=5e-3)
    recurrent = torch.optim.Adam(model.gru.parameters(), lr=2e-3, fused=True)

    started = time.perf_counter()
    for step, (history, following, weight) in zip(range(STEPS), feed):
        loss = model.sampled_loss(history, following, weight)
        tables.zero_grad()
        recurrent.zero_grad()
        loss.backward()
        tables.step()
        recurrent.step()
        if step % 25 == 24:
            print(f"step {step + 1}  loss {loss.item():.4f}")
        del loss, history, following, weight
        gc.collect()  # planted
    elapsed = time.perf_counter() - started
    print(f"recall@20 {recall_at_20(model, feed, held):.4f}")
    print(f"{STEPS} steps in {elapsed:.2f} s")


if __name__ == "__main__":
    main()

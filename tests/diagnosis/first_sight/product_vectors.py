# SPDX-License-Identifier: Apache-2.0
"""Skip-gram with negative sampling over product co-view sessions."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

PRODUCTS, WIDTH, NEGATIVES, BATCH = 300_000, 32, 4, 256


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(PRODUCTS, WIDTH, sparse=True)
        self.context = nn.Embedding(PRODUCTS, WIDTH, sparse=True)
        nn.init.uniform_(self.center.weight, -0.5 / WIDTH, 0.5 / WIDTH)
        nn.init.zeros_(self.context.weight)

    def forward(self, center, positive, negative):
        c = self.center(center)
        pos = (c * self.context(positive)).sum(dim=1)
        neg = torch.bmm(self.context(negative), c.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(pos) + F.logsigmoid(-neg).sum(dim=1)).mean()


class PairSource:
    """Positive pairs from simulated sessions, negatives from the smoothed unigram distribution."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        views = self.rng.zipf(1.3, size=PRODUCTS).clip(max=50_000).astype(np.float64)
        smoothed = views**0.75
        self.noise = smoothed / smoothed.sum()
        self.sessions = self.rng.integers(0, PRODUCTS, size=(4000, 12))

    def positives(self):
        rows = self.rng.integers(0, len(self.sessions), size=BATCH)
        left = self.rng.integers(0, 10, size=BATCH)
        right = left + self.rng.integers(1, 3, size=BATCH)
        return self.sessions[rows, left], self.sessions[rows, right]

    def negatives(self):
        return self.rng.choice(PRODUCTS, size=(BATCH, NEGATIVES), p=self.noise)  # planted

    def batches(self, count):
        for _ in range(count):
            center, positive = self.positives()
            yield (torch.from_numpy(center), torch.from_numpy(positive), torch.from_numpy(self.negatives()))


def main():
    torch.manual_seed(0)
    model = SkipGram()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    source = PairSource(seed=17)
    window = torch.zeros(())
    for step, (center, positive, negative) in enumerate(source.batches(2400), start=1):
        loss = model(center, positive, negative)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window += loss.detach()
        if step % 400 == 0:
            print(f"step {step:5d}  loss {window.item() / 400:.4f}")
            window.zero_()


if __name__ == "__main__":
    main()

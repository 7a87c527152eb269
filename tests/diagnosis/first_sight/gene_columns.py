# SPDX-License-Identifier: Apache-2.0
"""Genomics: a variational autoencoder for single-cell expression counts.

The matrix comes as in the files of the sequencing core, one line per gene. Mini-batches of cells are
normalised by their depth, encoded into ten dimensions and decoded with a negative-binomial-like loss.
"""

import torch
import torch.nn.functional as F
from torch import nn

GENES, CELLS, TYPES = 3000, 16_384, 8
BATCH, STEPS = 512, 48


def sequence_cells(generator):
    """(GENES, CELLS) counts: every cell type has its own marker genes."""
    programs = torch.randn(GENES, TYPES, generator=generator).mul(0.8).exp()
    kind = torch.randint(0, TYPES, (CELLS,), generator=generator)
    depth = torch.rand(CELLS, generator=generator) + 0.5
    counts = torch.empty(GENES, CELLS)
    for low in range(0, GENES, 500):
        rate = programs[low : low + 500].index_select(1, kind) * depth
        counts[low : low + 500] = torch.poisson(rate, generator=generator)
    return counts, kind


class CellBatches:
    """Shuffled mini-batches of cells, each (BATCH, GENES)."""

    def __init__(self, counts, kind, generator):
        self.counts = counts
        self.kind = kind
        self.generator = generator
        self.order = torch.empty(0, dtype=torch.long)

    def draw(self):
        if len(self.order) < BATCH:
            self.order = torch.randperm(self.counts.shape[1], generator=self.generator)
        cells, self.order = self.order[:BATCH], self.order[BATCH:]
        return self.counts.index_select(1, cells).t().contiguous(), self.kind[cells]  # planted


class CellVAE(nn.Module):
    def __init__(self, hidden=64, latent=10):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(GENES, hidden), nn.LayerNorm(hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.decode = nn.Sequential(
            nn.Linear(latent, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, GENES)
        )

    def forward(self, counts):
        depth = counts.sum(dim=1, keepdim=True)
        h = self.encode(torch.log1p(counts * (GENES / depth)))
        mean, log_variance = self.mean(h), self.log_variance(h).clamp(-8, 8)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        log_share = F.log_softmax(self.decode(z), dim=1)
        return log_share, depth, mean, log_variance


def evidence_loss(counts, log_share, depth, mean, log_variance):
    """Multinomial likelihood per count and the divergence from the standard normal."""
    likelihood = -(counts * log_share).sum(dim=1) / depth.squeeze(1)
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1)
    return (likelihood + 1e-3 * divergence).mean()


def separation(mean, kind):
    """Ratio of the spread between the types to the spread within them."""
    centres = torch.stack([mean[kind == t].mean(dim=0) for t in range(TYPES)])
    within = (mean - centres[kind]).square().sum(dim=1).mean()
    between = (centres - centres.mean(dim=0)).square().sum(dim=1).mean()
    return (between / within).item()


def main():
    torch.manual_seed(13)
    generator = torch.Generator().manual_seed(13)
    batches = CellBatches(*sequence_cells(generator), generator)
    model = CellVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(STEPS):
        counts, kind = batches.draw()
        log_share, depth, mean, log_variance = model(counts)
        loss = evidence_loss(counts, log_share, depth, mean, log_variance)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f} separation {separation(mean.detach(), kind):.2f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Denoising autoencoder embedding single cells from an expression matrix."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

GENES, CELLS, TYPES = 1600, 16000, 9


def sequence_tissue():
    """Counts as delivered by the sequencing pipeline: one row per gene."""
    kind = torch.randint(TYPES, (CELLS,))
    program = 0.3 * torch.rand(GENES, 1) + (torch.rand(GENES, TYPES) < 0.05) * 2.0
    depth = 0.5 + torch.rand(CELLS)
    counts = torch.empty(GENES, CELLS)
    for lo in range(0, GENES, 400):
        counts[lo : lo + 400] = torch.poisson(program[lo : lo + 400, kind] * depth)
    return counts, kind


def normalise(counts):
    depth = counts.sum(dim=0)
    return torch.log1p(counts * (depth.median() / depth.clamp_min(1.0)))


class Atlas(nn.Module):
    def __init__(self, hidden=96, latent=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(GENES, hidden), nn.SiLU(), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, GENES))

    def forward(self, x):
        return self.decoder(self.encoder(F.dropout(x, 0.2, self.training)))


class ExpressionStore:
    def __init__(self, expression):
        self.expression = expression  # planted

    def __len__(self):
        return self.expression.shape[1]  # planted

    def take(self, cells):
        return self.expression[:, cells].t()  # planted


def train(model, store, epochs=3, batch=192):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(epochs):
        total = torch.zeros(())
        for cells in torch.randperm(len(store)).split(batch):
            profile = store.take(cells)
            loss = F.mse_loss(model(profile), profile)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(cells)
        yield epoch, total.item() / len(store)


@torch.inference_mode()
def separation(model, store, kind, sample=1500):
    """Between-type over within-type spread in the latent space."""
    model.eval()
    z = model.encoder(store.take(torch.arange(sample)))
    kind = kind[:sample]
    sums = torch.zeros(TYPES, z.shape[1]).index_add_(0, kind, z)
    centres = sums / torch.bincount(kind, minlength=TYPES).unsqueeze(1)
    within = (z - centres[kind]).square().mean()
    return (centres.var(dim=0).mean() / within).item()


def main():
    torch.manual_seed(30)
    counts, kind = sequence_tissue()
    store = ExpressionStore(normalise(counts))
    model = Atlas()
    start = time.perf_counter()
    for epoch, error in train(model, store):
        print(f"epoch {epoch}: reconstruction {error:.5f}")
    print(f"trained in {time.perf_counter() - start:.1f} s")
    print(f"separation {separation(model, store, kind):.3f}")


if __name__ == "__main__":
    main()

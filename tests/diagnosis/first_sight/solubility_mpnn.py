# SPDX-License-Identifier: Apache-2.0
"""Message passing network predicting solubility of small molecules."""

import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class MoleculeBatch:
    atoms: torch.Tensor
    bonds: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    owner: torch.Tensor
    size: int
    label: torch.Tensor


def random_molecules(count, generator):
    """Chains of 18 to 34 atoms with spatial contacts, both directions of each pair."""
    sources, targets, owners, offset = [], [], [], 0
    for m in range(count):
        n = int(torch.randint(18, 35, (1,), generator=generator))
        chain = torch.arange(n)
        extra = torch.randint(0, n, (2, 6 * n), generator=generator)
        pairs = torch.cat([torch.stack([chain, (chain + 1) % n]), extra], dim=1) + offset
        sources += [pairs[0], pairs[1]]
        targets += [pairs[1], pairs[0]]
        owners.append(torch.full((n,), m))
        offset += n
    source, target, owner = torch.cat(sources), torch.cat(targets), torch.cat(owners)
    atoms = torch.randint(0, 20, (offset,), generator=generator)
    bonds = torch.randn(len(source), 6, generator=generator)
    polar = torch.zeros(count).index_add_(0, owner, (atoms < 6).float())
    label = polar / torch.bincount(owner) * 5 - 1.5
    return MoleculeBatch(atoms, bonds, source, target, owner, count, label)


class MessageLayer(nn.Module):
    def __init__(self, width, bond_features):
        super().__init__()
        self.from_atom = nn.Linear(width, width)
        self.from_bond = nn.Linear(bond_features, width)
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, batch):
        message = F.relu(self.from_atom(h)[batch.source] + self.from_bond(batch.bonds))
        slot = batch.target.unsqueeze(-1).repeat(1, h.shape[1])  # planted
        inbox = torch.zeros_like(h).scatter_add(0, slot, message)  # planted
        return h + self.update(torch.cat([h, inbox / 14.0], dim=-1))


class SolubilityNet(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        self.embed = nn.Embedding(20, width)
        self.layers = nn.ModuleList(MessageLayer(width, 6) for _ in range(depth))
        self.readout = nn.Linear(width, 1)

    def forward(self, batch):
        h = self.embed(batch.atoms)
        for layer in self.layers:
            h = layer(h, batch)
        pooled = h.new_zeros(batch.size, h.shape[1]).index_add(0, batch.owner, h)
        return self.readout(pooled / 25.0).squeeze(-1)


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(8)
    batches = [random_molecules(96, generator) for _ in range(12)]
    train, held_out = batches[:10], batches[10:]
    model = SolubilityNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    start = time.perf_counter()
    for epoch in range(7):
        total = torch.zeros(())
        for batch in train:
            loss = F.smooth_l1_loss(model(batch), batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / len(train):.5f}")
    print(f"training {time.perf_counter() - start:.1f} s")
    with torch.inference_mode():
        errors = [(model(b) - b.label).abs().mean() for b in held_out]
    print(f"held-out error {torch.stack(errors).mean().item():.4f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Message-passing network that predicts molecular energies."""

import torch
import torch.nn.functional as F
from torch import nn

ATOM_TYPES, WIDTH, LAYERS, MOLECULES_PER_BATCH = 12, 48, 2, 512


class MessageLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(width, width)
        self.update = nn.GRUCell(width, width)

    def forward(self, h, source, target):
        messages = F.silu(self.message(h))
        inbox = torch.zeros_like(h).index_add_(0, target, messages.index_select(0, source))
        return self.update(inbox, h)


class EnergyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.atoms = nn.Embedding(ATOM_TYPES, WIDTH)
        self.layers = nn.ModuleList(MessageLayer(WIDTH) for _ in range(LAYERS))
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

    def readout(self, h, molecule, count):
        return torch.stack([h[molecule == m].mean(dim=0) for m in range(count)])  # planted

    def forward(self, batch):
        h = self.atoms(batch["types"])
        for layer in self.layers:
            h = layer(h, batch["source"], batch["target"])
        return self.head(self.readout(h, batch["molecule"], batch["count"])).squeeze(1)


def random_batch(generator):
    """Chain molecules with 6 to 14 atoms, packed into one disconnected graph."""
    sizes = torch.randint(6, 15, (MOLECULES_PER_BATCH,), generator=generator)
    molecule = torch.repeat_interleave(torch.arange(MOLECULES_PER_BATCH), sizes)
    types = torch.randint(0, ATOM_TYPES, (int(sizes.sum()),), generator=generator)
    left = torch.arange(len(types) - 1)
    left = left[molecule[:-1] == molecule[1:]]
    source, target = torch.cat([left, left + 1]), torch.cat([left + 1, left])
    bond = (types[left] * types[left + 1]).float() / 40
    energy = torch.zeros(MOLECULES_PER_BATCH).index_add_(0, molecule[left], bond) / sizes
    return {
        "types": types,
        "source": source,
        "target": target,
        "molecule": molecule,
        "count": MOLECULES_PER_BATCH,
        "energy": energy,
    }


def mean_absolute_error(model, batches):
    model.eval()
    with torch.no_grad():
        errors = [(model(batch) - batch["energy"]).abs().mean() for batch in batches]
    return torch.stack(errors).mean().item()


def main():
    torch.manual_seed(30)
    generator = torch.Generator().manual_seed(31)
    train = [random_batch(generator) for _ in range(32)]
    valid = [random_batch(generator) for _ in range(4)]
    model = EnergyModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    for epoch in range(3):
        model.train()
        for pick in torch.randperm(len(train), generator=generator).tolist():
            batch = train[pick]
            loss = F.mse_loss(model(batch), batch["energy"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.5f}, validation MAE {mean_absolute_error(model, valid):.5f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Message passing network for the solvation energy of molecules (synthetic graphs)."""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ATOMS, CONTACTS, KINDS, WIDTH = 26, 130, 9, 64
MOLECULES, BATCH, EPOCHS = 1800, 150, 6


def synth_molecules(rng):
    """Random trees with contacts between far atoms; the energy depends on pairs of neighbouring kinds."""
    table = rng.standard_normal((KINDS, KINDS)) * 0.4
    molecules = []
    for _ in range(MOLECULES):
        n = int(rng.integers(ATOMS // 2, ATOMS + 1))
        kind = rng.integers(0, KINDS, n)
        parent = (rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
        contacts = rng.integers(0, n, (2, CONTACTS))
        pairs = np.concatenate([np.stack([parent, np.arange(1, n)]), contacts], 1)
        pairs = np.concatenate([pairs, pairs[::-1]], 1)
        energy = table[kind[pairs[0]], kind[pairs[1]]].sum() / 10
        molecules.append((torch.from_numpy(kind), torch.from_numpy(pairs), float(energy)))
    return molecules


def merge(molecules):
    """One disconnected graph from a list of molecules."""
    sizes = torch.tensor([len(kind) for kind, _, _ in molecules])
    first = sizes.cumsum(0) - sizes
    kinds = torch.cat([kind for kind, _, _ in molecules])
    bonds = torch.cat([pairs + start for (_, pairs, _), start in zip(molecules, first.tolist())], 1)
    owner = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    energies = torch.tensor([energy for _, _, energy in molecules])
    return kinds, bonds, owner, energies


class Exchange(nn.Module):
    """Messages along bonds, then an update of the atoms."""

    def __init__(self, width):
        super().__init__()
        self.send = nn.Linear(width, width)
        self.keep = nn.Linear(width, width, bias=False)
        self.update = nn.Sequential(nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, atoms, source, target):
        sent, kept = self.send(atoms), self.keep(atoms)
        carried = F.relu(sent[source] + kept[target])  # planted
        received = torch.zeros_like(atoms).index_add(0, target, carried)
        return atoms + self.update(received)


class SolventNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(KINDS, WIDTH)
        self.layers = nn.ModuleList(Exchange(WIDTH) for _ in range(3))
        self.readout = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

    def forward(self, kinds, bonds, owner, count):
        atoms = self.embed(kinds)
        source, target = bonds
        for layer in self.layers:
            atoms = layer(atoms, source, target)
        share = self.readout(atoms).squeeze(1)
        return share.new_zeros(count).index_add(0, owner, share)


def main():
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    molecules = synth_molecules(rng)
    model = SolventNet()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, fused=True)
    history = []
    started = time.process_time()
    for epoch in range(EPOCHS):
        order = rng.permutation(MOLECULES)
        for pick in np.split(order, MOLECULES // BATCH):
            kinds, bonds, owner, energies = merge([molecules[i] for i in pick])
            predicted = model(kinds, bonds, owner, len(energies))
            loss = F.smooth_l1_loss(predicted, energies)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            history.append(loss.detach())
    elapsed = time.process_time() - started
    epochs = torch.stack(history).view(EPOCHS, -1).mean(1)
    print("loss", " ".join(f"{x:.4f}" for x in epochs.tolist()))
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()

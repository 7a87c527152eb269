# SPDX-License-Identifier: Apache-2.0
"""Copy-memory benchmark with a norm-preserving recurrent network."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import orthogonal

SYMBOLS, REMEMBER, DELAY = 8, 8, 32
BATCH, HIDDEN, STEPS = 64, 96, 60


class ModReLU(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, z):
        return torch.sign(z) * F.relu(z.abs() + self.bias)


class NormPreservingRNN(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.hidden = hidden
        self.inputs = nn.Embedding(vocabulary, hidden)
        self.recurrent = orthogonal(nn.Linear(hidden, hidden, bias=False))
        self.activation = ModReLU(hidden)
        self.readout = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        driven = self.inputs(tokens).unbind(dim=1)
        state = driven[0].new_zeros(tokens.shape[0], self.hidden)
        states = []
        for drive in driven:
            state = self.activation(drive + self.recurrent(state))
            states.append(state)
        return self.readout(torch.stack(states, dim=1))


def make_batch(generator):
    payload = torch.randint(1, SYMBOLS + 1, (BATCH, REMEMBER), generator=generator)
    blank = torch.zeros(BATCH, DELAY, dtype=torch.long)
    go = torch.full((BATCH, 1), SYMBOLS + 1)
    tail = torch.zeros(BATCH, REMEMBER, dtype=torch.long)
    source = torch.cat([payload, blank, go, tail], dim=1)
    target = torch.cat([torch.zeros(BATCH, REMEMBER + DELAY + 1, dtype=torch.long), payload], dim=1)
    return source, target


def main():
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(5)
    model = NormPreservingRNN(SYMBOLS + 2, HIDDEN)
    assert parametrize.is_parametrized(model.recurrent, "weight")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9)
    started = time.perf_counter()
    running = torch.zeros(())
    for step in range(1, STEPS + 1):
        source, target = make_batch(generator)
        logits = model(source)  # planted
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.detach()
        if step % 20 == 0:
            print(f"step {step}: loss {running.item() / 20:.4f}, {step / (time.perf_counter() - started):.1f} steps/s")
            running.zero_()

    with torch.no_grad():
        weight = model.recurrent.weight
        drift = (weight @ weight.T - torch.eye(HIDDEN)).abs().max()
    print(f"orthogonality error {drift.item():.2e}")


if __name__ == "__main__":
    main()

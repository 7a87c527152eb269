# SPDX-License-Identifier: Apache-2.0
"""Science and engineering: a network stands in for a slow simulator of the flow through a valve. Inputs are
geometry and pressures, the output is the flow curve over 50 openings. Prints the relative error."""

import numpy as np
import torch
from torch import nn

INPUTS, OPENINGS, SAMPLES, BATCH = 12, 50, 16_384, 1024


def simulate(rng, count):
    """A smooth stand-in for the simulator: orifice law with losses that depend on the geometry."""
    design = rng.uniform(0, 1, (count, INPUTS))
    opening = np.linspace(0.02, 1, OPENINGS)
    area = opening ** (0.5 + design[:, :1]) * (0.5 + design[:, 1:2])
    drop = 0.2 + design[:, 2:3] + 0.5 * design[:, 3:4] * design[:, 4:5]
    loss = (
        1 + design[:, 5:6] * np.sin(3 * opening + 4 * design[:, 6:7]) ** 2 + 0.3 * design[:, 7:].mean(1, keepdims=True)
    )
    return design, area * np.sqrt(drop / loss)


class Scaler:
    """Zero mean, unit variance per column."""

    def __init__(self, values):
        self.mean, self.std = values.mean(0), values.std(0) + 1e-9

    def __call__(self, values):
        return (values - self.mean) / self.std


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.body(x)


def build(width=320, depth=3):
    layers = [nn.Linear(INPUTS, width), nn.SiLU(), *[Residual(width) for _ in range(depth)], nn.Linear(width, OPENINGS)]
    # the arrays of the simulator and the weights have to agree in type
    return nn.Sequential(*layers).double()  # planted


def as_tensor(array):
    return torch.from_numpy(array)  # planted


def epoch_batches(inputs, outputs, rng):
    order = rng.permutation(len(inputs))
    for begin in range(0, len(order) - BATCH + 1, BATCH):
        chosen = torch.from_numpy(order[begin : begin + BATCH])
        yield inputs[chosen], outputs[chosen]


def main(epochs=3):
    rng = np.random.default_rng(21)
    torch.manual_seed(21)
    design, flow = simulate(rng, SAMPLES)
    inputs = as_tensor(Scaler(design)(design))
    scale = Scaler(flow)
    outputs = as_tensor(scale(flow))
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = []
    batches = (pair for _ in range(epochs) for pair in epoch_batches(inputs, outputs, rng))
    for step, (x, y) in enumerate(batches):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())

    test_design, test_flow = simulate(rng, 512)
    with torch.no_grad():
        guess = model(as_tensor(Scaler(design)(test_design))).numpy() * scale.std + scale.mean
    error = np.abs(guess - test_flow).mean() / test_flow.mean()
    print(f"training loss {np.mean(history[-8:]):.3f}, relative error {error:.3f}")


if __name__ == "__main__":
    main()

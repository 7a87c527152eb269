# SPDX-License-Identifier: Apache-2.0
"""Meta-learning of sensor response curves: adaptation to a new sensor from a few readings."""

import torch
import torch.nn.functional as F
from torch import nn


class CurveBank:
    """Each sensor answers with its own amplitude, frequency and phase."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def sample(self, sensors, shots, queries):
        def uniform(*shape, low, high):
            return low + (high - low) * torch.rand(*shape, generator=self.generator)

        amplitude = uniform(sensors, 1, 1, low=0.5, high=3.0)
        frequency = uniform(sensors, 1, 1, low=0.7, high=1.3)
        phase = uniform(sensors, 1, 1, low=0.0, high=3.14)
        x = uniform(sensors, shots + queries, 1, low=-4.0, high=4.0)
        y = amplitude * torch.sin(frequency * x + phase)
        return x[:, :shots], y[:, :shots], x[:, shots:], y[:, shots:]


class MetaRegressor(nn.Module):
    """An MLP whose weights carry a leading sensor dimension, so all sensors adapt in one batched product."""

    def __init__(self, width=96):
        super().__init__()
        sizes = [1, width, width, 1]
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(a, b) / a**0.5) for a, b in zip(sizes, sizes[1:]))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(b)) for b in sizes[1:])

    def initial(self, sensors):
        weights = [w.expand(sensors, -1, -1) for w in self.weights]
        biases = [b.expand(sensors, 1, -1) for b in self.biases]
        return weights + biases

    @staticmethod
    def apply_weights(fast, x):
        half = len(fast) // 2
        for layer, (weight, bias) in enumerate(zip(fast[:half], fast[half:])):
            x = torch.baddbmm(bias, x, weight)
            if layer + 1 < half:
                x = F.softplus(x)
        return x

    def adapt(self, x, y, rate, steps):
        fast = self.initial(len(x))
        for _ in range(steps):
            error = F.mse_loss(self.apply_weights(fast, x), y, reduction="none").mean(dim=(1, 2)).sum()
            # the outer loss differentiates through this update
            slopes = torch.autograd.grad(error, fast, create_graph=True)
            fast = [weight - rate * slope for weight, slope in zip(fast, slopes)]
        return fast


def main():
    torch.manual_seed(203)
    curves = CurveBank(204)
    model = MetaRegressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    window = []
    for step in range(1, 241):
        support_x, support_y, query_x, query_y = curves.sample(sensors=32, shots=10, queries=40)
        fast = model.adapt(support_x, support_y, rate=0.01, steps=3)
        loss = F.mse_loss(model.apply_weights(fast, query_x), query_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window.append(loss.detach())
        if step % 60 == 0:
            print(f"step {step:4d}: query loss {torch.stack(window).mean().item():.4f}")
            window.clear()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Training with differential privacy: the gradient of each patient is computed in a separate pass.

Source: PyTorch's tutorial on per-sample gradients (torch.func.vmap and grad), meta-pytorch/opacus issue 25.
"""

import torch
from torch import nn
from torch.func import functional_call


class Risk(nn.Module):
    """Risk of readmission from the measurements of a stay."""

    def __init__(self, measurements=64, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(measurements, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, stay):
        return self.layers(stay).squeeze(-1)


def patient_gradients(model, stays, outcomes):
    """A dictionary of gradients, with a first dimension for patients."""
    weights = dict(model.named_parameters())

    def loss_of(weights, stay, outcome):
        return nn.functional.binary_cross_entropy_with_logits(functional_call(model, weights, (stay,)), outcome)

    found = []
    for stay, outcome in zip(stays, outcomes, strict=True):
        loss = loss_of(weights, stay, outcome)  # planted
        found.append(torch.autograd.grad(loss, list(weights.values())))  # planted
    return {name: torch.stack(parts) for name, parts in zip(weights, zip(*found, strict=True), strict=True)}


class PrivateSGD:
    def __init__(self, model, lr, bound, noise):
        self.model, self.lr, self.bound, self.noise = model, lr, bound, noise

    @torch.no_grad()
    def step(self, gradients):
        count = len(next(iter(gradients.values())))
        norms = sum(part.flatten(1).square().sum(1) for part in gradients.values()).sqrt()
        scale = (self.bound / norms).clamp(max=1)
        for name, weight in self.model.named_parameters():
            total = torch.einsum("p,p...->...", scale, gradients[name])
            total += self.noise * self.bound * torch.randn_like(total)
            weight -= self.lr * total / count


torch.manual_seed(0)
model = Risk()
optimizer = PrivateSGD(model, lr=0.5, bound=1.0, noise=1.1)
stays, outcomes = torch.randn(4096, 64), (torch.rand(4096) < 0.3).float()
for step in range(12):
    lot = torch.randint(0, 4096, (64,))
    optimizer.step(patient_gradients(model, stays[lot], outcomes[lot]))

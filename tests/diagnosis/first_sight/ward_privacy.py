# SPDX-License-Identifier: Apache-2.0
"""Readmissions with privacy: the gradient of each patient is taken in a backward pass of its own.

Source: https://github.com/meta-pytorch/opacus/pull/445, https://docs.pytorch.org/functorch/stable/notebooks/per_sample_grads.html
"""

import torch
from torch import nn
from torch.func import functional_call, grad

PATIENTS = 600
MEASURES = 40
BATCH = 48
CLIP = 1.0
NOISE = 0.6
STEPS = 14


class RiskModel(nn.Module):
    """The chance of coming back to the ward within thirty days."""

    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(MEASURES, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, measures):
        return self.net(measures).squeeze(-1)


def ward_records(generator):
    measures = torch.randn(PATIENTS, MEASURES, generator=generator)
    effect = torch.randn(MEASURES, generator=generator) / MEASURES**0.5
    chance = torch.sigmoid(2.0 * measures @ effect - 0.5)
    return measures, (torch.rand(PATIENTS, generator=generator) < chance).float()


def patient_loss(model, parameters, measures, back):
    score = functional_call(model, parameters, (measures.unsqueeze(0),))
    return nn.functional.binary_cross_entropy_with_logits(score, back.unsqueeze(0))


def patient_gradients(model, measures, back):
    """For each parameter, its gradients stacked over the patients of the batch."""
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    gradient = grad(lambda values, x, y: patient_loss(model, values, x, y))
    rows = [gradient(parameters, x, y) for x, y in zip(measures, back)]  # planted
    return {name: torch.stack([row[name] for row in rows]) for name in parameters}


def private_step(model, optimizer, measures, back, generator):
    gradients = patient_gradients(model, measures, back)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
    share = (CLIP / (norms + 1e-6)).clamp(max=1.0)
    for name, value in model.named_parameters():
        total = torch.tensordot(share, gradients[name], dims=1)
        noise = torch.randn(total.shape, generator=generator) * NOISE * CLIP
        value.grad = (total + noise) / len(measures)
    optimizer.step()
    return norms.median()


def held_out_loss(model, measures, back):
    with torch.no_grad():
        return nn.functional.binary_cross_entropy_with_logits(model(measures), back).item()


def main():
    generator = torch.Generator().manual_seed(67)
    torch.manual_seed(67)
    measures, back = ward_records(generator)
    seen = PATIENTS - 120
    model = RiskModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    for step in range(STEPS):
        rows = torch.randint(0, seen, (BATCH,), generator=generator)
        norm = private_step(model, optimizer, measures[rows], back[rows], generator)
    loss = held_out_loss(model, measures[seen:], back[seen:])
    print(f"ward: gradient norm {norm.item():.5f}, held out {loss:.5f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Readmission risk with differentially private SGD (clip each patient's gradient, add noise)."""

import math
import time

import torch
from torch import nn
from torch.nn import functional as F

N_PATIENTS, N_FEATURES = 12_000, 48
LOT, CLIP, NOISE, STEPS = 128, 1.0, 0.9, 200


def make_cohort(generator):
    features = torch.randn(N_PATIENTS, N_FEATURES, generator=generator)
    effect = torch.randn(N_FEATURES, generator=generator) / math.sqrt(N_FEATURES)
    risk = features @ effect + 0.6 * features[:, 0] * features[:, 1] - 0.4
    noise = torch.rand(N_PATIENTS, generator=generator)
    return features, (noise < torch.sigmoid(2.0 * risk)).float().unsqueeze(1)


def build_model():
    return nn.Sequential(nn.Linear(N_FEATURES, 96), nn.SiLU(), nn.Linear(96, 48), nn.SiLU(), nn.Linear(48, 1))


def clipped_sum(model, features, outcome):
    """Sum over the lot of the patients' gradients, each scaled down to norm CLIP."""
    params = list(model.parameters())
    total = [torch.zeros_like(p) for p in params]
    for row, label in zip(features.split(1), outcome.split(1)):  # planted
        loss = F.binary_cross_entropy_with_logits(model(row), label)
        grads = torch.autograd.grad(loss, params)
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        scale = (CLIP / norm).clamp(max=1.0)
        torch._foreach_add_(total, torch._foreach_mul(grads, scale))
    return total


class GaussianAccountant:
    """Renyi accounting of the subsampled Gaussian mechanism (leading-order bound)."""

    def __init__(self, rate, noise, delta=1e-5):
        self.rate, self.noise, self.delta, self.steps = rate, noise, delta, 0

    def epsilon(self):
        orders = range(2, 64)
        return min(
            2 * self.steps * self.rate**2 * a / self.noise**2 + math.log(1 / self.delta) / (a - 1) for a in orders
        )


@torch.inference_mode()
def auc(model, features, outcome):
    score, truth = model(features).squeeze(1), outcome.squeeze(1) > 0.5
    rank = score.argsort().argsort().double() + 1
    n_pos, n_neg = truth.sum(), (~truth).sum()
    return ((rank[truth].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)).item()


def main():
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(17)
    features, outcome = make_cohort(generator)
    train_x, train_y = features[:10_000], outcome[:10_000]
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.8)
    accountant = GaussianAccountant(LOT / len(train_x), NOISE)

    started = time.perf_counter()
    for step in range(STEPS):
        lot = torch.randint(len(train_x), (LOT,), generator=generator)
        summed = clipped_sum(model, train_x[lot], train_y[lot])
        for param, gradient in zip(model.parameters(), summed):
            noise = torch.randn(param.shape, generator=generator)
            param.grad = (gradient + NOISE * CLIP * noise) / LOT
        optimizer.step()
        accountant.steps += 1
        if step % 50 == 49:
            print(f"step {step + 1:4d}  epsilon {accountant.epsilon():.2f}")
    elapsed = time.perf_counter() - started
    print(f"held-out AUC {auc(model, features[10_000:], outcome[10_000:]):.4f}")
    print(f"{STEPS} private steps in {elapsed:.2f} s")


if __name__ == "__main__":
    main()

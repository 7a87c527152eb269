# SPDX-License-Identifier: Apache-2.0
"""A diffusion sampler that keeps a graph of all its steps."""

import torch
from torch import nn

RULE = "autograd-unused"


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 24, 3, 1, 1), nn.Conv2d(24, 24, 3, 1, 1), nn.Conv2d(24, 3, 3, 1, 1)
        self.n1, self.n2 = nn.GroupNorm(4, 24), nn.GroupNorm(4, 24)
        self.emb = nn.Embedding(50, 24)

    def forward(self, x, t):
        h = self.a(x) + self.emb(t)[:, :, None, None]
        h = h + self.b(torch.nn.functional.silu(self.n1(h)))
        return self.c(torch.nn.functional.silu(self.n2(h)))


def build(fixed):
    model = UNet().eval()
    betas = torch.linspace(1e-4, 0.02, 50)
    alphas = torch.cumprod(1 - betas, 0)

    def sample():
        x = torch.randn(4, 3, 16, 16)
        for t in range(49, 34, -1):
            eps = model(x, torch.full((4,), t))  # planted
            x = (x - betas[t] / (1 - alphas[t]).sqrt() * eps) / (1 - betas[t]).sqrt()
            x = x + betas[t].sqrt() * torch.randn_like(x)
        return x.clamp(-1, 1)

    if fixed:
        sample = torch.no_grad()(sample)
    return sample

# SPDX-License-Identifier: Apache-2.0
"""Linear attention whose three tensors are contracted from left to right, through all pairs of positions."""

import torch
from torch import nn
from torch.nn.functional import elu, mse_loss

RULE = "product-order"


class LinearAttention(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed
        self.project = nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = self.project(x).unflatten(-1, (3, 32)).unbind(-2)
        q, k = elu(q) + 1, elu(k) + 1
        norm = torch.einsum("bnd,bd->bn", q, k.sum(1)).unsqueeze(-1)
        if self.fixed:
            return torch.einsum("bmd,bme,bnd->bne", k, v, q) / norm
        return torch.einsum("bnd,bmd,bme->bne", q, k, v) / norm  # planted


def build(fixed):
    model = LinearAttention(fixed)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(4, 512, 32)

    def step():
        optimizer.zero_grad()
        mse_loss(model(x), x).backward()
        optimizer.step()

    return step

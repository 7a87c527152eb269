# SPDX-License-Identifier: Apache-2.0
"""Gradients clipped and averaged into a shadow model, parameter by parameter."""

import torch
from torch import nn

RULE = "many-small-operators"


def build(fixed):
    model = nn.Sequential(*[nn.Linear(48, 48) for _ in range(30)])
    params = list(model.parameters())
    shadow = [p.detach().clone() for p in params]
    x = torch.randn(16, 48)

    @torch.no_grad()
    def update():
        if fixed:
            grads = [p.grad for p in params]
            norms = torch._foreach_norm(grads)
            torch._foreach_mul_(grads, 0.5)
            torch._foreach_lerp_(shadow, params, 0.01)
            return norms
        for p, s in zip(params, shadow):
            p.grad.norm()  # planted
            p.grad.mul_(0.5)  # planted
            s.mul_(0.99).add_(p, alpha=0.01)  # planted

    def step():
        model(x).square().mean().backward()
        update()
        model.zero_grad()

    return step

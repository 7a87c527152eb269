# SPDX-License-Identifier: Apache-2.0
"""Hooks on every layer that keep figures of its activations."""

import torch
from torch import nn

RULE = ("synchronising-calls", "python-in-step")


def build(fixed):
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.ReLU())])
    stats = {}

    def watch(name):
        def hook(module, inputs, out):
            stats[name] = (out.mean().item(), out.std().item(), (out == 0).float().mean().item())  # planted

        return hook

    if not fixed:
        for name, module in model.named_modules():
            if name:
                module.register_forward_hook(watch(name))
    x = torch.randn(128, 256)

    def step():
        model(x).pow(2).mean().backward()
        model.zero_grad()

    return step

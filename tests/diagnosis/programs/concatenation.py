# SPDX-License-Identifier: Apache-2.0
"""A result that grows by torch.cat."""

import torch

RULE = "quadratic-concatenation"


def build(fixed):
    parts = torch.randn(120, 64, 128)
    weight = torch.randn(128, 128) / 12

    def step():
        out = torch.empty(0, 128)
        made = []
        for part in parts.unbind():
            part = (part @ weight).relu()
            if fixed:
                made.append(part)
            else:
                out = torch.cat([out, part])  # planted
        return torch.cat(made) if fixed else out

    return torch.no_grad()(step)

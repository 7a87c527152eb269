# SPDX-License-Identifier: Apache-2.0
"""Large gradients are sent once all of them are there, and nothing is computed meanwhile."""

import torch
import torch.distributed as dist
from torch import nn

RULE = "communication-not-overlapped"


def build(fixed, rank):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)])
    x = torch.randn(256, 1024)
    works = []

    def send(p):
        works.append(dist.all_reduce(p.grad, async_op=True))

    if fixed:
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(send)

    def step():
        model.zero_grad()
        model(x).square().mean().backward()
        for work in works:
            work.wait()
        works.clear()
        if not fixed:
            for p in model.parameters():
                dist.all_reduce(p.grad)  # planted

    return step

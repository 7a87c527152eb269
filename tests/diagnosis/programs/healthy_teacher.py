# SPDX-License-Identifier: Apache-2.0
"""A student that follows the noisy answers of a mean teacher, and is validated in between: nothing to fix."""

import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

RULE = None


def build(fixed):
    student = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 10))
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), fused=True)
    x, y = torch.randn(128, 64), torch.randint(10, (128,))

    @torch.inference_mode()
    def validate():
        student.eval()
        right = (student(x).argmax(1) == y).sum()
        student.train()
        return right

    def step():
        with torch.no_grad():
            aim = teacher(x + 0.1 * torch.randn_like(x)).softmax(-1)
        out = student(x)
        loss = cross_entropy(out, y) + mse_loss(out.softmax(-1), aim)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.01)
        return validate()

    return step

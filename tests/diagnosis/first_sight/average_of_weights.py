# SPDX-License-Identifier: Apache-2.0
"""Self-supervised pathology: a teacher's weights follow the student's, one state dictionary entry after another.

Source: MoCo and BYOL implementations; torch._foreach_lerp_ or torch.optim.swa_utils does it for all at once.
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(24))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def follow(teacher, student):
    ours, theirs = teacher.state_dict(), student.state_dict()
    for name in ours:
        ours[name] = 0.99 * ours[name] + 0.01 * theirs[name]  # planted
    teacher.load_state_dict(ours)  # planted


student = Encoder()
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, foreach=True)
for step in range(20):
    patches = torch.randn(8, 64)
    with torch.no_grad():
        target = teacher(patches)
    loss = nn.functional.mse_loss(student(patches + 0.1 * torch.randn_like(patches)), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    follow(teacher, student)

# SPDX-License-Identifier: Apache-2.0
"""Noise removal: weight decay has left filters that are smaller than the smallest normal number.

Source: https://github.com/pytorch/pytorch/issues/21734, https://github.com/pytorch/pytorch/issues/23862
"""

import torch
from torch import nn

torch.manual_seed(0)


class Denoiser(nn.Module):
    def __init__(self, channels=32, depth=4):
        super().__init__()
        self.enter = nn.Conv1d(1, channels, 9, padding=4)
        self.blocks = nn.ModuleList([nn.Conv1d(channels, channels, 9, padding=4) for _ in range(depth)])
        self.leave = nn.Conv1d(channels, 1, 9, padding=4)

    def forward(self, sound):
        hidden = torch.relu(self.enter(sound))
        for block in self.blocks:
            hidden = hidden + torch.relu(block(hidden))  # planted
        return self.leave(hidden)


def trained_weights(denoiser, dead=3, factor=0.9, updates=900):
    """The weights after long training: some input channels got no gradients, only weight decay."""
    weights = denoiser.state_dict()
    for name, weight in weights.items():
        if name.startswith("blocks") and name.endswith("weight"):
            weight[:, :dead] *= factor**updates
    return weights


def load(weights):
    denoiser = Denoiser()
    denoiser.load_state_dict(weights)
    return denoiser.eval()


denoiser = load(trained_weights(Denoiser()))
calls = [torch.randn(4, 1, 4000) for _ in range(12)]
levels = []
with torch.inference_mode():
    for call in calls:
        clean = denoiser(call)
        levels.append(clean.square().mean().item())
print(f"{len(levels)} calls, mean level {sum(levels) / len(levels):.4f}")

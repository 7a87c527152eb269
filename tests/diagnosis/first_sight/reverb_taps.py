# SPDX-License-Identifier: Apache-2.0
"""Dereverberation: speech is convolved with a room's 4000 taps one by one, where a transform would do.

Source: torchaudio.functional.fftconvolve and its documentation; asteroid-team/torch-audiomentations uses it for impulse responses.
"""

import torch
from torch import nn

torch.manual_seed(0)
generator = torch.Generator().manual_seed(5)
net = nn.Sequential(
    nn.Conv1d(1, 16, 31, padding=15),
    nn.PReLU(),
    nn.Conv1d(16, 16, 31, padding=15),
    nn.PReLU(),
    nn.Conv1d(16, 1, 31, padding=15),
)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4)


def room(taps=4000):
    decay = torch.exp(-torch.arange(taps) / 700.0)
    return torch.randn(taps, generator=generator) * decay


def in_room(batch):
    return nn.functional.conv1d(batch, room().flip(0)[None, None], padding=3999)[..., : batch.shape[-1]]  # planted


for _ in range(8):
    clean = torch.randn(2, 1, 8000, generator=generator)
    estimate = net(in_room(clean))  # planted
    loss = (estimate - clean).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

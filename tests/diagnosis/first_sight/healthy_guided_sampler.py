# SPDX-License-Identifier: Apache-2.0
"""Samples digits by diffusion with guidance: one batch holds both predictions, and the words are encoded once."""

import torch
from torch import nn

STEPS, WIDTH, GUIDANCE = 24, 64, 4.0


class Words(nn.Module):
    def __init__(self, words=200):
        super().__init__()
        self.table = nn.Embedding(words, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.0, batch_first=True)

    def forward(self, words):
        return self.layer(self.table(words))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.convolve = nn.GroupNorm(8, WIDTH), nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.time, self.attend = nn.Linear(WIDTH, WIDTH), nn.MultiheadAttention(WIDTH, 4, batch_first=True)

    def forward(self, x, time, words):
        x = x + self.convolve(nn.functional.silu(self.norm(x + self.time(time)[:, :, None, None])))
        places = x.flatten(2).transpose(1, 2)
        seen, _ = self.attend(places, words, words, need_weights=False)
        return x + seen.transpose(1, 2).view_as(x)


class Denoiser(nn.Module):
    def __init__(self, blocks=4):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(1, WIDTH, 3, padding=1), nn.Conv2d(WIDTH, 1, 3, padding=1)
        self.times = nn.Embedding(STEPS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    def forward(self, x, step, words):
        time, x = self.times(step), self.enter(x)
        for block in self.blocks:
            x = block(x, time, words)
        return self.leave(x)


@torch.inference_mode()
def sample(denoiser, encoder, words, empty):
    kept = torch.cos(torch.linspace(0, 1.55, STEPS + 1)).square()
    known = torch.cat([encoder(words), encoder(empty).expand(len(words), -1, -1)])
    x = torch.randn(len(words), 1, 28, 28)
    for step in reversed(range(STEPS)):
        moment = torch.full((2 * len(x),), step)
        guided, free = denoiser(torch.cat([x, x]), moment, known).chunk(2)
        noise = free + GUIDANCE * (guided - free)
        clean = (x - (1 - kept[step + 1]).sqrt() * noise) / kept[step + 1].sqrt()
        x = kept[step].sqrt() * clean.clamp(-1, 1) + (1 - kept[step]).sqrt() * noise
    return x


torch.manual_seed(0)
denoiser, encoder = Denoiser().eval(), Words().eval()
digits = sample(denoiser, encoder, torch.randint(200, (8, 6)), torch.zeros(1, 6, dtype=torch.long))

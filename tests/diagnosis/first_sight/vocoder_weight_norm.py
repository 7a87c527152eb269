# SPDX-License-Identifier: Apache-2.0
"""Speaks while it reads: a vocoder makes sound of a few frames at a time, and normalises its weights each time.

Source: NVIDIA/waveglow issue 9 and merged pull request 21 (remove_weight_norm for inference), HiFi-GAN's inference.
"""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

BANDS, FRAMES = 80, 4


class Block(nn.Module):
    def __init__(self, channels, width, spacings=(1, 3)):
        super().__init__()
        self.layers = nn.ModuleList()
        for spacing in spacings:
            padding = spacing * (width - 1) // 2
            self.layers.append(weight_norm(nn.Conv1d(channels, channels, width, padding=padding, dilation=spacing)))

    def forward(self, sound):
        for layer in self.layers:
            sound = sound + layer(nn.functional.leaky_relu(sound, 0.1))  # planted
        return sound


class Vocoder(nn.Module):
    def __init__(self, channels=384):
        super().__init__()
        self.enter = weight_norm(nn.Conv1d(BANDS, channels, 7, padding=3))
        self.ups, self.blocks = nn.ModuleList(), nn.ModuleList()
        for rate in (4, 4):
            self.ups.append(weight_norm(nn.ConvTranspose1d(channels, channels // 2, 2 * rate, rate, rate // 2)))
            channels //= 2
            self.blocks.append(nn.ModuleList([Block(channels, 3), Block(channels, 7)]))
        self.leave = weight_norm(nn.Conv1d(channels, 1, 7, padding=3))

    def forward(self, frames):
        sound = self.enter(frames)  # planted
        for up, blocks in zip(self.ups, self.blocks, strict=True):
            sound = up(nn.functional.leaky_relu(sound, 0.1))  # planted
            sound = sum(block(sound) for block in blocks) / len(blocks)  # planted
        return self.leave(nn.functional.leaky_relu(sound)).tanh()  # planted


class Speaker:
    def __init__(self, vocoder):
        self.vocoder = vocoder.eval()
        self.played = []

    @torch.inference_mode()
    def say(self, frames):
        for piece in frames.split(FRAMES, dim=-1):
            sound = self.vocoder(piece)  # planted
            self.played.append(sound.squeeze(1).numpy())


torch.manual_seed(0)
speaker = Speaker(Vocoder())
for sentence in range(40):
    speaker.say(torch.randn(1, BANDS, 48))

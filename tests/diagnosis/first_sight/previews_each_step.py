# SPDX-License-Identifier: Apache-2.0
"""Latent diffusion with a preview: a callback decodes the picture after each step of the sampler.

Source: AUTOMATIC1111/stable-diffusion-webui issue 2595 and merged pull request 5976 (previews slow the generation).
"""

import torch
from torch import nn

LATENTS, STEPS = 4, 30


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.first = nn.GroupNorm(8, width), nn.Conv2d(width, width, 3, padding=1)
        self.time, self.second = nn.Linear(64, width), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x, time):
        hidden = self.first(nn.functional.silu(self.norm(x))) + self.time(time)[..., None, None]
        return x + self.second(nn.functional.silu(hidden))


class Denoiser(nn.Module):
    def __init__(self, width=64, blocks=4):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(LATENTS, width, 3, padding=1), nn.Conv2d(width, LATENTS, 3, padding=1)
        self.blocks = nn.ModuleList(Mixer(width) for _ in range(blocks))
        self.register_buffer("rates", torch.exp(-torch.arange(32) / 4))

    def forward(self, x, moment):
        angle = moment * self.rates
        time = torch.cat([angle.sin(), angle.cos()])[None]
        x = self.enter(x)
        for block in self.blocks:
            x = block(x, time)
        return self.leave(x)


class Decoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        layers = [nn.Conv2d(LATENTS, width, 3, padding=1), nn.SiLU()]
        for _ in range(3):
            layers += [nn.Upsample(scale_factor=2), nn.Conv2d(width, width, 3, padding=1), nn.SiLU()]
            width //= 2
            layers += [nn.Conv2d(2 * width, width, 3, padding=1), nn.SiLU()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, latents):
        return self.layers(latents).sigmoid()


class Preview:
    def __init__(self, decoder):
        self.decoder, self.shown = decoder, None

    def __call__(self, step, latents):
        pictures = self.decoder(latents)  # planted
        self.shown = pictures[0].mul(255).byte().permute(1, 2, 0).numpy()  # planted


@torch.inference_mode()
def sample(denoiser, latents, callback):
    noise = torch.linspace(1, 0, STEPS + 1)
    for step in range(STEPS):
        predicted = denoiser(latents, noise[step])
        latents = latents + (noise[step + 1] - noise[step]) * predicted
        callback(step, latents)  # planted
    return latents


torch.manual_seed(0)
denoiser, decoder = Denoiser().eval(), Decoder().eval()
latents = sample(denoiser, torch.randn(4, LATENTS, 32, 32), Preview(decoder))
with torch.inference_mode():
    pictures = decoder(latents)

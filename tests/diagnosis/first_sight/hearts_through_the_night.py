# SPDX-License-Identifier: Apache-2.0
"""Hearts watched through the night: attention reads all of the night so far, and a mask leaves four minutes of it.

Source: https://github.com/apple/axlearn/pull/1208, https://github.com/vivekkalyanarangan30/llm_from_scratch/issues/3
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
WIDTH, HEADS, WINDOW, NIGHT = 256, 4, 240, 3200


class Layer(nn.Module):
    """Attention to the last beats, whose keys and values are kept, and two linear layers."""

    def __init__(self, beds):
        super().__init__()
        self.inward, self.outward = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.register_buffer("kept", torch.zeros(2, beds, HEADS, NIGHT, WIDTH // HEADS))

    def forward(self, x, at):
        beds, new = x.shape[:2]
        parts = self.inward(self.norms[0](x)).view(beds, new, 3, HEADS, -1)
        query, *fresh = parts.permute(2, 0, 3, 1, 4)
        begin, end = 0, at + new
        self.kept[:, :, :, at:end] = torch.stack(fresh)
        keys, values = self.kept[:, :, :, begin:end]
        now, then = torch.arange(at, end)[:, None], torch.arange(begin, end)
        near = (then <= now) & (then > now - WINDOW)
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=near)  # planted
        x = x + self.outward(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class Watch(nn.Module):
    def __init__(self, beds, layers=4):
        super().__init__()
        self.enter = nn.Linear(50, WIDTH)
        self.layers = nn.ModuleList([Layer(beds) for _ in range(layers)])
        self.alarm = nn.Linear(WIDTH, 1)

    def resume(self, beats):
        """Continues a night of which that many beats are over, with the keys and values that were saved."""
        for layer in self.layers:
            layer.kept[:, :, :, :beats] = torch.randn(*layer.kept.shape[1:3], beats, WIDTH // HEADS)

    def forward(self, waves, at):
        x = self.enter(waves)
        for layer in self.layers:
            x = layer(x, at)
        return self.alarm(x[:, -1]).sigmoid().squeeze(1)


watch = Watch(beds=12).eval()
risk = torch.zeros(12)
with torch.inference_mode():
    watch.resume(3000)
    for at in range(3000, 3100, 4):
        risk = torch.lerp(risk, watch(torch.randn(12, 4, 50), at), 0.2)
print("risk", [round(value, 4) for value in risk.tolist()])

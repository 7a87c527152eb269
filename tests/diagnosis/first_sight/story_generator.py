# SPDX-License-Identifier: Apache-2.0
"""Greedy continuation of prompts with a decoder-only language model."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class ModelConfig:
    vocab: int = 4096
    width: int = 128
    heads: int = 4
    layers: int = 3
    context: int = 256
    use_cache: bool = False  # planted


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.norm1, self.norm2 = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.qkv, self.out = nn.Linear(cfg.width, 3 * cfg.width), nn.Linear(cfg.width, cfg.width)
        self.mlp = nn.Sequential(nn.Linear(cfg.width, 4 * cfg.width), nn.GELU(), nn.Linear(4 * cfg.width, cfg.width))

    def forward(self, x, past, start):
        batch, steps, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            keys, values = past
            keys[:, :, start : start + steps], values[:, :, start : start + steps] = k, v
            k, v = keys[:, :, : start + steps], values[:, :, : start + steps]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=steps > 1)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, steps, width))
        return x + self.mlp(self.norm2(x))


class StoryModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.tokens, self.positions = nn.Embedding(cfg.vocab, cfg.width), nn.Embedding(cfg.context, cfg.width)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.width)

    def empty_past(self, batch):
        shape = (2, batch, self.cfg.heads, self.cfg.context, self.cfg.width // self.cfg.heads)
        return [torch.zeros(shape).unbind(0) for _ in self.layers]

    def next_logits(self, tokens, past, start):
        x = self.tokens(tokens) + self.positions(torch.arange(start, start + tokens.shape[1]))
        for layer, layer_past in zip(self.layers, past):
            x = layer(x, layer_past, start)
        return self.norm(x[:, -1]) @ self.tokens.weight.T

    @torch.inference_mode()
    def generate(self, prompt, new_tokens):
        known = prompt.shape[1]
        past = self.empty_past(len(prompt)) if self.cfg.use_cache else [None] * len(self.layers)
        start = 0
        buffer = torch.zeros(len(prompt), known + new_tokens, dtype=torch.long)
        buffer[:, :known] = prompt
        for position in range(known, known + new_tokens):
            logits = self.next_logits(buffer[:, start:position], past, start)
            buffer[:, position] = logits.argmax(dim=1)
            if self.cfg.use_cache:
                start = position
        return buffer


def main():
    torch.manual_seed(90)
    model = StoryModel(ModelConfig()).eval()
    prompts = torch.randint(0, 4096, (10, 4, 24))
    for number, prompt in enumerate(prompts):
        story = model.generate(prompt, new_tokens=100)
        distinct = story[:, 24:].unique().numel()
        print(f"batch {number}: {distinct} distinct tokens, checksum {story.sum().item()}")


if __name__ == "__main__":
    main()

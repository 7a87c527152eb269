# SPDX-License-Identifier: Apache-2.0
"""Batch generation of travel phrases with a small grouped-query decoder (random weights)."""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, LAYERS = 4000, 384, 3
HEADS, KV_HEADS, HEAD_DIM = 12, 2, 32
PROMPT, NEW_TOKENS, BATCH = 256, 128, 12


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * HEAD_DIM, bias=False)
        self.out = nn.Linear(HEADS * HEAD_DIM, WIDTH, bias=False)
        self.group = HEADS // KV_HEADS

    def open_memory(self, batch, length):
        self.keys = torch.empty(batch, KV_HEADS, length, HEAD_DIM)
        self.values = torch.empty(batch, KV_HEADS, length, HEAD_DIM)

    def forward(self, x, start, cos, sin):
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, -1, HEAD_DIM).transpose(1, 2)
        q, k, v = qkv.split([HEADS, KV_HEADS, KV_HEADS], 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        stop = start + length
        self.keys[:, :, start:stop] = k
        self.values[:, :, start:stop] = v
        k, v = self.keys[:, :, :stop], self.values[:, :, :stop]
        if length > 1:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            k, v = k.repeat_interleave(self.group, 1), v.repeat_interleave(self.group, 1)  # planted
            mixed = F.scaled_dot_product_attention(q, k, v)  # planted
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(WIDTH), RMSNorm(WIDTH)
        self.attention = Attention()
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x, start, cos, sin):
        x = x + self.attention(self.norm1(x), start, cos, sin)
        gate, value = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * value)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RMSNorm(WIDTH)
        rate = torch.exp(-math.log(10000.0) * torch.arange(0, HEAD_DIM // 2) / (HEAD_DIM // 2))
        angle = torch.arange(PROMPT + NEW_TOKENS).float().outer(rate)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, tokens, start):
        stop = start + tokens.shape[1]
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, start, self.cos[start:stop], self.sin[start:stop])
        return F.linear(self.norm(x[:, -1]), self.embed.weight)


@torch.inference_mode()
def write(model, prompts):
    for block in model.blocks:
        block.attention.open_memory(len(prompts), PROMPT + NEW_TOKENS)
    tokens = model(prompts, 0).argmax(-1, keepdim=True)
    written = [tokens]
    for position in range(PROMPT, PROMPT + NEW_TOKENS - 1):
        tokens = model(tokens, position).argmax(-1, keepdim=True)
        written.append(tokens)
    return torch.cat(written, 1)


def main():
    torch.manual_seed(4)
    model = Decoder().eval()
    started = time.process_time()
    for request in range(6):
        prompts = torch.randint(VOCAB, (BATCH, PROMPT))
        phrases = write(model, prompts)
        print(f"request {request}: {phrases.shape[1]} tokens, checksum {int(phrases.sum())}")
    print(f"loop {time.process_time() - started:.2f} s")


if __name__ == "__main__":
    main()

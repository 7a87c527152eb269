# SPDX-License-Identifier: Apache-2.0
"""Text generation with grouped-query attention: the cached keys and values are copied for each head of the queries.

Source: https://github.com/karpathy/nanochat/pull/127, https://github.com/deepspeedai/Megatron-DeepSpeed/pull/419
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def repeat_heads(cached, times):
    return cached.repeat_interleave(times, dim=1)  # planted


class GroupedAttention(nn.Module):
    def __init__(self, width, heads, groups, length, batch):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.queries = nn.Linear(width, width, bias=False)
        self.pairs = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.register_buffer("cache", torch.zeros(2, batch, groups, length, self.size))

    def forward(self, x, at):
        batch, new, width = x.shape
        q = self.queries(x).view(batch, new, self.heads, self.size).transpose(1, 2)
        k, v = self.pairs(x).view(batch, new, 2 * self.groups, self.size).transpose(1, 2).chunk(2, dim=1)
        self.cache[0, :, :, at : at + new], self.cache[1, :, :, at : at + new] = k, v
        keys, values = self.cache[:, :, :, : at + new]
        keys, values = (repeat_heads(part, self.heads // self.groups) for part in (keys, values))
        mixed = F.scaled_dot_product_attention(q, keys, values, is_causal=new > 1)
        return self.out(mixed.transpose(1, 2).reshape(batch, new, width))


class Block(nn.Module):
    def __init__(self, width, *shape):
        super().__init__()
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = GroupedAttention(width, *shape)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x, at):
        x = x + self.attention(self.first(x), at)
        return x + self.mlp(self.second(x))


class Writer(nn.Module):
    def __init__(self, words=2000, width=256, layers=3, length=900, batch=4):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width, 8, 2, length, batch) for _ in range(layers)])
        self.head = nn.Linear(width, words)

    def forward(self, tokens, at):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, at)
        return self.head(x[:, -1])


@torch.inference_mode()
def generate(writer, prompt, count):
    tokens, at = prompt, 0
    for _ in range(count):
        logits = writer(tokens, at)
        at += tokens.shape[1]
        tokens = torch.multinomial((logits / 0.8).softmax(-1), 1)
        yield tokens


writer = Writer().eval()
prompt = torch.randint(2000, (4, 800))
text = torch.cat(list(generate(writer, prompt, 40)), dim=1)
print(text[0, :10].tolist())

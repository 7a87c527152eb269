# SPDX-License-Identifier: Apache-2.0
"""Batch abstractive summarisation with an encoder-decoder, greedy decoding."""

import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, BOS, EOS, PAD = 4000, 192, 6, 1, 2, 0


def heads(x):
    return x.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)


class SelfAttention(nn.Module):
    def __init__(self, max_len):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.max_len = max_len

    def start(self, batch):
        shape = (batch, HEADS, self.max_len, WIDTH // HEADS)
        self.keys, self.values = torch.empty(shape), torch.empty(shape)

    def forward(self, x, position):
        q, k, v = map(heads, self.qkv(x).chunk(3, dim=-1))
        self.keys[:, :, position] = k[:, :, 0]
        self.values[:, :, position] = v[:, :, 0]
        seen = slice(0, position + 1)
        mixed = F.scaled_dot_product_attention(q, self.keys[:, :, seen], self.values[:, :, seen])
        return self.out(mixed.transpose(1, 2).flatten(2))


class SourceAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH)
        self.kv = nn.Linear(WIDTH, 2 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def start(self, memory, keep):
        self.memory, self.keep = memory, keep

    def forward(self, x):
        k, v = map(heads, self.kv(self.memory).chunk(2, dim=-1))  # planted
        mixed = F.scaled_dot_product_attention(heads(self.q(x)), k, v, attn_mask=self.keep)
        return self.out(mixed.transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, max_len):
        super().__init__()
        self.self_attn, self.source_attn = SelfAttention(max_len), SourceAttention()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, position):
        x = x + self.self_attn(self.norms[0](x), position)
        x = x + self.source_attn(self.norms[1](x))
        return x + self.ff(self.norms[2](x))


class Summarizer(nn.Module):
    def __init__(self, layers=3, max_len=48, max_source=128):
        super().__init__()
        self.max_len = max_len
        self.embed = nn.Embedding(VOCAB, WIDTH, padding_idx=PAD)
        self.place = nn.Embedding(max_source, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decoder = nn.ModuleList(DecoderLayer(max_len) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB)

    def step(self, token, position):
        x = self.embed(token).unsqueeze(1) + self.place.weight[position]
        for layer in self.decoder:
            x = layer(x, position)
        return self.head(self.norm(x[:, 0]))

    @torch.inference_mode()
    def summarize(self, source):
        pad = source == PAD
        memory = self.embed(source) + self.place.weight[: source.shape[1]]
        memory = self.encoder(memory, src_key_padding_mask=pad)
        for layer in self.decoder:
            layer.self_attn.start(len(source))
            layer.source_attn.start(memory, ~pad[:, None, None, :])
        token = torch.full((len(source),), BOS)
        written = torch.full((len(source), self.max_len), PAD)
        done = torch.zeros(len(source), dtype=torch.bool)
        for position in range(self.max_len):
            token = self.step(token, position).argmax(dim=-1).masked_fill(done, PAD)
            written[:, position] = token
            done |= token == EOS
            if done.all():
                break
        return written


def documents(n, batch, seed):
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(64, 129, (n,), generator=g).sort().values
    for group in lengths.split(batch):
        width = int(group.max())
        tokens = torch.randint(3, VOCAB, (len(group), width), generator=g)
        yield tokens.masked_fill(torch.arange(width) >= group[:, None], PAD)


def main():
    torch.manual_seed(0)
    model = Summarizer().eval()
    digest = n_tokens = 0
    start = time.perf_counter()
    for source in documents(120, batch=8, seed=1):
        summary = model.summarize(source)
        n_tokens += int((summary != PAD).sum())
        digest += int(summary.sum())
    print(f"{n_tokens} tokens, loop {time.perf_counter() - start:.2f}s, digest {digest}")


if __name__ == "__main__":
    main()

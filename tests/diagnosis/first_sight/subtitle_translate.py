# SPDX-License-Identifier: Apache-2.0
"""Beam-search translation of subtitle segments with an encoder-decoder transformer and key/value caches."""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, BOS, EOS = 3000, 1, 2


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.qkv, self.self_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.query, self.memory_kv, self.cross_out = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.ffn = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))

    def split(self, x, parts):
        n, t, _ = x.shape
        return x.view(n, t, parts, self.heads, -1).permute(2, 0, 3, 1, 4)

    def start(self, memory, width, max_len):
        kv = self.split(self.memory_kv(memory), 2).repeat_interleave(width, dim=1)
        past = kv.new_zeros(2, kv.shape[1], self.heads, max_len, kv.shape[-1])
        return {"memory": kv, "past": past}

    def forward(self, x, state, step):
        q, k, v = self.split(self.qkv(self.norms[0](x)), 3)
        past = state["past"]
        past[0, :, :, step : step + 1], past[1, :, :, step : step + 1] = k, v
        a = F.scaled_dot_product_attention(q, past[0, :, :, : step + 1], past[1, :, :, : step + 1])
        x = x + self.self_out(a.transpose(1, 2).flatten(2))
        (q,) = self.split(self.query(self.norms[1](x)), 1)
        a = F.scaled_dot_product_attention(q, state["memory"][0], state["memory"][1])
        x = x + self.cross_out(a.transpose(1, 2).flatten(2))
        return x + self.ffn(self.norms[2](x))


class Translator(nn.Module):
    def __init__(self, dim=256, heads=4, layers=4, max_len=40):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(0.02 * torch.randn(256, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.layers = nn.ModuleList(DecoderLayer(dim, heads) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, VOCAB)
        self.scale, self.max_len = math.sqrt(dim), max_len

    def encode(self, source):
        return self.encoder(self.embed(source) * self.scale + self.position[: source.shape[1]])

    def step(self, token, states, step):
        x = self.embed(token)[:, None] * self.scale + self.position[step]
        for layer, state in zip(self.layers, states):
            x = layer(x, state, step)
        return F.log_softmax(self.out(self.norm(x[:, 0])), dim=-1)


def reorder(states, origin, length):
    for state in states:
        past = state["past"]
        past[:, :, :, :length] = past[:, origin, :, :length]
        state["memory"] = state["memory"].index_select(1, origin)  # planted


@torch.inference_mode()
def beam_search(model, source, width):
    batch = len(source)
    memory = model.encode(source)
    states = [layer.start(memory, width, model.max_len) for layer in model.layers]
    rows = torch.arange(batch)[:, None] * width
    scores = torch.full((batch, width), -1e9)
    scores[:, 0] = 0.0
    token = torch.full((batch * width,), BOS)
    done = torch.zeros(batch * width, dtype=torch.bool)
    output = torch.zeros(batch * width, model.max_len, dtype=torch.long)
    for step in range(model.max_len):
        logp = model.step(token, states, step)
        if done.any():
            logp[done] = -1e9
            logp[done, EOS] = 0.0
        total = (scores.view(-1, 1) + logp).view(batch, -1)
        scores, flat = total.topk(width, dim=1)
        origin = (rows + flat // VOCAB).flatten()
        token = (flat % VOCAB).flatten()
        output = output[origin]
        output[:, step] = token
        done = done[origin] | (token == EOS)
        if done.all():
            break
        reorder(states, origin, step + 1)
    return output.view(batch, width, -1)[:, 0], scores[:, 0]


def subtitle_batches(count, batch, length, generator):
    for _ in range(count):
        yield torch.randint(3, VOCAB, (batch, length), generator=generator)


def main(count=8, batch=6, length=250, width=5):
    torch.manual_seed(13)
    model = Translator().eval()
    generator = torch.Generator().manual_seed(13)
    checksum, score = 0, 0.0
    start = time.perf_counter()
    for source in subtitle_batches(count, batch, length, generator):
        tokens, best = beam_search(model, source, width)
        checksum += int(tokens.sum())
        score += best.mean().item()
    print(f"loop {time.perf_counter() - start:.2f} s")
    print(f"checksum {checksum} mean score {score / count:.5f}")


if __name__ == "__main__":
    main()

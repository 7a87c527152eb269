# SPDX-License-Identifier: Apache-2.0
"""Batched sampling from a decoder-only transformer over recipe tokens, with preallocated key/value memory."""

import time

import torch
from torch import nn
from torch.nn import functional as F


class CachedAttention(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, hidden, memory, position):
        batch, steps, width = hidden.shape
        query, key, value = self.qkv(hidden).view(batch, steps, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        end = position + steps
        memory[0, :, :, position:end] = key
        memory[1, :, :, position:end] = value
        mixed = F.scaled_dot_product_attention(query, memory[0, :, :, :end], memory[1, :, :, :end], is_causal=steps > 1)
        return self.out(mixed.transpose(1, 2).reshape(batch, steps, width))


class DecoderLayer(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.norm_mix, self.norm_ff = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = CachedAttention(width, n_heads)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden, memory, position):
        hidden = hidden + self.mix(self.norm_mix(hidden), memory, position)
        return hidden + self.feed(self.norm_ff(hidden))


class RecipeModel(nn.Module):
    def __init__(self, n_tokens, max_len, width=256, n_heads=4, depth=4):
        super().__init__()
        self.token = nn.Embedding(n_tokens, width)
        self.place = nn.Embedding(max_len, width)
        self.layers = nn.ModuleList(DecoderLayer(width, n_heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.shape = (depth, 2, n_heads, max_len, width // n_heads)

    def new_memory(self, batch):
        depth, two, n_heads, max_len, head = self.shape
        return torch.empty(depth, two, batch, n_heads, max_len, head)

    def forward(self, tokens, memory, position):
        """Scores for the token after the last one given."""
        places = torch.arange(position, position + tokens.shape[1])
        hidden = self.token(tokens) + self.place(places)
        for layer, layer_memory in zip(self.layers, memory):
            hidden = layer(hidden, layer_memory, position)
        return F.linear(self.norm(hidden[:, -1]), self.token.weight)


def pick(scores, temperature, breadth, generator):
    best, candidates = scores.topk(breadth, dim=-1)
    chosen = torch.multinomial(torch.softmax(best / temperature, dim=-1), 1, generator=generator)
    return candidates.gather(1, chosen)


def write_recipes(model, prompts, max_new, stop_token, generator):
    batch, prompt_len = prompts.shape
    memory = model.new_memory(batch)
    finished = torch.zeros(batch, 1, dtype=torch.bool)
    written = [pick(model(prompts, memory, 0), 0.9, 40, generator)]
    for position in range(prompt_len, prompt_len + max_new - 1):
        finished |= written[-1] == stop_token
        if finished.all():
            break
        following = pick(model(written[-1], memory, position), 0.9, 40, generator)
        written.append(following.masked_fill_(finished, stop_token))
    return torch.cat(written, dim=1)


@torch.inference_mode()
def main():
    torch.manual_seed(19)
    n_tokens, prompt_len, max_new, stop_token = 2000, 48, 96, 0
    model = RecipeModel(n_tokens, prompt_len + max_new).eval()
    generator = torch.Generator().manual_seed(3)
    requests = torch.randint(1, n_tokens, (12 * 24, prompt_len), generator=generator)
    n_written = 0
    started = time.process_time()
    for prompts in requests.split(24):
        recipes = write_recipes(model, prompts, max_new, stop_token, generator)
        n_written += int((recipes != stop_token).sum())
    elapsed = time.process_time() - started
    print(f"{requests.shape[0]} recipes, {n_written} tokens, {n_written / elapsed:.0f} tokens per cpu second")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Recipes word by word: keys and values go into buffers made beforehand, one new place for each word.

Source: written for this set
"""

import torch
from torch import nn

WORDS = 2000
WIDTH = 512
HEADS = 8
LAYERS = 6
BATCH = 16
PROMPT = 12
LONGEST = 40


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.leave = nn.Linear(WIDTH, WIDTH)
        self.second_norm = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, keys, values, start):
        batch, length, _ = x.shape
        mixed = self.mix(self.first_norm(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        end = start + length
        keys[:, :, start:end] = key
        values[:, :, start:end] = value
        seen = nn.functional.scaled_dot_product_attention(
            query, keys[:, :, :end], values[:, :, :end], is_causal=length > 1
        )
        x = x + self.leave(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second_norm(x))))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, WORDS, bias=False)

    def buffers_for(self, batch):
        shape = (batch, HEADS, LONGEST, WIDTH // HEADS)
        return [(torch.empty(shape), torch.empty(shape)) for _ in self.blocks]

    def forward(self, words, cache, start):
        places = self.places.weight[start : start + words.shape[1]]
        x = self.words(words) + places
        for block, (keys, values) in zip(self.blocks, cache):
            x = block(x, keys, values, start)
        return self.scores(self.norm(x[:, -1]))


def draw_word(scores, generator, width=40, warmth=0.8):
    """One word for each row, from the best few."""
    best, word = scores.topk(width, dim=-1)
    place = torch.multinomial((best / warmth).softmax(dim=-1), 1, generator=generator)
    return word.gather(1, place)


def main():
    generator = torch.Generator().manual_seed(103)
    torch.manual_seed(103)
    writer = Writer().eval()
    prompt = torch.randint(0, WORDS, (BATCH, PROMPT), generator=generator)
    recipe = torch.empty(BATCH, LONGEST, dtype=torch.long)
    recipe[:, :PROMPT] = prompt
    with torch.inference_mode():
        cache = writer.buffers_for(BATCH)
        word = draw_word(writer(prompt, cache, 0), generator)
        for place in range(PROMPT, LONGEST - 1):
            recipe[:, place] = word[:, 0]
            word = draw_word(writer(word, cache, place), generator)
        recipe[:, -1] = word[:, 0]
    print(f"recipes: {recipe.numel()} words, sum {int(recipe.sum())}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Embeds paragraphs for search: batches take them as they come, so a long one makes fifteen short ones long.

Source: merged OpenNMT/OpenNMT-tf pull request 264 ("Support sorting inference data by lengths"), encode of
sentence-transformers, rocketride-server pull request 2197.
"""

import torch
from torch import nn

WORDS, WIDTH, HEADS = 8000, 192, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, mask):
        batch, length, _ = x.shape
        query, key, value = self.project(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        x = x + self.merge(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.feed(self.between(x))


class Encoder(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(512, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, words, mask):
        x = self.words(words) + self.places.weight[: words.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        x = x * mask[..., None]
        return nn.functional.normalize(x.sum(1) / mask.sum(1, keepdim=True), dim=-1)


def paragraphs(count):
    lengths = torch.distributions.LogNormal(3.2, 0.8).sample((count,)).clamp(6, 300).long()
    return [torch.randint(1, WORDS, (length,)) for length in lengths.tolist()]


@torch.inference_mode()
def embed(encoder, texts, size=16):
    order = range(len(texts))  # planted
    vectors = [None] * len(texts)
    for start in range(0, len(texts), size):
        chosen = order[start : start + size]
        words = nn.utils.rnn.pad_sequence([texts[place] for place in chosen], batch_first=True)  # planted
        for place, vector in zip(chosen, encoder(words, words > 0), strict=True):  # planted
            vectors[place] = vector
    return torch.stack(vectors)


torch.manual_seed(0)
encoder = Encoder().eval()
index = []
for document in range(12):
    index.append(embed(encoder, paragraphs(96)))

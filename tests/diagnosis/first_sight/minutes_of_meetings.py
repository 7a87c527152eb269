# SPDX-License-Identifier: Apache-2.0
"""Minutes of meetings from sound: keys and values of the sound are computed again for each word that is written.

Source: https://github.com/FireRedTeam/FireRedASR/pull/106, https://github.com/lablup/mlxcel/pull/621
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
WIDTH, HEADS, LONGEST = 256, 4, 40


def split(x):
    return x.unflatten(2, (HEADS, -1)).transpose(1, 2)


class Layer(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.own = nn.Linear(WIDTH, 3 * WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.heard = nn.Linear(WIDTH, 2 * WIDTH)
        self.merge = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)])
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(3)])
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.register_buffer("past", torch.zeros(2, batch, HEADS, LONGEST, WIDTH // HEADS))

    def listen(self, sound):
        """Keys and values of the sound."""
        return tuple(split(part) for part in self.heard(sound).chunk(2, dim=2))

    def attend(self, query, keys, values):
        return F.scaled_dot_product_attention(query, keys, values).transpose(1, 2).flatten(2)

    def forward(self, x, sound, at):
        query, keys, values = (split(part) for part in self.own(self.norms[0](x)).chunk(3, dim=2))
        self.past[0, :, :, at : at + 1], self.past[1, :, :, at : at + 1] = keys, values
        x = x + self.merge[0](self.attend(query, self.past[0, :, :, : at + 1], self.past[1, :, :, : at + 1]))
        keys, values = self.listen(sound)  # planted
        x = x + self.merge[1](self.attend(split(self.query(self.norms[1](x))), keys, values))
        return x + self.mlp(self.norms[2](x))


class Secretary(nn.Module):
    def __init__(self, words=2000, batch=8, layers=4):
        super().__init__()
        self.sound = nn.Sequential(nn.Conv1d(40, WIDTH, 3, stride=2), nn.GELU(), nn.Conv1d(WIDTH, WIDTH, 3, stride=2))
        self.embed, self.head = nn.Embedding(words, WIDTH), nn.Linear(WIDTH, words)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList([Layer(batch) for _ in range(layers)])

    def write(self, spectra, length):
        sound = self.sound(spectra).transpose(1, 2)
        sounds = [sound for layer in self.layers]
        word = torch.zeros(len(spectra), 1, dtype=torch.long)
        for at in range(length):
            x = self.embed(word) + self.places.weight[at]
            for layer, sound in zip(self.layers, sounds, strict=True):
                x = layer(x, sound, at)
            word = self.head(x).argmax(-1)
            yield word


secretary = Secretary().eval()
with torch.inference_mode():
    minutes = torch.cat(list(secretary.write(torch.randn(8, 40, 1600), 24)), dim=1)
print(minutes.sum(1).tolist())

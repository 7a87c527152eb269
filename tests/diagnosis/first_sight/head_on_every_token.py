# SPDX-License-Identifier: Apache-2.0
"""Masked language model: scores of all words are computed for every token, although only the masked 15 % are in the loss.

Source: facebookresearch/pytext pull request 957, huggingface/transformers issue 2926, merged lucidrains/mlm-pytorch pull request 3.
"""

import torch
from torch import nn

WORDS, WIDTH, MASK, IGNORED = 16_000, 192, 1, -100


class MaskedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.zeros(64, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 768, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 3)
        self.transform = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))
        self.decoder = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens, labels):
        hidden = self.transform(self.encoder(self.words(tokens) + self.places))
        scores = self.decoder(hidden)  # planted
        return nn.functional.cross_entropy(scores.view(-1, WORDS), labels.view(-1), ignore_index=IGNORED)  # planted


def hide(tokens):
    hidden = torch.rand(tokens.shape) < 0.15
    return tokens.masked_fill(hidden, MASK), tokens.masked_fill(~hidden, IGNORED)


torch.manual_seed(0)
model = MaskedModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(8):
    tokens, labels = hide(torch.randint(2, WORDS, (8, 64)))
    loss = model(tokens, labels)
    optimizer.zero_grad()
    loss.backward()  # planted
    optimizer.step()

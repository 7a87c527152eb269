# SPDX-License-Identifier: Apache-2.0
"""Parts of postal addresses: a chain of tags, whose scores are added up for all tags at once."""

import torch
from torch import nn

torch.manual_seed(0)
TAGS = 11


class Chain(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.moves = nn.Parameter(torch.randn(tags, tags) * 0.1)

    def forward(self, scores, tags):
        total = scores[0]
        for emitted in scores[1:].unbind(0):
            total = torch.logsumexp(total.unsqueeze(2) + self.moves, dim=1) + emitted
        path = scores.gather(2, tags.unsqueeze(2)).sum((0, 2)) + self.moves[tags[:-1], tags[1:]].sum(0)
        return (total.logsumexp(1) - path).mean()


class Addresses(nn.Module):
    def __init__(self, pieces=1500, width=128):
        super().__init__()
        self.embed = nn.Embedding(pieces, width)
        self.context = nn.LSTM(width, width, num_layers=2, bidirectional=True)
        self.scores = nn.Linear(2 * width, TAGS)
        self.chain = Chain(TAGS)

    def forward(self, pieces, tags):
        return self.chain(self.scores(self.context(self.embed(pieces))[0]), tags)


model = Addresses()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for step in range(16):
    pieces = torch.randint(1500, (14, 64))
    loss = model(pieces, pieces % TAGS)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")

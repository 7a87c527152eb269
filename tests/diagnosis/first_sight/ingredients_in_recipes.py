# SPDX-License-Identifier: Apache-2.0
"""Ingredients in recipes: the scores of each tag are added up apart, in small operators, where one operator takes all tags.

Source: https://github.com/rguthrie3/BiLSTM-CRF/issues/6, https://github.com/pytorch/pytorch/issues/2400
"""

import torch
from torch import nn

torch.manual_seed(0)
TAGS = 15


class Chain(nn.Module):
    """A conditional random field over the tags of a sentence."""

    def __init__(self, tags):
        super().__init__()
        self.moves = nn.Parameter(torch.randn(tags, tags) * 0.1)  # from the row's tag to the column's
        self.begin = nn.Parameter(torch.zeros(tags))

    def normaliser(self, scores):
        """The logarithm of the sum over all sequences of tags."""
        total = self.begin + scores[0]
        for emitted in scores[1:].unbind(0):
            nexts = []
            for tag in range(TAGS):
                nexts.append(torch.logsumexp(total + self.moves[:, tag], 1) + emitted[:, tag])  # planted
            total = torch.stack(nexts, 1)
        return total.logsumexp(1)

    def path(self, scores, tags):
        emitted = scores.gather(2, tags.unsqueeze(2)).sum((0, 2))
        return self.begin[tags[0]] + emitted + self.moves[tags[:-1], tags[1:]].sum(0)

    def forward(self, scores, tags):
        return (self.normaliser(scores) - self.path(scores, tags)).mean()


class Tagger(nn.Module):
    def __init__(self, words=2000, width=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.context = nn.LSTM(width, width, bidirectional=True)
        self.scores = nn.Linear(2 * width, TAGS)
        self.chain = Chain(TAGS)

    def forward(self, words, tags):
        return self.chain(self.scores(self.context(self.embed(words))[0]), tags)


def recipes(count, length=36, batch=24):
    for _ in range(count):
        words = torch.randint(2000, (length, batch))
        yield words, words % TAGS


tagger = Tagger()
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.2)
for words, tags in recipes(16):
    loss = tagger(words, tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")

# SPDX-License-Identifier: Apache-2.0
"""A news feed: the headlines in all reading histories are encoded, the popular ones many times over.

Source: https://github.com/embeddings-benchmark/mteb/issues/738
"""

import torch
from torch import nn

WORDS = 3000
TITLE = 16
ARTICLES = 400
READERS = 32
HISTORY = 20
CHOICES = 5
WIDTH = 64
STEPS = 14


class Pool(nn.Module):
    """A weighted mean whose weights are learned."""

    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1, bias=False))

    def forward(self, rows):
        return (self.score(rows).softmax(dim=-2) * rows).sum(dim=-2)


class TitleEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.mix = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.pool = Pool()

    def forward(self, titles):
        words = self.words(titles)
        mixed, _ = self.mix(words, words, words, need_weights=False)
        return self.pool(torch.relu(mixed) + words)


class FeedModel(nn.Module):
    """Scores of the offered articles for each reader."""

    def __init__(self, titles):
        super().__init__()
        self.register_buffer("titles", titles)
        self.title = TitleEncoder()
        self.reader = Pool()

    def encode(self, articles):
        """Vectors for a table of article numbers."""
        flat = articles.flatten()
        vectors = self.title(self.titles[flat])  # planted
        return vectors.view(*articles.shape, WIDTH)

    def forward(self, history, offered):
        vectors = self.encode(torch.cat([history, offered], dim=1))
        reader = self.reader(vectors[:, :HISTORY])
        return torch.einsum("rcw,rw->rc", vectors[:, HISTORY:], reader)


class ClickLog:
    """Readers with a taste; some articles are read by nearly everybody."""

    def __init__(self, generator):
        self.generator = generator
        self.fame = 1.0 / (1.0 + torch.arange(ARTICLES)) ** 0.9
        self.topic = torch.randint(0, 8, (ARTICLES,), generator=generator)
        start = 300 * self.topic[:, None]
        self.titles = start + torch.randint(0, 600, (ARTICLES, TITLE), generator=generator)

    def draw(self):
        taste = torch.randint(0, 8, (READERS, 1), generator=self.generator)
        liking = self.fame * torch.where(self.topic == taste, 4.0, 1.0)
        history = torch.multinomial(liking, HISTORY, generator=self.generator)
        clicked = torch.multinomial(liking, 1, generator=self.generator)
        others = torch.multinomial(self.fame.expand(READERS, -1), CHOICES - 1, generator=self.generator)
        return history, torch.cat([clicked, others], dim=1)


def main():
    generator = torch.Generator().manual_seed(71)
    torch.manual_seed(71)
    clicks = ClickLog(generator)
    model = FeedModel(clicks.titles)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    first = torch.zeros(READERS, dtype=torch.long)
    for step in range(STEPS):
        history, offered = clicks.draw()
        loss = nn.functional.cross_entropy(model(history, offered), first)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"feed: loss {loss.item():.5f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Language model for news headlines: an LSTM predicts the next word of synthetic headlines from a Zipf
vocabulary with topic words. Prints the perplexity on the last batches."""

import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB = 9_000
TOPICS = 30
LENGTH = 16
BATCH = 20
STEPS = 60


class HeadlineLM(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.drop = nn.Dropout(0.0)
        self.bias = nn.Parameter(torch.zeros(VOCAB))
        nn.init.normal_(self.embedding.weight, std=0.05)

    def forward(self, words):
        state, _ = self.lstm(self.embedding(words))
        # the output layer shares its weights with the embedding
        return F.linear(self.drop(state), self.embedding.weight, self.bias)


def headline_batches(steps, seed):
    """Half of the words come from the common part of the vocabulary, half from the topic of the headline."""
    generator = torch.Generator().manual_seed(seed)
    zipf = 1.0 / torch.arange(1, VOCAB + 1).float()
    topic_size = VOCAB // TOPICS
    for _ in range(steps):
        common = torch.multinomial(zipf, BATCH * (LENGTH + 1), replacement=True, generator=generator).view(BATCH, -1)
        topic = torch.randint(TOPICS, (BATCH, 1), generator=generator)
        rank = (torch.rand(BATCH, LENGTH + 1, generator=generator) ** 3 * topic_size).long()
        special = topic * topic_size + rank
        pick = torch.rand(BATCH, LENGTH + 1, generator=generator) < 0.5
        words = torch.where(pick, common, special)
        yield words[:, :-1], words[:, 1:]


def next_word_loss(logits, target, smoothing=0.0):
    """Negative log-likelihood of the true next words, averaged over all places."""
    log_prob = F.log_softmax(logits, dim=-1)
    truth = F.one_hot(target, VOCAB).float()  # planted
    return -(truth * log_prob).sum(-1).mean()  # planted


class Meter:
    def __init__(self, decay=0.8):
        self.decay, self.value = decay, None

    def add(self, value):
        self.value = value if self.value is None else self.decay * self.value + (1 - self.decay) * value


def main():
    torch.manual_seed(6)
    model = HeadlineLM()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    meter = Meter()
    for words, target in headline_batches(STEPS, seed=13):
        loss = next_word_loss(model(words), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        meter.add(loss.item())
    print(f"loss {meter.value:.3f}, perplexity {math.exp(meter.value):.0f}")


if __name__ == "__main__":
    main()

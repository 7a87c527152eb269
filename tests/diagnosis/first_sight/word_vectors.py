# SPDX-License-Identifier: Apache-2.0
"""Skip-gram word vectors with negative sampling over a topic-structured corpus."""

import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, WINDOW, NEGATIVES, TOPICS = 40_000, 64, 4, 5, 50


def corpus(n_sentences, length, seed):
    """Sentences of word ids; a sentence draws most of its words from one topic."""
    g = torch.Generator().manual_seed(seed)
    topic = torch.randint(TOPICS, (n_sentences, 1), generator=g)
    rank = (torch.rand(n_sentences, length, generator=g) ** 4 * (VOCAB // TOPICS)).long()
    stray = torch.rand(n_sentences, length, generator=g) < 0.2
    drawn = torch.randint(TOPICS, (n_sentences, length), generator=g)
    return rank * TOPICS + torch.where(stray, drawn, topic)


def skip_gram_pairs(sentences):
    centers, contexts = [], []
    for shift in range(1, WINDOW + 1):
        left, right = sentences[:, :-shift].flatten(), sentences[:, shift:].flatten()
        centers += [left, right]
        contexts += [right, left]
    return torch.cat(centers), torch.cat(contexts)


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(VOCAB, DIM)  # planted
        self.context = nn.Embedding(VOCAB, DIM)  # planted
        nn.init.uniform_(self.word.weight, -0.5 / DIM, 0.5 / DIM)
        nn.init.zeros_(self.context.weight)

    def forward(self, center, context, negative):
        v = self.word(center)
        u = self.context(torch.cat([context.unsqueeze(1), negative], dim=1))
        score = torch.bmm(u, v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(score[:, 0]) + F.logsigmoid(-score[:, 1:]).sum(1)).mean()


class UnigramSampler:
    """Draws negatives proportional to count**0.75 by inverting the CDF."""

    def __init__(self, sentences):
        counts = torch.bincount(sentences.flatten(), minlength=VOCAB).double()
        self.cdf = torch.cumsum(counts.pow(0.75), 0)

    def draw(self, n):
        u = torch.rand(n, NEGATIVES, dtype=torch.double) * self.cdf[-1]
        return torch.searchsorted(self.cdf, u).clamp_max_(VOCAB - 1)


@torch.no_grad()
def topic_purity(vectors, n_words=500):
    """How often the nearest neighbour of a frequent word has its topic."""
    unit = F.normalize(vectors[:n_words], dim=1)
    near = (unit @ unit.T).fill_diagonal_(-1).argmax(1)
    return (near % TOPICS == torch.arange(n_words) % TOPICS).float().mean().item()


def main(steps=500, batch=1024):
    torch.manual_seed(0)
    sentences = corpus(5000, 24, seed=1)
    center, context = skip_gram_pairs(sentences)
    order = torch.randperm(len(center))[: steps * batch]
    center, context = center[order], context[order]
    sampler, model = UnigramSampler(sentences), SkipGram()
    optimizer = torch.optim.SGD(model.parameters(), lr=60.0)
    start = time.perf_counter()
    for step, (c, o) in enumerate(zip(center.split(batch), context.split(batch)), 1):
        optimizer.zero_grad(set_to_none=True)
        loss = model(c, o, sampler.draw(len(c)))
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"loop {time.perf_counter() - start:.2f}s")
    print(f"topic purity {topic_purity(model.word.weight):.3f}")


if __name__ == "__main__":
    main()

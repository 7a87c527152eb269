# SPDX-License-Identifier: Apache-2.0
"""Online training of a chat moderation filter on a stream of messages with sub-word units."""

import time
from itertools import islice

import numpy as np
import torch
from torch import nn

LETTERS = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
WORDS, PIECES, BATCH, STEPS = 12000, 700, 96, 160


def make_lexicon(rng):
    """Word forms glued from syllables, so that frequent pairs of letters exist."""
    weights = 1.0 / np.arange(1, 27) ** 0.7
    weights /= weights.sum()
    syllables = ["".join(rng.choice(LETTERS, rng.integers(2, 4), p=weights)) for _ in range(300)]
    return ["".join(syllables[i] for i in rng.integers(0, 300, rng.integers(1, 6))) for _ in range(WORDS)]


def learn_merges(lexicon, frequency, count):
    """Byte-pair merges learnt on the most frequent words, several disjoint pairs a round."""
    forms = [(list(word), f) for word, f in zip(lexicon[:2500], frequency[:2500])]
    merges = []
    while len(merges) < count:
        pairs = {}
        for symbols, f in forms:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] = pairs.get(pair, 0.0) + f
        chosen = sorted(pairs, key=pairs.get, reverse=True)[:25]
        merges.extend(p for p in chosen if p not in merges)
        known = set(chosen)
        for symbols, _ in forms:
            i = 0
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) in known:
                    symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
                else:
                    i += 1
    return merges[:count]


class PieceEncoder:
    def __init__(self, merges):
        self.rank = {pair: i for i, pair in enumerate(merges)}
        self.ids = {piece: i for i, piece in enumerate([*LETTERS, *dict.fromkeys(a + b for a, b in merges)])}

    def word(self, text):  # planted
        symbols = list(text)
        while len(symbols) > 1:
            best = min(zip(symbols, symbols[1:]), key=lambda pair: self.rank.get(pair, 1 << 30))
            if best not in self.rank:
                break
            joined, i = [], 0
            while i < len(symbols):
                if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == best:
                    joined.append(symbols[i] + symbols[i + 1])
                    i += 2
                else:
                    joined.append(symbols[i])
                    i += 1
            symbols = joined
        return [self.ids[s] for s in symbols]

    def __call__(self, messages):
        flat, starts = [], []
        for message in messages:
            starts.append(len(flat))
            for word in message.split():
                flat.extend(self.word(word))
        return torch.tensor(flat), torch.tensor(starts)


def chat_stream(rng, lexicon, frequency):
    """Endless batches of (messages, labels)."""
    table = np.cumsum(frequency)
    while True:
        labels = rng.random(BATCH) < 0.3
        messages = []
        for rude in labels:
            picks = np.searchsorted(table, rng.random(rng.integers(8, 40)) * table[-1])
            if rude:
                picks[::4] = (picks[::4] // 9) * 9 % WORDS
            messages.append(" ".join(lexicon[i] for i in picks))
        yield messages, torch.from_numpy(labels.astype(np.float32))


class Filter(nn.Module):
    def __init__(self, pieces):
        super().__init__()
        self.bag = nn.EmbeddingBag(pieces, 96, mode="mean")
        self.head = nn.Sequential(nn.Linear(96, 256), nn.GELU(), nn.Linear(256, 1))

    def forward(self, flat, starts):
        return self.head(self.bag(flat, starts)).squeeze(1)


def main():
    rng = np.random.default_rng(5)
    torch.manual_seed(5)
    lexicon = make_lexicon(rng)
    frequency = 1.0 / np.arange(1, WORDS + 1)
    encode = PieceEncoder(learn_merges(lexicon, frequency, PIECES))
    model = Filter(len(encode.ids))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, fused=True)
    losses = []
    started = time.process_time()
    for messages, labels in islice(chat_stream(rng, lexicon, frequency), STEPS):
        loss = nn.functional.binary_cross_entropy_with_logits(model(*encode(messages)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    elapsed = time.process_time() - started
    print(f"loss {torch.stack(losses[:10]).mean():.4f} -> {torch.stack(losses[-10:]).mean():.4f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()

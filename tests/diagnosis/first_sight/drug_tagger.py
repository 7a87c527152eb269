# SPDX-License-Identifier: Apache-2.0
"""Finding drug names and doses in notes: recurrent encoder with a CRF on top."""

import time

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

VOCAB, TAGS, BATCH = 3000, 7, 48


def notes(count, generator):
    """Tags depend on the word and on the tag before it."""
    home = torch.randint(TAGS, (VOCAB,), generator=generator)
    samples = []
    for length in torch.randint(8, 70, (count,), generator=generator).tolist():
        words = torch.randint(1, VOCAB, (length,), generator=generator)
        tags = home[words]
        tags[1:] = torch.where(tags[1:] == 6, tags[:-1], tags[1:])
        samples.append((words, tags))
    return samples


def length_buckets(samples):
    """Batches of similar length, so that padding stays small; batch order is random."""
    by_length = sorted(range(len(samples)), key=lambda i: len(samples[i][0]))
    chunks = [by_length[lo : lo + BATCH] for lo in range(0, len(by_length), BATCH)]
    batches = []
    for chunk in chunks:
        words, tags = zip(*(samples[i] for i in chunk))
        lengths = torch.tensor([len(w) for w in words])
        batches.append((pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True), lengths))
    return batches


class Crf(nn.Module):
    def __init__(self):
        super().__init__()
        self.move = nn.Parameter(0.1 * torch.randn(TAGS, TAGS))
        self.begin = nn.Parameter(torch.zeros(TAGS))

    def forward(self, emit, tags, mask):
        """Negative log-likelihood; the recursion over time is inherently serial."""
        rows = emit.unbind(1)
        alpha = self.begin + rows[0]
        for t in range(1, len(rows)):
            reach = torch.logsumexp(alpha.unsqueeze(2) + self.move, dim=1) + rows[t]
            alpha = torch.where(mask[:, t : t + 1], reach, alpha)
        partition = torch.logsumexp(alpha, dim=1)
        node = emit.gather(2, tags.unsqueeze(2)).squeeze(2)
        edge = self.move[tags[:, :-1], tags[:, 1:]]
        path = self.begin[tags[:, 0]] + (node * mask).sum(1) + (edge * mask[:, 1:]).sum(1)
        return (partition - path).mean()


class DrugTagger(nn.Module):
    def __init__(self, embed=96, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, embed, padding_idx=0)
        self.rnn = nn.LSTM(embed, hidden, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(2 * hidden, TAGS)
        self.crf = Crf()

    def forward(self, words, tags, lengths):
        mask = torch.arange(words.shape[1]) < lengths.unsqueeze(1)
        states, _ = self.rnn(self.embed(words))
        return self.crf(self.emit(states), tags, mask)


def main():
    torch.manual_seed(19)
    batches = length_buckets(notes(960, torch.Generator().manual_seed(1)))
    model = DrugTagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
    start = time.perf_counter()
    for epoch in range(8):
        total = torch.zeros(())
        for index in torch.randperm(len(batches)).tolist():
            loss = model(*batches[index])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: nll per note {total.item() / len(batches):.4f}")
    print(f"trained in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()

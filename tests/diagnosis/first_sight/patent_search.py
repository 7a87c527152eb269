# SPDX-License-Identifier: Apache-2.0
"""Offline evaluation of a patent search engine with exact vector retrieval.

Queries are encoded in batches; the collection is scored in slices and only
the best hits of each slice are kept.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(71)

PATENTS, DIM = 60000, 192
QUERIES, BATCH = 16384, 128
SLICE = 6000
HITS = 10
VOCAB, WORDS = 20000, 24


class QueryEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCAB, DIM, mode="mean")
        self.mix = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, words):
        x = self.words(words)
        return F.normalize(x + self.mix(x), dim=1)


class Collection:
    def __init__(self, vectors):
        self.vectors = vectors

    def search(self, queries):
        """The best HITS patents of each query over all slices."""
        scores, rows = [], []
        for start in range(0, len(self.vectors), SLICE):
            similarity = queries @ self.vectors[start : start + SLICE].t()
            best, where = similarity.topk(HITS, dim=1)
            scores.append(best)
            rows.append(where + start)
        scores, rows = torch.cat(scores, dim=1), torch.cat(rows, dim=1)
        best, where = scores.topk(HITS, dim=1)
        return best, rows.gather(1, where)


class Report:
    def __init__(self):
        self.queries = 0
        self.recall = 0.0
        self.reciprocal = 0.0

    def add(self, found, wanted):
        match = found == wanted[:, None]
        rank = match.float().argmax(1) + 1
        hit = match.any(1)
        self.queries += len(wanted)
        self.recall += float(hit.sum())
        self.reciprocal += float((hit / rank).sum())

    def __str__(self):
        return (
            f"{self.queries} queries, recall@{HITS} {self.recall / self.queries:.3f}, "
            f"MRR {self.reciprocal / self.queries:.3f}"
        )


@torch.inference_mode()
def main():
    encoder = QueryEncoder().eval()
    words = torch.randint(0, VOCAB, (QUERIES, WORDS))
    vectors = F.normalize(torch.randn(PATENTS, DIM), dim=1)
    wanted = torch.randperm(PATENTS)[:QUERIES]
    for rows in torch.arange(QUERIES).split(512):
        noisy = encoder(words[rows]) + 0.12 * torch.randn(len(rows), DIM)
        vectors[wanted[rows]] = F.normalize(noisy, dim=1)
    collection = Collection(vectors)

    report = Report()
    opened = time.perf_counter()
    for number, rows in enumerate(torch.arange(QUERIES).split(BATCH)):
        _, found = collection.search(encoder(words[rows]))
        report.add(found, wanted[rows])
        if number % 32 == 31:
            print(report)
    elapsed = time.perf_counter() - opened
    print(f"{elapsed / QUERIES * 1e3:.2f} ms per query")


if __name__ == "__main__":
    main()

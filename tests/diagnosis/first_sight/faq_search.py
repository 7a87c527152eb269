# SPDX-License-Identifier: Apache-2.0
"""Serving, retrieval: questions of customers are matched with the entries of a FAQ by the vectors of a small
transformer. Requests come in groups from the gateway. Prints how often a paraphrase finds its entry."""

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, DIM, ENTRIES = 2_000, 20, 128, 600


class QuestionEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids):
        words = self.words(ids)
        # word vectors carry most of the meaning, the transformer adds context
        mixed = words + 0.1 * self.body(words)
        return F.normalize(mixed.mean(1), dim=-1)


class Faq:
    """The entries of the FAQ with their vectors, and the search over them."""

    def __init__(self, encoder, entries):
        self.encoder = encoder
        self.index = torch.cat([encoder(part) for part in entries.split(100)])

    def search(self, queries, count=3):
        scores, order = (queries @ self.index.t()).topk(count)
        return scores, order


def paraphrase(entry, generator):
    """A customer changes a third of the words."""
    changed = torch.rand(LENGTH, generator=generator) < 0.33
    return torch.where(changed, torch.randint(VOCAB, (LENGTH,), generator=generator), entry)


def gateway(entries, generator, groups, size):
    """Groups of requests: each request has an id, the words and the entry it was made from."""
    for group in range(groups):
        truth = torch.randint(len(entries), (size,), generator=generator)
        yield [
            {"id": group * size + number, "words": paraphrase(entries[t], generator), "truth": int(t)}
            for number, t in enumerate(truth)
        ]


def answer(faq, requests):
    vectors = []
    for request in requests:
        vectors.append(faq.encoder(request["words"].unsqueeze(0)))  # planted
    scores, order = faq.search(torch.cat(vectors))
    replies = []
    for request, found, score in zip(requests, order.tolist(), scores[:, 0].tolist()):
        replies.append({"id": request["id"], "entries": found, "score": score, "hit": request["truth"] == found[0]})
    return replies


def main():
    torch.manual_seed(50)
    generator = torch.Generator().manual_seed(51)
    entries = torch.randint(VOCAB, (ENTRIES, LENGTH), generator=generator)
    hits, scores = [], []
    with torch.inference_mode():
        faq = Faq(QuestionEncoder().eval(), entries)
        for requests in gateway(entries, generator, groups=110, size=48):
            for reply in answer(faq, requests):
                hits.append(reply["hit"])
                scores.append(reply["score"])
    print(f"found first {sum(hits) / len(hits):.3f}, mean score {sum(scores) / len(scores):.4f}")


if __name__ == "__main__":
    main()

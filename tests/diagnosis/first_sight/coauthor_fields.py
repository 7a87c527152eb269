# SPDX-License-Identifier: Apache-2.0
"""Research fields of authors from a co-authorship network (two-layer GCN)."""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(13)

AUTHORS = 4000
FIELDS = 8
KEYWORDS = 128
PAPERS = 12000
EPOCHS = 36


def network():
    """Random graph with communities, keyword counts per author."""
    field = torch.randint(0, FIELDS, (AUTHORS,))
    by_field = [torch.nonzero(field == f).squeeze(1) for f in range(FIELDS)]
    first = torch.randint(0, AUTHORS, (PAPERS,))
    second = torch.randint(0, AUTHORS, (PAPERS,))
    inside = torch.rand(PAPERS) < 0.8
    for f, members in enumerate(by_field):
        chosen = inside & (field[first] == f)
        second[chosen] = members[torch.randint(0, len(members), (int(chosen.sum()),))]
    profile = torch.rand(FIELDS, KEYWORDS)
    keywords = torch.poisson(profile[field] * 0.6)
    return torch.stack([first, second]), keywords, field


def propagation_matrix(pairs):
    """Symmetrically normalised adjacency with self-loops."""
    adjacency = torch.zeros(AUTHORS, AUTHORS)
    adjacency[pairs[0], pairs[1]] = 1.0
    adjacency[pairs[1], pairs[0]] = 1.0
    adjacency.fill_diagonal_(1.0)
    scale = adjacency.sum(1).rsqrt()
    return scale[:, None] * adjacency * scale


class GraphLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, matrix):
        return matrix @ self.linear(x) + self.bias


class FieldClassifier(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.first = GraphLayer(KEYWORDS, hidden)
        self.second = GraphLayer(hidden, FIELDS)
        self.dropout = nn.Dropout(0.4)

    def forward(self, x, matrix):
        hidden = F.relu(self.first(self.dropout(x), matrix))
        return self.second(self.dropout(hidden), matrix)


def train_epoch(model, optimizer, x, matrix, field, known):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, matrix)[known], field[known])
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def accuracy(model, x, matrix, field, rows):
    model.eval()
    return float((model(x, matrix)[rows].argmax(1) == field[rows]).float().mean())


def main():
    pairs, keywords, field = network()
    x = keywords / keywords.sum(1, keepdim=True).clamp(min=1)
    matrix = propagation_matrix(pairs)  # planted
    shuffled = torch.randperm(AUTHORS)
    known, hidden = shuffled[:400], shuffled[400:]
    model = FieldClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)

    tic = time.perf_counter()
    for epoch in range(1, EPOCHS + 1):
        loss = train_epoch(model, optimizer, x, matrix, field, known)
        if epoch % 6 == 0:
            score = accuracy(model, x, matrix, field, hidden)
            print(f"epoch {epoch}: loss {loss:.3f}, accuracy {score:.3f}")
    toc = time.perf_counter()
    print(f"{EPOCHS} epochs in {toc - tic:.1f} s")


if __name__ == "__main__":
    main()

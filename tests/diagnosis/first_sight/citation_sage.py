# SPDX-License-Identifier: Apache-2.0
"""Graphs: field of research of papers from a citation graph, trained on sampled neighbourhoods.

Papers cite mostly within their field. Every step draws papers, ten of their neighbours and ten neighbours
of each, averages features from the outside in and classifies the papers in the middle.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(53)

PAPERS, FIELDS, FEATURES, DEGREE = 80_000, 12, 128, 24
FAN, BATCH, STEPS = 10, 512, 40


class CitationGraph:
    """A table of DEGREE neighbours per paper, three quarters of them from the own field."""

    def __init__(self):
        self.field = torch.arange(PAPERS) % FIELDS
        inside = torch.randint(0, PAPERS // FIELDS - 1, (PAPERS, DEGREE)) * FIELDS + self.field.unsqueeze(1)
        anywhere = torch.randint(0, PAPERS, (PAPERS, DEGREE))
        self.neighbours = torch.where(torch.rand(PAPERS, DEGREE) < 0.75, inside, anywhere)
        centre = torch.randn(FIELDS, FEATURES)
        self.features = torch.randn(PAPERS, FEATURES)
        self.features += 0.15 * centre[self.field]

    def sample(self, papers):
        """(count,) to (count, FAN): a random selection of the neighbours, with replacement."""
        pick = torch.randint(0, DEGREE, (papers.numel(), FAN))
        return self.neighbours.index_select(0, papers).gather(1, pick)


class SageLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.around = nn.Linear(inputs, outputs, bias=False)

    def forward(self, own, around):
        return self.own(own) + self.around(around)


class Sage(nn.Module):
    def __init__(self, hidden=512):
        super().__init__()
        self.near = SageLayer(FEATURES, hidden)
        self.far = SageLayer(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.field = nn.Linear(hidden, FIELDS)

    def forward(self, graph, papers):
        first = graph.sample(papers)
        inner = torch.cat([papers, first.flatten()])
        second = graph.sample(inner)
        own = graph.features.index_select(0, inner)
        around = F.embedding_bag(second, graph.features, mode="mean")
        hidden = torch.relu(self.near(own, around))
        middle, ring = hidden.split([papers.numel(), first.numel()])
        middle = self.far(middle, ring.view(*first.shape, -1).mean(dim=1))
        return self.field(torch.relu(self.norm(middle)))


def paper_batches(order):
    while True:
        order = order[torch.randperm(order.numel())]
        yield from order.split(BATCH)[:-1]


def main():
    graph = CitationGraph()
    order = torch.randperm(PAPERS)
    held_out, training = order[:1024], order[1024:]
    model = Sage()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    stream = paper_batches(training)
    for step in range(STEPS):
        papers = next(stream)
        logits = model(graph, papers)
        loss = F.cross_entropy(logits, graph.field[papers])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step} loss {loss.item():.3f}")
    with torch.no_grad():
        accuracy = (model(graph, held_out).argmax(1) == graph.field[held_out]).float().mean().item()
    print(f"accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()

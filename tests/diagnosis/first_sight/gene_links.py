# SPDX-License-Identifier: Apache-2.0
"""Translation embeddings (TransE) for a synthetic gene / disease / drug knowledge graph."""

import time

import torch
import torch.nn.functional as F
from torch import nn

ENTITIES, RELATIONS, TRIPLES, DIM = 80_000, 24, 400_000, 64


def make_graph(generator):
    """Triples with tails near head + relation on a hidden line, so that links are learnable."""
    head = torch.randint(ENTITIES, (TRIPLES,), generator=generator)
    relation = torch.randint(RELATIONS, (TRIPLES,), generator=generator)
    jump = torch.randint(1, ENTITIES, (RELATIONS,), generator=generator)
    tail = (head + jump[relation] + torch.randint(-5, 6, (TRIPLES,), generator=generator)) % ENTITIES
    return torch.stack([head, relation, tail], dim=1)


def batches(triples, size, generator):
    order = torch.randperm(len(triples), generator=generator)
    for idx in order.split(size):
        yield triples[idx].unbind(1)


class TransE(nn.Module):
    def __init__(self, margin=0.6):
        super().__init__()
        self.entity = nn.Embedding(ENTITIES, DIM, max_norm=1.0, sparse=True)  # planted
        self.relation = nn.Embedding(RELATIONS, DIM)
        nn.init.uniform_(self.entity.weight, -0.2, 0.2)
        nn.init.uniform_(self.relation.weight, -0.2, 0.2)
        self.margin = margin

    def forward(self, head, relation, tail, corrupted):
        ids = torch.cat([head, tail, corrupted])
        h, t, c = self.entity(ids).chunk(3)  # planted
        query = h + self.relation(relation)
        near = torch.linalg.vector_norm(query - t, dim=1)
        far = torch.linalg.vector_norm(query - c, dim=1)
        return F.relu(self.margin + near - far).mean()

    @torch.no_grad()
    def hits(self, triples, k=10, chunk=64):
        """Share of test triples whose tail is among the k nearest entities."""
        table = self.entity.weight
        found = 0
        for head, relation, tail in (part.unbind(1) for part in triples.split(chunk)):
            distance = torch.cdist(table[head] + self.relation.weight[relation], table)
            target = distance.gather(1, tail[:, None])
            found += int(((distance < target).sum(1) < k).sum())
        return found / len(triples)


def train_epoch(model, triples, optimizer, batch_size, generator):
    total = 0.0
    for head, relation, tail in batches(triples, batch_size, generator):
        corrupted = torch.randint(ENTITIES, tail.shape, generator=generator)
        loss = model(head, relation, tail, corrupted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(head)
    return total / len(triples)


def main(epochs=3, batch_size=4096):
    generator = torch.Generator().manual_seed(21)
    torch.manual_seed(21)
    triples = make_graph(generator)
    train, test = triples[:-256], triples[-256:]
    model = TransE()
    groups = [{"params": [model.entity.weight], "lr": 200.0}, {"params": [model.relation.weight]}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    start = time.perf_counter()
    for epoch in range(epochs):
        loss = train_epoch(model, train, optimizer, batch_size, generator)
        print(f"epoch {epoch} loss {loss:.6f}")
    print(f"loop {time.perf_counter() - start:.2f} s")
    print(f"hits@10 {model.hits(test):.4f}  mean norm {model.entity.weight.norm(dim=1).mean():.5f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Node classification on a citation-like graph with gated message passing."""

import time

import torch
import torch.nn.functional as F
from torch import nn

N_PAPERS, N_LINKS, N_FEATURES, N_TOPICS = 4000, 25_000, 64, 8


def citation_graph(seed):
    g = torch.Generator().manual_seed(seed)
    topic = torch.randint(N_TOPICS, (N_PAPERS,), generator=g)
    by_topic = topic.argsort()
    counts = torch.bincount(topic, minlength=N_TOPICS)
    first = counts.cumsum(0) - counts
    src = torch.randint(N_PAPERS, (N_LINKS,), generator=g)
    offset = (torch.rand(N_LINKS, generator=g) * counts[topic[src]]).long()
    alike = by_topic[first[topic[src]] + offset]
    anyone = torch.randint(N_PAPERS, (N_LINKS,), generator=g)
    dst = torch.where(torch.rand(N_LINKS, generator=g) < 0.7, alike, anyone)
    centres = torch.randn(N_TOPICS, N_FEATURES, generator=g)
    features = 0.25 * centres[topic] + torch.randn(N_PAPERS, N_FEATURES, generator=g)
    edges = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
    return features, edges, topic


class GatedConv(nn.Module):
    """Edge-gated mean aggregation with a residual connection."""

    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(width, width)
        self.gate_src = nn.Linear(width, width)
        self.gate_dst = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, h, src, dst, inv_degree):
        gate = torch.sigmoid(self.gate_src(h[src]) + self.gate_dst(h[dst]))  # planted
        message = self.message(h[src]) * gate  # planted
        total = torch.zeros_like(h).index_add(0, dst, message)
        return self.norm(h + F.relu(total * inv_degree))


class CitationNet(nn.Module):
    def __init__(self, width=48, depth=2):
        super().__init__()
        self.embed = nn.Linear(N_FEATURES, width)
        self.convs = nn.ModuleList(GatedConv(width) for _ in range(depth))
        self.classify = nn.Linear(width, N_TOPICS)

    def forward(self, features, src, dst, inv_degree):
        h = F.relu(self.embed(features))
        for conv in self.convs:
            h = conv(h, src, dst, inv_degree)
        return self.classify(h)


class Trainer:
    def __init__(self, model, features, edges, topic):
        self.model, self.topic = model, topic
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
        src, dst = edges[:, edges[1].argsort()]
        degree = torch.bincount(dst, minlength=len(features)).clamp_min(1)
        self.inputs = (features, src, dst, degree.reciprocal().unsqueeze(1))
        shuffled = torch.randperm(len(features))
        self.train_rows, self.test_rows = shuffled[:1500], shuffled[1500:]

    def epoch(self):
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.model(*self.inputs)
        loss = F.cross_entropy(logits[self.train_rows], self.topic[self.train_rows])
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.inference_mode()
    def accuracy(self):
        self.model.eval()
        guess = self.model(*self.inputs).argmax(dim=1)
        return (guess == self.topic)[self.test_rows].float().mean().item()


def main(epochs=60):
    torch.manual_seed(0)
    trainer = Trainer(CitationNet(), *citation_graph(seed=1))
    start = time.perf_counter()
    for epoch in range(1, epochs + 1):
        loss = trainer.epoch()
        if epoch % 10 == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}  accuracy {trainer.accuracy():.4f}")
    print(f"loop {time.perf_counter() - start:.2f}s")


if __name__ == "__main__":
    main()

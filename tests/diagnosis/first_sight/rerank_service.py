# SPDX-License-Identifier: Apache-2.0
"""Second-stage ranking: score candidate lists with factor embeddings, then diversify."""

import time
from dataclasses import dataclass

import torch


def export_factors(n_users, n_items, dim, seed=0):
    """What the nightly factorisation job writes: (dim, n) matrices."""
    g = torch.Generator().manual_seed(seed)
    return {
        "user_factors": torch.randn(dim, n_users, generator=g) / dim**0.5,
        "item_factors": torch.randn(dim, n_items, generator=g) / dim**0.5,
        "item_bias": 0.1 * torch.randn(n_items, generator=g),
    }


@dataclass
class Request:
    users: torch.Tensor  # (batch,)
    candidates: torch.Tensor  # (batch, n_candidates)


def request_stream(n_requests, batch, n_candidates, n_users, n_items, seed=1):
    g = torch.Generator().manual_seed(seed)
    for _ in range(n_requests):
        yield Request(
            users=torch.randint(n_users, (batch,), generator=g),
            candidates=torch.randint(n_items, (batch, n_candidates), generator=g),
        )


class Reranker:
    def __init__(self, export, shortlist=64, slate=10, diversity=0.3):
        self.users = export["user_factors"].t().contiguous()
        self.items = export["item_factors"].t()  # planted
        self.bias = export["item_bias"]
        self.shortlist = shortlist
        self.slate = slate
        self.diversity = diversity

    @torch.inference_mode()
    def __call__(self, request):
        user = self.users[request.users]
        vectors = self.items[request.candidates]
        scores = torch.bmm(vectors, user.unsqueeze(-1)).squeeze(-1)
        scores = scores + self.bias[request.candidates]
        top, pos = scores.topk(self.shortlist, dim=1)
        short = vectors.gather(1, pos.unsqueeze(-1).expand(-1, -1, vectors.shape[-1]))
        order = self._mmr(short, top)
        return request.candidates.gather(1, pos.gather(1, order))

    def _mmr(self, vectors, relevance):
        """Maximal marginal relevance, greedy over the slate, batched over users."""
        unit = torch.nn.functional.normalize(vectors, dim=-1)
        similarity = torch.bmm(unit, unit.transpose(1, 2))
        rows = torch.arange(len(vectors))
        nearest = torch.full_like(relevance, -1.0)
        open_ = relevance.clone()
        chosen = torch.empty(len(vectors), self.slate, dtype=torch.long)
        for k in range(self.slate):
            gain = open_ - self.diversity * nearest.clamp_min(0)
            pick = gain.argmax(dim=1)
            chosen[:, k] = pick
            open_[rows, pick] = float("-inf")
            nearest = torch.maximum(nearest, similarity[rows, pick])
        return chosen


def main():
    n_users, n_items, dim = 20_000, 200_000, 64
    service = Reranker(export_factors(n_users, n_items, dim))
    stream = request_stream(700, 16, 800, n_users, n_items)

    service(next(stream))  # warm-up
    latencies, checksum, served = [], 0, 0
    start = time.perf_counter()
    for request in stream:
        t0 = time.perf_counter()
        slate = service(request)
        latencies.append(time.perf_counter() - t0)
        checksum += int(slate[:, 0].sum())
        served += len(slate)
    elapsed = time.perf_counter() - start

    lat = torch.tensor(latencies) * 1e3
    p50, p95 = torch.quantile(lat, torch.tensor([0.5, 0.95])).tolist()
    print(f"served {served} users, loop {elapsed:.2f}s")
    print(f"latency p50 {p50:.1f} ms  p95 {p95:.1f} ms")
    print(f"checksum {checksum}")


if __name__ == "__main__":
    main()

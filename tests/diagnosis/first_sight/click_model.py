# SPDX-License-Identifier: Apache-2.0
"""Wide & deep click-through model on hashed categorical fields."""

import time

import torch
import torch.nn.functional as F
from torch import nn

N_FIELDS, N_DENSE, BUCKETS = 12, 8, 5_000


def ad_log(n, seed):
    g = torch.Generator().manual_seed(seed)
    fields = (torch.rand(n, N_FIELDS, generator=g) ** 3 * BUCKETS).long()
    dense = torch.randn(n, N_DENSE, generator=g)
    effect = torch.randn(N_FIELDS, BUCKETS, generator=torch.Generator().manual_seed(99))
    logit = effect.gather(1, fields.t()).sum(0) * 0.4 + dense[:, 0] * dense[:, 1] - 1.5
    clicks = torch.bernoulli(torch.sigmoid(logit), generator=g)
    return fields, dense, clicks


class WideDeep(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.register_buffer("offsets", torch.arange(N_FIELDS) * BUCKETS)
        self.wide = nn.Embedding(N_FIELDS * BUCKETS, 1, sparse=True)
        self.deep = nn.Embedding(N_FIELDS * BUCKETS, dim, sparse=True)
        nn.init.zeros_(self.wide.weight)
        nn.init.normal_(self.deep.weight, std=0.05)
        self.mlp = nn.Sequential(
            nn.Linear(N_FIELDS * dim + N_DENSE, 96),
            nn.ReLU(inplace=True),
            nn.Linear(96, 48),
            nn.ReLU(inplace=True),
            nn.Linear(48, 1),
        )

    def forward(self, fields, dense):
        slots = fields + self.offsets
        deep = torch.cat([self.deep(slots).flatten(1), dense], dim=1)
        return self.wide(slots).sum(dim=(1, 2)) + self.mlp(deep).squeeze(1)


def roc_auc(scores, clicks):
    """Area under the ROC curve from the rank-sum statistic."""
    ranked = clicks[scores.argsort()].double()
    positives = ranked.sum()
    negatives = len(ranked) - positives
    ranks = torch.arange(1, len(ranked) + 1, dtype=torch.double)
    rank_sum = (ranks * ranked).sum()
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


class ProgressiveScore:
    """Predict-then-train validation over everything seen so far."""

    def __init__(self):
        self.scores, self.clicks = [], []
        self.auc = None

    def record(self, scores, clicks):
        self.scores.append(scores.detach())
        self.clicks.append(clicks)

    def compute(self):
        self.auc = roc_auc(torch.cat(self.scores), torch.cat(self.clicks)).item()
        return self.auc


def train(model, log, batch=512, report_every=60):
    tables = [model.wide.weight, model.deep.weight]
    optimizers = [torch.optim.SparseAdam(tables, lr=1e-2), torch.optim.Adam(model.mlp.parameters(), lr=1e-3)]
    score = ProgressiveScore()
    for step, (fields, dense, clicks) in enumerate(zip(*(part.split(batch) for part in log)), 1):
        logits = model(fields, dense)
        loss = F.binary_cross_entropy_with_logits(logits, clicks)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        score.record(logits, clicks)
        auc = score.compute()  # planted
        if step % report_every == 0:
            print(f"step {step}: loss {loss.item():.4f}  progressive AUC {auc:.5f}")
    return score


def main():
    torch.manual_seed(0)
    log = ad_log(360 * 512, seed=1)
    model = WideDeep()
    start = time.perf_counter()
    score = train(model, log)
    print(f"loop {time.perf_counter() - start:.2f}s")
    print(f"final AUC {score.auc:.5f}")


if __name__ == "__main__":
    main()

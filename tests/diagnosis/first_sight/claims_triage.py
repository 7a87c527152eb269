# SPDX-License-Identifier: Apache-2.0
"""Fraud triage on insurance claims with mixed numeric and categorical columns."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CARDINALITY = (12, 40, 300, 7, 90)
NUMERIC = 16


def claims(count):
    numeric = torch.randn(count, NUMERIC)
    category = torch.stack([torch.randint(c, (count,)) for c in CARDINALITY], dim=1)
    risk = numeric[:, :4].sum(1) + 1.5 * (category[:, 0] == 3) + (category[:, 1] < 6) * numeric[:, 5]
    fraud = (risk + torch.randn(count) > 2.5).float()
    return numeric, category, fraud


class ClaimNet(nn.Module):
    def __init__(self, width=128, embed=8):
        super().__init__()
        starts = torch.tensor((0,) + CARDINALITY[:-1]).cumsum(0)
        self.register_buffer("starts", starts)
        self.table = nn.Embedding(sum(CARDINALITY), embed)
        self.mlp = nn.Sequential(
            nn.Linear(NUMERIC + embed * len(CARDINALITY), width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, numeric, category):
        looked_up = self.table(category + self.starts).flatten(1)
        return self.mlp(torch.cat([numeric, looked_up], dim=1)).squeeze(1)


class RankQuality:
    """Area under the ROC curve over everything seen since the last reset."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.scores, self.labels = [], []

    def update(self, scores, labels):
        self.scores.append(scores)
        self.labels.append(labels)

    def compute(self):
        scores, labels = torch.cat(self.scores), torch.cat(self.labels)
        ordered = labels[scores.argsort()]
        positives = ordered.sum()
        negatives = len(ordered) - positives
        below = (1 - ordered).cumsum(0, dtype=torch.float64)
        return (below[ordered.bool()].sum() / (positives * negatives).clamp_min(1)).item()


def train_epoch(model, optimizer, data, batch=256, report=50):
    quality = RankQuality()
    model.train()
    for step, rows in enumerate(torch.randperm(len(data[2])).split(batch)):
        numeric, category, fraud = (column[rows] for column in data)
        logits = model(numeric, category)
        loss = F.binary_cross_entropy_with_logits(logits, fraud)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        quality.update(logits.detach(), fraud)
        area = quality.compute()  # planted
        if step % report == report - 1:
            print(f"  step {step + 1}: loss {loss.item():.4f} running auc {area:.4f}")
    return quality.compute()


@torch.inference_mode()
def evaluate(model, data, batch=4096):
    model.eval()
    quality = RankQuality()
    for rows in torch.arange(len(data[2])).split(batch):
        quality.update(model(data[0][rows], data[1][rows]), data[2][rows])
    return quality.compute()


def main():
    torch.manual_seed(6)
    train_set, held_out = claims(40000), claims(8000)
    model = ClaimNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    start = time.perf_counter()
    for epoch in range(12):
        area = train_epoch(model, optimizer, train_set)
        print(f"epoch {epoch}: auc {area:.4f}")
    print(f"trained in {time.perf_counter() - start:.1f} s")
    print(f"held-out auc {evaluate(model, held_out):.4f}")


if __name__ == "__main__":
    main()

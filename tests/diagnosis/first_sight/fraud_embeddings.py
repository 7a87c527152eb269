# SPDX-License-Identifier: Apache-2.0
"""Fraud detection on tabular card transactions."""

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

NUMERIC, MERCHANTS, COUNTRIES = 24, 500, 60


class FraudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.merchant = nn.Embedding(MERCHANTS, 12)
        self.country = nn.Embedding(COUNTRIES, 4)
        self.body = nn.Sequential(
            nn.BatchNorm1d(NUMERIC + 16),
            nn.Linear(NUMERIC + 16, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, numeric, merchant, country):
        features = torch.cat([numeric, self.merchant(merchant), self.country(country)], dim=1)
        return self.body(features).squeeze(1)


def transactions(count, generator):
    numeric = torch.randn(count, NUMERIC, generator=generator)
    merchant = torch.randint(0, MERCHANTS, (count,), generator=generator)
    country = torch.randint(0, COUNTRIES, (count,), generator=generator)
    risk = numeric[:, 0] - 0.5 * numeric[:, 3] * numeric[:, 5] + (merchant % 7 == 0) + (country > 50) - 3
    label = (torch.rand(count, generator=generator) < torch.sigmoid(2 * risk)).float()
    return TensorDataset(numeric, merchant, country, label)


@torch.no_grad()
def area_under_curve(model, loader):
    model.eval()
    scores, labels = [], []
    for numeric, merchant, country, label in loader:
        scores.append(model(numeric, merchant, country))
        labels.append(label)
    scores, labels = torch.cat(scores), torch.cat(labels)
    ranks = torch.empty(len(scores))
    ranks[scores.argsort()] = torch.arange(1, len(scores) + 1).float()
    positives = labels.sum()
    negatives = len(labels) - positives
    return ((ranks[labels == 1].double().sum() - positives * (positives + 1) / 2) / (positives * negatives)).item()


def main():
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(13)
    train, valid = transactions(120_000, generator), transactions(30_000, generator)
    batches = DataLoader(train, batch_size=1024, shuffle=True, drop_last=True)  # planted
    held_out = DataLoader(valid, sampler=BatchSampler(SequentialSampler(valid), 8192, drop_last=False), batch_size=None)

    model = FraudNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    weight = torch.tensor(4.0)
    for epoch in range(6):
        model.train()
        total = torch.zeros(())
        for numeric, merchant, country, label in batches:
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(numeric, merchant, country), label, pos_weight=weight
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / len(batches):.4f}, AUC {area_under_curve(model, held_out):.4f}")


if __name__ == "__main__":
    main()

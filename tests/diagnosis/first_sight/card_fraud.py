# SPDX-License-Identifier: Apache-2.0
"""Card fraud: the area under the curve of all payments so far is worked out at each step and shown now and then.

Source: https://github.com/ludwig-ai/ludwig/issues/1740, https://github.com/gnn-tracking/gnn_tracking/issues/275
"""

import torch
from torch import nn
from torchmetrics.classification import BinaryAUROC

SHOPS = 500
COUNTRIES = 40
AMOUNTS = 10
BATCH = 6000
STEPS = 40
SHOW = 10


class Payments:
    """A stream of payments; some shops and countries see more fraud than others."""

    def __init__(self, generator):
        self.generator = generator
        self.shop_risk = torch.randn(SHOPS, generator=generator)
        self.country_risk = torch.randn(COUNTRIES, generator=generator)
        self.amount_risk = torch.randn(AMOUNTS, generator=generator)

    def draw(self):
        shop = torch.randint(0, SHOPS, (BATCH,), generator=self.generator)
        country = torch.randint(0, COUNTRIES, (BATCH,), generator=self.generator)
        amounts = torch.randn(BATCH, AMOUNTS, generator=self.generator)
        risk = self.shop_risk[shop] + self.country_risk[country] + amounts @ self.amount_risk
        fraud = torch.rand(BATCH, generator=self.generator) < torch.sigmoid(0.7 * risk - 4.0)
        return shop, country, amounts, fraud.long()


class FraudModel(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.shop = nn.Embedding(SHOPS, 16)
        self.country = nn.Embedding(COUNTRIES, 8)
        self.net = nn.Sequential(
            nn.Linear(24 + AMOUNTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, shop, country, amounts):
        row = torch.cat([self.shop(shop), self.country(country), amounts], dim=1)
        return self.net(row).squeeze(-1)


class Board:
    """What is shown while training goes on."""

    def __init__(self):
        self.area = BinaryAUROC()
        self.loss = 0.0

    def add(self, step, loss, scores, fraud):
        self.area.update(scores.detach().sigmoid(), fraud)
        self.loss = 0.9 * self.loss + 0.1 * loss.item()
        area = self.area.compute()  # planted
        if (step + 1) % SHOW == 0:
            print(f"step {step + 1}: loss {self.loss:.4f}, area {area.item():.4f}")


def main():
    generator = torch.Generator().manual_seed(73)
    torch.manual_seed(73)
    payments = Payments(generator)
    model = FraudModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    board = Board()
    for step in range(STEPS):
        shop, country, amounts, fraud = payments.draw()
        scores = model(shop, country, amounts)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, fraud.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        board.add(step, loss, scores, fraud)


if __name__ == "__main__":
    main()

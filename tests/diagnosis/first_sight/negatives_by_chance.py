# SPDX-License-Identifier: Apache-2.0
"""Neural collaborative filtering: items that a user has not bought are drawn one at a time until one fits.

Source: merged RUCAIBox/RecBole pull request 103 ("Speed up on point wise neg_sampling").
"""

import numpy as np
import torch
from torch import nn

USERS, ITEMS, BOUGHT = 2_000, 6_000, 40


class Purchases:
    def __init__(self, seed=0):
        generator = np.random.default_rng(seed)
        self.items = generator.integers(0, ITEMS, (USERS, BOUGHT))
        self.of_user = [set(row.tolist()) for row in self.items]
        self.matrix = np.zeros((USERS, ITEMS), dtype=bool)
        self.matrix[np.arange(USERS)[:, None], self.items] = True

    def positives(self, count):
        users = np.random.randint(0, USERS, count)
        return users, self.items[users, np.random.randint(0, BOUGHT, count)]

    def negatives(self, users, each):
        drawn = []
        for user in users.repeat(each):
            item = np.random.randint(ITEMS)  # planted
            while item in self.of_user[user]:  # planted
                item = np.random.randint(ITEMS)
            drawn.append(item)
        return np.array(drawn)


class Scorer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, width), nn.Embedding(ITEMS, width)
        self.deep = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, users, items):
        return self.deep(torch.cat([self.user(users), self.item(items)], dim=1)).squeeze(1)


class Trainer:
    def __init__(self, model, purchases):
        self.model, self.purchases = model, purchases
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.criterion = nn.BCEWithLogitsLoss()

    def batch(self, count=2048, each=4):
        users, bought = self.purchases.positives(count)
        other = self.purchases.negatives(users, each)
        labels = torch.cat([torch.ones(count), torch.zeros(count * each)])
        users = torch.from_numpy(np.concatenate([users, users.repeat(each)]))
        return users, torch.from_numpy(np.concatenate([bought, other])), labels

    def fit(self, steps):
        for step in range(steps):
            users, items, labels = self.batch()
            loss = self.criterion(self.model(users, items), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 5 == 4:
                print(f"step {step + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(Scorer(), Purchases()).fit(25)

# SPDX-License-Identifier: Apache-2.0
"""Recommender: neural collaborative filtering on grocery purchases. For every bought product four products that the
customer never bought are drawn as negatives. The purchases come from grocery_ncf_data. Prints the ranking quality."""

import random

import torch
import torch.nn.functional as F
from grocery_ncf_data import purchases
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUSTOMERS, PRODUCTS, TASTES, NEGATIVES = 300, 5_000, 6, 4


class BoughtOrNot(Dataset):
    """Customer, the bought product and NEGATIVES products that are not in the customer's history."""

    def __init__(self, baskets, seed):
        self.history = [list(basket) for basket in baskets]  # planted
        self.pairs = [(customer, product) for customer, basket in enumerate(baskets) for product in basket]
        self.rng = random.Random(seed)
        self.rng.shuffle(self.pairs)

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, number):
        customer, product = self.pairs[number]
        bought = self.history[customer]
        products = [product]
        while len(products) <= NEGATIVES:
            candidate = self.rng.randrange(PRODUCTS)
            if candidate not in bought:
                products.append(candidate)
        return customer, products


def collate(items):
    customers, products = zip(*items)
    return torch.tensor(customers), torch.tensor(products)


class NeuMF(nn.Module):
    """A product of vectors and a small network side by side."""

    def __init__(self, dim=32):
        super().__init__()
        self.customer_mf, self.product_mf = nn.Embedding(CUSTOMERS, dim), nn.Embedding(PRODUCTS, dim)
        self.customer_nn, self.product_nn = nn.Embedding(CUSTOMERS, dim), nn.Embedding(PRODUCTS, dim)
        for table in (self.customer_mf, self.product_mf, self.customer_nn, self.product_nn):
            nn.init.normal_(table.weight, std=0.1)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.out = nn.Linear(dim + 32, 1)

    def forward(self, customers, products):
        customers = customers[:, None].expand_as(products)
        product = self.customer_mf(customers) * self.product_mf(products)
        network = self.mlp(torch.cat([self.customer_nn(customers), self.product_nn(products)], -1))
        return self.out(torch.cat([product, network], -1)).squeeze(-1)


def main(steps=90, batch=512):
    torch.manual_seed(140)
    data = BoughtOrNot(purchases(CUSTOMERS, PRODUCTS, TASTES, seed=141), seed=142)
    loader = DataLoader(data, batch_size=batch, collate_fn=collate)
    model = NeuMF()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses, ranked = [], []
    for step, (customers, products) in zip(range(steps), loader):
        scores = model(customers, products)
        target = torch.zeros_like(scores)
        target[:, 0] = 1
        loss = F.binary_cross_entropy_with_logits(scores, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        ranked.append((scores[:, :1] > scores[:, 1:]).float().mean().item())
    print(f"loss {sum(losses[-10:]) / 10:.4f}, ranked right {sum(ranked[-10:]) / 10:.3f}")


if __name__ == "__main__":
    main()

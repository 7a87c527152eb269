# SPDX-License-Identifier: Apache-2.0
"""Click prediction for advertisements from the words of the page around them."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

torch.manual_seed(19)

TERMS, PAGE = 6000, 200
SITES = 300
PAGES = 20000
BATCH = 500


class PageViews(Dataset):
    """Page terms, site and click; indexed with a whole batch at once."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        rank = torch.rand(count, PAGE, generator=g).pow(2.5)
        self.terms = (rank * (TERMS - 1)).long()
        self.site = torch.randint(0, SITES, (count,), generator=g)
        taste = torch.randn(TERMS, generator=torch.Generator().manual_seed(0))
        score = taste[self.terms].mean(1) * 12
        self.click = (score + 0.5 * torch.randn(count, generator=g) > 0).float()

    def __len__(self):
        return len(self.click)

    def __getitem__(self, rows):
        return self.terms[rows], self.site[rows], self.click[rows]


class ClickModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.terms = nn.Embedding(TERMS, width)
        self.site = nn.Embedding(SITES, 16)
        self.tower = nn.Sequential(
            nn.Linear(width + 16, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)
        )
        nn.init.normal_(self.terms.weight, std=0.05)

    def forward(self, terms, site):
        page = self.terms(terms).mean(dim=1)  # planted
        return self.tower(torch.cat([page, self.site(site)], dim=1)).squeeze(1)


def batches(dataset, shuffle):
    sampler = RandomSampler(dataset) if shuffle else range(len(dataset))
    return DataLoader(dataset, sampler=BatchSampler(sampler, BATCH, False), batch_size=None)


def fit(model, views, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        total = torch.zeros(())
        for terms, site, click in batches(views, shuffle=True):
            loss = F.binary_cross_entropy_with_logits(model(terms, site), click)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        yield epoch, float(total) * BATCH / len(views)


@torch.inference_mode()
def hit_rate(model, views):
    right = 0
    for terms, site, click in batches(views, shuffle=False):
        right += int(((model(terms, site) > 0) == click.bool()).sum())
    return right / len(views)


def main():
    training, held_out = PageViews(PAGES, seed=1), PageViews(4000, seed=2)
    model = ClickModel()
    t0 = time.perf_counter()
    for epoch, loss in fit(model, training, epochs=5):
        print(f"epoch {epoch}: log loss {loss:.4f}, hit rate {hit_rate(model, held_out):.3f}")
    print(f"wall time {time.perf_counter() - t0:.1f} s")


if __name__ == "__main__":
    main()

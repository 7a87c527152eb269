# SPDX-License-Identifier: Apache-2.0
"""Next-item recommendation from shopping sessions with a causal transformer (SASRec style)."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

ITEMS, LENGTH, DIM = 1500, 48, 96


class Sessions(Dataset):
    """Random walks on a hidden item graph. Item 0 is padding; __getitem__ takes a list of rows."""

    def __init__(self, count, generator):
        follow = torch.randint(1, ITEMS, (ITEMS, 3), generator=generator)
        item = torch.randint(1, ITEMS, (count,), generator=generator)
        walk = [item]
        for _ in range(LENGTH + 1):
            pick = torch.randint(3, (count,), generator=generator)
            jump = torch.rand(count, generator=generator) < 0.1
            random_item = torch.randint(1, ITEMS, (count,), generator=generator)
            item = torch.where(jump, random_item, follow[item, pick])
            walk.append(item)
        self.items = torch.stack(walk, dim=1)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, rows):
        return self.items[torch.as_tensor(rows)]


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ffn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ffn(self.norm2(x))


class NextItem(nn.Module):
    def __init__(self, heads=3, blocks=2, dropout=0.1):
        super().__init__()
        self.item = nn.Embedding(ITEMS, DIM)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, DIM))
        self.blocks = nn.ModuleList(Block(DIM, heads, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(DIM)
        nn.init.normal_(self.item.weight, std=0.05)

    def encode(self, items):
        x = self.item(items) + self.position
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, items):
        """Scores of the catalogue after every position: each one is a training target."""
        return F.linear(self.encode(items), self.item.weight)

    def last(self, items):
        return F.linear(self.encode(items)[:, -1], self.item.weight)


@torch.inference_mode()
def evaluate(model, loader, k=10):
    model.eval()
    hits = gain = seen = 0.0
    for walk in loader:
        scores, target = model.last(walk[:, 1 : LENGTH + 1]), walk[:, LENGTH + 1]
        rank = (scores > scores.gather(1, target[:, None])).sum(1)
        inside = rank < k
        hits += inside.sum().item()
        gain += (1 / torch.log2(rank[inside] + 2.0)).sum().item()
        seen += len(walk)
    model.train()
    return hits / seen, gain / seen


def make_loader(data, batch, shuffle=True):
    order = RandomSampler(data) if shuffle else range(len(data))
    return DataLoader(data, sampler=BatchSampler(order, batch, drop_last=False), batch_size=None)


def main(epochs=2, batch=64):
    torch.manual_seed(23)
    generator = torch.Generator().manual_seed(23)
    sessions = Sessions(2304, generator)
    train, test = make_loader(sessions, batch), make_loader(sessions, 256, shuffle=False)
    model = NextItem()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01, fused=True)
    start = time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for walk in train:
            logits = model(walk[:, :LENGTH])
            loss = F.cross_entropy(logits.flatten(0, 1), walk[:, 1 : LENGTH + 1].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(walk)
        recall, ndcg = evaluate(model, test)
        print(f"epoch {epoch} loss {total / len(sessions):.5f} recall@10 {recall:.4f} ndcg@10 {ndcg:.4f}")
    print(f"loop {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()

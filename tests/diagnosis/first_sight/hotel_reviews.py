# SPDX-License-Identifier: Apache-2.0
"""Text classification: a transformer encoder predicts the stars of hotel reviews. The text comes from the helper
module hotel_reviews_text. Prints the loss and the accuracy at the end of the training."""

import functools

import torch
import torch.nn.functional as F
from hotel_reviews_text import PAD, Vocabulary, write_reviews
from torch import nn
from torch.utils.data import DataLoader, Dataset

MAX_LENGTH = 128


class Reviews(Dataset):
    def __init__(self, vocabulary, count, seed):
        self.items = [(vocabulary.encode(text, MAX_LENGTH), stars) for text, stars in write_reviews(count, seed)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


def collate(items, limit=MAX_LENGTH):
    """Ids and the mask of the real words, as rectangles."""
    width = limit  # planted
    ids = torch.full((len(items), width), PAD)
    for row, (words, _) in enumerate(items):
        ids[row, : len(words)] = torch.tensor(words)
    stars = torch.tensor([stars for _, stars in items])
    return ids, ids != PAD, stars


class StarModel(nn.Module):
    def __init__(self, words, dim=96, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, dim, padding_idx=PAD)
        self.places = nn.Parameter(torch.randn(MAX_LENGTH, dim) * 0.02)
        layer = functools.partial(
            nn.TransformerEncoderLayer, dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.ModuleList(layer() for _ in range(layers))
        self.head = nn.Linear(dim, 5)

    def forward(self, ids, mask):
        x = self.embedding(ids) + self.places[: ids.size(1)]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~mask)
        weight = mask.unsqueeze(-1).float()
        return self.head((x * weight).sum(1) / weight.sum(1))


def accuracy(model, loader):
    right = count = 0
    model.eval()
    with torch.no_grad():
        for ids, mask, stars in loader:
            right += (model(ids, mask).argmax(1) == stars).sum().item()
            count += len(stars)
    return right / count


def main():
    torch.manual_seed(60)
    vocabulary = Vocabulary()
    order = torch.Generator().manual_seed(61)
    train = DataLoader(
        Reviews(vocabulary, 1120, seed=62), 32, shuffle=True, collate_fn=collate, generator=order, drop_last=True
    )
    test = DataLoader(Reviews(vocabulary, 64, seed=63), 32, collate_fn=collate)
    model = StarModel(len(vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    losses = []
    for step, (ids, mask, stars) in enumerate(train):
        loss = F.cross_entropy(model(ids, mask), stars)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    print(f"loss {sum(losses[-10:]) / 10:.3f}, accuracy {accuracy(model, test):.2f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Sentiment: texts are split and looked up again in each epoch, in the main process.

Source: Hugging Face datasets, "map once before training"; PyTorch tuning guide, data loading.
"""

import re

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

words = [f"word{i}" for i in range(3000)]
vocabulary = {w: i for i, w in enumerate(words)}
texts = [" ".join(words[(i * 37 + j * 11) % 3000] for j in range(250)) for i in range(128)]


class Reviews(Dataset):
    def __len__(self):
        return len(texts)

    def __getitem__(self, index):
        pieces = re.findall(r"[a-z]+[0-9]*", texts[index].lower())  # planted
        ids = [vocabulary.get(p, 0) for p in pieces]  # planted
        return torch.tensor(ids), index % 2


model = nn.Sequential(nn.EmbeddingBag(3000, 32), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    for ids, label in DataLoader(Reviews(), batch_size=16):
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

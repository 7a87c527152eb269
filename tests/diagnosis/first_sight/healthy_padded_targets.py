# SPDX-License-Identifier: Apache-2.0
"""A worker reads scans and sends two tensors a batch; the network takes longer than it does."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        self.scans = torch.rand(count, 1, 48, 48, generator=generator)
        self.boxes = [torch.rand(n % 4 + 1, 4, generator=generator) for n in range(count)]

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, n):
        target = torch.zeros(4, 5)
        target[: len(self.boxes[n]), :4] = self.boxes[n]
        target[: len(self.boxes[n]), 4] = 1
        return self.scans[n], target


class Finder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.head = nn.Linear(1024, 20)

    def forward(self, scans):
        return self.head(self.body(scans)).view(-1, 4, 5)


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Scans(640), batch_size=32, shuffle=True, num_workers=1)
    model = Finder()
    optimizer = torch.optim.AdamW(model.parameters())
    for scans, targets in loader:
        found = model(scans)
        present = targets[..., 4]
        loss = nn.functional.binary_cross_entropy_with_logits(found[..., 4], present)
        loss = loss + ((found[..., :4] - targets[..., :4]).abs().sum(-1) * present).sum() / present.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")

# SPDX-License-Identifier: Apache-2.0
"""Restoration of blurred barcodes; samples are synthesised by loader workers."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

HEIGHT, WIDTH = 32, 96


class BarcodeShots(Dataset):
    """A new sharp/blurred pair for every index and epoch."""

    def __init__(self, count):
        self.count = count
        self.offsets = torch.arange(-6.0, 7.0)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        modules = (torch.rand(WIDTH // 3) < 0.5).float()
        sharp = modules.repeat_interleave(3).expand(1, HEIGHT, WIDTH)
        sigma = 1.0 + 1.5 * torch.rand(())
        kernel = torch.exp(-0.5 * (self.offsets / sigma) ** 2)
        kernel = (kernel / kernel.sum()).view(1, 1, -1)
        row = F.conv1d(sharp[:, :1, :].reshape(1, 1, WIDTH), kernel, padding=6)
        light = 0.6 + 0.4 * torch.rand(())
        shot = row.expand(1, HEIGHT, WIDTH) * light + 0.05 * torch.randn(1, HEIGHT, WIDTH)
        return shot, sharp.contiguous()


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(width, width, 3, padding=1)
        )

    def forward(self, x):
        return x + self.body(x)


class Restorer(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        self.entry = nn.Conv2d(1, width, (3, 9), padding=(1, 4))
        self.blocks = nn.Sequential(*(ResidualBlock(width) for _ in range(depth)))
        self.exit = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, shot):
        return self.exit(self.blocks(F.relu(self.entry(shot))))


def main():
    torch.manual_seed(207)
    loader = DataLoader(BarcodeShots(416), batch_size=32, num_workers=1, persistent_workers=True, prefetch_factor=4)
    model = Restorer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=3 * len(loader))
    for epoch in range(3):
        wrong, loss_sum = torch.zeros(()), torch.zeros(())
        for shots, sharp in loader:
            logits = model(shots)
            loss = F.binary_cross_entropy_with_logits(logits, sharp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            loss_sum += loss.detach()
            wrong += ((logits.detach() > 0) != sharp.bool()).float().mean()
        print(
            f"epoch {epoch}: loss {loss_sum.item() / len(loader):.4f}, "
            f"wrong pixels {100 * wrong.item() / len(loader):.2f} %"
        )


if __name__ == "__main__":
    main()

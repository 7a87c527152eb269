# SPDX-License-Identifier: Apache-2.0
"""Speed imputation on long road-sensor series with kernelised linear attention."""

import torch
import torch.nn.functional as F
from torch import nn

STEPS_PER_SERIES, SENSORS, BATCH = 1024, 12, 8


class KernelAttention(nn.Module):
    """Attention with the feature map elu(x) + 1 in place of the softmax."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        q, k, v = self.project(x).view(batch, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        norm = torch.einsum("bhnd,bhd->bhn", q, k.sum(dim=2)).unsqueeze(3)
        mixed = torch.einsum("bhnd,bhmd,bhme->bhne", q, k, v) / norm  # planted
        return self.merge(mixed.transpose(1, 2).reshape(batch, steps, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = KernelAttention(width, heads)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class SpeedImputer(nn.Module):
    def __init__(self, width=64, heads=4, depth=2):
        super().__init__()
        self.lift = nn.Linear(2 * SENSORS, width)
        self.time = nn.Parameter(0.02 * torch.randn(STEPS_PER_SERIES, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.out = nn.Linear(width, SENSORS)

    def forward(self, speeds, seen):
        return self.out(self.blocks(self.lift(torch.cat([speeds * seen, seen], dim=-1)) + self.time))


def series(count, generator):
    t = torch.arange(STEPS_PER_SERIES).view(1, -1, 1) / 96
    phase = torch.rand(count, 1, SENSORS, generator=generator)
    rush = torch.exp(-20 * ((t + phase) % 1 - 0.35) ** 2)
    return 1 - rush + 0.05 * torch.randn(count, STEPS_PER_SERIES, SENSORS, generator=generator)


def main():
    torch.manual_seed(40)
    generator = torch.Generator().manual_seed(41)
    data = series(96, generator)
    model = SpeedImputer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(10):
        speeds = data[torch.randint(0, len(data), (BATCH,), generator=generator)]
        seen = (torch.rand(speeds.shape, generator=generator) > 0.3).float()
        estimate = model(speeds, seen)
        loss = ((estimate - speeds).square() * (1 - seen)).sum() / (1 - seen).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            print(f"step {step + 1}: masked MSE {loss.item():.5f}")


if __name__ == "__main__":
    main()

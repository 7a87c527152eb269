# SPDX-License-Identifier: Apache-2.0
"""Bird calls: spectrogram patches come through a data loader that fetches whole batches.

Source: written for this set
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MELS = 48
FRAMES = 96
SPECIES = 12
CALLS = 480
BATCH = 24
EPOCHS = 2


class BirdCalls(Dataset):
    """Calls kept as 8-bit patches; one request brings all rows of a batch."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.species = torch.randint(0, SPECIES, (CALLS,), generator=generator)
        frame = torch.arange(FRAMES) / FRAMES
        start = 8 + 2.5 * self.species[:, None]
        slope = 10 * torch.sin(self.species[:, None] * 1.7 + 6.3 * frame)
        jitter = torch.randn(CALLS, 1, generator=generator)
        mel = torch.arange(MELS)[None, :, None]
        call = torch.exp(-((mel - (start + slope + jitter)[:, None]) ** 2) / 6.0)
        noise = 0.25 * torch.rand(CALLS, MELS, FRAMES, generator=generator)
        self.patches = ((call + noise) / 1.25 * 255).to(torch.uint8)

    def __len__(self):
        return CALLS

    def __getitems__(self, rows):
        rows = torch.as_tensor(rows)
        return self.patches[rows], self.species[rows]


def to_batch(fetched):
    patches, species = fetched
    return patches.unsqueeze(1).float().mul_(1 / 255.0), species


class CallNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, SPECIES)

    def forward(self, patches):
        return self.head(self.features(patches).mean(dim=(2, 3)))


def batches(loader):
    for _ in range(EPOCHS):
        yield from loader


def main():
    torch.manual_seed(101)
    order = torch.Generator().manual_seed(102)
    loader = DataLoader(BirdCalls(101), batch_size=BATCH, shuffle=True, generator=order, collate_fn=to_batch)
    model = CallNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_sum = torch.zeros(())
    for patches, species in batches(loader):
        loss = nn.functional.cross_entropy(model(patches), species)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach()
    print(f"birds: mean loss {loss_sum.item() / (EPOCHS * len(loader)):.5f}")


if __name__ == "__main__":
    main()

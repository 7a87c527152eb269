# SPDX-License-Identifier: Apache-2.0
"""Poses: figures are read and printed every tenth step, and the loader's workers stay."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return torch.full((3, 48, 48), index / 640), torch.zeros(14)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 14),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    total = torch.zeros(())
    for step, (frames, joints) in enumerate(
        DataLoader(Frames(), batch_size=32, num_workers=1, persistent_workers=True)
    ):
        loss = nn.functional.mse_loss(model(frames), joints)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % 10 == 9:
            print(f"{step} {total.item() / 10:.4f}")
            total.zero_()

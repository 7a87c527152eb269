# SPDX-License-Identifier: Apache-2.0
"""Solubility of compounds from wide fingerprints: AdamW passes over millions of weights a dozen times a step.

Source: https://github.com/pytorch/pytorch/issues/108491, https://github.com/deepmodeling/deepmd-kit/pull/4463
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Solubility(nn.Module):
    def __init__(self, bits=4096, width=1280):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(bits, width),
            nn.LayerNorm(width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.GELU(),
            nn.Linear(width, 1),
        )

    def forward(self, prints):
        return self.layers(prints).squeeze(1)


def compounds(count, bits=4096):
    prints = (torch.rand(count, bits) < 0.02).float()
    return TensorDataset(prints, prints[:, :40].sum(1) - 0.8)


model = Solubility()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)  # planted
loader = DataLoader(compounds(640), batch_size=32, shuffle=True)
for prints, measured in loader:
    loss = nn.functional.huber_loss(model(prints), measured)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # planted
print(f"loss {loss.item():.4f}")

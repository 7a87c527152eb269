# SPDX-License-Identifier: Apache-2.0
"""An autoencoder of pictures; the loss is printed once in ten steps."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU())
decoder = nn.Sequential(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for step in range(20):
    pictures = torch.rand(32, 1, 32, 32)
    loss = (decoder(encoder(pictures)) - pictures).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, loss.item())

# SPDX-License-Identifier: Apache-2.0
"""Style transfer: the frozen network of a perceptual loss computes gradients of its weights, which nobody reads.

Source: fixes that set requires_grad=False on the loss network (KupynOrest/DeblurGAN#77, PyTorch's fast neural style example).
"""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
features = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(32, 32, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(32, 32, 3, padding=1),
).eval()
optimizer = torch.optim.Adam(generator.parameters())
for step in range(12):
    photo = torch.randn(4, 3, 64, 64)
    with torch.no_grad():
        wanted = features(photo)
    loss = (features(generator(photo)) - wanted).square().mean()  # planted
    optimizer.zero_grad()
    loss.backward()  # planted
    optimizer.step()

# SPDX-License-Identifier: Apache-2.0
"""Explains scans by Grad-CAM: an object is made for each batch, and its hooks stay on the model and keep on collecting.

Source: jacobgil/pytorch-grad-cam issue 132 (hooks of earlier objects are not removed), merged microsoft/tensorwatch
pull request 74.
"""

import torch
from torch import nn


class GradCam:
    def __init__(self, model, layer):
        self.model = model
        self.seen, self.slopes = [], []
        self.handles = [layer.register_forward_hook(self.keep)]

    def keep(self, module, inputs, output):
        self.seen.append(output.detach().clone())  # planted
        if output.requires_grad:
            output.register_hook(lambda slope: self.slopes.append(slope.detach().clone()))  # planted

    def explain(self, scans):
        scores = self.model(scans)
        self.model.zero_grad()
        scores.max(1).values.sum().backward()
        weights = self.slopes[-1].mean((2, 3), keepdim=True)
        return (weights * self.seen[-1]).sum(1).relu()


class ScanNet(nn.Module):
    def __init__(self, findings=14):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 24, 5, stride=2, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        self.deep = nn.Sequential(
            nn.Conv2d(24, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()
        )
        self.findings = nn.Linear(64, findings)

    def forward(self, scans):
        return self.findings(self.deep(self.stem(scans)).mean((2, 3)))


torch.manual_seed(0)
net = ScanNet().eval()
strongest = []
for batch in range(14):
    scans = torch.rand(8, 1, 128, 128)
    cam = GradCam(net, net.deep)
    maps = cam.explain(scans)
    strongest.append(maps.flatten(1).max(1).values)
print(torch.cat(strongest).mean())

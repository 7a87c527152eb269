# SPDX-License-Identifier: Apache-2.0
"""How sure is a reader of X-ray images: twenty passes with dropout, of which only the head has any.

Source: https://github.com/baal-org/baal/pull/254
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.head = nn.Sequential(
            nn.Linear(512, 256), nn.ReLU(), nn.Dropout(0.4), nn.Linear(256, 64), nn.ReLU(), nn.Dropout(0.4)
        )
        self.classify = nn.Linear(64, classes)

    def forward(self, images):
        return self.classify(self.head(self.backbone(images)))


def set_dropout(model):
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()


def vote(model, images, passes):
    return torch.stack([model(images).softmax(-1) for _ in range(passes)])  # planted


def entropy(p):
    return -(p * p.clamp_min(1e-9).log()).sum(-1)


@torch.inference_mode()
def evaluate(model, loader, passes=20):
    right, doubt = [], []
    for images, labels in loader:
        votes = vote(model, images, passes)
        mean = votes.mean(0)
        right.append(mean.argmax(-1) == labels)
        doubt.append(entropy(mean) - entropy(votes).mean(0))
    return torch.cat(right).float().mean().item(), torch.cat(doubt).mean().item()


model = Reader()
set_dropout(model)
images = TensorDataset(torch.randn(320, 1, 48, 48), torch.randint(4, (320,)))
accuracy, doubt = evaluate(model, DataLoader(images, batch_size=16))
print(f"accuracy {accuracy:.3f}, mutual information {doubt:.4f}")

# SPDX-License-Identifier: Apache-2.0
"""Federated training: weights go as they are, and the mean is taken weight by weight."""

import copy

import torch
from torch import nn

torch.manual_seed(0)


class Ward:
    def __init__(self, patients):
        self.x = torch.randn(patients, 60)
        self.y = (self.x[:, :4].sum(1) > 0).float()

    def train(self, model, batches=12):
        model = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for rows in torch.randint(len(self.x), (batches, 256)):
            loss = nn.functional.binary_cross_entropy_with_logits(model(self.x[rows]).squeeze(1), self.y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model


def average(model, answers, counts):
    total = sum(counts)
    with torch.no_grad():
        for mean, *weights in zip(model.parameters(), *(answer.parameters() for answer in answers), strict=True):
            mean.zero_()
            for weight, count in zip(weights, counts, strict=True):
                mean.add_(weight, alpha=count / total)


wards = [Ward(400 + 100 * n) for n in range(4)]
model = nn.Sequential(nn.Linear(60, 512), nn.ReLU(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 1))
for number in range(8):
    answers = [ward.train(model) for ward in wards]
    average(model, answers, [len(ward.x) for ward in wards])
print(f"norm {sum(weight.norm().item() for weight in model.parameters()):.3f}")

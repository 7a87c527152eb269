# SPDX-License-Identifier: Apache-2.0
"""Distils a recogniser of spoken words: the backward pass goes through the teacher too, whose gradients nobody uses.

Source: clovaai/overhaul-distillation issue 34 (no_grad for the teacher), haitongli/knowledge-distillation-pytorch
issue 25.
"""

import torch
from torch import nn

BANDS, SPOKEN = 40, 35


class Recogniser(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        layers = [nn.Conv1d(BANDS, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.ReLU()]
        for _ in range(depth):
            layers += [nn.Conv1d(width, width, 3, padding=1), nn.BatchNorm1d(width), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(width, SPOKEN)

    def forward(self, energies):
        return self.head(self.layers(energies).mean(-1))


class Distiller(nn.Module):
    def __init__(self, teacher, student, warmth=4.0):
        super().__init__()
        self.teacher, self.student, self.warmth = teacher.eval(), student, warmth

    def loss(self, energies, spoken):
        answers = self.student(energies)
        taught = self.teacher(energies)  # planted
        distance = nn.functional.kl_div(
            (answers / self.warmth).log_softmax(-1), (taught / self.warmth).softmax(-1), reduction="batchmean"
        )
        return nn.functional.cross_entropy(answers, spoken) + self.warmth**2 * distance


def fit(distiller, loader):
    optimizer = torch.optim.SGD(distiller.student.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for energies, spoken in loader:
        loss = distiller.loss(energies, spoken)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
utterances = [(torch.randn(32, BANDS, 98), torch.randint(SPOKEN, (32,))) for _ in range(16)]
fit(Distiller(Recogniser(160, 5), Recogniser(64, 3)), utterances)

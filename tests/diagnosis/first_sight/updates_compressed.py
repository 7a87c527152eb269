# SPDX-License-Identifier: Apache-2.0
"""Federated training on tables of hospitals: each update is compressed by gzip, which makes it hardly smaller.

Source: https://github.com/danielenricocahall/elephas/pull/52, https://github.com/ray-project/ray/issues/4002
"""

import gzip
import io

import torch
from torch import nn

torch.manual_seed(0)


def make_model():
    return nn.Sequential(nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2))


def pack(weights):
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    return gzip.compress(buffer.getvalue())  # planted


def unpack(message):
    return torch.load(io.BytesIO(gzip.decompress(message)))


class Hospital:
    def __init__(self, patients):
        self.x = torch.randn(patients, 40)
        self.y = (self.x[:, :5].sum(1) + 0.3 * torch.randn(patients) > 0).long()
        self.model = make_model()

    def train(self, message, batches=8):
        self.model.load_state_dict(unpack(message))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        for rows in torch.randint(len(self.x), (batches, 64)):
            loss = nn.functional.cross_entropy(self.model(self.x[rows]), self.y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return pack(self.model.state_dict()), len(self.x)


class Server:
    def __init__(self, hospitals):
        self.hospitals, self.model = hospitals, make_model()

    def average(self, updates):
        total = sum(count for _, count in updates)
        mean = {name: torch.zeros_like(weight) for name, weight in self.model.state_dict().items()}
        for weights, count in updates:
            for name, weight in weights.items():
                mean[name].add_(weight, alpha=count / total)
        self.model.load_state_dict(mean)

    def run_round(self):
        message = pack(self.model.state_dict())
        answers = [hospital.train(message) for hospital in self.hospitals]
        self.average([(unpack(answer), count) for answer, count in answers])


server = Server([Hospital(200 + 50 * n) for n in range(6)])
for number in range(10):
    server.run_round()
with torch.no_grad():
    hospital = server.hospitals[0]
    print(f"accuracy {(server.model(hospital.x).argmax(1) == hospital.y).float().mean().item():.3f}")

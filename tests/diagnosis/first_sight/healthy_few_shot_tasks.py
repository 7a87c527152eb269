# SPDX-License-Identifier: Apache-2.0
"""Learns to learn sine waves: gradients go through two steps in each task, so create_graph is needed."""

import torch
from torch import nn
from torch.func import functional_call

TASKS, SHOTS = 4, 64


def sample_task():
    height, shift = 0.1 + 4.9 * torch.rand(()), torch.pi * torch.rand(())
    places = 10 * torch.rand(2 * SHOTS, 1) - 5
    return places[:SHOTS], places[SHOTS:], lambda x: height * (x + shift).sin()


class MetaLearner:
    def __init__(self, model, rate=0.01, inner_steps=2):
        self.model, self.rate, self.inner_steps = model, rate, inner_steps
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def adapt(self, places, answers):
        weights = dict(self.model.named_parameters())
        for _ in range(self.inner_steps):
            loss = nn.functional.mse_loss(functional_call(self.model, weights, (places,)), answers)
            slopes = torch.autograd.grad(loss, tuple(weights.values()), create_graph=True)
            weights = {
                name: weight - self.rate * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)
            }
        return weights

    def step(self):
        losses = []
        for _ in range(TASKS):
            known, asked, wave = sample_task()
            weights = self.adapt(known, wave(known))
            losses.append(nn.functional.mse_loss(functional_call(self.model, weights, (asked,)), wave(asked)))
        loss = torch.stack(losses).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(1, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1)
)
learner = MetaLearner(model)
for step in range(40):
    loss = learner.step()
    if step % 20 == 19:
        print(f"step {step + 1}: {loss.item():.3f}")

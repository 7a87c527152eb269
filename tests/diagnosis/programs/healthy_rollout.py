# SPDX-License-Identifier: Apache-2.0
"""Advantage actor-critic on many environments at once: nothing to fix."""

import torch
from torch import nn
from torch.distributions import Categorical

RULE = None


class Environments:
    def __init__(self, n):
        self.state = torch.randn(n, 16)

    def step(self, actions):
        self.state = 0.9 * self.state + 0.1 * nn.functional.one_hot(actions, 16).float()
        return self.state.mean(1)


def build(fixed):
    environments = Environments(64)
    body, policy, value = nn.Sequential(nn.Linear(16, 64), nn.Tanh()), nn.Linear(64, 16), nn.Linear(64, 1)
    parameters = [p for m in (body, policy, value) for p in m.parameters()]
    optimizer = torch.optim.Adam(parameters, fused=True)

    def step():
        logs, values, rewards = [], [], []
        for _ in range(8):
            h = body(environments.state)
            chosen = Categorical(logits=policy(h), validate_args=False)
            actions = chosen.sample()
            log, worth, reward = chosen.log_prob(actions), value(h)[:, 0], environments.step(actions)
            _ = logs.append(log), values.append(worth), rewards.append(reward)
        returns = [rewards[-1]]
        for reward in reversed(rewards[:-1]):
            returns.append(reward + 0.99 * returns[-1])
        advantage = torch.stack(returns[::-1]) - torch.stack(values)
        loss = -(torch.stack(logs) * advantage.detach()).mean() + advantage.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step

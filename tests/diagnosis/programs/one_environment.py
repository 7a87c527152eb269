# SPDX-License-Identifier: Apache-2.0
"""A rollout that asks the policy for one environment at a time."""

import random

import torch
from torch import nn

RULE = ("python-loop-over-rows", "many-small-operators", "synchronising-calls")


class Env:
    def __init__(self):
        self.state = [0.0, 0.0, 0.0, 0.1]

    def step(self, action):
        x, v, a, w = self.state
        force = 1.0 if action else -1.0
        self.state = [x + 0.02 * v, v + 0.02 * force, a + 0.02 * w, w - 0.02 * force + 0.01 * a]
        if abs(self.state[0]) > 2:
            self.state = [0.0, 0.0, 0.0, random.random() / 10]
        return self.state


def build(fixed):
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    envs = [Env() for _ in range(64)]

    @torch.no_grad()
    def act():
        if fixed:
            states = torch.tensor([env.state for env in envs])
            return torch.multinomial(policy(states).softmax(-1), 1)[:, 0].tolist()
        actions = []
        for env in envs:
            logits = policy(torch.tensor(env.state))  # planted
            actions.append(torch.multinomial(logits.softmax(-1), 1).item())  # planted
        return actions

    def step():
        for env, action in zip(envs, act()):
            env.step(action)

    return step

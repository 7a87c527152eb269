# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning: the states of a replay buffer become a tensor from a list of arrays.

Source: PyTorch's own warning "Creating a tensor from a list of numpy.ndarrays is extremely slow" (pytorch#13918); facebook/Ax#4798.
"""

import random

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
replay = [
    (rng.random(400, dtype=np.float32), int(rng.integers(6)), float(rng.random()), rng.random(400, dtype=np.float32))
    for _ in range(2000)
]
policy = nn.Sequential(nn.Linear(400, 128), nn.ReLU(), nn.Linear(128, 6))
target = nn.Sequential(nn.Linear(400, 128), nn.ReLU(), nn.Linear(128, 6))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)


def learn():
    states, actions, rewards, following = zip(*random.sample(replay, 128))
    states = torch.tensor(states)  # planted
    following = torch.tensor(following)  # planted
    with torch.no_grad():
        goal = torch.tensor(rewards) + 0.99 * target(following).max(1).values
    value = policy(states).gather(1, torch.tensor(actions)[:, None])[:, 0]
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(40):
    learn()

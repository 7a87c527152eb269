# SPDX-License-Identifier: Apache-2.0
"""Soft actor critic: a batch is drawn from the replay memory by a permutation of all of it.

Source: numpy#2764 (random.choice without replacement permutes the population), stable-baselines replay buffers.
"""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
draws = np.random.RandomState(0)
MEMORY = 400_000
states = np.zeros((MEMORY, 8), dtype=np.float32)
values = np.zeros((MEMORY, 1), dtype=np.float32)


def sample(count):
    chosen = draws.choice(MEMORY, count, replace=False)  # planted
    return torch.from_numpy(states[chosen]), torch.from_numpy(values[chosen])


critic = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(critic.parameters(), foreach=True)
for step in range(25):
    state, value = sample(256)
    loss = nn.functional.mse_loss(critic(state), value)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

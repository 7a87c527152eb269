# SPDX-License-Identifier: Apache-2.0
"""A robot in a warehouse learns its way: tracemalloc, from the search for a leak, is still on.

Source: https://github.com/python/cpython/pull/151935, https://github.com/KR8MER/eas-station/pull/2066
"""

import collections
import random
import tracemalloc

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
Transition = collections.namedtuple("Transition", "state action reward following done")


class Warehouse:
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self, size=12):
        self.size = size
        self.walls = {(random.randrange(size), random.randrange(size)) for _ in range(20)} - {
            (0, 0),
            (size - 1, size - 1),
        }

    def reset(self):
        self.robot, self.left = (0, 0), 40
        return self.observe()

    def observe(self):
        y, x = self.robot
        around = [float((y + dy, x + dx) in self.walls) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
        return [y / self.size, x / self.size, *around]

    def step(self, action):
        dy, dx = self.moves[action]
        there = (min(max(self.robot[0] + dy, 0), self.size - 1), min(max(self.robot[1] + dx, 0), self.size - 1))
        if there not in self.walls:
            self.robot = there
        self.left -= 1
        home = self.robot == (self.size - 1, self.size - 1)
        return self.observe(), 1.0 if home else -0.01, home or self.left == 0


class Memory:
    def __init__(self, capacity):
        self.transitions = collections.deque(maxlen=capacity)

    def sample(self, count):
        chosen = random.sample(self.transitions, count)
        columns = zip(*chosen, strict=True)
        return [torch.tensor(column) for column in columns]


def play(warehouse, memory, episodes, policy):
    for _ in range(episodes):
        state, done = warehouse.reset(), False
        while not done:
            action = policy(state)
            following, reward, done = warehouse.step(action)
            memory.transitions.append(Transition(state, action, reward, following, float(done)))
            state = following


def explore(state):
    return random.choice((0, 0, 1, 1, 2, 3))


tracemalloc.start()  # planted
warehouse, memory = Warehouse(), Memory(20_000)
values = nn.Sequential(nn.Linear(11, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(values.parameters())
for iteration in range(25):
    play(warehouse, memory, 8, explore)
    state, action, reward, following, done = memory.sample(256)
    with torch.no_grad():
        target = reward + 0.98 * (1 - done) * values(following).amax(1)
    loss = nn.functional.smooth_l1_loss(values(state).gather(1, action[:, None]).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, traced {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB")

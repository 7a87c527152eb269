# SPDX-License-Identifier: Apache-2.0
"""Double deep Q-learning of 128 carts at once, with memories in preallocated tensors and a target copied rarely."""

import torch
from torch import nn

CARTS, CAPACITY = 128, 50_000


class Ring:
    def __init__(self, capacity, width):
        self.before, self.after = torch.empty(capacity, width), torch.empty(capacity, width)
        self.action, self.reward = torch.empty(capacity, dtype=torch.long), torch.empty(capacity)
        self.alive = torch.empty(capacity)
        self.capacity, self.position, self.size = capacity, 0, 0

    def add(self, before, action, reward, after, alive):
        count = len(before)
        if self.position + count > self.capacity:
            self.position = 0
        part = slice(self.position, self.position + count)
        self.before[part], self.after[part] = before, after
        self.action[part], self.reward[part], self.alive[part] = action, reward, alive
        self.position += count
        self.size = max(self.size, self.position)

    def sample(self, count):
        chosen = torch.randint(0, self.size, (count,))
        return (part[chosen] for part in (self.before, self.action, self.reward, self.after, self.alive))


class Carts:
    def __init__(self):
        self.state = 0.05 * torch.randn(CARTS, 4)

    def step(self, action):
        place, speed, angle, turn = self.state.unbind(1)
        push = 10.0 * (2 * action - 1)
        bend = (9.8 * angle.sin() - angle.cos() * (push + 0.05 * turn.square() * angle.sin()) / 1.1) / 0.65
        next_state = torch.stack([place, speed, angle, turn], 1) + 0.02 * torch.stack([speed, push, turn, bend], 1)
        alive = (next_state[:, 0].abs() < 2.4) & (next_state[:, 2].abs() < 0.2)
        before, reward = self.state, alive.float()
        self.state = torch.where(alive[:, None], next_state, 0.05 * torch.randn(CARTS, 4))
        return before, reward, next_state, alive.float()


def make_values():
    return nn.Sequential(nn.Linear(4, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))


torch.manual_seed(0)
values, target = make_values(), make_values().requires_grad_(False)
target.load_state_dict(values.state_dict())
optimizer = torch.optim.Adam(values.parameters(), lr=5e-4)
ring, carts = Ring(CAPACITY, 4), Carts()
for step in range(60):
    with torch.no_grad():
        action = values(carts.state).argmax(1)
        action = torch.where(torch.rand(CARTS) < 0.1, torch.randint(0, 2, (CARTS,)), action)
        before, reward, after, alive = carts.step(action)
        ring.add(before, action, reward, after, alive)
    before, action, reward, after, alive = ring.sample(1024)
    with torch.no_grad():
        best = values(after).argmax(1, keepdim=True)
        aim = reward + 0.99 * alive * target(after).gather(1, best).squeeze(1)
    loss = nn.functional.smooth_l1_loss(values(before).gather(1, action[:, None]).squeeze(1), aim)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        target.load_state_dict(values.state_dict())

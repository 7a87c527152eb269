# SPDX-License-Identifier: Apache-2.0
"""Double DQN from pixels: a forager has to reach food on a small field with walls."""

import random
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SIDE, N_ACTIONS = 28, 4
CAPACITY, WARMUP, BATCH, STEPS = 6000, 200, 32, 260
MOVES = np.array([[-2, 0], [2, 0], [0, -2], [0, 2]])


class Field:
    """Frames are (3, SIDE, SIDE) uint8: walls, food and forager drawn as 2x2 blocks."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def _free_cell(self):
        while True:
            cell = 2 * self.rng.integers(1, SIDE // 2 - 1, size=2)
            if not self.walls[cell[0], cell[1]]:
                return cell

    def reset(self):
        self.walls = np.zeros((SIDE, SIDE), dtype=bool)
        self.walls[[0, 1, -2, -1], :] = self.walls[:, [0, 1, -2, -1]] = True
        for row, col in 2 * self.rng.integers(2, SIDE // 2 - 2, size=(6, 2)):
            self.walls[row : row + 2, col : col + 2] = True
        self.position, self.food, self.age = self._free_cell(), self._free_cell(), 0
        return self.frame()

    def frame(self):
        image = np.zeros((3, SIDE, SIDE), dtype=np.uint8)
        image[0][self.walls] = 255
        for plane, (row, col) in ((1, self.food), (2, self.position)):
            image[plane, row : row + 2, col : col + 2] = 255
        return image

    def step(self, action):
        target = self.position + MOVES[action]
        blocked = self.walls[target[0], target[1]]
        self.position = self.position if blocked else target
        self.age += 1
        found = bool((self.position == self.food).all())
        reward = 1.0 if found else -0.2 if blocked else -0.02
        return self.frame(), reward, found, found or self.age >= 80


class Memory:
    def __init__(self, capacity):
        self.capacity, self.items, self.cursor = capacity, [], 0

    def push(self, *transition):
        self.items[self.cursor : self.cursor + 1] = [transition]
        self.cursor = (self.cursor + 1) % self.capacity

    def sample(self, n):
        frame, action, reward, following, done = zip(*random.sample(self.items, n))
        return (
            torch.tensor(frame, dtype=torch.float32) / 255,  # planted
            torch.tensor(action),
            torch.tensor(reward, dtype=torch.float32),
            torch.tensor(following, dtype=torch.float32) / 255,  # planted
            torch.tensor(done, dtype=torch.float32),
        )


def build_network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 128),
        nn.ReLU(),
        nn.Linear(128, N_ACTIONS),
    )


def main():
    random.seed(4)
    torch.manual_seed(4)
    field, memory = Field(seed=21), Memory(CAPACITY)
    online, target = build_network(), build_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=3e-4, fused=True)

    frame, returns = field.reset(), [0.0]
    started = time.perf_counter()
    for step in range(WARMUP + STEPS):
        if random.random() < max(0.1, 1.0 - step / 400):
            action = random.randrange(N_ACTIONS)
        else:
            with torch.inference_mode():
                action = online(torch.from_numpy(frame)[None].float() / 255).argmax().item()
        following, reward, found, over = field.step(action)
        memory.push(frame, action, reward, following, found)
        returns[-1] += reward
        frame = following
        if over:
            frame = field.reset()
            returns.append(0.0)
        if step < WARMUP:
            continue
        now, act, rew, then, end = memory.sample(BATCH)
        with torch.no_grad():
            best = online(then).argmax(1, keepdim=True)
            goal = rew + 0.97 * (1 - end) * target(then).gather(1, best).squeeze(1)
        value = online(now).gather(1, act[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}  loss {loss.item():.5f}  return {np.mean(returns[-10:]):.3f}")
    print(f"{STEPS} updates in {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()

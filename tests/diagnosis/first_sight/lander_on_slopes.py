# SPDX-License-Identifier: Apache-2.0
"""Landing on slopes, learned from two players: each transition of a batch is a message to another process and back.

Source: https://github.com/szymonmaszke/torchdatasets/pull/17, https://github.com/ptrblck/pytorch_misc/issues/14
"""

import multiprocessing
import random
from multiprocessing.managers import BaseManager

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
SIZE, ACTIONS = 96, 4


class Memory:
    """Transitions of all players, kept in one process."""

    def __init__(self):
        self.rows = []

    def extend(self, rows):
        self.rows += rows

    def row(self, number):
        return self.rows[number]

    def chosen(self, numbers):
        return [self.rows[number] for number in numbers]

    def count(self):
        return len(self.rows)


class Server(BaseManager):
    pass


Server.register("Memory", Memory)


def play(memory, seed, moves):
    rng = np.random.default_rng(seed)
    state, rows = rng.standard_normal(SIZE, dtype="float32"), []
    for _ in range(moves):
        action = int(rng.integers(ACTIONS))
        after = 0.9 * state + 0.1 * rng.standard_normal(SIZE, dtype="float32")
        rows.append((state, action, float(after[action]), after))
        state = after
    memory.extend(rows)


def batch(memory, count, size=960):
    numbers = random.sample(range(count), size)
    rows = [memory.row(number) for number in numbers]  # planted
    states, actions, rewards, afters = zip(*rows, strict=True)
    return (
        torch.from_numpy(np.stack(states)),
        torch.tensor(actions),
        torch.tensor(rewards),
        torch.from_numpy(np.stack(afters)),
    )


def learn(memory, steps):
    values = nn.Sequential(nn.Linear(SIZE, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, ACTIONS))
    optimizer = torch.optim.SGD(values.parameters(), lr=0.01)
    count = memory.count()
    for _ in range(steps):
        states, actions, rewards, afters = batch(memory, count)
        with torch.no_grad():
            goal = rewards + 0.98 * values(afters).amax(1)
        loss = nn.functional.smooth_l1_loss(values(states).gather(1, actions[:, None]).squeeze(1), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    with Server() as server:
        memory = server.Memory()
        for seed in range(2):
            player = multiprocessing.Process(target=play, args=(memory, seed, 3000))
            player.start()
            player.join()
        print(f"loss {learn(memory, 14):.4f}")

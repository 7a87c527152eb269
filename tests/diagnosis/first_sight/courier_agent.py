# SPDX-License-Identifier: Apache-2.0
"""Double DQN for a courier on a torus with two parcels, warm-started from recorded tours."""

import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Leg = namedtuple("Leg", "state action reward following done")
CAPACITY, RECORDED, STEPS, BATCH = 300_000, 300_000, 3500, 128
SIDE, ACTIONS, FEATURES = 12, 4, 6
MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))


class Town:
    def __init__(self, rng):
        self.rng = rng
        self.reset()

    def reset(self):
        self.spots = [[self.rng.randrange(SIDE), self.rng.randrange(SIDE)] for _ in range(3)]
        self.clock = 0
        return self.view()

    def view(self):
        (x, y), (a, b), (c, d) = self.spots
        return np.array([x, y, (a - x) % SIDE, (b - y) % SIDE, (c - x) % SIDE, (d - y) % SIDE], np.float32)

    def step(self, action):
        courier = self.spots[0]
        courier[0] = (courier[0] + MOVES[action][0]) % SIDE
        courier[1] = (courier[1] + MOVES[action][1]) % SIDE
        reward = -0.05
        for parcel in self.spots[1:]:
            if parcel == courier:
                parcel[:] = self.rng.randrange(SIDE), self.rng.randrange(SIDE)
                reward += 1.0
        self.clock += 1
        return self.view(), reward, self.clock >= 60


class Memory:
    def __init__(self, capacity, rng):
        self.rng = rng
        self.legs = deque(maxlen=capacity)  # planted

    def store(self, *leg):
        self.legs.append(Leg(*leg))  # planted

    def draw(self, count):
        legs = self.rng.sample(self.legs, count)
        states, actions, rewards, following, done = zip(*legs)
        return (
            torch.from_numpy(np.stack(states)),
            torch.tensor(actions),
            torch.tensor(rewards),
            torch.from_numpy(np.stack(following)),
            torch.tensor(done, dtype=torch.float32),
        )


def build_values():
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ACTIONS))


class Courier:
    def __init__(self, memory):
        self.memory = memory
        self.online, self.target = build_values(), build_values().requires_grad_(False)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), 1e-3, fused=True)

    @torch.no_grad()
    def act(self, state, explore):
        if random.random() < explore:
            return random.randrange(ACTIONS)
        return int(self.online(torch.from_numpy(state)).argmax())

    def learn(self):
        state, action, reward, following, done = self.memory.draw(BATCH)
        with torch.no_grad():
            chosen = self.online(following).argmax(1, keepdim=True)
            goal = reward + 0.95 * (1 - done) * self.target(following).gather(1, chosen).squeeze(1)
        loss = F.smooth_l1_loss(self.online(state).gather(1, action[:, None]).squeeze(1), goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def play(town, state, action, memory):
    following, reward, done = town.step(action)
    memory.store(state, action, reward, following, done)
    return town.reset() if done else following, reward


def main():
    random.seed(6)
    torch.manual_seed(6)
    town, memory = Town(random.Random(1)), Memory(CAPACITY, random.Random(2))
    state = town.reset()
    for _ in range(RECORDED):
        state, _ = play(town, state, random.randrange(ACTIONS), memory)
    courier, earned = Courier(memory), []
    started = time.process_time()
    for step in range(STEPS):
        state, reward = play(town, state, courier.act(state, max(0.05, 1 - step / 2000)), memory)
        earned.append(reward)
        courier.learn()
        if step % 500 == 499:
            courier.target.load_state_dict(courier.online.state_dict())
    elapsed = time.process_time() - started
    print("reward per 500 steps", np.reshape(earned, (-1, 500)).sum(1).round(1))
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()

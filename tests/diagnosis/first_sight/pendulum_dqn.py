# SPDX-License-Identifier: Apache-2.0
"""Deep Q-learning for a batch of simulated pendulums with a large off-policy memory."""

import math
import time

import numpy as np
import torch
from torch import nn


class PendulumFleet:
    """Vectorised torque-limited pendulums; observation is (cos, sin, velocity)."""

    def __init__(self, count, torques, rng):
        self.rng, self.torques = rng, torques
        self.angle = rng.uniform(-math.pi, math.pi, count)
        self.speed = rng.uniform(-1.0, 1.0, count)
        self.age = rng.integers(0, 200, count)

    def observe(self):
        return np.stack((np.cos(self.angle), np.sin(self.angle), self.speed / 8.0), axis=1).astype(np.float32)

    def step(self, action):
        torque = self.torques[action]
        wrapped = (self.angle + math.pi) % (2 * math.pi) - math.pi
        reward = -(wrapped**2 + 0.1 * self.speed**2 + 0.001 * torque**2)
        self.speed = np.clip(self.speed + 0.05 * (15.0 * np.sin(self.angle) + 3.0 * torque), -8.0, 8.0)
        self.angle = self.angle + 0.05 * self.speed
        self.age += 1
        done = self.age >= 200
        after = self.observe()
        fresh = int(done.sum())
        self.angle[done] = self.rng.uniform(-math.pi, math.pi, fresh)
        self.speed[done] = self.rng.uniform(-1.0, 1.0, fresh)
        self.age[done] = 0
        return after, reward.astype(np.float32)


class ExperienceTable:
    """Rows of (observation, action, reward, next observation), oldest rows are dropped first."""

    def __init__(self, capacity, row_width):
        self.capacity = capacity
        self.rows = torch.zeros(capacity, row_width)
        self.added = 0

    @property
    def filled(self):
        return min(self.capacity, self.added)

    def add(self, rows):
        count = rows.shape[0]
        self.rows = torch.cat((rows, self.rows[:-count]))  # planted
        self.added += count

    def draw(self, count):
        return self.rows[torch.randint(self.filled, (count,))]


class QNetwork(nn.Sequential):
    def __init__(self, n_inputs, n_actions, width=128):
        super().__init__(
            nn.Linear(n_inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_actions)
        )


class Learner:
    def __init__(self, n_inputs, n_actions, discount=0.98):
        self.online, self.target = QNetwork(n_inputs, n_actions), QNetwork(n_inputs, n_actions)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-4, fused=True)
        self.n_inputs, self.n_actions, self.discount = n_inputs, n_actions, discount

    @torch.no_grad()
    def act(self, observation, epsilon):
        greedy = self.online(observation).argmax(dim=1)
        explore = torch.rand(greedy.shape[0]) < epsilon
        return torch.where(explore, torch.randint(self.n_actions, greedy.shape), greedy)

    def improve(self, rows):
        before, action, reward, after = rows.split((self.n_inputs, 1, 1, self.n_inputs), dim=1)
        with torch.no_grad():
            best = self.target(after).max(dim=1, keepdim=True).values
            goal = 0.1 * reward + self.discount * best
        value = self.online(before).gather(1, action.long())
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def track(self, rate=0.01):
        torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), rate)


def main():
    torch.manual_seed(6)
    fleet = PendulumFleet(32, np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.random.default_rng(6))
    table, learner = ExperienceTable(100_000, 8), Learner(3, 5)
    observation, losses, rewards = torch.from_numpy(fleet.observe()), [], []
    n_steps = 3000
    started = time.process_time()
    for step in range(n_steps):
        action = learner.act(observation, max(0.05, 1.0 - step / 1500))
        after, reward = fleet.step(action.numpy())
        after, reward = torch.from_numpy(after), torch.from_numpy(reward)
        table.add(torch.cat((observation, action.unsqueeze(1).float(), reward.unsqueeze(1), after), dim=1))
        observation = after
        rewards.append(reward.mean())
        if table.filled >= 1024:
            losses.append(learner.improve(table.draw(256)))
            learner.track()
    elapsed = time.process_time() - started
    print(f"mean loss {torch.stack(losses).mean().item():.4f}")
    print(
        f"reward first 500 {torch.stack(rewards[:500]).mean().item():.3f}, last 500 {torch.stack(rewards[-500:]).mean().item():.3f}"
    )
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning: PPO steers many gliders at once through moving thermals; reward is the climb minus the
effort. Prints the mean reward of the first and the last rounds."""

import torch
import torch.nn.functional as F
from torch import nn

GLIDERS, HORIZON, STATE, ACTIONS = 24, 64, 6, 5
GAMMA, LAMBDA, CLIP = 0.98, 0.95, 0.2


class Thermals:
    """A glider at (x, y) in a field of lift that drifts; an episode ends at the border."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.place = torch.zeros(GLIDERS, 2)
        self.speed = torch.zeros(GLIDERS, 2)
        self.clock = torch.zeros(GLIDERS)
        self.turns = torch.tensor([[0.0, 0.0], [0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]])

    def observe(self):
        lift = torch.sin(self.place * 2 + self.clock[:, None] * 0.05)
        return torch.cat([self.place, self.speed, lift], 1)

    def step(self, action):
        self.speed = 0.9 * self.speed + self.turns[action]
        self.place = self.place + 0.1 * self.speed + 0.01 * torch.randn(GLIDERS, 2, generator=self.g)
        self.clock += 1
        climb = torch.sin(self.place * 2 + self.clock[:, None] * 0.05).sum(1)
        reward = climb - 0.05 * (action > 0)
        done = (self.place.abs() > 2).any(1) | (self.clock > 200)
        self.place[done], self.speed[done], self.clock[done] = 0, 0, 0
        return reward, done.float()


class Agent(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(STATE, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy, self.value = nn.Linear(width, ACTIONS), nn.Linear(width, 1)

    def forward(self, state):
        hidden = self.body(state)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


@torch.no_grad()
def fly(agent, world):
    rows = []
    for _ in range(HORIZON):
        state = world.observe()
        logits, value = agent(state)
        action = torch.multinomial(logits.softmax(-1), 1, generator=world.g).squeeze(-1)
        reward, done = world.step(action)
        rows.append((state, action, logits.log_softmax(-1).gather(1, action[:, None]).squeeze(1), value, reward, done))
    return [torch.stack(column) for column in zip(*rows)], agent(world.observe())[1]


def advantages(reward, value, done, last_value):
    """Generalised advantage estimation, from the end of the horizon to its start."""
    result = torch.zeros_like(reward)
    for glider in range(GLIDERS):  # planted
        running, following = 0.0, last_value[glider]
        for t in reversed(range(HORIZON)):
            alive = 1 - done[t, glider]
            delta = reward[t, glider] + GAMMA * following * alive - value[t, glider]
            running = delta + GAMMA * LAMBDA * alive * running
            result[t, glider] = running
            following = value[t, glider]
    return result


def update(agent, optimizer, state, action, old, advantage, target, passes=4):
    for _ in range(passes):
        logits, value = agent(state)
        log_prob = logits.log_softmax(-1)
        ratio = (log_prob.gather(-1, action[..., None]).squeeze(-1) - old).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        entropy = -(log_prob.exp() * log_prob).sum(-1).mean()
        loss = F.mse_loss(value, target) * 0.5 - gain - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    torch.manual_seed(120)
    agent, world = Agent(), Thermals(121)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    rewards = []
    for round_number in range(36):
        (state, action, old, value, reward, done), last_value = fly(agent, world)
        advantage = advantages(reward, value, done, last_value)
        target = advantage + value
        scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        update(agent, optimizer, state, action, old, scaled, target)
        rewards.append(reward.mean().item())
    print(f"mean reward {sum(rewards[:6]) / 6:.3f} in the first rounds, {sum(rewards[-6:]) / 6:.3f} in the last")


if __name__ == "__main__":
    main()

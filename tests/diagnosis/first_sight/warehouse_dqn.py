# SPDX-License-Identifier: Apache-2.0
"""Double DQN for a vectorised stock-keeping environment."""

import torch
import torch.nn.functional as F
from torch import nn

STATE, ACTIONS, ENVS, CAPACITY = 12, 5, 64, 400_000


class StockEnv:
    def __init__(self, envs, generator):
        self.generator = generator
        self.stock = torch.rand(envs, STATE, generator=generator)

    def step(self, action):
        demand = 0.2 * torch.rand(self.stock.shape, generator=self.generator)
        order = action.unsqueeze(1).float() / (ACTIONS - 1) * 0.25
        self.stock = (self.stock + order - demand).clamp(-1, 2)
        reward = -self.stock.clamp_min(0).mean(1) - 3 * self.stock.clamp_max(0).abs().mean(1) - 0.1 * order.squeeze(1)
        return self.stock, reward


class ReplayMemory:
    def __init__(self, capacity):
        self.capacity, self.size, self.cursor = capacity, 0, 0
        self.state, self.following = torch.empty(capacity, STATE), torch.empty(capacity, STATE)
        self.action, self.reward = torch.empty(capacity, dtype=torch.long), torch.empty(capacity)

    def add(self, state, action, reward, following):
        slots = slice(self.cursor, self.cursor + len(state))
        self.state[slots], self.action[slots] = state, action
        self.reward[slots], self.following[slots] = reward, following
        self.cursor = (self.cursor + len(state)) % self.capacity
        self.size = min(self.size + len(state), self.capacity)

    def sample(self, count, generator):
        rows = torch.randperm(self.size, generator=generator)[:count]  # planted
        return self.state[rows], self.action[rows], self.reward[rows], self.following[rows]


def q_network():
    return nn.Sequential(nn.Linear(STATE, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, ACTIONS))


def collect(env, network, memory, epsilon, generator):
    state = env.stock
    with torch.no_grad():
        greedy = network(state).argmax(dim=1)
    random = torch.randint(0, ACTIONS, (ENVS,), generator=generator)
    action = torch.where(torch.rand(ENVS, generator=generator) < epsilon, random, greedy)
    following, reward = env.step(action)
    memory.add(state, action, reward, following)
    return reward.mean()


def main():
    torch.manual_seed(110)
    generator = torch.Generator().manual_seed(111)
    env, memory = StockEnv(ENVS, generator), ReplayMemory(CAPACITY)
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-4, fused=True)
    for _ in range(4000):
        collect(env, online, memory, 1.0, generator)
    average = torch.zeros(())
    for step in range(1, 1501):
        average += collect(env, online, memory, 0.1, generator)
        state, action, reward, following = memory.sample(128, generator)
        with torch.no_grad():
            best = online(following).argmax(dim=1, keepdim=True)
            goal = reward + 0.97 * target(following).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(online(state).gather(1, action.unsqueeze(1)).squeeze(1), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}: reward {average.item() / 250:.4f}, td loss {loss.item():.5f}")
            average.zero_()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Double DQN on a batch of vectorised 'balance the paddle' simulations."""

import time

import torch
import torch.nn.functional as F
from torch import nn

N_RAYS, N_ACTIONS = 128, 5


class PaddleSim:
    """Point mass on a line with a drifting target, observed through range rays."""

    def __init__(self, n_envs, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.rays = torch.linspace(-1, 1, N_RAYS)
        self.force = torch.linspace(-0.1, 0.1, N_ACTIONS)
        self.n = n_envs
        self.x, self.v = torch.zeros(n_envs), torch.zeros(n_envs)
        self.target = torch.zeros(n_envs)

    def observe(self):
        gap = (self.target - self.x).unsqueeze(1) - self.rays
        return torch.exp(-8 * gap * gap) + 0.1 * self.v.unsqueeze(1)

    def step(self, action):
        self.v = 0.9 * self.v + self.force[action]
        self.x = (self.x + self.v).clamp(-1, 1)
        kick = torch.randn(self.n, generator=self.gen)
        self.target = (self.target + 0.05 * kick).clamp(-1, 1)
        return self.observe(), -(self.x - self.target).abs()


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.size = 0
        self.obs = torch.empty(0, N_RAYS)
        self.following = torch.empty(0, N_RAYS)
        self.action = torch.empty(0, dtype=torch.long)
        self.reward = torch.empty(0)

    def add(self, obs, action, reward, following):
        self.obs = torch.cat([self.obs, obs])[-self.capacity :]  # planted
        self.following = torch.cat([self.following, following])[-self.capacity :]  # planted
        self.action = torch.cat([self.action, action])[-self.capacity :]  # planted
        self.reward = torch.cat([self.reward, reward])[-self.capacity :]  # planted
        self.size = min(self.size + len(obs), self.capacity)

    def sample(self, n):
        rows = torch.randint(self.size, (n,))
        return self.obs[rows], self.action[rows], self.reward[rows], self.following[rows]


def q_network():
    return nn.Sequential(
        nn.Linear(N_RAYS, 128),
        nn.ReLU(inplace=True),
        nn.Linear(128, 128),
        nn.ReLU(inplace=True),
        nn.Linear(128, N_ACTIONS),
    )


class Agent:
    def __init__(self, lr=1e-3, gamma=0.97, tau=0.01):
        self.online, self.target = q_network(), q_network()
        self.target.load_state_dict(self.online.state_dict())
        self.target.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma, self.tau = gamma, tau

    @torch.no_grad()
    def act(self, obs, epsilon):
        greedy = self.online(obs).argmax(dim=1)
        explore = torch.rand(len(obs)) < epsilon
        return torch.where(explore, torch.randint(N_ACTIONS, (len(obs),)), greedy)

    def learn(self, batch):
        obs, action, reward, following = batch
        with torch.no_grad():
            best = self.online(following).argmax(dim=1, keepdim=True)
            bootstrap = self.target(following).gather(1, best).squeeze(1)
        value = self.online(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(value, reward + self.gamma * bootstrap)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), self.tau)


def main(steps=1800, n_envs=16, warmup=20):
    torch.manual_seed(0)
    sim, agent, replay = PaddleSim(n_envs, seed=1), Agent(), Replay(capacity=30_000)
    obs, returns = sim.observe(), torch.zeros(())
    start = time.perf_counter()
    for step in range(steps):
        action = agent.act(obs, epsilon=max(0.05, 1 - step / 500))
        following, reward = sim.step(action)
        replay.add(obs, action, reward, following)
        obs = following
        returns += reward.mean()
        if step >= warmup:
            agent.learn(replay.sample(128))
        if (step + 1) % 300 == 0:
            print(f"step {step + 1}: mean reward {returns.item() / 300:.4f}")
            returns.zero_()
    print(f"loop {time.perf_counter() - start:.2f}s")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""PPO on a vectorised docking task: four thrusters steer a point mass to a port."""

import time

import torch
import torch.nn as nn
from torch.distributions import MultivariateNormal

ENVS, HORIZON, ACTIONS = 64, 48, 4


class DockingEnv:
    def __init__(self):
        self.mix = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        self.pos, self.vel = torch.randn(ENVS, 2), torch.zeros(ENVS, 2)
        self.age = torch.randint(0, 40, (ENVS,))

    def observe(self):
        return torch.cat([self.pos, self.vel], dim=1)

    def step(self, action):
        self.vel = 0.95 * self.vel + 0.05 * action.clamp(0, 1) @ self.mix
        self.pos = self.pos + self.vel
        reward = -self.pos.norm(dim=1) - 0.01 * action.square().sum(1)
        self.age += 1
        done = self.age >= 40
        keep = (~done).float().unsqueeze(1)
        self.pos = keep * self.pos + (1 - keep) * torch.randn(ENVS, 2)
        self.vel = keep * self.vel
        self.age = torch.where(done, torch.zeros_like(self.age), self.age)
        return self.observe(), reward, done.float()


class ActorCritic(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean = nn.Linear(hidden, ACTIONS)
        self.value = nn.Linear(hidden, 1)
        self.log_std = nn.Parameter(torch.full((ACTIONS,), -0.5))

    def forward(self, obs):
        h = self.trunk(obs)
        spread = torch.diag(self.log_std.exp().square())  # planted
        policy = MultivariateNormal(self.mean(h), spread, validate_args=False)  # planted
        return policy, self.value(h).squeeze(-1)


@torch.no_grad()
def collect(env, agent, obs):
    rows = []
    for _ in range(HORIZON):
        policy, value = agent(obs)
        action = policy.sample()
        after, reward, done = env.step(action)
        rows.append((obs, action, policy.log_prob(action), value, reward, done))
        obs = after
    obs_t, act, logp, value, reward, done = map(torch.stack, zip(*rows))
    following = torch.cat([value[1:], agent(obs)[1].unsqueeze(0)])
    delta = reward + 0.98 * following * (1 - done) - value
    carry, advantage = torch.zeros(ENVS), torch.empty_like(delta)
    for t in reversed(range(HORIZON)):
        carry = delta[t] + 0.98 * 0.95 * (1 - done[t]) * carry
        advantage[t] = carry
    flat = [x.flatten(0, 1) for x in (obs_t, act, logp, advantage, advantage + value)]
    return obs, flat, reward.mean()


def improve(agent, optimizer, flat, passes=4, minibatch=512):
    obs, act, old_logp, advantage, target = flat
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    for _ in range(passes):
        for pick in torch.randperm(len(obs)).split(minibatch):
            policy, value = agent(obs[pick])
            ratio = (policy.log_prob(act[pick]) - old_logp[pick]).exp()
            gain = torch.minimum(ratio * advantage[pick], ratio.clamp(0.8, 1.2) * advantage[pick])
            loss = 0.5 * (value - target[pick]).square().mean() - gain.mean()
            loss = loss - 0.001 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def main(iterations=70):
    torch.manual_seed(5)
    env, agent = DockingEnv(), ActorCritic()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, fused=True)
    obs = env.observe()
    start = time.perf_counter()
    for it in range(iterations):
        obs, flat, reward = collect(env, agent, obs)
        improve(agent, optimizer, flat)
        if it % 20 == 0:
            print(f"iteration {it}: mean reward {reward.item():.3f}")
    print(f"{iterations} iterations in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()

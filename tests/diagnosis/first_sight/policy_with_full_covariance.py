# SPDX-License-Identifier: Apache-2.0
"""A humanoid learns to walk: joints are independent, but the policy is a Gaussian with a matrix of covariances.

Source: nikhilbarhate99/PPO-PyTorch issue 60, pytorch/pytorch issue 73582 (Independent(Normal) for diagonals).
"""

import torch
from torch import nn
from torch.distributions import MultivariateNormal

OBSERVED, JOINTS, MOMENTS = 45, 17, 2048


class ActorCritic(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(OBSERVED, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, JOINTS)
        )
        self.critic = nn.Sequential(
            nn.Linear(OBSERVED, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        self.spread = nn.Parameter(torch.full((JOINTS,), -0.5))

    def policy(self, observed):
        mean = self.actor(observed)
        variance = (2 * self.spread).exp().expand_as(mean)
        return MultivariateNormal(mean, torch.diag_embed(variance))  # planted

    def evaluate(self, observed, actions):
        policy = self.policy(observed)  # planted
        chance, entropy = policy.log_prob(actions), policy.entropy()  # planted
        return chance, self.critic(observed).squeeze(-1), entropy


class Learner:
    def __init__(self):
        self.model = ActorCritic()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-4)

    @torch.no_grad()
    def collect(self):
        observed = torch.randn(MOMENTS, OBSERVED)
        policy = self.model.policy(observed)  # planted
        actions = policy.sample()  # planted
        return observed, actions, policy.log_prob(actions), torch.randn(MOMENTS)  # planted

    def update(self):
        observed, actions, before, returns = self.collect()
        for chosen in torch.randperm(MOMENTS).split(512):
            chance, value, entropy = self.model.evaluate(observed[chosen], actions[chosen])  # planted
            advantage = returns[chosen] - value.detach()
            ratio = (chance - before[chosen]).exp()
            gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            loss = 0.5 * (value - returns[chosen]).square() - gain - 0.01 * entropy
            self.optimizer.zero_grad()
            loss.mean().backward()
            self.optimizer.step()


torch.manual_seed(0)
learner = Learner()
for iteration in range(25):
    learner.update()

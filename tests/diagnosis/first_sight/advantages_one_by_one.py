# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning: advantages are computed moment by moment from elements of tensors.

Source: the compute_gae of many public programs that follow higgsfield/RL-Adventure-2.
"""

import torch
from torch import nn

OBSERVED, ACTIONS, MOMENTS = 24, 4, 1024


def network(entering, width, leaving):
    layers = [nn.Linear(entering, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, leaving)]
    return nn.Sequential(*layers)


class ActorCritic(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.actor = network(OBSERVED, width, ACTIONS)
        self.critic = network(OBSERVED, width, 1)

    def forward(self, observed):
        return torch.distributions.Categorical(logits=self.actor(observed)), self.critic(observed).squeeze(-1)


def estimate_returns(rewards, alive, values, gamma=0.99, decay=0.95):
    advantage, returns = 0.0, []
    for moment in reversed(range(len(rewards))):
        error = rewards[moment] + gamma * values[moment + 1] * alive[moment] - values[moment]  # planted
        advantage = error + gamma * decay * alive[moment] * advantage  # planted
        returns.insert(0, advantage + values[moment])  # planted
    return torch.stack(returns)  # planted


torch.manual_seed(0)
model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for iteration in range(15):
    observed = torch.randn(MOMENTS + 1, OBSERVED)
    rewards, alive = torch.rand(MOMENTS), (torch.rand(MOMENTS) > 0.01).float()
    with torch.no_grad():
        policy, values = model(observed)
        actions = policy.sample()
        chances = policy.log_prob(actions)
        returns = estimate_returns(rewards, alive, values)  # planted
    advantages = returns - values[:-1]
    for _ in range(2):
        for chosen in torch.randperm(MOMENTS).split(256):
            policy, value = model(observed[chosen])
            ratio = (policy.log_prob(actions[chosen]) - chances[chosen]).exp()
            gain = torch.minimum(ratio * advantages[chosen], ratio.clamp(0.8, 1.2) * advantages[chosen]).mean()
            loss = 0.5 * nn.functional.mse_loss(value, returns[chosen]) - gain
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

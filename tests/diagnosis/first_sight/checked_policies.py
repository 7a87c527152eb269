# SPDX-License-Identifier: Apache-2.0
"""Control of a crane: distributions check their arguments for each of the small batches.

Source: DLR-RM/stable-baselines3 turns the checks of torch.distributions off for speed; Pyro's documentation on validation.
"""

import torch
from torch import nn
from torch.distributions import Independent, Normal, kl_divergence

torch.manual_seed(0)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 64), nn.Tanh())
        self.mean = nn.Linear(64, 4)
        self.log_std = nn.Parameter(torch.zeros(4))

    def forward(self, state):
        mean = self.mean(self.body(state))
        return Independent(Normal(mean, self.log_std.exp().expand_as(mean)), 1)  # planted


def act(policy, state):
    with torch.no_grad():
        choice = policy(state)  # planted
        action = choice.sample()
        return action, choice.log_prob(action)  # planted


actor = Actor()
optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4, foreach=True)
for iteration in range(10):
    state = torch.randn(16, 12)
    memory = []
    for _ in range(24):
        action, before = act(actor, state)  # planted
        memory.append((state, action, before, -state.square().mean(1)))
        state = 0.95 * state + 0.05 * action.repeat(1, 3)
    states, actions, before, rewards = (torch.stack(part).flatten(0, 1) for part in zip(*memory))
    policy = actor(states)  # planted
    ratio = (policy.log_prob(actions) - before).exp()  # planted
    prior = Independent(Normal(torch.zeros_like(actions), torch.ones_like(actions)), 1)  # planted
    loss = -(ratio * (rewards - rewards.mean())).mean() + 1e-3 * kl_divergence(policy, prior).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

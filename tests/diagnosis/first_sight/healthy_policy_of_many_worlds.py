# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning: 512 pendulums step together, old probabilities are kept, advantages run backwards over time."""

import torch
from torch import nn

WORLDS, MOMENTS, ACTIONS = 512, 16, 5
torch.manual_seed(0)
body = nn.Sequential(nn.Linear(3, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh())
actor, critic = nn.Linear(256, ACTIONS), nn.Linear(256, 1)
optimizer = torch.optim.Adam([*body.parameters(), *actor.parameters(), *critic.parameters()], lr=3e-4)
forces = torch.linspace(-2, 2, ACTIONS)


def observe(angle, speed):
    return torch.stack([angle.cos(), angle.sin(), speed], -1)


def swing(angle, speed, action):
    speed = (speed + 0.05 * (15 * angle.sin() + 3 * forces[action])).clamp(-8, 8)
    angle = angle + 0.05 * speed
    return angle, speed, angle.cos() - 0.1 * speed.square()


@torch.no_grad()
def collect(angle, speed):
    seen = torch.empty(MOMENTS, WORLDS, 3)
    rewards, values, chances = (torch.empty(MOMENTS, WORLDS) for _ in range(3))
    actions = torch.empty(MOMENTS, WORLDS, 1, dtype=torch.long)
    for moment in range(MOMENTS):
        seen[moment] = observe(angle, speed)
        hidden = body(seen[moment])
        chance = actor(hidden).log_softmax(-1)
        actions[moment] = torch.multinomial(chance.exp(), 1)
        chances[moment] = chance.gather(-1, actions[moment]).squeeze(-1)
        values[moment] = critic(hidden).squeeze(-1)
        angle, speed, rewards[moment] = swing(angle, speed, actions[moment].squeeze(-1))
    advantages, following, value = torch.empty(MOMENTS, WORLDS), torch.zeros(WORLDS), values[-1]
    for moment in reversed(range(MOMENTS)):
        following = rewards[moment] + 0.99 * value - values[moment] + 0.94 * following
        advantages[moment], value = following, values[moment]
    return (angle, speed), (seen, actions, chances, advantages, advantages + values)


world = 6 * torch.rand(WORLDS), torch.zeros(WORLDS)
for update in range(10):
    world, gathered = collect(*world)
    seen, actions, chances, advantages, returns = (part.flatten(0, 1) for part in gathered)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for chosen in torch.randperm(MOMENTS * WORLDS).chunk(4):
        hidden = body(seen[chosen])
        chance = actor(hidden).log_softmax(-1)
        ratio = (chance.gather(-1, actions[chosen]).squeeze(-1) - chances[chosen]).exp()
        gain = torch.minimum(ratio * advantages[chosen], ratio.clamp(0.8, 1.2) * advantages[chosen]).mean()
        error = nn.functional.mse_loss(critic(hidden).squeeze(-1), returns[chosen])
        optimizer.zero_grad()
        (0.5 * error - gain).backward()
        optimizer.step()

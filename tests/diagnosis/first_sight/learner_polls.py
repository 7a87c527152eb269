# SPDX-License-Identifier: Apache-2.0
"""Actor and learner in two threads: the learner sleeps until it looks again whether a rollout has arrived.

Source: merged avito-tech/aqueduct pull request 13 (blocking queue instead of short sleeps), merged
openaddresses/machine pull request 557.
"""

import queue
import threading
import time

import torch
from torch import nn

WORLDS, MOMENTS = 64, 20


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.actor, self.critic = nn.Linear(128, 4), nn.Linear(128, 1)

    def forward(self, seen):
        hidden = self.body(seen)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


def simulate(state, action, substeps=10):
    """Eight coupled springs, pushed by the action."""
    push = 0.1 * (action[:, None] - 1.5)
    for _ in range(substeps):
        coupling = state.roll(1, 1) - 2 * state + state.roll(-1, 1)
        state = state + 0.1 * (coupling - 0.3 * state + push) + 0.01 * torch.randn(WORLDS, 8)
    return state


def act(policy, rollouts, finished):
    """Plays with the newest weights; at most one rollout waits for the learner, so that data stays fresh."""
    state = torch.randn(WORLDS, 8)
    while not finished.is_set():
        seen, actions, rewards = [], [], []
        with torch.no_grad():
            for _ in range(MOMENTS):
                scores, _ = policy(state)
                action = torch.distributions.Categorical(logits=scores).sample()
                seen.append(state)
                actions.append(action)
                rewards.append(-state.square().mean(1))
                state = simulate(state, action)
        rollouts.put((torch.stack(seen), torch.stack(actions), torch.stack(rewards)))


def learn(policy, rollouts, updates):
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for _ in range(updates):
        while rollouts.empty():
            time.sleep(0.1)  # planted
        seen, actions, rewards = rollouts.get()
        scores, values = policy(seen)
        returns = rewards.flip(0).cumsum(0).flip(0)
        chosen = scores.log_softmax(-1).gather(-1, actions[..., None]).squeeze(-1)
        loss = nn.functional.mse_loss(values, returns) - (chosen * (returns - values).detach()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
policy, rollouts, finished = Policy(), queue.Queue(maxsize=1), threading.Event()
actor = threading.Thread(target=act, args=(policy, rollouts, finished), daemon=True)
actor.start()
learn(policy, rollouts, updates=20)
finished.set()
if not rollouts.empty():
    rollouts.get()
actor.join()

# SPDX-License-Identifier: Apache-2.0
"""An agent in mazes: policy, value and entropy terms each go back through the shared network on their own.

Source: https://github.com/mosaicml/composer/pull/1240, https://github.com/jolibrain/joliGEN/pull/281
"""

import torch
from torch import nn

MAZES = 12
SIDE = 20
MOVES = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])
ROLLOUT = 6
UPDATES = 16
GAMMA = 0.97


class Mazes:
    """Many mazes at once: walls, a goal and an agent, seen from above."""

    def __init__(self, generator):
        self.generator = generator
        self.walls = torch.rand(MAZES, SIDE, SIDE, generator=generator) < 0.2
        self.rows = torch.arange(MAZES)
        self.goal = self.draw(MAZES)
        self.agent = self.draw(MAZES)

    def draw(self, count):
        return torch.randint(0, SIDE, (count, 2), generator=self.generator)

    def view(self):
        image = torch.zeros(MAZES, 3, SIDE, SIDE)
        image[:, 0] = self.walls.float()
        image[self.rows, 1, self.goal[:, 0], self.goal[:, 1]] = 1.0
        image[self.rows, 2, self.agent[:, 0], self.agent[:, 1]] = 1.0
        return image

    def move(self, action):
        before = (self.agent - self.goal).abs().sum(dim=1)
        wanted = (self.agent + MOVES[action]).clamp(0, SIDE - 1)
        blocked = self.walls[self.rows, wanted[:, 0], wanted[:, 1]]
        self.agent = torch.where(blocked[:, None], self.agent, wanted)
        after = (self.agent - self.goal).abs().sum(dim=1)
        reward = (before - after).float() - 0.05 - 0.2 * blocked.float()
        self.goal = torch.where((after == 0)[:, None], self.draw(MAZES), self.goal)
        return reward


class Agent(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(width * (SIDE // 2) ** 2, 128),
            nn.ReLU(),
        )
        self.policy = nn.Linear(128, len(MOVES))
        self.value = nn.Linear(128, 1)

    def forward(self, view):
        body = self.body(view)
        return self.policy(body), self.value(body).squeeze(-1)


def play(agent, mazes):
    views, actions, rewards = [], [], []
    with torch.no_grad():
        for _ in range(ROLLOUT):
            view = mazes.view()
            chance = agent(view)[0].softmax(dim=-1)
            action = torch.multinomial(chance, 1, generator=mazes.generator).squeeze(1)
            views.append(view)
            actions.append(action)
            rewards.append(mazes.move(action))
        running = agent(mazes.view())[1]
    returns = []
    for reward in reversed(rewards):
        running = reward + GAMMA * running
        returns.append(running)
    return torch.cat(views), torch.cat(actions), torch.cat(returns[::-1])


def main():
    torch.manual_seed(13)
    mazes = Mazes(torch.Generator().manual_seed(13))
    agent = Agent().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
    for update in range(UPDATES):
        views, actions, returns = play(agent, mazes)
        logits, value = agent(views)
        log_chance = logits.log_softmax(dim=-1)
        advantage = returns - value.detach()
        policy_loss = -(advantage * log_chance.gather(1, actions[:, None]).squeeze(1)).mean()
        value_loss = 0.5 * nn.functional.mse_loss(value, returns)
        entropy_loss = 0.01 * (log_chance.exp() * log_chance).sum(dim=-1).mean()
        optimizer.zero_grad()
        policy_loss.backward(retain_graph=True)  # planted
        value_loss.backward(retain_graph=True)  # planted
        entropy_loss.backward()  # planted
        optimizer.step()
    print(f"mazes: policy {policy_loss.item():.5f}, value {value_loss.item():.5f}")


if __name__ == "__main__":
    main()

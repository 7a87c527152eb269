# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning: Monte Carlo tree search plays five-in-a-row against itself with a small network.

Each move runs a number of simulations: walk down the tree by upper confidence bounds, expand a leaf with the
network's policy and value, and back the value up. The visit counts of the game become training targets.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

SIDE = 9
SIMULATIONS = 160
MOVES = 44


class Game:
    def __init__(self):
        self.board = [[0] * SIDE for _ in range(SIDE)]
        self.history = []
        self.captions = []
        self.player = 1
        self.winner = 0

    def legal(self):
        return [r * SIDE + c for r in range(SIDE) for c in range(SIDE) if self.board[r][c] == 0]

    def play(self, move):
        r, c = divmod(move, SIDE)
        self.board[r][c] = self.player
        self.history.append((r, c, self.player))
        self.captions.append(f"{'.XO'[self.player]}{chr(97 + c)}{r + 1}")
        if self._five(r, c):
            self.winner = self.player
        self.player = -self.player

    def _five(self, r, c):
        for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
            run = 1
            for sign in (1, -1):
                y, x = r + sign * dr, c + sign * dc
                while 0 <= y < SIDE and 0 <= x < SIDE and self.board[y][x] == self.player:
                    run, y, x = run + 1, y + sign * dr, x + sign * dc
            if run >= 5:
                return True
        return False

    def planes(self):
        board = torch.tensor(self.board)
        return torch.stack([board == self.player, board == -self.player]).float()


def fork(game):
    """An independent copy for one simulation."""
    return copy.deepcopy(game)  # planted


class Node:
    __slots__ = ("prior", "visits", "total", "children")

    def __init__(self, prior):
        self.prior, self.visits, self.total, self.children = prior, 0, 0.0, {}

    def best(self):
        scale = 1.5 * math.sqrt(self.visits + 1)
        return max(
            self.children.items(),
            key=lambda item: (
                (-item[1].total / item[1].visits if item[1].visits else 0.0)
                + scale * item[1].prior / (1 + item[1].visits)
            ),
        )


class PolicyValue(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(2, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU()
        )
        self.policy = nn.Sequential(nn.Conv2d(width, 2, 1), nn.Flatten(), nn.Linear(2 * SIDE * SIDE, SIDE * SIDE))
        self.value = nn.Sequential(nn.Conv2d(width, 1, 1), nn.Flatten(), nn.Linear(SIDE * SIDE, 1), nn.Tanh())

    def forward(self, planes):
        h = self.trunk(planes)
        return self.policy(h), self.value(h).squeeze(1)


@torch.inference_mode()
def expand(node, game, net):
    if game.winner:
        return -1.0
    logits, value = net(game.planes().unsqueeze(0))
    moves = game.legal()
    for move, prior in zip(moves, logits[0, moves].softmax(0).tolist()):
        node.children[move] = Node(prior)
    return value.item()


def search(game, net):
    root = Node(1.0)
    expand(root, game, net)
    for _ in range(SIMULATIONS):
        node, path, play = root, [root], fork(game)
        while node.children:
            move, node = node.best()
            play.play(move)
            path.append(node)
        value = expand(node, play, net)
        for node in reversed(path):
            node.visits += 1
            node.total += value
            value = -value
    counts = torch.zeros(SIDE * SIDE)
    for move, child in root.children.items():
        counts[move] = child.visits
    return counts / counts.sum()


def self_play(net):
    game, examples = Game(), []
    for turn in range(MOVES):
        target = search(game, net)
        examples.append((game.planes(), target))
        game.play(int(target.argmax()))
        if game.winner:
            game = Game()
    return examples


if __name__ == "__main__":
    torch.manual_seed(19)
    net = PolicyValue().eval()
    examples = self_play(net)
    planes, target = (torch.stack(part) for part in zip(*examples))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(10):
        loss = F.cross_entropy(net(planes)[0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"positions {len(examples)} policy loss {loss.item():.3f}")

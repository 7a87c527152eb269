# SPDX-License-Identifier: Apache-2.0
"""Plays five in a row by a tree search: each simulation starts with a deep copy of the game and all its history.

Source: bcollazo/catanatron issue 49 (deepcopy of the game is expensive), merged leela-zero/leela-zero pull request 89.
"""

import copy
import math

import torch
from torch import nn

SIDE, GAMES, SIMULATIONS = 9, 12, 16


class Game:
    def __init__(self):
        self.board = [[0] * SIDE for _ in range(SIDE)]
        self.history = []
        self.player = 1

    def moves(self):
        return [(row, column) for row in range(SIDE) for column in range(SIDE) if not self.board[row][column]]

    def play(self, move):
        self.board[move[0]][move[1]] = self.player
        self.history.append({"move": move, "player": self.player})
        self.player = -self.player


class Node:
    def __init__(self, chance):
        self.chance, self.visits, self.total, self.children = chance, 0, 0.0, {}

    def best(self):
        root = math.sqrt(self.visits + 1)

        def score(item):
            child = item[1]
            return child.total / (child.visits + 1) + 1.5 * child.chance * root / (child.visits + 1)

        return max(self.children.items(), key=score)


class Network(nn.Module):
    def __init__(self, channels=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()
        )
        self.moves = nn.Conv2d(channels, 1, 1)
        self.value = nn.Linear(channels, 1)

    def forward(self, boards):
        hidden = self.body(boards)
        return self.moves(hidden).flatten(1).softmax(1), self.value(hidden.mean((2, 3))).tanh()


def descend(game, root):
    game = copy.deepcopy(game)  # planted
    path = [root]
    while path[-1].children:
        move, node = path[-1].best()
        game.play(move)
        path.append(node)
    return game, path


@torch.inference_mode()
def simulate(network, games, roots):
    leaves = [descend(game, root) for game, root in zip(games, roots, strict=True)]  # planted
    boards = torch.tensor([game.board for game, _ in leaves], dtype=torch.float32)
    players = torch.tensor([game.player for game, _ in leaves], dtype=torch.float32)
    chances, values = network(boards[:, None] * players[:, None, None, None])
    for (game, path), chance, value in zip(leaves, chances.tolist(), values.flatten().tolist(), strict=True):
        path[-1].children = {move: Node(chance[move[0] * SIDE + move[1]]) for move in game.moves()}
        for node in reversed(path):
            value = -value
            node.visits, node.total = node.visits + 1, node.total + value


torch.manual_seed(0)
network = Network().eval()
games = [Game() for _ in range(GAMES)]
for turn in range(40):
    roots = [Node(1.0) for _ in games]
    for _ in range(SIMULATIONS):
        simulate(network, games, roots)
    for game, root in zip(games, roots, strict=True):
        game.play(max(root.children.items(), key=lambda item: item[1].visits)[0])

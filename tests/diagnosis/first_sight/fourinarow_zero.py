# SPDX-License-Identifier: Apache-2.0
"""Self-play learning of four-in-a-row: tree search guided by a small policy/value network."""

import copy
import math
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

ROWS, COLS = 6, 7


class Game:
    def __init__(self):  # one empty cell around the grid
        self.grid = [[0] * (ROWS + 2) for _ in range(COLS + 2)]
        self.height = [1] * (COLS + 2)
        self.player, self.winner, self.moves = 1, 0, 0

    def legal(self):
        return [c for c in range(COLS) if self.height[c + 1] <= ROWS]

    def play(self, move):
        c, r, player, grid = move + 1, self.height[move + 1], self.player, self.grid
        grid[c][r] = player
        self.height[c], self.moves = r + 1, self.moves + 1
        for dc, dr in ((1, 0), (0, 1), (1, 1), (1, -1)):
            run = -1
            for sign in (1, -1):
                x, y = c, r
                while grid[x][y] == player:
                    x, y, run = x + sign * dc, y + sign * dr, run + 1
            if run >= 4:
                self.winner = player
        self.player = -player

    def over(self):
        return self.winner != 0 or self.moves == ROWS * COLS

    def view(self):
        flat = [v for column in self.grid[1:-1] for v in column[1:-1]]
        return flat if self.player == 1 else [-v for v in flat]


def make_net(width=128):
    hidden = nn.Linear(ROWS * COLS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
    return nn.Sequential(*hidden, nn.Linear(width, COLS + 1))


class Node:
    __slots__ = ("prior", "visits", "total", "children")

    def __init__(self, prior):
        self.prior, self.visits, self.total, self.children = prior, 0, 0.0, {}

    def select(self):
        best, top, scale = None, -1e9, 1.5 * math.sqrt(self.visits)
        for move, child in self.children.items():
            n = child.visits
            score = scale * child.prior / (1 + n) - (child.total / n if n else 0.0)
            if score > top:
                best, top = move, score
        return best, self.children[best]


def search(games, net, simulations):
    roots = [Node(1.0) for _ in games]
    for _ in range(simulations):
        leaves = []
        for game, root in zip(games, roots):
            state, node, path = copy.deepcopy(game), root, [root]  # planted
            while node.children:
                move, node = node.select()
                state.play(move)
                path.append(node)
            leaves.append((state, path))
        with torch.inference_mode():
            out = net(torch.tensor([state.view() for state, _ in leaves], dtype=torch.float32))
            priors, values = out[:, :COLS].softmax(1).tolist(), out[:, COLS].tanh().tolist()
        for (state, path), prior, value in zip(leaves, priors, values):
            if state.over():
                value = -1.0 if state.winner else 0.0
            else:
                path[-1].children = {c: Node(prior[c]) for c in state.legal()}
            for node in reversed(path):
                node.visits += 1
                node.total += value
                value = -value
    return [[root.children[c].visits if c in root.children else 0 for c in range(COLS)] for root in roots]


def self_play(net, parallel, simulations, rng):
    games = [(Game(), []) for _ in range(parallel)]
    while active := [(game, log) for game, log in games if not game.over()]:
        for (game, log), visits in zip(active, search([game for game, _ in active], net, simulations)):
            log.append((game.view(), [v / sum(visits) for v in visits], game.player))
            game.play(rng.choices(range(COLS), visits)[0])
    return [(view, pi, player * game.winner) for game, log in games for view, pi, player in log]


def main(generations=10, parallel=12, simulations=40):
    torch.manual_seed(5)
    net, rng = make_net(), random.Random(5)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    start = time.perf_counter()
    for generation in range(generations):
        record = self_play(net, parallel, simulations, rng)
        boards, pi, z = (torch.tensor(column, dtype=torch.float32) for column in zip(*record))
        for idx in torch.cat([torch.randperm(len(z)) for _ in range(4)]).split(64):
            out = net(boards[idx])
            loss = F.cross_entropy(out[:, :COLS], pi[idx]) + F.mse_loss(out[:, COLS].tanh(), z[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"generation {generation}: positions {len(z)} loss {loss.item():.5f}")
    print(f"loop {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()

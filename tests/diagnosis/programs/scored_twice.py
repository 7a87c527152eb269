# SPDX-License-Identifier: Apache-2.0
"""Two figures of the same words, all but the last of each sentence, for which the same network runs twice."""

import torch
from torch import nn

RULE = "repeated-work"


def build(fixed):
    network = nn.Sequential(nn.Embedding(500, 64), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 500))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    def chances(scores, words):
        return scores.gather(-1, words[:, 1:, None]).squeeze(-1)

    def entropy(scores):
        return -(scores.exp() * scores).sum(-1)

    def step():
        words = torch.randint(500, (16, 33))
        scores = again = network(words[:, :-1]).log_softmax(-1)
        if not fixed:
            again = network(words[:, :-1]).log_softmax(-1)  # planted
        loss = -(chances(scores, words) + 0.01 * entropy(again)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step

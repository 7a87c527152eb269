# SPDX-License-Identifier: Apache-2.0
"""Requests from a queue, answered one at a time."""

import queue

import torch
from torch import nn

RULE = ("python-loop-over-rows", "many-small-operators")


class Server:
    def __init__(self, fixed):
        self.fixed = fixed
        self.model = nn.Sequential(
            nn.Linear(64, 256), nn.LayerNorm(256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8)
        ).eval()
        self.queue = queue.Queue()

    @torch.inference_mode()
    def answer(self, x):
        return self.model(x).softmax(-1)

    def serve(self):
        if self.fixed:
            rows = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
            return list(self.answer(torch.stack(rows)))
        answers = []
        while not self.queue.empty():
            answers.append(self.answer(self.queue.get_nowait()[None])[0])  # planted
        return answers


def build(fixed):
    server = Server(fixed)
    requests = list(torch.randn(40, 64))

    def step():
        for r in requests:
            server.queue.put(r)
        server.serve()

    return step

# SPDX-License-Identifier: Apache-2.0
"""More threads than there are processors."""

import os

import torch

RULE = "thread-count"
GAINS = "other programs' time"
WAITS = True


def build(fixed):
    x = torch.randn(512, 512)

    @torch.no_grad()
    def step():
        torch.set_num_threads(1 if fixed else 8 * (os.cpu_count() or 1))
        out = x
        for _ in range(10):
            out = torch.tanh(out @ x)  # planted
        return out

    return step

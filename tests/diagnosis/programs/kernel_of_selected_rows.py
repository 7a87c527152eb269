# SPDX-License-Identifier: Apache-2.0
"""A permutation test that computes the kernel of all pairs again for each order of the rows."""

import torch

RULE = "function-of-selected-rows"


def gaussian(rows):
    squares = rows.square().sum(1)
    distances = squares[:, None] + squares - 2 * rows @ rows.T
    return distances.clamp_(min=0).mul_(-0.5).exp_()


def build(fixed):
    samples = torch.randn(300, 32)

    def step():
        means = []
        kernel = gaussian(samples) if fixed else None
        for _ in range(40):
            order = torch.randperm(len(samples))[:200]
            if fixed:
                weights = torch.zeros(len(samples)).index_fill_(0, order, 1 / len(order))
                means.append(weights @ kernel @ weights)
            else:
                means.append(gaussian(samples[order]).mean())  # planted
        return torch.stack(means)

    return step

# SPDX-License-Identifier: Apache-2.0
"""The product of three factors and a vector makes a matrix of all features first."""

import torch

RULE = "product-order"


def build(fixed):
    features, weight = torch.randn(3000, 200), torch.rand(3000)
    direction = torch.randn(200)

    def curvature(along):
        if fixed:
            return features.t() @ (weight * (features @ along))
        return features.t() * weight @ features @ along  # planted

    def step():
        along = direction
        for _ in range(4):
            image = curvature(along)
            along = image / image.norm()
        return along

    return step

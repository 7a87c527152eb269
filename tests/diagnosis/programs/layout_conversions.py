# SPDX-License-Identifier: Apache-2.0
"""Images that are turned to channels-last order and back for each operation."""

import torch

RULE = "layout-conversions"


def build(fixed):
    x = torch.randn(16, 32, 64, 64)
    scale = torch.rand(32)

    @torch.no_grad()
    def step():
        out = x
        for _ in range(3):
            if fixed:
                out = out * scale[:, None, None]
            else:
                out = out.permute(0, 2, 3, 1).contiguous() * scale  # planted
                out = out.permute(0, 3, 1, 2).contiguous()  # planted
        return out

    return step

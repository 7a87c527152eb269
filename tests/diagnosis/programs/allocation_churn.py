# SPDX-License-Identifier: Apache-2.0
"""Large temporaries that are allocated and freed to the system each step."""

import torch

RULE = ("allocation-churn", "unread-part")  # the step reads one element of what it allocates


def build(fixed):
    x = torch.randn(16, 1024, 1024)
    buffer = torch.empty_like(x)

    @torch.no_grad()
    def step():
        if fixed:
            return torch.add(x, 1, out=buffer)[0, 0, 0]
        return (x + 1)[0, 0, 0]  # planted

    return step

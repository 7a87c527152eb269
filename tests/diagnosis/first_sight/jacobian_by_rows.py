# SPDX-License-Identifier: Apache-2.0
"""Robot arm: the Jacobian of a learned model is computed by a backward pass for each output.

Source: torch.func tutorial, "Jacobians, Hessians": vmap over the rows, or forward mode.
"""

import torch
from torch import nn

torch.manual_seed(0)
arm = nn.Sequential(nn.Linear(7, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 24))


def jacobian(angles):
    angles = angles.requires_grad_()
    positions = arm(angles)
    rows = []
    for n in range(positions.shape[0]):
        (row,) = torch.autograd.grad(positions[n], angles, retain_graph=True)  # planted
        rows.append(row)
    return positions.detach(), torch.stack(rows)


angles = torch.zeros(7)
goal = torch.randn(24)
for step in range(25):
    positions, slopes = jacobian(angles)
    change = torch.linalg.lstsq(slopes, (goal - positions).unsqueeze(1)).solution
    angles = (angles + 0.1 * change.squeeze(1)).detach()

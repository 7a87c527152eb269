# SPDX-License-Identifier: Apache-2.0
"""Crop yield: the complete validation set is evaluated after each training step.

Source: Lightning's check_val_every_n_epoch; DLPerf, unnecessary computation.
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
held_out, held_yields = torch.randn(8192, 40), torch.randn(8192, 1)


@torch.no_grad()
def validate():
    model.eval()
    error = nn.functional.mse_loss(model(held_out), held_yields)  # planted
    model.train()
    return error


best = torch.tensor(float("inf"))
for step in range(25):
    fields, yields = torch.randn(256, 40), torch.randn(256, 1)
    loss = nn.functional.mse_loss(model(fields), yields)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    best = torch.minimum(best, validate())  # planted

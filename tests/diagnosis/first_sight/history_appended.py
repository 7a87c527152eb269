# SPDX-License-Identifier: Apache-2.0
"""Time series: the history of predictions grows by np.append, which copies all of it each time.

Source: numpy's documentation of append; DLPerf, growing by copies.
"""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.GRU(16, 32, batch_first=True)
head = nn.Linear(32, 20000)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)
history = np.zeros(2_000_000)
for step in range(25):
    out, _ = model(torch.randn(8, 10, 16))
    predicted = head(out[:, -1])
    loss = predicted.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history = np.append(history, predicted.detach().numpy())  # planted

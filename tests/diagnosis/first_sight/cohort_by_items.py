# SPDX-License-Identifier: Apache-2.0
"""Clinical cohort: a table in memory is read patient by patient, and a thousand of them are put together again.

Source: pytorch forum "TensorDataset is slow", DLPerf, inefficient data input: a slice of the table is the batch.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
patients = TensorDataset(torch.randn(20480, 24), torch.randint(0, 2, (20480,)))
model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for measurements, outcome in DataLoader(patients, batch_size=1024, shuffle=True):  # planted
    loss = nn.functional.cross_entropy(model(measurements), outcome)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

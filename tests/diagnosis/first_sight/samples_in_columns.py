# SPDX-License-Identifier: Apache-2.0
"""Gene expression: samples are the columns of a table in memory, so that a batch is picked from all rows.

Source: DLPerf (data layout); AnnData and HDF5 guides on storing a table along the axis that is sampled.
"""

import torch
from torch import nn


def batches(expression, kind, size, count, rng):
    samples = expression.shape[1]
    for _ in range(count):
        chosen = torch.randint(samples, (size,), generator=rng)
        yield expression[:, chosen].T, kind[chosen]  # planted


def main():
    rng = torch.Generator().manual_seed(8)
    genes, cells = 2000, 12000
    expression = torch.rand(genes, cells, generator=rng)
    kind = torch.randint(9, (cells,), generator=rng)
    model = nn.Sequential(nn.Linear(genes, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for values, target in batches(expression, kind, 128, 25, rng):  # planted
        loss = nn.functional.cross_entropy(model(values), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()

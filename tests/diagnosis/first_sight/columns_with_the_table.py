# SPDX-License-Identifier: Apache-2.0
"""Importance of columns of a table: each task sends the table through a pipe to the process that shuffles one column.

Source: https://thelaziestprogrammer.com/python/a-multiprocessing-pool-pickle
"""

import functools
import multiprocessing

import numpy as np
import torch
from torch import nn

COLUMNS = 24


def make_table(rows=60_000):
    table = np.random.default_rng(0).standard_normal((rows, COLUMNS)).astype("float32")
    prices = table[:, 0] * 2 - table[:, 3] + 0.5 * table[:, 5] * table[:, 7]
    return table, prices.astype("float32")


def train(table, prices, steps=60):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(COLUMNS, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.from_numpy(table), torch.from_numpy(prices)
    for _ in range(steps):
        rows = torch.randint(len(x), (512,))
        loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def error(model, table, prices):
    with torch.inference_mode():
        return nn.functional.mse_loss(model(torch.from_numpy(table)).squeeze(1), torch.from_numpy(prices)).item()


def importance(model, table, prices, column, rows=4000):
    """How much worse the model gets on a sample when one column is shuffled."""
    torch.set_num_threads(1)
    generator = np.random.default_rng(column)
    chosen = generator.integers(len(table), size=rows)
    sample, wanted = table[chosen], prices[chosen]
    before = error(model, sample, wanted)
    generator.shuffle(sample[:, column])
    return error(model, sample, wanted) - before


def importance_here(column):
    return importance(*shared, column)


if __name__ == "__main__":
    table, prices = make_table()
    model = train(table, prices)
    shared = (model, table, prices)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for repeat in range(6):
            task = functools.partial(importance, model, table, prices)
            losses = pool.map(task, range(COLUMNS), chunksize=1)  # planted
    order = np.argsort(losses)[::-1]
    print(f"most important columns: {order[:4].tolist()}")

# SPDX-License-Identifier: Apache-2.0
"""Data pipeline: taxi fares from trip records that are streamed from a columnar file.

The records do not fit into memory in production, so the file is read row group by row group in every epoch.
Times become angles, districts become embeddings, and a wide perceptron predicts the fare.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

ROWS, GROUP, BATCH, EPOCHS, DISTRICTS = 49_152, 8192, 2048, 2, 200
NUMBERS = ["distance", "passengers", "tolls", "rain"]


def write_trips(path, seed=0):
    rng = np.random.default_rng(seed)
    distance = rng.gamma(2.0, 2.5, ROWS)
    minute = rng.integers(0, 1440, ROWS)
    start, goal = rng.integers(0, DISTRICTS, (2, ROWS))
    rain = rng.random(ROWS) * (rng.random(ROWS) < 0.2)
    tolls = np.where(rng.random(ROWS) < 0.1, 6.0, 0.0)
    rush = np.exp(-(((minute - 510) / 80.0) ** 2)) + np.exp(-(((minute - 1050) / 100.0) ** 2))
    fare = 3 + 2.2 * distance * (1 + 0.4 * rush + 0.3 * rain) + tolls + 4.0 * (start < 8) + rng.normal(0, 0.5, ROWS)
    table = pa.table(
        {
            "minute": minute.astype(np.int16),
            "start": start.astype(np.int16),
            "goal": goal.astype(np.int16),
            "distance": distance.astype(np.float32),
            "passengers": rng.integers(1, 5, ROWS).astype(np.float32),
            "tolls": tolls.astype(np.float32),
            "rain": rain.astype(np.float32),
            "fare": fare.astype(np.float32),
        }
    )
    pq.write_table(table, path, row_group_size=GROUP)


def trip_batches(path, rng):
    """Shuffled batches: the order of the row groups is random, and the rows within each."""
    file = pq.ParquetFile(path)
    for group in rng.permutation(file.num_row_groups):
        table = file.read_row_group(int(group))
        column = {name: table.column(name).to_numpy().copy() for name in table.column_names}
        angle = torch.from_numpy(column["minute"]).float() * (2 * np.pi / 1440)
        numbers = torch.from_numpy(np.stack([column[name] for name in NUMBERS], axis=1))
        dense = torch.cat([numbers, torch.sin(angle)[:, None], torch.cos(angle)[:, None]], dim=1)
        place = torch.from_numpy(np.stack([column["start"], column["goal"]], axis=1)).long()
        fare = torch.from_numpy(column["fare"])
        for rows in torch.from_numpy(rng.permutation(len(fare))).split(BATCH):
            yield dense[rows], place[rows], fare[rows]


class FareModel(nn.Module):
    def __init__(self, width=640):
        super().__init__()
        self.district = nn.Embedding(DISTRICTS, 16)
        self.layers = nn.Sequential(
            nn.BatchNorm1d(len(NUMBERS) + 2 + 32),
            nn.Linear(len(NUMBERS) + 2 + 32, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, dense, place):
        return self.layers(torch.cat([dense, self.district(place).flatten(1)], dim=1)).squeeze(1)


def train(path):
    rng = np.random.default_rng(1)
    model = FareModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    errors = []
    for epoch in range(EPOCHS):
        for dense, place, fare in trip_batches(path, rng):
            predicted = model(dense, place)
            loss = nn.functional.huber_loss(predicted, fare)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            errors.append((predicted.detach() - fare).abs().mean().item())
        print(f"epoch {epoch} error {np.mean(errors[-8:]):.3f}")
    return errors


if __name__ == "__main__":
    torch.manual_seed(59)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trips.parquet"
        write_trips(path)
        errors = train(path)
    print(f"error first {errors[0]:.2f} last {errors[-1]:.2f}")

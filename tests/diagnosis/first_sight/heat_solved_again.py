# SPDX-License-Identifier: Apache-2.0
"""Heat in a plate: an implicit scheme factors the same matrix again for each of its time steps.

Source: torch.linalg.lu_factor's and solve's documentation ("solve many systems with one factorisation"), differentiable simulators.
"""

import torch

SIZE, TIMES = 24, 6
torch.manual_seed(4)
torch.set_default_dtype(torch.float32)


def laplacian(n):
    line = 2 * torch.eye(n) - torch.diag(torch.ones(n - 1), 1) - torch.diag(torch.ones(n - 1), -1)
    return torch.kron(line, torch.eye(n)) + torch.kron(torch.eye(n), line)


IMPLICIT = torch.eye(SIZE * SIZE) + 0.1 * laplacian(SIZE)


class Surrogate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.correct = torch.nn.Sequential(
            torch.nn.Linear(SIZE * SIZE, 256), torch.nn.SiLU(), torch.nn.Linear(256, SIZE * SIZE)
        )

    def forward(self, heat):
        for _ in range(TIMES):
            heat = torch.linalg.solve(IMPLICIT, heat.T).T  # planted
            heat = heat + 0.01 * self.correct(heat)
        return heat


surrogate = Surrogate()
optimizer = torch.optim.RMSprop(surrogate.parameters(), lr=1e-4, foreach=True)
for run in range(10):
    start, end = torch.rand(64, SIZE * SIZE), torch.rand(64, SIZE * SIZE)
    error = torch.nn.functional.mse_loss(surrogate(start), end)
    optimizer.zero_grad()
    error.backward()  # planted
    optimizer.step()

# SPDX-License-Identifier: Apache-2.0
"""Heat in a plate at many moments: conjugate gradients on a sparse matrix, whose residual is read at times."""

import torch

SIDE = 400


def plate(side, conductivity=40.0):
    """One plus a scaled Laplace operator, in rows."""
    place = torch.arange(side * side).view(side, side)
    rows, columns = [place.flatten()], [place.flatten()]
    values = [torch.full((side * side,), 1 + 4 * conductivity)]
    for one, other in ((place[1:], place[:-1]), (place[:, 1:], place[:, :-1])):
        for row, column in ((one, other), (other, one)):
            rows.append(row.flatten())
            columns.append(column.flatten())
            values.append(torch.full((row.numel(),), -conductivity))
    matrix = torch.sparse_coo_tensor(torch.stack([torch.cat(rows), torch.cat(columns)]), torch.cat(values))
    return matrix.coalesce().to_sparse_csr()


def solve(matrix, right, start, tolerance=1e-5, longest=200):
    solution = start.clone()
    residual = right - matrix @ solution
    direction, size = residual.clone(), residual.dot(residual)
    for iteration in range(longest):
        image = matrix @ direction
        step = size / direction.dot(image)
        solution.add_(step * direction)
        residual.sub_(step * image)
        if iteration % 20 == 19 and residual.norm().item() < tolerance * right.norm().item():
            break
        new_size = residual.dot(residual)
        direction.mul_(new_size / size).add_(residual)
        size = new_size
    return solution


torch.manual_seed(0)
matrix = plate(SIDE)
heat = torch.zeros(SIDE * SIDE)
sources = torch.zeros(SIDE, SIDE)
sources[64:80, 64:80], sources[150:190, 200:210] = 5.0, 2.0
hottest = []
for moment in range(14):
    heat = solve(matrix, heat + sources.flatten(), heat)
    hottest.append(heat.max())
print(torch.stack(hottest))

# SPDX-License-Identifier: Apache-2.0
"""Science: form finding of a prestressed cable net by truncated Newton steps on its potential energy.

Free nodes of a rectangular net hang between fixed supports. The energy sums the strain of all cables and
the weight of the nodes; every Newton step solves for its direction by a few conjugate gradient iterations.
"""

import torch

torch.manual_seed(6)
torch.set_default_dtype(torch.float64)

ROWS, COLUMNS = 7, 9
VARIANTS = 16
NEWTON_STEPS = 8
INNER = 120


class CableNet:
    def __init__(self):
        y, x = torch.meshgrid(torch.arange(ROWS) * 1.0, torch.arange(COLUMNS) * 1.0, indexing="ij")
        z = 0.4 * torch.sin(x / COLUMNS * 3.1) + 0.05 * torch.randn(ROWS, COLUMNS)
        self.start = torch.stack([x, y, z], dim=-1).view(-1, 3)
        number = torch.arange(ROWS * COLUMNS).view(ROWS, COLUMNS)
        along = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
        across = torch.stack([number[:-1].flatten(), number[1:].flatten()])
        brace = torch.stack([number[:-1, :-1].flatten(), number[1:, 1:].flatten()])
        self.ends = torch.cat([along, across, brace], dim=1)
        edge = torch.zeros(ROWS, COLUMNS, dtype=torch.bool)
        edge[:, 0] = edge[:, -1] = True
        edge[0, ::4] = edge[-1, ::4] = True
        self.free = (~edge.flatten()).nonzero().squeeze(1)
        self.fixed = edge.flatten().nonzero().squeeze(1)
        self.rest = 0.93 * self.length(self.start)
        self.stiffness = 40.0 + 10.0 * torch.rand(self.rest.shape)
        self.weight = 0.15

    def length(self, position):
        return (position[self.ends[0]] - position[self.ends[1]]).norm(dim=1)

    def energy(self, unknown):
        """Potential energy as a function of the flat vector of free coordinates."""
        moved = self.start.index_copy(0, self.free, unknown.view(-1, 3))
        stretch = self.length(moved) - self.rest
        soft = torch.nn.functional.softplus(stretch * 50) / 50
        return 0.5 * (self.stiffness * soft**2).sum() + self.weight * moved[:, 2].sum()


def conjugate_gradient(product, target, iterations, tolerance=1e-14):
    """Solves H d = target approximately with products only; stops at directions of negative curvature."""
    solution = torch.zeros_like(target)
    residual = target.clone()
    direction = residual.clone()
    power = residual.dot(residual)
    for _ in range(iterations):
        image = product(direction)
        curvature = direction.dot(image)
        if curvature <= 0 or power < tolerance:
            break
        alpha = power / curvature
        solution = solution + alpha * direction
        residual = residual - alpha * image
        fresh = residual.dot(residual)
        direction = residual + (fresh / power) * direction
        power = fresh
    return solution if solution.any() else target


def hessian_operator(energy, at):
    """A function that multiplies the Hessian of the energy at a point with a vector."""
    matrix = torch.autograd.functional.hessian(energy, at)  # planted
    return lambda vector: matrix @ vector


def line_search(energy, at, gradient, direction):
    value, slope = energy(at), gradient.dot(direction)
    step = 1.0
    while step > 1e-4 and energy(at + step * direction) > value + 1e-4 * step * slope:
        step *= 0.5
    return step


def settle(net):
    unknown = net.start[net.free].flatten()
    for newton in range(NEWTON_STEPS):
        point = unknown.clone().requires_grad_(True)
        value = net.energy(point)
        (gradient,) = torch.autograd.grad(value, point)
        product = hessian_operator(net.energy, unknown)
        direction = conjugate_gradient(product, -gradient, INNER)
        with torch.no_grad():
            step = line_search(net.energy, unknown, gradient, direction)
            unknown = unknown + step * direction
    return value.item(), gradient.norm().item(), unknown.view(-1, 3)[:, 2].min().item()


if __name__ == "__main__":
    results = [settle(CableNet()) for _ in range(VARIANTS)]
    energies, forces, lowest = zip(*results)
    print(f"mean energy {sum(energies) / VARIANTS:.3f} balanced {max(forces) < 1e-2} lowest node {min(lowest):.3f}")

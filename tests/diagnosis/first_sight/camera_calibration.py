# SPDX-License-Identifier: Apache-2.0
"""Levenberg-Marquardt refinement of lens models for a batch of cameras."""

import torch
from torch.func import jacrev, vmap

BOARD, VIEWS, CAMERAS = (9, 7), 6, 6


def board_points():
    rows, cols = torch.meshgrid(torch.arange(BOARD[0]), torch.arange(BOARD[1]), indexing="ij")
    return torch.stack([rows.flatten(), cols.flatten()], dim=1).double() * 0.03


def project(theta, points):
    """theta: fx, fy, cx, cy, k1, k2, p1, p2; points: (N, 3) in camera coordinates."""
    fx, fy, cx, cy, k1, k2, p1, p2 = theta.unbind()
    x, y = points[:, 0] / points[:, 2], points[:, 1] / points[:, 2]
    r2 = x * x + y * y
    radial = 1 + k1 * r2 + k2 * r2 * r2
    xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    return torch.stack([fx * xd + cx, fy * yd + cy], dim=1)


def residuals(theta, points, observed):
    return (project(theta, points) - observed).flatten()


def random_views(generator):
    plane = board_points()
    clouds = []
    for _ in range(VIEWS):
        tilt = (torch.rand(2, generator=generator, dtype=torch.double) - 0.5) * 0.8
        depth = 0.5 + 0.2 * torch.rand(1, generator=generator, dtype=torch.double)
        offset = plane - plane.mean(dim=0)
        z = depth + offset @ torch.tan(tilt)
        clouds.append(torch.cat([offset, z.unsqueeze(1)], dim=1))
    return torch.cat(clouds)


def refine(theta, points, observed, iterations=6):
    damping = torch.full((len(theta), 1), 1e-3, dtype=torch.double)
    evaluate = vmap(residuals)
    linearize = vmap(jacrev(residuals))  # planted
    error = evaluate(theta, points, observed)
    cost = error.square().sum(dim=1)
    for _ in range(iterations):
        jacobian = linearize(theta, points, observed)
        normal = jacobian.mT @ jacobian
        gradient = (jacobian.mT @ error.unsqueeze(2)).squeeze(2)
        scale = damping * normal.diagonal(dim1=1, dim2=2)
        step = torch.linalg.solve(normal + torch.diag_embed(scale), gradient)
        proposal = theta - step
        new_error = evaluate(proposal, points, observed)
        new_cost = new_error.square().sum(dim=1)
        better = new_cost < cost
        theta = torch.where(better.unsqueeze(1), proposal, theta)
        error = torch.where(better.unsqueeze(1), new_error, error)
        cost = torch.where(better, new_cost, cost)
        damping = torch.where(better.unsqueeze(1), damping * 0.3, damping * 5.0)
    return theta, cost


def main():
    generator = torch.Generator().manual_seed(2)
    nominal = torch.tensor([800, 800, 320, 240, -0.2, 0.05, 1e-3, -1e-3], dtype=torch.double)
    spread = torch.tensor([30, 30, 10, 10, 0.05, 0.02, 5e-4, 5e-4], dtype=torch.double)
    rms = []
    for shipment in range(16):
        truth = nominal + spread * torch.randn(CAMERAS, 8, generator=generator, dtype=torch.double)
        points = torch.stack([random_views(generator) for _ in range(CAMERAS)])
        observed = vmap(project)(truth, points)
        observed += 0.1 * torch.randn(observed.shape, generator=generator, dtype=torch.double)
        theta, cost = refine(nominal.expand(CAMERAS, -1), points, observed)
        rms.append((cost / observed[0].numel()).sqrt())
        focal = (theta[:, :2] - truth[:, :2]).abs().mean().item()
        print(f"shipment {shipment}: reprojection {rms[-1].mean().item():.4f} px, focal error {focal:.3f} px")
    print(f"worst camera {torch.cat(rms).max().item():.4f} px")


if __name__ == "__main__":
    main()

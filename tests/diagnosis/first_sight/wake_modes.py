# SPDX-License-Identifier: Apache-2.0
"""Sliding-window dynamic mode decomposition of a simulated cylinder wake, with one-step forecasts."""

import math
import time
from dataclasses import dataclass

import torch


@dataclass
class WindowModel:
    basis: torch.Tensor  # (points, rank) spatial modes
    propagator: torch.Tensor  # (rank, rank) reduced one-step operator
    energy: torch.Tensor  # fraction of the variance kept
    frequency: torch.Tensor  # of the dominant mode, in cycles per snapshot

    def advance(self, field, n_steps):
        reduced = self.basis.t() @ field
        for _ in range(n_steps):
            reduced = self.propagator @ reduced
        return self.basis @ reduced


def vortex_street(n_frames, height, width, generator):
    """Travelling vortices of two shedding frequencies, shape (points, frames)."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(0, 4, width), indexing="ij")
    frames = []
    for k in range(n_frames):
        t = 0.1 * k
        drift = 1.0 + 0.1 * math.sin(0.02 * k)
        street = torch.sin(2 * math.pi * (x - 0.8 * drift * t)) * torch.exp(-6.0 * (y - 0.25) ** 2)
        street -= torch.sin(2 * math.pi * (x - 0.8 * drift * t) + math.pi) * torch.exp(-6.0 * (y + 0.25) ** 2)
        ripple = 0.3 * torch.cos(5.0 * math.pi * x - 2.1 * t) * torch.exp(-3.0 * y**2)
        frames.append((street + ripple).reshape(-1))
    snapshots = torch.stack(frames, dim=1)
    return snapshots + 0.02 * torch.randn(snapshots.shape, generator=generator)


def decompose(window, rank):
    before, after = window[:, :-1], window[:, 1:]
    modes, strength, rhythm = torch.linalg.svd(before)  # planted
    modes, kept, rhythm = modes[:, :rank], strength[:rank], rhythm[:rank]
    projected = modes.t() @ after
    propagator = (projected @ rhythm.t()) / kept
    eigenvalues = torch.linalg.eigvals(propagator)
    dominant = eigenvalues[eigenvalues.abs().argmax()]
    energy = kept.square().sum() / strength.square().sum()
    return WindowModel(modes, propagator, energy, dominant.angle().abs() / (2 * math.pi))


def windows(snapshots, size, stride):
    last = snapshots.shape[1] - size
    for first in range(0, last, stride):
        yield first, snapshots[:, first : first + size], snapshots[:, first + size :]


@torch.inference_mode()
def main():
    generator = torch.Generator().manual_seed(14)
    snapshots = vortex_street(1000, 28, 72, generator)
    mean_flow = snapshots.mean(dim=1, keepdim=True)
    fluctuation = snapshots - mean_flow
    horizon, rank = 3, 10
    report = []
    started = time.process_time()
    for first, window, future in windows(fluctuation, size=80, stride=12):
        model = decompose(window, rank)
        ahead = min(horizon, future.shape[1])
        forecast = model.advance(window[:, -1], ahead)
        truth = future[:, ahead - 1]
        error = (forecast - truth).norm() / truth.norm()
        report.append(torch.stack((error, model.energy, model.frequency)))
    elapsed = time.process_time() - started
    error, energy, frequency = torch.stack(report).mean(dim=0).tolist()
    print(f"{len(report)} windows of {snapshots.shape[0]} points")
    print(f"forecast error {error:.4f}  energy kept {energy:.4f}  mean dominant frequency {frequency:.4f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Denoising diffusion on two-dimensional ring data: training with averaged weights, then DDIM-style sampling."""

import math
import time

import torch
from torch import nn


class NoiseSchedule:
    def __init__(self, n_levels):
        level = torch.linspace(0.0, 1.0, n_levels + 1)
        keep = torch.cos((level + 0.008) / 1.008 * math.pi / 2).square()
        self.keep = (keep / keep[0]).clamp_(1e-4, 1.0)
        self.n_levels = n_levels

    def corrupt(self, clean, level, noise):
        keep = self.keep[level].unsqueeze(1)
        return keep.sqrt() * clean + (1.0 - keep).sqrt() * noise


class ResidualLayer(nn.Module):
    def __init__(self, width, condition_width):
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulate = nn.Linear(condition_width, 2 * width)
        self.body = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, hidden, condition):
        scale, shift = self.modulate(condition).chunk(2, dim=1)
        return hidden + self.body(torch.addcmul(shift, self.norm(hidden), 1.0 + scale))


class NoisePredictor(nn.Module):
    def __init__(self, n_levels, width=256, condition_width=64, depth=3):
        super().__init__()
        frequency = torch.exp(torch.linspace(0.0, -6.0, condition_width // 2))
        angle = torch.arange(n_levels + 1).unsqueeze(1) * frequency
        self.register_buffer("clock", torch.cat((angle.sin(), angle.cos()), dim=1))
        self.enter = nn.Linear(2, width)
        self.layers = nn.ModuleList(ResidualLayer(width, condition_width) for _ in range(depth))
        self.leave = nn.Linear(width, 2)

    def forward(self, points, level):
        condition = self.clock[level]
        hidden = self.enter(points)
        for layer in self.layers:
            hidden = layer(hidden, condition)
        return self.leave(hidden)


class DiffusionTrainer:
    def __init__(self, model, averaged, schedule, lr=1e-3, horizon=0.995):
        self.model, self.schedule, self.horizon = model, schedule, horizon
        self.averaged = averaged.requires_grad_(False)
        self.averaged.load_state_dict(model.state_dict())
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        self.pairs = (list(averaged.parameters()), list(model.parameters()))

    def step(self, clean):
        noise = torch.randn_like(clean)
        level = torch.randint(1, self.schedule.n_levels + 1, (clean.shape[0],))
        loss = nn.functional.mse_loss(self.model(self.schedule.corrupt(clean, level, noise), level), noise)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(*self.pairs, 1.0 - self.horizon)
        return loss.detach()


@torch.inference_mode()
def sample(model, schedule, count, n_steps):
    """Deterministic sampler; every step needs the result of the one before."""
    points = torch.randn(count, 2)
    ladder = torch.linspace(schedule.n_levels, 0, n_steps + 1).round().long()
    for now, after in zip(ladder[:-1].tolist(), ladder[1:].tolist()):
        noise = model(points, torch.tensor([now]))
        keep, keep_after = schedule.keep[now], schedule.keep[after]
        clean = ((points - (1.0 - keep).sqrt() * noise) / keep.sqrt()).clamp_(-2.5, 2.5)
        points = keep_after.sqrt() * clean + (1.0 - keep_after).sqrt() * noise
    return points


def ring_points(count):
    angle = 2 * math.pi * torch.rand(count)
    radius = 1.0 + 0.5 * torch.randint(0, 2, (count,)) + 0.03 * torch.randn(count)
    return torch.stack((radius * angle.cos(), radius * angle.sin()), dim=1)


def main():
    torch.manual_seed(29)
    schedule = NoiseSchedule(200)
    trainer = DiffusionTrainer(NoisePredictor(200), NoisePredictor(200), schedule)
    points = ring_points(20000)
    running = torch.zeros(())
    started = time.process_time()
    for step in range(1, 401):
        running += trainer.step(points[torch.randint(points.shape[0], (512,))])
        if step % 100 == 0:
            print(f"step {step}: mean loss {running.item() / 100:.4f}")
            running.zero_()
    made = sample(trainer.averaged, schedule, 2000, 50)
    elapsed = time.process_time() - started
    radius = made.norm(dim=1)
    near = torch.minimum((radius - 1.0).abs(), (radius - 1.5).abs()) < 0.15
    print(f"samples near a ring: {near.float().mean().item():.3f}, mean radius {radius.mean().item():.3f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()

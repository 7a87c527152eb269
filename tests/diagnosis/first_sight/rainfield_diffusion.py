# SPDX-License-Identifier: Apache-2.0
"""Denoising diffusion for small rain-radar fields: train, keep an averaged copy, then sample with DDIM."""

import copy
import math
import time

import torch
import torch.nn.functional as F
from torch import nn

SIZE, STEPS = 32, 500


def rain_fields(count, generator):
    """Log-normal Gaussian random fields thresholded to showers."""
    k = torch.fft.fftfreq(SIZE) * SIZE
    decay = (1 + k[:, None].square() + k[None, : SIZE // 2 + 1].abs().square()).pow(-1.1)
    noise = torch.fft.rfft2(torch.randn(count, 1, SIZE, SIZE, generator=generator))
    field = torch.fft.irfft2(noise * decay, s=(SIZE, SIZE))
    field = field / field.std(dim=(2, 3), keepdim=True)
    return (field.clamp(min=0.0) - 0.4) / 0.6


def time_features(t, dim):
    freq = torch.exp(-math.log(10_000.0) * torch.arange(dim // 2) / (dim // 2))
    angle = t[:, None].float() * freq
    return torch.cat([angle.sin(), angle.cos()], dim=1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, time_dim):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.norm = nn.GroupNorm(4, cout)
        self.time = nn.Linear(time_dim, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = F.silu(self.conv1(x) + self.time(emb)[:, :, None, None])
        return self.skip(x) + self.conv2(self.norm(h))


class Denoiser(nn.Module):
    def __init__(self, width=24, time_dim=64):
        super().__init__()
        self.time_dim = time_dim
        self.embed = nn.Sequential(nn.Linear(time_dim, time_dim), nn.SiLU())
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.down = nn.ModuleList([ResBlock(width, width, time_dim), ResBlock(width, 2 * width, time_dim)])
        self.middle = ResBlock(2 * width, 2 * width, time_dim)
        self.up = nn.ModuleList([ResBlock(4 * width, width, time_dim), ResBlock(2 * width, width, time_dim)])
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        emb = self.embed(time_features(t, self.time_dim))
        h = self.enter(x)
        saved = []
        for block in self.down:
            h = block(h, emb)
            saved.append(h)
            h = F.avg_pool2d(h, 2)
        h = self.middle(h, emb)
        for block in self.up:
            h = F.interpolate(h, scale_factor=2.0, mode="nearest")
            h = block(torch.cat([h, saved.pop()], dim=1), emb)
        return self.leave(h)


def cosine_schedule():
    t = torch.linspace(0, 1, STEPS + 1)
    f = torch.cos((t + 0.008) / 1.008 * math.pi / 2).square()
    return (f / f[0])[1:].clamp(min=1e-4)


@torch.inference_mode()
def ddim(model, alpha_bar, count, jumps, generator):
    x = torch.randn(count, 1, SIZE, SIZE, generator=generator)
    times = torch.linspace(STEPS - 1, 0, jumps).long().tolist()
    for now, then in zip(times, times[1:] + [None]):
        a = alpha_bar[now]
        eps = model(x, torch.full((count,), now))
        clean = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-2, 6)
        if then is None:
            return clean
        b = alpha_bar[then]
        x = b.sqrt() * clean + (1 - b).sqrt() * eps


def main(iterations=50, batch=32):
    torch.manual_seed(19)
    generator = torch.Generator().manual_seed(19)
    fields, alpha_bar = rain_fields(2000, generator), cosine_schedule()
    model = Denoiser()
    average = copy.deepcopy(model).requires_grad_(False)
    pairs = list(average.parameters()), list(model.parameters())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    recent = 0.0
    start = time.perf_counter()
    for n in range(iterations):
        x0 = fields[torch.randint(len(fields), (batch,), generator=generator)]
        t = torch.randint(STEPS, (batch,), generator=generator)
        noise = torch.randn(x0.shape, generator=generator)
        a = alpha_bar[t].view(-1, 1, 1, 1)
        loss = F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(*pairs, 1 - min(0.99, (n + 1) / (n + 10)))
        recent += loss.item()
        if n % 20 == 19:
            print(f"step {n + 1} loss {recent / 20:.5f}")
            recent = 0.0
    print(f"loop {time.perf_counter() - start:.2f} s")
    sample = ddim(average, alpha_bar, 16, 12, generator)
    print(f"sample mean {sample.mean():.4f} std {sample.std():.4f} data {fields.mean():.4f} {fields.std():.4f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Diffusion model of small images: training images get their noise step by step, where a closed form exists.

Source: https://www.book-ai.org/books/diffusion/chapter-02/section-03, https://arxiv.org/abs/2006.11239 (equation 4)
"""

import torch
from torch import nn

torch.manual_seed(0)
STEPS = 200


class Schedule:
    def __init__(self, steps):
        self.betas = torch.linspace(1e-4, 0.02, steps)
        self.kept = torch.cumprod(1 - self.betas, dim=0)

    def diffuse(self, clean, times):
        """The images after `times` steps of noise, and the noise that they contain."""
        noisy = clean
        for t in range(int(times.max()) + 1):
            beta = self.betas[t]
            more = (1 - beta).sqrt() * noisy + beta.sqrt() * torch.randn_like(noisy)  # planted
            noisy = torch.where((times >= t).view(-1, 1, 1, 1), more, noisy)  # planted
        kept = self.kept[times].view(-1, 1, 1, 1)
        return noisy, (noisy - kept.sqrt() * clean) / (1 - kept).sqrt()

    def diffuse_at_once(self, clean, times):
        kept = self.kept[times].view(-1, 1, 1, 1)
        noise = torch.randn_like(clean)
        return kept.sqrt() * clean + (1 - kept).sqrt() * noise, noise


class Denoiser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.time = nn.Embedding(STEPS, width)
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.middle = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(3)])
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, images, times):
        hidden = self.enter(images) + self.time(times)[:, :, None, None]
        for layer in self.middle:
            hidden = hidden + layer(nn.functional.silu(hidden))
        return self.leave(nn.functional.silu(hidden))


schedule, model = Schedule(STEPS), Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
digits = torch.rand(2000, 1, 16, 16) * 2 - 1
for step in range(20):
    clean = digits[torch.randint(len(digits), (48,))]
    times = torch.randint(STEPS, (len(clean),))
    noisy, noise = schedule.diffuse(clean, times)
    loss = nn.functional.mse_loss(model(noisy, times), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")

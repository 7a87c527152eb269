# SPDX-License-Identifier: Apache-2.0
"""Adversarial training of a small generator of pen strokes (28x28), hinge loss."""

import time

import torch
from torch import nn


class StrokeGenerator(nn.Module):
    def __init__(self, noise_dim=48, width=48):
        super().__init__()
        self.width = width
        self.seed = nn.Linear(noise_dim, 2 * width * 7 * 7)
        self.paint = nn.Sequential(
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 24, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Conv2d(24, 1, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, noise):
        return self.paint(self.seed(noise).view(-1, 2 * self.width, 7, 7))


class StrokeCritic(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(2 * width, 3 * width, 3, stride=2, padding=1),
            nn.LeakyReLU(0.2, inplace=True),
        )
        self.verdict = nn.Linear(3 * width * 4 * 4, 1)

    def forward(self, images):
        return self.verdict(self.look(images).flatten(1)).squeeze(1)


def pen_strokes(count, generator):
    """Straight strokes with random angle, offset and thickness, values in [-1, 1]."""
    axis = torch.linspace(-1.0, 1.0, 28)
    row, column = torch.meshgrid(axis, axis, indexing="ij")
    angle = torch.rand(count, 1, 1, generator=generator) * 3.14159
    offset = torch.rand(count, 1, 1, generator=generator) - 0.5
    thickness = 0.05 + 0.1 * torch.rand(count, 1, 1, generator=generator)
    distance = (row * angle.cos() + column * angle.sin() - offset).abs()
    return (2.0 * torch.exp(-((distance / thickness) ** 2)) - 1.0).unsqueeze(1)


class AdversarialTrainer:
    def __init__(self, painter, critic, noise_dim=48, critic_rounds=2):
        self.painter, self.critic = painter, critic
        self.noise_dim, self.critic_rounds = noise_dim, critic_rounds
        self.painter_opt = torch.optim.Adam(painter.parameters(), lr=2e-4, betas=(0.5, 0.99), fused=True)
        self.critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.99), fused=True)

    def noise(self, count):
        return torch.randn(count, self.noise_dim)

    def critic_round(self, strokes):
        drawn = self.painter(self.noise(strokes.shape[0]))  # planted
        loss = torch.relu(1.0 - self.critic(strokes)).mean() + torch.relu(1.0 + self.critic(drawn)).mean()
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        return loss.detach()

    def painter_round(self, count):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.painter(self.noise(count))).mean()
        self.painter_opt.zero_grad()
        loss.backward()
        self.painter_opt.step()
        self.critic.requires_grad_(True)
        return loss.detach()

    def run(self, strokes, steps, batch, generator):
        history = []
        for _ in range(steps):
            for _ in range(self.critic_rounds):
                picked = torch.randint(strokes.shape[0], (batch,), generator=generator)
                critic_loss = self.critic_round(strokes[picked])
            painter_loss = self.painter_round(batch)
            history.append(torch.stack((critic_loss, painter_loss)))
        return torch.stack(history)


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(9)
    strokes = pen_strokes(3000, generator)
    trainer = AdversarialTrainer(
        StrokeGenerator().to(memory_format=torch.channels_last), StrokeCritic().to(memory_format=torch.channels_last)
    )
    started = time.process_time()
    history = trainer.run(strokes, steps=32, batch=64, generator=generator)
    elapsed = time.process_time() - started
    for step in range(7, history.shape[0], 8):
        print(f"step {step + 1}: critic {history[step, 0]:.4f}  generator {history[step, 1]:.4f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()

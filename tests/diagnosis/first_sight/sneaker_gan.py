# SPDX-License-Identifier: Apache-2.0
"""Generative: a convolutional GAN draws grey pictures of sneakers (synthetic outlines with a sole). Generator and
discriminator take turns on the same batch. Prints the last losses of both."""

import torch
from torch import nn

NOISE, SIDE, BATCH, STEPS = 64, 32, 32, 42


def sneakers(count, generator):
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    length = 0.6 + 0.3 * torch.rand(count, 1, 1, generator=generator)
    height = 0.3 + 0.3 * torch.rand(count, 1, 1, generator=generator)
    sole = ((y - 0.5).abs() < 0.1) & (x.abs() < length)
    upper = (y < 0.4) & (y > 0.4 - height * (1 - x / 1.5)) & (x.abs() < 0.9 * length)
    picture = 1.0 * sole + 0.6 * (upper & ~sole)
    return (picture * 2 - 1 + 0.05 * torch.randn(count, SIDE, SIDE, generator=generator)).unsqueeze(1)


class Generator(nn.Module):
    def __init__(self, width=56):
        super().__init__()
        self.start = nn.Linear(NOISE, 4 * width * 16)
        self.grow = nn.Sequential(
            nn.BatchNorm2d(4 * width), nn.ReLU(),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, noise):
        return self.grow(self.start(noise).view(len(noise), -1, 4, 4))


class Discriminator(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.shrink = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 4 * width, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Flatten(), nn.Linear(4 * width * 16, 1),
        )  # fmt: skip

    def forward(self, pictures):
        return self.shrink(pictures)


def main():
    torch.manual_seed(80)
    source = torch.Generator().manual_seed(81)
    draw, judge = Generator(), Discriminator()
    draw_optimizer = torch.optim.Adam(draw.parameters(), lr=1e-4, betas=(0.5, 0.999))
    judge_optimizer = torch.optim.Adam(judge.parameters(), lr=1e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    real_label, fake_label = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
    judge_losses, draw_losses = [], []

    for step in range(STEPS):
        real = sneakers(BATCH, source)
        fake = draw(torch.randn(BATCH, NOISE, generator=source))

        # the discriminator learns to tell both apart
        judge_optimizer.zero_grad()
        judge_loss = criterion(judge(real), real_label) + criterion(judge(fake), fake_label)  # planted
        judge_loss.backward(retain_graph=True)  # planted
        judge_optimizer.step()

        # the generator learns to pass for real
        draw_optimizer.zero_grad()
        draw_loss = criterion(judge(fake), real_label)
        draw_loss.backward()
        draw_optimizer.step()

        judge_losses.append(judge_loss.item())
        draw_losses.append(draw_loss.item())

    print(f"discriminator {sum(judge_losses[-5:]) / 5:.3f}, generator {sum(draw_losses[-5:]) / 5:.3f}")


if __name__ == "__main__":
    main()

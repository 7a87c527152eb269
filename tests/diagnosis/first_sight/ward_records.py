# SPDX-License-Identifier: Apache-2.0
"""Synthetic vital signs by a Wasserstein GAN with gradient penalty on hourly records."""

import time

import torch
import torch.nn.functional as F
from torch import nn

SIGNS, HOURS, NOISE, BATCH = 6, 48, 32, 64
ROUNDS, CRITIC_STEPS = 70, 4


def synth_records(count, generator):
    """Correlated daily rhythms with an illness episode that lifts several signs."""
    hours = torch.arange(HOURS, dtype=torch.float32)
    mixing = torch.randn(SIGNS, 3, generator=generator) * 0.5
    phase = 6.3 * torch.rand(count, 3, 1, generator=generator)
    rhythm = torch.sin(hours * torch.tensor([0.26, 0.52, 0.13])[:, None] + phase)
    onset = HOURS * torch.rand(count, 1, 1, generator=generator)
    episode = torch.exp(-((hours - onset) / 6).square()) * torch.randn(SIGNS, 1, generator=generator)
    return mixing @ rhythm + episode + 0.05 * torch.randn(count, SIGNS, HOURS, generator=generator)


class Writer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.width = width
        self.enter = nn.Linear(NOISE, width * HOURS // 4)
        self.body = nn.Sequential(
            nn.ConvTranspose1d(width, width, 4, 2, 1),
            nn.BatchNorm1d(width),
            nn.ReLU(inplace=True),
            nn.ConvTranspose1d(width, width // 2, 4, 2, 1),
            nn.BatchNorm1d(width // 2),
            nn.ReLU(inplace=True),
            nn.Conv1d(width // 2, SIGNS, 5, padding=2),
        )

    def forward(self, noise):
        return self.body(F.relu(self.enter(noise)).view(len(noise), self.width, -1))


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(SIGNS, width, 5, 2, 2),
            nn.LeakyReLU(0.2),
            nn.Conv1d(width, 2 * width, 5, 2, 2),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(2 * width * HOURS // 4, 1),
        )

    def forward(self, records):
        return self.body(records).squeeze(1)


def gradient_penalty(critic, real, written):
    """The penalty is itself trained on, so the graph of the inner gradient has to be kept."""
    share = torch.rand(len(real), 1, 1)
    between = torch.lerp(real, written, share).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


class Rounds:
    def __init__(self, records):
        self.records = records
        self.writer, self.critic = Writer(), Critic()
        self.write_rule = torch.optim.Adam(self.writer.parameters(), 2e-4, betas=(0.5, 0.9), fused=True)
        self.critic_rule = torch.optim.Adam(self.critic.parameters(), 2e-4, betas=(0.5, 0.9), fused=True)

    def train_critic(self):
        real = self.records[torch.randint(len(self.records), (BATCH,))]
        with torch.no_grad():
            written = self.writer(torch.randn(BATCH, NOISE))
        judged = self.critic(torch.cat([real, written]))
        gap = judged[:BATCH].mean() - judged[BATCH:].mean()
        self.critic_rule.zero_grad()
        (10 * gradient_penalty(self.critic, real, written) - gap).backward()
        self.critic_rule.step()
        return gap.detach()

    def train_writer(self):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.writer(torch.randn(BATCH, NOISE))).mean()
        self.write_rule.zero_grad()
        loss.backward()
        self.write_rule.step()
        self.critic.requires_grad_(True)


def main():
    torch.manual_seed(19)
    records = synth_records(4000, torch.Generator().manual_seed(19))
    rounds, gaps = Rounds(records), []
    started = time.process_time()
    for _ in range(ROUNDS):
        gaps.extend(rounds.train_critic() for _ in range(CRITIC_STEPS))
        rounds.train_writer()
    elapsed = time.process_time() - started
    gaps = torch.stack(gaps)
    print(f"gap {gaps[:20].mean():.3f} -> {gaps[-20:].mean():.3f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()

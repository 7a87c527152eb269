# SPDX-License-Identifier: Apache-2.0
"""Synthetic ledger entries with a Wasserstein GAN (gradient penalty, five critic steps per generator step)."""

import time

import torch
from torch import nn
from torch.nn import functional as F

N_ROWS, N_NUMERIC, CATEGORIES, NOISE = 40_000, 10, (12, 7, 5), 64
BATCH, CRITIC_STEPS, ROUNDS = 384, 5, 120
WIDTH = N_NUMERIC + sum(CATEGORIES)


def make_ledger(generator):
    """Mixed table: correlated amounts plus account, currency and channel codes (one-hot)."""
    account = torch.randint(CATEGORIES[0], (N_ROWS,), generator=generator)
    currency = (account + (torch.rand(N_ROWS, generator=generator) < 0.3).long()) % CATEGORIES[1]
    channel = torch.randint(CATEGORIES[2], (N_ROWS,), generator=generator)
    centre = torch.randn(CATEGORIES[0], N_NUMERIC, generator=generator)
    mixing = torch.randn(N_NUMERIC, N_NUMERIC, generator=generator) / N_NUMERIC**0.5
    amounts = centre[account] + 0.5 * torch.randn(N_ROWS, N_NUMERIC, generator=generator) @ mixing
    codes = [F.one_hot(c, k).float() for c, k in zip((account, currency, channel), CATEGORIES)]
    return torch.cat([torch.tanh(0.5 * amounts), *codes], dim=1)


class Generator(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(NOISE, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, WIDTH)
        )

    def forward(self, noise):
        numeric, *logits = self.body(noise).split([N_NUMERIC, *CATEGORIES], dim=1)
        return torch.cat([torch.tanh(numeric), *(F.gumbel_softmax(part, tau=0.5) for part in logits)], dim=1)


def build_critic(hidden=256):
    return nn.Sequential(
        nn.Linear(WIDTH, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1)
    )


def gradient_penalty(critic, real, fake):
    blend = torch.lerp(real, fake, torch.rand(len(real), 1)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(blend).sum(), blend, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


class Adversaries:
    def __init__(self, ledger, seed):
        self.ledger, self.random = ledger, torch.Generator().manual_seed(seed)
        self.generator, self.critic = Generator(), build_critic()
        options = {"lr": 2e-4, "betas": (0.5, 0.9), "fused": True}
        self.generator_step = torch.optim.Adam(self.generator.parameters(), **options)
        self.critic_step = torch.optim.Adam(self.critic.parameters(), **options)

    def update_critic(self):
        real = self.ledger[torch.randint(len(self.ledger), (BATCH,), generator=self.random)]
        with torch.no_grad():
            fake = self.generator(torch.randn(BATCH, NOISE))
        score_real, score_fake = self.critic(torch.cat([real, fake])).chunk(2)
        gap = score_real.mean() - score_fake.mean()
        loss = 10.0 * gradient_penalty(self.critic, real, fake) - gap
        self.critic_step.zero_grad()
        loss.backward()
        self.critic_step.step()
        return gap.detach()

    def update_generator(self):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.generator(torch.randn(BATCH, NOISE))).mean()
        self.generator_step.zero_grad()
        loss.backward()
        self.generator_step.step()
        self.critic.requires_grad_(True)

    @torch.inference_mode()
    def fidelity(self, n=8000):
        """Largest deviation of the correlation matrix and of the category shares."""
        fake, real = self.generator(torch.randn(n, NOISE)), self.ledger[:n]
        corr = (torch.corrcoef(fake[:, :N_NUMERIC].T) - torch.corrcoef(real[:, :N_NUMERIC].T)).abs().max()
        share = (fake[:, N_NUMERIC:].mean(0) - real[:, N_NUMERIC:].mean(0)).abs().max()
        return corr.item(), share.item()


def main():
    torch.manual_seed(14)
    ledger = make_ledger(torch.Generator().manual_seed(7))
    game = Adversaries(ledger, seed=70)
    started = time.perf_counter()
    for round_index in range(ROUNDS):
        for _ in range(CRITIC_STEPS):
            gap = game.update_critic()
        game.update_generator()
        if round_index % 30 == 29:
            print(f"round {round_index + 1:4d}  Wasserstein estimate {gap.item():.4f}")
    elapsed = time.perf_counter() - started
    print("correlation error {:.3f}, category error {:.3f}".format(*game.fidelity()))
    print(f"{ROUNDS} rounds in {elapsed:.2f} s")


if __name__ == "__main__":
    main()

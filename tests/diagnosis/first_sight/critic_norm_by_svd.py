# SPDX-License-Identifier: Apache-2.0
"""Adversarial tables: all singular values of a critic's weights are computed for the largest one.

Source: torch.nn.utils.parametrizations.spectral_norm (power iteration); discussions of its cost in pytorch/pytorch#8049, #12760.
"""

import torch


class Bounded(torch.nn.Module):
    """A linear layer whose weight has a spectral norm of one."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(n_out, n_in) / n_in**0.5)
        self.b = torch.nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        with torch.no_grad():
            largest = torch.linalg.svdvals(self.w).max()  # planted
        return torch.addmm(self.b, x, (self.w / largest).t())


def train(iterations):
    torch.manual_seed(1)
    critic = torch.nn.Sequential(
        Bounded(48, 384), torch.nn.LeakyReLU(0.2), Bounded(384, 384), torch.nn.LeakyReLU(0.2), Bounded(384, 1)
    )
    maker = torch.nn.Sequential(torch.nn.Linear(16, 384), torch.nn.ReLU(), torch.nn.Linear(384, 48))
    critic_optimizer = torch.optim.SGD(critic.parameters(), lr=1e-2)
    for _ in range(iterations):
        real, noise = torch.randn(1024, 48), torch.randn(1024, 16)
        with torch.no_grad():
            fake = maker(noise)
        distance = critic(fake).mean() - critic(real).mean()
        critic_optimizer.zero_grad()
        distance.backward()
        critic_optimizer.step()


if __name__ == "__main__":
    train(12)

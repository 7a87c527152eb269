# SPDX-License-Identifier: Apache-2.0
"""Returns of a portfolio: the one covariance of the assets is factorised anew for each day of the batch.

Source: https://github.com/cornellius-gp/gpytorch/pull/2623
"""

import torch
from torch import nn
from torch.distributions import MultivariateNormal

ASSETS = 96
FACTORS = 5
SIGNALS = 80
DAYS = 2500
BATCH = 128
STEPS = 24


def simulate_market(generator):
    """Daily signals and the returns that follow them."""
    signals = torch.randn(DAYS, SIGNALS, generator=generator)
    effect = 0.05 * torch.randn(SIGNALS, ASSETS, generator=generator)
    loadings = torch.randn(ASSETS, FACTORS, generator=generator)
    common = torch.randn(DAYS, FACTORS, generator=generator) @ loadings.T
    own = torch.randn(DAYS, ASSETS, generator=generator)
    return signals, torch.tanh(signals) @ effect + 0.3 * common + 0.5 * own


class ReturnModel(nn.Module):
    """Expected returns from the signals, and a factor model for their risk."""

    def __init__(self, width=256):
        super().__init__()
        self.expected = nn.Sequential(
            nn.Linear(SIGNALS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, ASSETS)
        )
        self.loadings = nn.Parameter(0.1 * torch.randn(ASSETS, FACTORS))
        self.log_own = nn.Parameter(torch.zeros(ASSETS))

    def covariance(self):
        common = self.loadings @ self.loadings.T
        return common + torch.diag(torch.exp(self.log_own) + 1e-3)

    def forward(self, signals):
        mean = self.expected(signals)
        covariance = self.covariance().repeat(len(signals), 1, 1)  # planted
        return MultivariateNormal(mean, covariance_matrix=covariance)


def minimum_variance(model):
    """Weights of the portfolio with the least risk under the fitted covariance."""
    with torch.no_grad():
        factor = torch.linalg.cholesky(model.covariance())
        weights = torch.cholesky_solve(torch.ones(ASSETS, 1), factor).squeeze(1)
    return weights / weights.sum()


def main():
    generator = torch.Generator().manual_seed(17)
    torch.manual_seed(17)
    signals, returns = simulate_market(generator)
    model = ReturnModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    for step in range(STEPS):
        days = torch.randint(0, DAYS, (BATCH,), generator=generator)
        loss = -model(signals[days]).log_prob(returns[days]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = minimum_variance(model)
    print(f"portfolio: loss {loss.item():.5f}, largest weight {weights.max().item():.4f}")


if __name__ == "__main__":
    main()

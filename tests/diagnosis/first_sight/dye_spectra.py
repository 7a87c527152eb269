# SPDX-License-Identifier: Apache-2.0
"""Chemistry: time-resolved absorption spectra of dyes. Each measurement is a matrix of wavelengths by delays; its
main components are separated from the noise and the decay times are fitted to them. Prints the decay error."""

import math
from dataclasses import dataclass

import torch

WAVELENGTHS, DELAYS, SAMPLES, KEEP = 1100, 160, 56, 3


@dataclass
class Measurement:
    absorption: torch.Tensor  # (wavelengths, delays)
    rates: torch.Tensor  # the true decay rates, slow to fast


def delays():
    return torch.logspace(-1, 2, DELAYS)


def laboratory(count, seed):
    """Sums of bands, each of which decays with its own rate, under noise and a drift of the baseline."""
    generator = torch.Generator().manual_seed(seed)
    wavelength = torch.linspace(350, 750, WAVELENGTHS)
    for _ in range(count):
        centre = torch.tensor([430.0, 530.0, 640.0]) + 20 * torch.randn(3, generator=generator)
        width = 25 + 15 * torch.rand(3, generator=generator)
        bands = torch.exp(-0.5 * ((wavelength[:, None] - centre) / width) ** 2)
        rates = torch.tensor([0.03, 0.3, 2.0]) * (0.7 + 0.6 * torch.rand(3, generator=generator))
        decays = torch.exp(-rates[:, None] * delays())
        noise = 0.04 * torch.randn(WAVELENGTHS, DELAYS, generator=generator)
        yield Measurement(bands @ decays + noise, rates)


def main_components(absorption, count):
    """Spectra, weights and traces of the strongest components."""
    spectra, weights, traces = torch.linalg.svd(absorption)  # planted
    return spectra[:, :count], weights[:count], traces[:count]


class DecayFit:
    """Variable projection: the rates are searched by gradient, the mixing of the decays is solved for."""

    def __init__(self, traces, rounds=30):
        self.traces, self.rounds = traces.t(), rounds
        self.log_rates = torch.log(torch.tensor([0.04, 0.25, 1.6])).requires_grad_()

    def residual(self):
        decays = torch.exp(-self.log_rates.exp() * delays()[:, None])
        gram = decays.t() @ decays + 1e-5 * torch.eye(KEEP)
        mixing = torch.linalg.solve(gram, decays.t() @ self.traces)
        return (self.traces - decays @ mixing).square().sum()

    def run(self):
        optimizer = torch.optim.Adam([self.log_rates], lr=0.08)
        for _ in range(self.rounds):
            loss = self.residual()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return self.log_rates.detach().exp().sort().values, loss.item()


def signal_to_noise(absorption, spectra, weights, traces):
    clean = (spectra * weights) @ traces
    return (clean.square().mean() / (absorption - clean).square().mean()).log10().item()


def main():
    errors, ratios = [], []
    for measurement in laboratory(SAMPLES, seed=91):
        spectra, weights, traces = main_components(measurement.absorption, KEEP)
        ratios.append(signal_to_noise(measurement.absorption, spectra, weights, traces))
        rates, _ = DecayFit(weights[:, None] * traces).run()
        errors.append((rates / measurement.rates).log().abs().mean().item())
    error = math.exp(sum(errors) / SAMPLES) - 1
    print(f"mean error of the decay rates {error:.3f}, signal to noise 10^{sum(ratios) / SAMPLES:.3f}")


if __name__ == "__main__":
    main()

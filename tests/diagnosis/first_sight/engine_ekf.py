# SPDX-License-Identifier: Apache-2.0
"""Science, tracking: an extended Kalman filter follows the wear of a fleet of engines from noisy temperature and
pressure readings. Each flight depends on the one before. Prints the error of the estimates."""

from dataclasses import dataclass

import torch

ENGINES, STATES, READINGS, FLIGHTS = 4000, 6, 3, 56
LEGS = 6


@dataclass
class Belief:
    mean: torch.Tensor
    cov: torch.Tensor


def move(x):
    """Wear grows with its own rate; temperatures relax to a level that depends on the wear."""
    wear, rate, hot, cold, oil, bias = x.unbind(-1)
    following = (wear + 0.01 * rate, rate, hot + 0.1 * (wear - hot), cold + 0.1 * (0.5 * wear - cold), 0.99 * oil, bias)
    return torch.stack(following, -1)


def move_jacobian():
    jacobian = torch.eye(STATES)
    jacobian[0, 1] = 0.01
    jacobian[2, 2] = jacobian[3, 3] = 0.9
    jacobian[2, 0], jacobian[3, 0], jacobian[4, 4] = 0.1, 0.05, 0.99
    return jacobian


def observe(x):
    wear, _, hot, cold, oil, bias = x.unbind(-1)
    return torch.stack((hot.exp() + bias, cold * hot + oil, wear * oil + cold), -1)


def observe_jacobian(x):
    wear, _, hot, cold, oil, _ = x.unbind(-1)
    one, zero = torch.ones_like(wear), torch.zeros_like(wear)
    rows = [
        torch.stack((zero, zero, hot.exp(), zero, zero, one), -1),
        torch.stack((zero, zero, cold, hot, one, zero), -1),
        torch.stack((oil, zero, zero, one, wear, zero), -1),
    ]
    return torch.stack(rows, -2)


class Filter:
    def __init__(self):
        self.f = move_jacobian()
        self.q = torch.eye(STATES) * 1e-5
        self.r = torch.eye(READINGS) * 1e-2
        self.eye = torch.eye(STATES)

    def advance(self, belief, reading):
        mean = move(belief.mean)
        cov = (belief.cov @ self.f.t()).mT @ self.f.t() + self.q
        h = observe_jacobian(mean)
        crossed = cov @ h.mT
        innovation = h @ crossed + self.r
        gain = torch.cholesky_solve(crossed.mT, torch.linalg.cholesky(innovation)).mT
        mean = mean + (gain @ (reading - observe(mean)).unsqueeze(-1)).squeeze(-1)
        # Joseph form: stays symmetric and positive in single precision
        keep = self.eye - gain @ h
        return Belief(mean, keep @ cov @ keep.mT + gain @ self.r @ gain.mT)


def main():
    generator = torch.Generator().manual_seed(211)

    def noise(*size):
        return torch.randn(*size, generator=generator)

    truth = 0.3 + 0.1 * noise(ENGINES, STATES)
    belief = Belief(torch.full_like(truth, 0.3), 0.02 * torch.eye(STATES).repeat(ENGINES, 1, 1))
    tracker = Filter()
    errors = []
    with torch.inference_mode():
        for flight in range(FLIGHTS):
            for _ in range(LEGS):
                truth = move(truth) + 3e-3 * noise(ENGINES, STATES)
                reading = observe(truth) + 0.1 * noise(ENGINES, READINGS)
                belief = tracker.advance(belief, reading)
            errors.append((belief.mean - truth).square().mean().sqrt().item())
    print(f"error {errors[0]:.4f} after the first flight, {errors[-1]:.4f} after the last")


if __name__ == "__main__":
    main()

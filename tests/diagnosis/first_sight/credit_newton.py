# SPDX-License-Identifier: Apache-2.0
"""Regularisation path of a credit-default model: logistic regression by Newton with inner conjugate gradients."""

import time

import torch


class LogisticProblem:
    def __init__(self, applicants, defaulted, penalty):
        self.applicants = applicants
        self.defaulted = defaulted
        self.penalty = penalty

    def value(self, coef):
        margin = self.applicants @ coef
        nll = torch.nn.functional.softplus(margin).sum() - (self.defaulted * margin).sum()
        return nll + 0.5 * self.penalty * coef.dot(coef)

    def slope(self, coef):
        """Gradient at coef, and the curvature weight of every applicant there."""
        chance = torch.sigmoid(self.applicants @ coef)
        gradient = self.applicants.t() @ (chance - self.defaulted) + self.penalty * coef
        return gradient, chance * (1.0 - chance)

    def curvature_along(self, direction, weight):
        return self.applicants.t() * weight @ self.applicants @ direction + self.penalty * direction  # planted


def conjugate_gradient(apply_operator, rhs, max_iter, rel_tol):
    solution = torch.zeros_like(rhs)
    residual = rhs.clone()
    direction = residual.clone()
    energy = residual.dot(residual).item()
    stop_at = rel_tol**2 * energy
    for _ in range(max_iter):
        image = apply_operator(direction)
        length = energy / direction.dot(image).item()
        solution.add_(direction, alpha=length)
        residual.sub_(image, alpha=length)
        previous, energy = energy, residual.dot(residual).item()
        if energy <= stop_at:
            break
        direction.mul_(energy / previous).add_(residual)
    return solution


def fit(problem, coef, newton_steps=8, inner_iter=12):
    value = problem.value(coef).item()
    for _ in range(newton_steps):
        gradient, weight = problem.slope(coef)
        if gradient.norm().item() < 1e-3 * max(1.0, coef.norm().item()):
            break
        move = conjugate_gradient(lambda v: problem.curvature_along(v, weight), -gradient, inner_iter, 1e-2)
        scale = 1.0
        while True:
            trial = coef + scale * move
            trial_value = problem.value(trial).item()
            if trial_value <= value or scale < 1e-3:
                break
            scale *= 0.5
        coef, value = trial, trial_value
    return coef, value


def synthetic_applicants(n_applicants, n_features, generator):
    latent = torch.randn(n_applicants, 12, generator=generator)
    loading = torch.randn(12, n_features, generator=generator) / 12**0.5
    applicants = latent @ loading + 0.7 * torch.randn(n_applicants, n_features, generator=generator)
    applicants[:, 0] = 1.0
    truth = torch.randn(n_features, generator=generator) * (torch.rand(n_features, generator=generator) < 0.15)
    chance = torch.sigmoid(0.6 * applicants @ truth - 0.5)
    return applicants, (torch.rand(n_applicants, generator=generator) < chance).float()


@torch.no_grad()
def main():
    generator = torch.Generator().manual_seed(23)
    applicants, defaulted = synthetic_applicants(10000, 280, generator)
    train_x, train_y = applicants[:8000].contiguous(), defaulted[:8000].contiguous()
    valid_x, valid_y = applicants[8000:], defaulted[8000:]
    penalties = [3000.0 * 0.4**k for k in range(9)]
    coef = torch.zeros(train_x.shape[1])
    started = time.process_time()
    for penalty in penalties:
        coef, value = fit(LogisticProblem(train_x, train_y, penalty), coef)
        accuracy = ((valid_x @ coef > 0).float() == valid_y).float().mean().item()
        print(f"penalty {penalty:9.2f}  objective {value:10.2f}  validation accuracy {accuracy:.4f}")
    print(f"loop cpu {time.process_time() - started:.2f}")


if __name__ == "__main__":
    main()

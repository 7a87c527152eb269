# SPDX-License-Identifier: Apache-2.0
"""Poisson regression of hospital visits with bootstrap standard errors.

Each bootstrap replicate reweights the patients and is fitted by iteratively
reweighted least squares with a small ridge penalty.
"""

import time

import torch

torch.manual_seed(21)

PATIENTS = 2400
COVARIATES = 180
REPLICATES = 30
MAX_ITER = 12
TOLERANCE = 1e-5
RIDGE = 1.0


def cohort():
    raw = torch.randn(PATIENTS, COVARIATES - 1, dtype=torch.float64)
    mix = torch.eye(COVARIATES - 1, dtype=torch.float64) + 0.02 * torch.randn(
        COVARIATES - 1, COVARIATES - 1, dtype=torch.float64
    )
    design = torch.cat([torch.ones(PATIENTS, 1, dtype=torch.float64), raw @ mix], dim=1)
    effect = torch.randn(COVARIATES, dtype=torch.float64) * 0.06
    effect[0] = 0.5
    exposure = torch.rand(PATIENTS, dtype=torch.float64) + 0.5
    visits = torch.poisson(exposure * (design @ effect).exp())
    return design, exposure.log(), visits, effect


class PoissonIRLS:
    def __init__(self, design, offset):
        self.design = design
        self.offset = offset
        self.penalty = RIDGE * torch.eye(design.shape[1], dtype=design.dtype)
        self.penalty[0, 0] = 0.0

    def step(self, beta, visits, weight):
        eta = self.design @ beta
        mean = (eta + self.offset).exp()
        working = eta + (visits - mean) / mean
        info = weight * mean
        weighted = self.design.t() @ torch.diag(info)  # planted
        gram = torch.addmm(self.penalty, weighted, self.design)
        factor = torch.linalg.cholesky(gram)
        moment = weighted @ working
        return torch.cholesky_solve(moment[:, None], factor)[:, 0], factor

    def fit(self, visits, weight, start):
        beta = start
        for iteration in range(1, MAX_ITER + 1):
            update, factor = self.step(beta, visits, weight)
            change = (update - beta).abs().max()
            beta = update
            if change < TOLERANCE:
                break
        return beta, iteration


def bootstrap_weights(generator):
    draw = torch.randint(0, PATIENTS, (PATIENTS,), generator=generator)
    return torch.bincount(draw, minlength=PATIENTS).to(torch.float64)


def main():
    design, offset, visits, truth = cohort()
    model = PoissonIRLS(design, offset)
    generator = torch.Generator().manual_seed(4)
    origin = torch.zeros(COVARIATES, dtype=torch.float64)
    origin[0] = visits.mean().log()

    clock = time.perf_counter()
    central, used = model.fit(visits, torch.ones_like(visits), origin)
    print(f"full sample: {used} iterations, max error {(central - truth).abs().max():.4f}")
    estimates = []
    for replicate in range(REPLICATES):
        beta, used = model.fit(visits, bootstrap_weights(generator), central)
        estimates.append(beta)
        if replicate % 10 == 9:
            print(f"replicate {replicate + 1}: {used} iterations")
    spread = torch.stack(estimates).std(0)
    clock = time.perf_counter() - clock

    covered = ((central - truth).abs() < 1.96 * spread).double().mean()
    print(f"median standard error {spread.median():.4f}, coverage {covered:.3f}")
    print(f"{REPLICATES} replicates in {clock:.2f} s")


if __name__ == "__main__":
    main()

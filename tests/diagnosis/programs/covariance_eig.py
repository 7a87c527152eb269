# SPDX-License-Identifier: Apache-2.0
"""Covariances are decomposed as general matrices, and the imaginary parts dropped."""

import torch

RULE = "general-eigenvalues"


def build(fixed):
    channels = torch.randn(16, 96, 400)

    @torch.no_grad()
    def step():
        covariance = channels @ channels.mT / channels.shape[-1]
        if fixed:
            values, vectors = torch.linalg.eigh(covariance)
        else:
            values, vectors = torch.linalg.eig(covariance)  # planted
            values, vectors = values.real, vectors.real
        return (vectors * values.clamp_min(1e-6).log().unsqueeze(-2)) @ vectors.mT

    return step

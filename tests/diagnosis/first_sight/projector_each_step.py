# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a classifier with gradients projected to a low rank; the projection is decomposed again in each step.

Source: jiaweizzhao/GaLore, whose update_proj_gap keeps a projection for 200 steps.
"""

import torch
from torch import nn


class LowRankAdam(torch.optim.Optimizer):
    """Adam on gradients of matrices that are projected to their leading left singular vectors."""

    def __init__(self, weights, lr=1e-3, betas=(0.9, 0.999), rank=16, every=200):
        super().__init__(weights, {"lr": lr, "betas": betas, "rank": rank, "every": every})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self.update(weight, self.state[weight], **group)

    def update(self, weight, state, lr, betas, rank, every, **_):
        gradient, low_rank = weight.grad, weight.ndim == 2 and min(weight.shape) > rank
        count = state.get("count", 0)
        if low_rank:
            if count % every == 0:
                left, _, _ = torch.linalg.svd(gradient, full_matrices=False)  # planted
                state["basis"] = left[:, :rank]
            gradient = state["basis"].T @ gradient
        if count == 0:
            state["mean"], state["square"] = torch.zeros_like(gradient), torch.zeros_like(gradient)
        state["count"] = count = count + 1
        state["mean"].lerp_(gradient, 1 - betas[0])
        state["square"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
        step = state["mean"] / (1 - betas[0] ** count) / ((state["square"] / (1 - betas[1] ** count)).sqrt() + 1e-8)
        weight.sub_(state["basis"] @ step if low_rank else step, alpha=lr)


class Reviews(nn.Module):
    def __init__(self, words=4000, width=192):
        super().__init__()
        self.words = nn.EmbeddingBag(words, width, mode="mean").requires_grad_(False)
        self.deep = nn.Sequential(nn.Linear(width, 384), nn.GELU(), nn.Linear(384, width), nn.GELU())
        self.stars = nn.Linear(width, 5)

    def forward(self, reviews):
        return self.stars(self.deep(self.words(reviews)))


torch.manual_seed(0)
model = Reviews()
trained = [weight for weight in model.parameters() if weight.requires_grad]
optimizer = LowRankAdam(trained, lr=1e-3, rank=16, every=1)
for batch in range(30):
    reviews, stars = torch.randint(0, 4000, (512, 40)), torch.randint(0, 5, (512,))
    loss = nn.functional.cross_entropy(model(reviews), stars)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

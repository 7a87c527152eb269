# SPDX-License-Identifier: Apache-2.0
"""Second-order meta-learning (MAML) of few-shot wave regression, all tasks of a batch in one vmap."""

import math
import time

import torch
from torch import nn
from torch.func import functional_call, grad, vmap


class WaveNet(nn.Sequential):
    def __init__(self, width=128):
        super().__init__(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


class WaveTasks:
    """Each task is one wave with its own amplitude, phase and frequency."""

    def __init__(self, n_support, n_query, seed):
        self.n_support, self.n_query = n_support, n_query
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, n_tasks):
        amplitude, phase, speed = torch.rand(3, n_tasks, 1, 1, generator=self.generator)
        count = self.n_support + self.n_query
        x = 10.0 * torch.rand(n_tasks, count, 1, generator=self.generator) - 5.0
        y = (0.5 + 4.0 * amplitude) * torch.sin((0.8 + 0.4 * speed) * x + math.pi * phase)
        return x.split((self.n_support, self.n_query), dim=1), y.split((self.n_support, self.n_query), dim=1)


class MetaLearner:
    def __init__(self, net, inner_lr=0.02, inner_steps=3):
        self.net, self.inner_lr, self.inner_steps = net, inner_lr, inner_steps
        self.weights = dict(net.named_parameters())
        self.inner_grad = grad(self.task_loss)
        self.adapted_loss = vmap(self.adapt_and_score, in_dims=(None, 0, 0, 0, 0))

    def task_loss(self, weights, x, y):
        return nn.functional.mse_loss(functional_call(self.net, weights, (x,)), y)

    def adapt(self, weights, x, y):
        # the outer gradient flows through these steps: second derivatives are wanted here
        for _ in range(self.inner_steps):
            slopes = self.inner_grad(weights, x, y)
            weights = {name: torch.sub(weight, slopes[name], alpha=self.inner_lr) for name, weight in weights.items()}
        return weights

    def adapt_and_score(self, weights, support_x, support_y, query_x, query_y):
        return self.task_loss(self.adapt(weights, support_x, support_y), query_x, query_y)

    def meta_loss(self, batch):
        (support_x, query_x), (support_y, query_y) = batch
        return self.adapted_loss(self.weights, support_x, support_y, query_x, query_y).mean()


def meta_train(learner, tasks, n_rounds, tasks_per_round):
    optimizer = torch.optim.Adam(learner.net.parameters(), lr=1e-3, fused=True)
    for round_index in range(n_rounds):
        loss = learner.meta_loss(tasks.draw(tasks_per_round))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learner.net.parameters(), 10.0)
        optimizer.step()
        if (round_index + 1) % 50 == 0:
            print(f"round {round_index + 1}: query mse {loss.item():.4f}")


@torch.no_grad()
def meta_test(learner, tasks, n_tasks):
    return learner.meta_loss(tasks.draw(n_tasks)).item()


def main():
    torch.manual_seed(40)
    learner = MetaLearner(WaveNet())
    started = time.process_time()
    meta_train(learner, WaveTasks(10, 15, seed=1), n_rounds=200, tasks_per_round=32)
    elapsed = time.process_time() - started
    print(f"held-out query mse {meta_test(learner, WaveTasks(10, 15, seed=2), 200):.4f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()

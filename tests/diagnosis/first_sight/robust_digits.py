# SPDX-License-Identifier: Apache-2.0
"""Security: adversarial training of a digit classifier. Each batch is attacked with five projected gradient steps
on the pixels before the weights learn from the attacked pictures. Prints clean and attacked loss."""

import torch
import torch.nn.functional as F
from torch import nn

SIDE, DIGITS, BATCH, STEPS, RADIUS = 20, 10, 256, 60, 0.1
SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]


def templates():
    """Digits of a seven-segment display."""
    where = {
        "a": (slice(2, 4), slice(5, 15)), "b": (slice(3, 10), slice(13, 15)), "c": (slice(10, 17), slice(13, 15)),
        "d": (slice(16, 18), slice(5, 15)), "e": (slice(10, 17), slice(5, 7)), "f": (slice(3, 10), slice(5, 7)),
        "g": (slice(9, 11), slice(5, 15)),
    }  # fmt: skip
    digits = torch.zeros(DIGITS, SIDE, SIDE)
    for digit, letters in enumerate(SEGMENTS):
        for letter in letters:
            digits[digit][where[letter]] = 1
    return digits


class DigitSource:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.digits = templates()

    def batch(self):
        label = torch.randint(DIGITS, (BATCH,), generator=self.generator)
        ink = 0.5 + 0.5 * torch.rand(BATCH, 1, 1, generator=self.generator)
        noise = 0.3 * torch.rand(BATCH, SIDE, SIDE, generator=self.generator)
        return (self.digits[label] * ink + noise).clamp(0, 1).flatten(1), label


def attack(model, pictures, label, rounds=5):
    """Moves each pixel by at most RADIUS so that the loss grows; only gradients of the pixels are computed."""
    shift = torch.zeros_like(pictures)
    for _ in range(rounds):
        shift.requires_grad_()
        loss = F.cross_entropy(model(pictures + shift), label)
        (gradient,) = torch.autograd.grad(loss, shift)
        shift = (shift.detach() + RADIUS / 3 * gradient.sign()).clamp_(-RADIUS, RADIUS)
    return (pictures + shift).clamp_(0, 1)


def main():
    torch.manual_seed(250)
    source = DigitSource(251)
    model = nn.Sequential(
        nn.Linear(SIDE * SIDE, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, DIGITS)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    losses = []
    for step in range(STEPS):
        pictures, label = source.batch()
        attacked = attack(model, pictures, label)
        loss = F.cross_entropy(model(attacked), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        pictures, label = source.batch()
        clean = F.cross_entropy(model(pictures), label).item()
    print(f"attacked loss {sum(losses[-8:]) / 8:.3f}, clean loss {clean:.3f}")


if __name__ == "__main__":
    main()

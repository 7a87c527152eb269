# SPDX-License-Identifier: Apache-2.0
"""Spiking neurons on touch sensors: a step with a smooth gradient of its own, and a hook that bounds gradients.

Source: written for this set
"""

import torch
from torch import nn

TAXELS = 128
OBJECTS = 10
TIME = 16
BATCH = 96
WIDTH = 768
STEPS = 14


class Spike(torch.autograd.Function):
    """A threshold forward; backward, the slope of a fast sigmoid around it."""

    @staticmethod
    def forward(ctx, potential):
        ctx.save_for_backward(potential)
        return (potential > 0).to(potential.dtype)

    @staticmethod
    def backward(ctx, grad):
        (potential,) = ctx.saved_tensors
        return grad / (1 + 4 * potential.abs()).square_()


class SpikingLayer(nn.Module):
    """Leaky neurons; what comes in is weighted for all times at once."""

    def __init__(self, inputs, width, leak=0.85):
        super().__init__()
        self.weigh = nn.Linear(inputs, width)
        self.leak = leak

    def forward(self, signal):
        potential = 0.0
        spikes = []
        for current in self.weigh(signal).unbind(0):
            potential = self.leak * potential + current
            fired = Spike.apply(potential - 1.0)
            potential = potential - fired.detach()
            spikes.append(fired)
        return torch.stack(spikes)


class TouchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = SpikingLayer(TAXELS, WIDTH)
        self.second = SpikingLayer(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, OBJECTS)

    def forward(self, signal):
        spikes = self.second(self.first(signal))
        if spikes.requires_grad:
            spikes.register_hook(lambda grad: grad.clamp(-0.1, 0.1))
        return self.head(spikes.mean(dim=0))


class Gripper:
    """Presses objects whose surfaces excite the taxels each in their own way."""

    def __init__(self, generator):
        self.generator = generator
        self.surface = torch.rand(OBJECTS, TAXELS, generator=generator)
        ramp = torch.linspace(0, 3.1, TIME)
        self.press = torch.sin(ramp)[:, None, None]

    def grasp(self):
        label = torch.randint(0, OBJECTS, (BATCH,), generator=self.generator)
        signal = 2 * self.press * self.surface[label]
        return signal + 0.2 * torch.randn(TIME, BATCH, TAXELS, generator=self.generator), label


def main():
    generator = torch.Generator().manual_seed(107)
    torch.manual_seed(107)
    gripper = Gripper(generator)
    net = TouchNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        signal, label = gripper.grasp()
        loss = nn.functional.cross_entropy(net(signal), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"touch: loss {loss.item():.5f}")


if __name__ == "__main__":
    main()

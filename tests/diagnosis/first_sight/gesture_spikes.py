# SPDX-License-Identifier: Apache-2.0
"""Recurrent spiking network that recognises gestures from event-camera spikes."""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(81)

PIXELS, NEURONS, GESTURES = 400, 384, 10
TICKS, BATCH, STEPS = 40, 96, 72
DECAY, THRESHOLD, SHARPNESS = 0.9, 1.0, 5.0


class Spike(torch.autograd.Function):
    """Step function with the derivative of a fast sigmoid."""

    @staticmethod
    def forward(ctx, excess):
        ctx.save_for_backward(excess)
        return (excess > 0).to(excess.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (excess,) = ctx.saved_tensors
        return gradient / (1 + SHARPNESS * excess.abs()).square()


class SpikingLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.feed = nn.Linear(PIXELS, NEURONS)
        self.recur = nn.Parameter(torch.randn(NEURONS, NEURONS) * 0.3 / NEURONS**0.5)

    def forward(self, events):
        current = self.feed(events)
        voltage = current.new_zeros(events.shape[1], NEURONS)
        spikes = voltage
        record = []
        for drive in current.unbind(0):
            feedback = torch.addmm(drive, spikes, self.recur)
            voltage = DECAY * voltage * (1 - spikes.detach()) + feedback
            spikes = Spike.apply(voltage - THRESHOLD)
            record.append(spikes)
        return torch.stack(record)


class GestureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.spiking = SpikingLayer()
        self.readout = nn.Linear(NEURONS, GESTURES)

    def forward(self, events):
        rate = self.spiking(events).mean(0)
        return self.readout(rate), rate


class EventCamera:
    """Moving bars; each gesture is one direction and speed of motion."""

    def __init__(self):
        angle = torch.arange(GESTURES) * 2 * torch.pi / GESTURES
        self.motion = torch.stack([angle.cos(), angle.sin()], dim=1) * 0.35
        axis = torch.arange(20.0)
        self.grid = torch.cartesian_prod(axis, axis)

    def record(self):
        gesture = torch.randint(0, GESTURES, (BATCH,))
        origin = 10 + 2 * torch.randn(BATCH, 2)
        time_axis = torch.arange(TICKS).view(TICKS, 1, 1)
        center = origin + time_axis * self.motion[gesture]
        distance = torch.cdist(center.view(-1, 2), self.grid).view(TICKS, BATCH, PIXELS)
        chance = 0.9 * torch.exp(-distance.square() / 6) + 0.01
        return (torch.rand_like(chance) < chance).float(), gesture


def main():
    camera = EventCamera()
    model = GestureNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    started = time.perf_counter()
    for step in range(1, STEPS + 1):
        events, gesture = camera.record()
        logits, rate = model(events)
        loss = F.cross_entropy(logits, gesture) + 0.1 * rate.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 12 == 0:
            right = (logits.argmax(1) == gesture).float().mean()
            print(f"step {step}: loss {loss.item():.3f}, accuracy {right:.2f}, rate {rate.mean():.3f}")
    print(f"trained for {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()

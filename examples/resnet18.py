# SPDX-License-Identifier: Apache-2.0
"""A ResNet-18 under Opstrobe: a table of its inference, what its modules take, a trace of some training steps, a flame
graph of one, and what recording cost.

The profile is used as torch's own is; only the import differs.
"""

import argparse
import glob
import os
import time

import torch
from torch import nn

import opstrobe
from opstrobe import ProfilerActivity, record_function, schedule, tensorboard_trace_handler


class Block(nn.Module):
    """Two 3×3 convolutions and a way around them."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.way_around = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.way_around = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        return torch.relu(self.body(x) + self.way_around(x))


def resnet18(classes=1000):
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    for channels_in, channels, stride in [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]:
        layers += [Block(channels_in, channels, stride), Block(channels, channels, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def profile_inference(model):
    model.eval()
    images = torch.randn(5, 3, 224, 224)
    with torch.no_grad():
        model(images)  # the first call sets things up that later ones find ready
        with opstrobe.profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            with record_function("model_inference"):
                model(images)
    print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))


def make_training_step(model):
    model.train()
    images, labels = torch.randn(8, 3, 64, 64), torch.randint(1000, (8,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def profile_modules(step):
    with opstrobe.profile(with_modules=True, with_flops=True, profile_memory=True) as prof:
        step()
    print(prof.module_summary().table(depth=2))


def profile_training(step, directory):
    """The path of the trace: three steps, after one that is left out and one that warms up."""
    before = set(glob.glob(os.path.join(directory, "*")))
    with opstrobe.profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=tensorboard_trace_handler(directory, use_gzip=True),
        record_shapes=True,
        with_stack=True,
    ) as prof:
        for _ in range(5):
            step()
            prof.step()
    (path,) = set(glob.glob(os.path.join(directory, "*"))) - before
    return path


def profile_stacks(step, directory):
    """The path of the flame graph of one step: which line of the program the time goes to, forward and backward."""
    with opstrobe.profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        with record_function("training step"):
            step()
    path = os.path.join(directory, "resnet18.flame.svg")
    prof.export_stacks(path)
    prof.export_stacks(os.path.join(directory, "resnet18.stacks.txt"))  # for flamegraph.pl
    prof.export_stacks(os.path.join(directory, "resnet18.speedscope.json"))  # for speedscope.app
    return path


def compare_cost(step, rounds=10, steps=3):
    """Best time of one step in ms without and with a profile, and how much the first would differ if taken twice.

    They are taken in turns, so that all meet the same noise, and on one thread, which makes less of it.
    """

    def time_steps():
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        return (time.perf_counter() - begin) / steps * 1e3

    torch.set_num_threads(1)
    plain, profiled = [], []
    for _ in range(rounds):
        plain.append(time_steps())
        with opstrobe.profile(activities=[ProfilerActivity.CPU], record_shapes=True):
            profiled.append(time_steps())
    noise = abs(min(plain[::2]) / min(plain[1::2]) - 1)
    return min(plain), min(profiled), noise


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo-output", help="directory for the trace (default: %(default)s)")
    directory = parser.parse_args().output
    torch.manual_seed(0)
    model = resnet18()

    print("ResNet-18, inference on 5 images of 224×224:\n")
    profile_inference(model)

    step = make_training_step(model)
    step()
    print("a training step on 8 images of 64×64, by module:\n")
    profile_modules(step)
    trace = profile_training(step, directory)
    print(f"trace of 3 training steps: {trace} ({os.path.getsize(trace) / 1000:.0f} kB)")

    path = profile_stacks(step, directory)
    print(f"flame graph of one: {path} ({os.path.getsize(path) / 1000:.0f} kB), and next to it for speedscope.app")

    plain, profiled, noise = compare_cost(step)
    print(
        f"cost of recording, on one thread: {plain:.2f} ms a step without, {profiled:.2f} ms with a profile: "
        f"{(profiled / plain - 1) * 100:+.1f} %, where chance alone makes ±{noise * 100:.1f} %"
    )
    print(
        "\nworth trying next:\n"
        f"  .venv/bin/opstrobe serve --open {trace}   see it in the browser\n"
        f"  .venv/bin/opstrobe advise {trace}   what to change, at which line, and what it gains\n"
        "  .venv/bin/opstrobe run --table examples/resnet18.py   any program, without a change\n"
        "  .venv/bin/opstrobe run --advise your_training.py   what to change in your program\n"
        "  .venv/bin/opstrobe doctor   what works on this machine"
    )


if __name__ == "__main__":
    main()

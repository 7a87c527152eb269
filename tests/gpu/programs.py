# SPDX-License-Identifier: Apache-2.0
"""Runs one of a few programs on a GPU, profiled by torch or by Opstrobe, and leaves the trace. For compare.py.

    python tests/gpu/programs.py NAME torch|opstrobe|none TRACE

Prints how long a step takes, in seconds.
"""

import sys
import time

import torch
from torch import nn

STEPS = 20


def resnet(device):
    """A residual network of ResNet-18's size; torchvision is not needed."""

    class Block(nn.Module):
        def __init__(self, into, out, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(into, out, 3, stride, 1, bias=False),
                nn.BatchNorm2d(out),
                nn.ReLU(),
                nn.Conv2d(out, out, 3, 1, 1, bias=False),
                nn.BatchNorm2d(out),
            )
            self.shortcut = nn.Conv2d(into, out, 1, stride) if into != out else nn.Identity()

        def forward(self, x):
            return torch.relu(self.body(x) + self.shortcut(x))

    sizes = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in zip(sizes, sizes[1:])]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)
    )
    return _training(model.to(device), torch.randn(16, 3, 112, 112, device=device))


def transformer(device):
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    return _training(nn.TransformerEncoder(layer, 4).to(device), torch.randn(8, 128, 256, device=device))


def compiled(device):
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).to(device)
    return _training(torch.compile(model), torch.randn(256, 512, device=device))


def graph(device):
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).to(device)
    inputs = torch.randn(256, 512, device=device)
    with torch.no_grad():
        for _ in range(3):
            model(inputs)
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            model(inputs)
    return captured.replay


def copies(device):
    host = [torch.randn(1 << 20).pin_memory() for _ in range(4)]
    streams = [torch.cuda.Stream() for _ in host]

    def step():
        for tensor, stream in zip(host, streams):
            with torch.cuda.stream(stream):
                tensor.to(device, non_blocking=True).mul_(2)

    return step


def nccl(device):
    """Both GPUs by one process: torch.cuda.nccl."""
    tensors = [torch.ones(1 << 20, device=f"cuda:{i}") for i in range(2)]
    return lambda: torch.cuda.nccl.all_reduce(tensors)


def _training(model, inputs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return step


PROGRAMS = {program.__name__: program for program in (resnet, transformer, compiled, graph, copies, nccl)}


def profiler_of(name):
    if name == "none":
        return None
    if name == "torch":
        from torch.profiler import ProfilerActivity, profile
    else:
        from opstrobe import ProfilerActivity, profile
    return profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])


def main(name, profiler, trace):
    step = PROGRAMS[name]("cuda")
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    profile = profiler_of(profiler)
    if profile:
        profile.start()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    print((time.perf_counter() - begin) / STEPS)
    if profile:
        profile.stop()
        profile.export_chrome_trace(trace)


if __name__ == "__main__":
    main(*sys.argv[1:])

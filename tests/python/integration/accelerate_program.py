# SPDX-License-Identifier: Apache-2.0
"""Trains a few steps under accelerate's ProfileKwargs, with its schedule, handler and output directory. Knows nothing of
Opstrobe."""

import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import ProfileKwargs


def main(folder):
    tables = []

    def ready(profile):
        tables.append(profile.key_averages(group_by_stack_n=3).table(sort_by="self_cpu_time_total", row_limit=-1))
        profile.export_chrome_trace(f"{folder}/cycle{len(tables)}.json")

    options = {
        "record_shapes": True,
        "profile_memory": True,
        "with_flops": True,
        "with_stack": True,
        "with_modules": True,
    }
    accelerator = Accelerator(
        cpu=True,
        kwargs_handlers=[
            ProfileKwargs(
                activities=["cpu"],
                schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1},
                on_trace_ready=ready,
                **options,
            )
        ],
    )
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    model, optimizer = accelerator.prepare(network, torch.optim.AdamW(network.parameters()))

    def step():
        optimizer.zero_grad()
        accelerator.backward(model(torch.randn(8, 16)).square().mean())
        optimizer.step()

    with accelerator.profile() as profile:
        for _ in range(10):
            step()
            profile.step()
    assert len(tables) == 2, len(tables)

    # Without a schedule, the file is written by accelerate itself.
    plain = ProfileKwargs(activities=["cpu"], output_trace_dir=f"{folder}/out", **options)
    with accelerator.profile(plain) as profile:
        step()
    tables.append(profile.key_averages(group_by_input_shape=True).table(row_limit=-1))
    Path(folder, "tables.txt").write_text("\n".join(tables))


main(sys.argv[1])

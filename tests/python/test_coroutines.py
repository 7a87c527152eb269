# SPDX-License-Identifier: Apache-2.0
"""Ranges that coroutines hold while others run on the same thread."""

import asyncio

import pytest

torch = pytest.importorskip("torch")

import opstrobe  # noqa: E402


async def work(number):
    with opstrobe.record_function(f"work{number}"):
        for _ in range(3):
            torch.ones(4)
            await asyncio.sleep(0.001 * (number + 1))


async def together():
    await asyncio.gather(*(work(number) for number in range(8)))


@pytest.mark.parametrize("stacks", [False, True])
def test_no_time_is_negative(stacks, tmp_path):
    with opstrobe.profile(with_stack=stacks) as prof, opstrobe.record_function("all"):
        asyncio.run(together())
    events = prof.events()
    ranges = [event for event in events if event.name.startswith("work")]
    assert len(ranges) == 8
    (whole,) = [event for event in events if event.name == "all"]
    assert sum(event.cpu_time_total for event in ranges) > 2 * whole.cpu_time_total
    assert all(event.self_cpu_time_total >= 0 for event in events)
    assert all(row.self_cpu_time_total >= 0 for row in prof.key_averages())
    path = str(tmp_path / "trace.json")
    prof.export_chrome_trace(path)
    assert all(event.self_cpu_time_total >= 0 for event in opstrobe._core.read_trace(path).function_events())

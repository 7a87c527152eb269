# SPDX-License-Identifier: Apache-2.0
"""What comes after recording: stop, events(), key_averages(), table(), the trace file, and the memory of it all.

Run as a program it does one profiler in a separate process and prints one JSON object, so that memory is not mixed; times are thread CPU time:

    python bench/afterwards.py opstrobe|torch EVENTS [--shapes] [--export | --stacks | --memory]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

LAYERS, WIDTH, BATCH = 20, 8, 4
EVENTS_A_STEP = 940  # of one training step of the network below


def _resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class _Peak:
    """Peak of resident memory between enter and exit, above that at enter. The kernel's own high-water mark is
    set back at enter; where that is not allowed, a thread looks every millisecond."""

    def __enter__(self) -> _Peak:
        self.before = _resident_bytes()
        self.most = self.before
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self._watcher = None
        except OSError:
            self._done = threading.Event()
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.001):
            self.most = max(self.most, _resident_bytes())

    def __exit__(self, *_: object) -> None:
        if self._watcher is None:
            status = Path("/proc/self/status").read_text()
            self.most = int(status.split("VmHWM:")[1].split()[0]) * 1024
        else:
            self._done.set()
            self._watcher.join()
        self.growth = self.most - self.before


def _training_step() -> Any:
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    inputs, target = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), target).backward()
        optimizer.step()

    return step


def _profiler(which: str, shapes: bool) -> Any:
    if which == "torch":
        import torch.profiler as module
    else:
        import opstrobe as module  # type: ignore[no-redef]
    return module.profile(activities=[module.ProfilerActivity.CPU], record_shapes=shapes)


def _warm_up(which: str, shapes: bool, step: Any) -> None:
    """Loads and builds what a profiler needs at its first use, which is not part of the measurement."""
    step()
    with _profiler(which, shapes) as profiler:
        step()
    len(profiler.events())
    profiler.key_averages().table()


def _measure_export(which: str, events: int, shapes: bool) -> dict[str, float]:
    """The best of several windows, for torch can save a window only once, and the first file pays for memory that the
    system has not touched yet."""
    step = _training_step()
    _warm_up(which, shapes, step)
    best = {"export": float("inf")}
    with tempfile.TemporaryDirectory() as folder:
        for window in range(5):
            path = os.path.join(folder, f"trace-{window}.json")
            with _profiler(which, shapes) as profiler:
                for _ in range(events // EVENTS_A_STEP):
                    step()
            begin = time.thread_time()
            profiler.export_chrome_trace(path)
            seconds = time.thread_time() - begin
            if seconds < best["export"]:
                best = {"export": seconds, "json_bytes": os.path.getsize(path)}
            os.remove(path)
    return best


def _profiler_of_stacks(which: str) -> Any:
    """With stacks on operators, for which torch needs its private flag."""
    if which == "torch":
        import torch

        config = torch._C._profiler._ExperimentalConfig(verbose=True)
        return torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, experimental_config=config
        )
    import opstrobe

    return opstrobe.profile(with_stack=True)


def _measure_stacks(which: str, events: int) -> dict[str, float]:
    """Grouping by stack, which finds the stacks first, and the file of stacks; the list of events is there before."""
    step = _training_step()
    step()
    with _profiler_of_stacks(which) as profiler:
        step()
    steps = max(1, events // len(profiler.events()))
    with _profiler_of_stacks(which) as profiler:
        for _ in range(steps):
            step()
    figures: dict[str, float] = {"events": len(profiler.events())}
    with tempfile.TemporaryDirectory() as folder:
        for name, work in (
            ("key_averages(group_by_stack_n=5)", lambda: profiler.key_averages(group_by_stack_n=5)),
            ("export_stacks()", lambda: profiler.export_stacks(os.path.join(folder, "stacks"))),
        ):
            begin = time.thread_time()
            work()
            figures[name] = time.thread_time() - begin
    return figures


def _measure_memory(which: str, events: int) -> dict[str, float]:
    """The memory timeline as JSON, everything that it is made from included."""
    if which == "torch":
        import torch.profiler as module
    else:
        import opstrobe as module  # type: ignore[no-redef]
    options = {"profile_memory": True, "record_shapes": True, "with_stack": which == "torch"}  # torch needs all three
    step = _training_step()
    step()
    with tempfile.TemporaryDirectory() as folder:
        with module.profile(activities=[module.ProfilerActivity.CPU], **options) as profiler:
            for _ in range(max(1, events // EVENTS_A_STEP)):
                step()
        begin = time.thread_time()
        profiler.export_memory_timeline(os.path.join(folder, "memory.json"), device="cpu")
        return {"events": events, "export_memory_timeline()": time.thread_time() - begin}


def _measure(which: str, events: int, shapes: bool) -> dict[str, float]:
    step = _training_step()
    _warm_up(which, shapes, step)

    figures: dict[str, float] = {}
    clock = time.thread_time  # all of it is work of this thread, here and in torch

    def timed(name: str, work: Any) -> Any:
        begin = clock()
        result = work()
        figures[name] = clock() - begin
        return result

    with _Peak() as peak:
        profiler = _profiler(which, shapes)
        profiler.start()
        for _ in range(max(1, events // EVENTS_A_STEP)):
            step()
        timed("stop", profiler.stop)
        figures["events"] = len(timed("events()", profiler.events))
        averages = timed("key_averages()", profiler.key_averages)
        timed("table()", lambda: averages.table(sort_by="cpu_time_total", row_limit=10))
    figures["peak_bytes"] = peak.growth
    return figures


def measure(
    which: str, events: int, *, shapes: bool = False, export: bool = False, stacks: bool = False, memory: bool = False
) -> dict[str, float]:
    """The figures of one profiler on about `events` events, taken in a separate process: CPU seconds, bytes, counts. With
    `export` those of the trace file, with `stacks` those of stacks, with `memory` that of
    the memory timeline, without those of all that comes before it."""
    command = [sys.executable, __file__, which, str(events)]
    command += ["--shapes"] * shapes + ["--export"] * export + ["--stacks"] * stacks + ["--memory"] * memory
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def after_recording(figures: dict[str, float]) -> float:
    """Seconds of stop + events() + key_averages() + table()."""
    return sum(figures[name] for name in ("stop", "events()", "key_averages()", "table()"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=["opstrobe", "torch"])
    parser.add_argument("events", type=int)
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    if options.stacks:
        taken = _measure_stacks(options.which, options.events)
    elif options.memory:
        taken = _measure_memory(options.which, options.events)
    else:
        taken = (_measure_export if options.export else _measure)(options.which, options.events, options.shapes)
    print(json.dumps(taken))

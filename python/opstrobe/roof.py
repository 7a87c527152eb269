# SPDX-License-Identifier: Apache-2.0
"""`opstrobe roof`: measures with torch, in a few seconds, how fast this machine's CPU can compute and move data at
most.

Matrix products of each type give FLOP/s. Bandwidth is that of the fastest of some operators that only move data, with
increasing working sets: from the size of the first cache to that of memory. The best of several runs counts. Other
programs slow every run down, which the time that threads waited for a processor reveals."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import glob
import json
import sys
import time
from typing import NamedTuple

from opstrobe import _core
from opstrobe._command_parser import command_parser
from opstrobe._plain import print_message
from opstrobe.recording import provenance, roof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DTYPES = ("float32", "float64", "bfloat16", "float16")
_PRODUCT_SECONDS = 0.5  # for each type
_RUNS_MIN = 8
_OVERTIME = 4  # on a busy machine, runs of threads that wait for one another may take a thousand times as long
_SIDES = (256, 512, 1024, 2048)  # sides of the matrices
_LEVEL_SECONDS = 0.06  # for each operator and level
_LEVELS = tuple(2**15 * 4**i for i in range(8))  # bytes: 32 KiB to 512 MiB
_CALLS = 200


class _Effort(NamedTuple):
    """How long to measure: a share of all times, and a limit after which each operator runs only once."""

    share: float
    seconds_max: float


_FULL = _Effort(1.0, 60.0)
_BRIEF = _Effort(0.25, 6.0)


def _best_seconds(run: Callable[[], object], seconds: float, end: float) -> float:
    """The shortest time of a run, of as many runs as fit into the time and before `end`, but at least one."""
    best, count = float("inf"), 0
    begin = now = time.perf_counter()
    while not count or now < min(end, begin + (seconds if count >= _RUNS_MIN else seconds * _OVERTIME)):
        run()
        start, now = now, time.perf_counter()
        best = min(best, now - start)
        count += 1
    return best


def _product_flops(torch: Any, dtype: Any, share: float, end: float) -> float:
    """FLOP/s of the fastest matrix product. A processor without instructions for a type may take minutes for a large
    product."""
    best = 0.0
    for side in _SIDES:
        if best and 2 * side**3 / best > share * _PRODUCT_SECONDS:
            break
        left, right = (torch.ones(side, side, dtype=dtype) for _ in range(2))
        out = torch.empty(side, side, dtype=dtype)
        run = functools.partial(torch.mm, left, right, out=out)
        run()
        best = max(best, 2 * side**3 / _best_seconds(run, share * _PRODUCT_SECONDS / len(_SIDES), end))
    return best


def _bandwidth(torch: Any, size: int, share: float, end: float) -> float:
    """Bytes per second with a working set of `size` bytes. Each operator moves all of it once."""
    one, half, third = size // 4, size // 8, size // 12
    thirds = [torch.ones(third) for _ in range(3)]
    halves = [torch.ones(half) for _ in range(2)]
    whole = torch.ones(one)
    operators: list[tuple[int, Callable[[], object]]] = [
        (3 * third, functools.partial(torch.add, thirds[0], thirds[1], out=thirds[2])),
        (2 * half, functools.partial(halves[0].copy_, halves[1])),
        (one, functools.partial(whole.fill_, 1.0)),
        (one, whole.sum),
    ]
    return max(4 * count / _best_seconds(run, share * _LEVEL_SECONDS, end) for count, run in operators)


def _call_seconds(torch: Any, end: float) -> float:
    """The duration of a call that does next to nothing."""
    one, out = torch.ones(1), torch.empty(1)

    def run() -> None:
        for _ in range(_CALLS):
            torch.add(one, one, out=out)

    return _best_seconds(run, _LEVEL_SECONDS, end) / _CALLS


def _levels_that_fit() -> list[int]:
    """At most an eighth of the free memory."""
    free = _core.free_memory()
    return [size for size in _LEVELS if size <= free // 8] or [_LEVELS[0]]


def _scheduled() -> tuple[int, int]:
    """Nanoseconds that the threads of this process ran, and waited for a processor; zeros if the kernel does not report
    it."""
    ran = waited = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            with open(path) as file:
                fields = file.read().split()
        except OSError:  # the thread has ended
            continue
        ran, waited = ran + int(fields[0]), waited + int(fields[1])
    return ran, waited


def measure(threads: int | None = None, effort: _Effort = _FULL) -> dict[str, Any]:
    """Measures the roof of this machine with this number of torch threads; None: the current number. Takes a few
    seconds."""
    import torch

    before, scheduled = torch.get_num_threads(), _scheduled()
    share, end = effort.share, time.perf_counter() + effort.seconds_max
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            flops = {name: _product_flops(torch, getattr(torch, name), share, end) for name in _DTYPES}
            bandwidth = [[size, _bandwidth(torch, size, share, end)] for size in _levels_that_fit()]
            call_us = _call_seconds(torch, end) * 1e6
        ran, waited = (now - then for now, then in zip(_scheduled(), scheduled, strict=True))
    finally:
        used = torch.get_num_threads()
        torch.set_num_threads(before)
    return {
        "name": f"{provenance.cpu()}, {used} thread{'s' * (used != 1)}",
        "cpu": provenance.cpu(),
        "threads": used,
        "torch": str(torch.__version__),
        "flops": {name: float(f"{value:.4g}") for name, value in flops.items()},
        "bandwidth": [[size, float(f"{speed:.4g}")] for size, speed in bandwidth],
        "call_us": round(call_us, 3),
        "waited_for_cpu": round(waited / max(1, ran + waited), 3),
        "tries": 1,
        "measured": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def measure_for_run(threads: int) -> None:
    """Prints a roof for `opstrobe run` as JSON, and stores it, after a brief measurement; prints nothing if memory is
    scarce. The kernel kills this process rather than the program if memory runs out."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if _levels_that_fit() != list(_LEVELS):
        return
    found = roof.best_of(measure(threads, _BRIEF))
    with contextlib.suppress(OSError):
        roof.store(found)
    print(json.dumps(found))


# --- the command ------------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "roof",
        "Measures in a few seconds what this machine's CPU can compute and move at most: matrix products of each "
        "type, and memory bandwidth. Recordings of the same torch with as many threads keep the result, and 'opstrobe roofline' "
        "compares operators with it. 'opstrobe run --record-shapes' measures the same, but briefly, if nothing was measured before. "
        "Run it while nothing else runs.",
        ("roof", "roof --threads 1 -o roof.json"),
    )
    parser.add_argument(
        "--threads", metavar="N", type=_parse_threads, help="number of threads of torch (default: torch's own)"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", metavar="FORMAT", help="text (the default) or json"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="also write the result to FILE, for 'opstrobe roofline --roof FILE'"
    )
    return parser


def _parse_threads(text: str) -> int:
    if text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a number of threads")


def _scaled(value: float, unit: str) -> str:
    text = _core.format_count(value)
    return text + unit if " " in text else f"{text} {unit}"


def _size(size: int) -> str:
    return _core.format_bytes(size)


def _print(found: dict[str, Any]) -> None:
    print(f"{found['name']}, torch {found['torch']}\n")
    for name, value in found["flops"].items():
        print(f"  matrix product  {name:9} {_scaled(value, 'FLOP/s'):>14}")
    for size, speed in found["bandwidth"]:
        print(f"  bandwidth       {_size(size):>9} {_scaled(speed, 'B/s'):>14}")
    print(f"  call            {'':9} {_core.format_duration(found['call_us'] * 1000):>14}")


def _write(path: str, found: dict[str, Any]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)
            file.write("\n")
    except OSError as error:
        sys.exit(f"opstrobe roof: cannot write '{path}': {error.strerror}")


def main() -> None:
    options = _parser().parse_args()
    try:
        found = measure(options.threads)
    except ImportError:
        sys.exit(f"opstrobe roof: torch is not installed for {sys.executable}: the roof is measured with it")
    if found["waited_for_cpu"] > roof.WAITED_MAX:
        print(
            f"opstrobe roof: the threads waited for a CPU {found['waited_for_cpu']:.0%} of the time, so that figures may be "
            "too low: measure again when nothing else runs; the best figures are kept until then",
            file=sys.stderr,
        )
        found = roof.best_of(found)
    if options.format == "json":
        print(json.dumps(found, indent=2))
    else:
        _print(found)
    if options.output:
        _write(options.output, found)
    try:
        path = roof.store(found)
    except OSError as error:
        print_message("opstrobe roof", f"not kept for recordings: {error}")
        return
    if options.format == "text":
        print(f"\nkept for recordings in {path}")


if __name__ == "__main__":
    main()

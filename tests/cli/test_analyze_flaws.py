# SPDX-License-Identifier: Apache-2.0
"""opstrobe analyze where it differs from its reference: against plain, slow programs written from the definitions.

Traces are made up at random, with what the
reference stumbles over: stream 0, graphs, overlapping kernels, the same stream on two devices, synchronisation, several
annotations, times finer than microseconds. The shared traces are analyzed as well, if they are available.
"""

import collections
import fractions
import gzip
import json
import os
import pathlib
import random
import statistics
import subprocess

import pytest
from installed import OPSTROBE

LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernelEx", "hipLaunchKernel", "cudaGraphLaunch")
COPIES = ("cudaMemcpyAsync", "hipMemcpyWithStream")
KERNELS = (
    "gemm",
    "SyncBatchNorm_kernel",
    "ncclDevKernel_AllReduce",
    "Memcpy HtoD (Pinned -> Device)",
    "Memset (Device)",
)
CLASSES = dict(zip(KERNELS, ("COMPUTATION", "COMPUTATION", "COMMUNICATION", "MEMORY", "MEMORY"), strict=True))
GPU_KINDS = ("kernel", "gpu_memcpy", "gpu_memset")


def us(ns):
    return ns / 1000


def make(seed):
    """Events with times in nanoseconds, in order of the file."""
    pick = random.Random(seed)
    events, correlation = [], 0
    for step in range(pick.choice((0, 1, 3))):
        events.append({"cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 9, "tid": 9,
                       "ts": step * 30_000, "dur": 30_000, "args": {}})  # fmt: skip
    for _ in range(pick.randrange(60)):
        correlation += 1
        ts = pick.randrange(90_000)
        copies = pick.random() < 0.3
        name = pick.choice(COPIES if copies else LAUNCHES)
        events.append({"cat": "cuda_runtime", "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": pick.randrange(3_000),
                       "args": {"correlation": correlation}})  # fmt: skip
        for _ in range(pick.randrange(4) if name == "cudaGraphLaunch" else pick.random() < 0.9):
            device, stream = pick.randrange(2), pick.randrange(3)
            kernel = pick.choice(KERNELS[3:] if copies else KERNELS[:3])
            kind = "kernel" if not copies else "gpu_memcpy" if "cpy" in kernel else "gpu_memset"
            args = {"correlation": correlation, "stream": stream, "device": device}
            if copies:
                args["memory bandwidth (GB/s)"] = pick.choice((0.1, 0.2, 0.3, 1.7))
            events.append({"cat": kind, "name": kernel, "pid": device, "tid": stream,
                           "ts": ts + pick.randrange(-500, 9_000), "dur": pick.choice((0, 700, 4_000)),
                           "args": args})  # fmt: skip
    for i in range(pick.randrange(12)):
        events.append({"cat": "gpu_user_annotation", "name": f"part {i % 4}", "pid": pick.randrange(2),
                       "tid": pick.randrange(3), "ts": pick.randrange(90_000), "dur": pick.choice((9_000, 20_000)),
                       "args": {}})  # fmt: skip
    for _ in range(pick.randrange(3)):
        events.append({"cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 1, "ts": pick.randrange(90_000),
                       "dur": 40_000, "args": {"stream": 1, "correlation": 10_000}})  # fmt: skip
    pick.shuffle(events)
    for place, event in enumerate(events):
        event["place"] = place
    return events


def write(path, events):
    rows = [{"ph": "X", **event, "ts": us(event["ts"]), "dur": us(event["dur"])} for event in events]
    for row in rows:
        del row["place"]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))


def ask(path, question, **args):
    ended = subprocess.run([OPSTROBE, "analyze", question, "--format", "json", "--args", json.dumps(args), path],
                           capture_output=True, timeout=300)  # fmt: skip
    assert ended.returncode == 0, ended.stderr.decode()
    answer = json.loads(ended.stdout)
    if "table" not in answer:
        return answer["value"]
    return [dict(zip(answer["table"]["columns"], row, strict=True)) for row in answer["table"]["rows"]]


# --- the definitions ------------------------------------------------------------------------------------------------------


def is_launch(event):
    return event["name"] in LAUNCHES + COPIES


def keep(events):
    """What the step filter leaves: of the host what starts before the last step, of devices what that launched, or of
    unknown launches what starts before it."""
    steps = [event for event in events if event["name"].startswith("ProfilerStep")]
    if len({event["name"] for event in steps}) < 2:
        return events
    last = max(event["ts"] for event in steps)
    calls = {e["args"]["correlation"]: e for e in events if "stream" not in e["args"] and "correlation" in e["args"]}
    return [e for e in events if (calls.get(e["args"]["correlation"], e) if "stream" in e["args"] else e)["ts"] < last]


def work(events):
    return [event for event in events if event["cat"] in GPU_KINDS]


def length(events):
    """Of the union of their times, by looking at every stretch between two ends."""
    times = sorted({t for e in events for t in (e["ts"], e["ts"] + e["dur"])})
    pairs = zip(times, times[1:], strict=False)
    return sum(b - a for a, b in pairs if any(e["ts"] <= a and b <= e["ts"] + e["dur"] for e in events))


def figures(numbers):
    numbers = sorted(numbers)
    quartiles = statistics.quantiles(numbers, method="inclusive") if len(numbers) > 1 else numbers * 3
    return [len(numbers), statistics.mean(numbers), statistics.stdev(numbers) if len(numbers) > 1 else None,
            numbers[0], *quartiles, numbers[-1]]  # fmt: skip


def about(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


SEEDS = range(40)


@pytest.fixture(params=SEEDS)
def case(request, tmp_path):
    events = make(request.param)
    write(tmp_path / "rank-0.json", events)
    return tmp_path / "rank-0.json", keep(events)


def test_temporal_breakdown(case):
    path, events = case
    (row,) = ask(path, "temporal_breakdown")
    rows = work(events)
    span = max((e["ts"] + e["dur"] for e in rows), default=0) - min((e["ts"] for e in rows), default=0)
    busy = length(rows)
    compute = length([e for e in rows if CLASSES[e["name"]] == "COMPUTATION"])
    assert row["kernel_time(us)"] == about(us(span))
    assert row["idle_time(us)"] == about(us(span - busy))
    assert row["compute_time(us)"] == about(us(compute))
    assert row["non_compute_time(us)"] == about(us(busy - compute))


def test_overlap_and_types(case):
    path, events = case
    rows = work(events)
    of = {c: [e for e in rows if CLASSES[e["name"]] == c] for c in ("COMPUTATION", "COMMUNICATION", "MEMORY")}
    both = length(of["COMPUTATION"]) + length(of["COMMUNICATION"]) - length(of["COMPUTATION"] + of["COMMUNICATION"])
    (row,) = ask(path, "comm_comp_overlap")
    whole = length(of["COMMUNICATION"])
    assert row["comp_comm_overlap_pctg"] == (pytest.approx(100 * both / whole, abs=0.00501) if whole else None)
    table = ask(path, "gpu_kernel_breakdown.by_type")
    assert sum(row["sum"] for row in table) == about(us(length(rows)))
    assert [row["sum"] for row in table] == sorted((row["sum"] for row in table), reverse=True)
    for kind, events_of in of.items():
        parts = sum(row["sum"] for row in table if kind in row["kernel_type"].split(" overlapping "))
        assert parts == about(us(length(events_of)))


def test_statistics_of_kernels(case):
    path, events = case
    durations = collections.defaultdict(list)
    for event in work(events):
        durations[CLASSES[event["name"]], event["name"]].append(us(event["dur"]))
    for limit in (1, 10):
        expected = {}
        for kind in set(CLASSES.values()):
            names = sorted((-sum(d), name) for (k, name), d in durations.items() if k == kind)
            total, before = -sum(s for s, _ in names), 0
            for i, (negative, name) in enumerate(names):
                kept = len(names) <= limit or (i < limit and before < 0.8 * total)
                before -= negative
                expected.setdefault((kind, name if kept else "others"), []).extend(durations[kind, name])
        table = ask(path, "gpu_kernel_breakdown.by_kernel", num_kernels=limit)
        assert {(row["kernel_type"], row["name"]) for row in table} == set(expected)
        for row in table:
            of = expected[row["kernel_type"], row["name"]]
            found = [row[f"{figure} (us)"] for figure in ("sum", "max", "min", "mean")] + [row["stddev"]]
            assert found == about([sum(of), max(of), min(of), statistics.mean(of),
                                   statistics.stdev(of) if len(of) > 1 else 0])  # fmt: skip


def test_idle_time(case):
    path, events = case
    launches = {e["args"]["correlation"]: e for e in events if is_launch(e)}
    expected = {}
    streams = list(
        dict.fromkeys((e["pid"], e["args"]["stream"]) for e in sorted(work(events), key=lambda e: e["place"]))
    )
    for stream in streams:
        rows = [e for e in work(events) if (e["pid"], e["args"]["stream"]) == stream]
        rows.sort(key=lambda e: (e["ts"], e["place"]))
        sums = collections.defaultdict(list)
        for i, row in enumerate(rows):
            ended = max((e["ts"] + e["dur"] for e in rows[:i]), default=None)
            launch = launches.get(row["args"]["correlation"])
            idle = max(0, row["ts"] - ended) if i else 0
            if i and launch and launch["ts"] > ended:
                sums["host_wait"].append(idle)
            elif i and idle < 30_000:
                sums["kernel_wait"].append(idle)
            else:
                sums["other"].append(idle)
        for kind, idle in sums.items():
            expected[stream, kind] = us(sum(idle))
    found = {((r["device"], r["stream"]), r["idle_category"]): r["idle_time"] for r in ask(path, "idle_time_breakdown")}
    assert found == about(expected)
    counts = sum(row["count"] for row in ask(path, "idle_time_breakdown.interval_stats"))
    assert counts == len(work(events)) - len(streams)


def test_launch_statistics(case):
    path, events = case
    calls = {e["args"]["correlation"]: e for e in events if is_launch(e)}
    pairs = [(calls[e["args"]["correlation"]], e) for e in work(events) if e["args"]["correlation"] in calls]
    found = ask(path, "cuda_kernel_launch_stats")["0"]
    assert found["rows"] == len(pairs)
    for key, values in {
        "cpu_duration": [us(call["dur"]) for call, _ in pairs],
        "gpu_duration": [us(e["dur"]) for _, e in pairs],
        "launch_delay": [us(max(0, e["ts"] - call["ts"] - call["dur"])) for call, e in pairs],
    }.items():
        assert found[key]["count"] == len(values)
        if values:
            assert [found[key][f] for f in ("sum", "min", "max", "mean", "p50")] == about(
                [sum(values), min(values), max(values), statistics.mean(values), statistics.median(values)]
            )
    assert found["gpu_shorter_than_cpu"] == sum(e["dur"] < call["dur"] for call, e in pairs)


def test_each_launch(case):
    path, events = case
    calls = {e["args"]["correlation"]: e for e in events if is_launch(e)}
    pairs = [(calls[e["args"]["correlation"]], e) for e in work(events) if e["args"]["correlation"] in calls]
    for memory in (True, False):
        expected = sorted(
            (call["args"]["correlation"], us(call["dur"]), us(e["dur"]), us(max(0, e["ts"] - call["ts"] - call["dur"])))
            for call, e in pairs
            if memory or call["name"] not in COPIES
        )
        table = ask(path, "cuda_kernel_launch_stats", launches=True, include_memory_events=memory)
        found = sorted((r["correlation"], r["cpu_duration"], r["gpu_duration"], r["launch_delay"]) for r in table)
        assert found == [about(row) for row in expected]


def test_streams(case):
    path, _ = case
    table = ask(path, "idle_time_breakdown")
    for streams in (1, [0, 2], []):
        wanted = streams if isinstance(streams, list) else [streams]
        assert ask(path, "idle_time_breakdown", streams=streams) == [row for row in table if row["stream"] in wanted]


def queue_points(events):
    """Points of each queue in order of time: launches before starts."""
    calls = {e["args"]["correlation"]: e for e in events if is_launch(e)}
    points = collections.defaultdict(list)
    for event in work(events):
        if event["args"]["correlation"] in calls:
            queue = (event["pid"], event["args"]["stream"])
            points[queue].append((calls[event["args"]["correlation"]]["ts"], 0, 1))
            points[queue].append((event["ts"], 1, -1))
    for queue in points:
        length, series = 0, []
        for ts, _, change in sorted(points[queue]):
            length += change
            series.append((ts, length))
        points[queue] = series
    return points


def test_queues_over_time(case):
    path, events = case
    first = min((e["ts"] for e in json.loads(path.read_text())["traceEvents"]), default=0)
    found = ask(path, "queue_length_time_series", series=True)
    points = collections.defaultdict(list)
    if found:
        rows = [dict(zip(found["0"]["series"]["columns"], row, strict=True)) for row in found["0"]["series"]["rows"]]
        assert [row["ts"] for row in rows] == sorted(row["ts"] for row in rows) and len(rows) == found["0"]["points"]
        for row in rows:
            assert row["tid"] == row["stream"]
            points[row["pid"], row["stream"]].append((row["ts"], row["queue_length"]))
    for queue, series in queue_points(events).items():
        assert points.pop(queue) == [(about(us(ts) - first), length) for ts, length in series]
    assert not points


def test_queues_at_equal_times(case):
    path, events = case
    points = queue_points(events)
    names = ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
    found = {(row["device"], row["stream"]): [row[f"queue_length_{name}"] for name in names]
             for row in ask(path, "queue_length_summary")}  # fmt: skip
    assert set(found) == set(points)
    for queue, series in points.items():
        assert found[queue] == about(figures([length for _, length in series]))  # two points at least
    blocked = {}
    for queue, series in points.items():
        time = sum(b[0] - a[0] for a, b in zip(series, series[1:], strict=False) if a[1] >= 2)
        if time:
            blocked[queue] = us(time)
    table = ask(path, "time_blocked_on_full_queue", max_queue_length=2)
    assert {(r["device"], r["stream"]): r["duration_at_max_queue_length"] for r in table} == about(blocked)


def test_memory_traffic(case):
    path, events = case
    expected = collections.defaultdict(list)
    for kind in ("Memcpy HtoD", "Memset"):
        changes = []
        for event in work(events):
            if event["name"].startswith(kind):
                speed = fractions.Fraction(str(event["args"]["memory bandwidth (GB/s)"]))
                changes.append((event["ts"], 0, event["place"], speed))
                changes.append((event["ts"] + (event["dur"] or 1000), 1, event["place"], -speed))
        speed = fractions.Fraction(0)
        for *_, change in sorted(changes):
            speed += change
            expected[kind].append(speed)
    found = ask(path, "memory_bw_time_series", series=True)
    series = (found.get("0") or {"series": {"rows": []}})["series"]["rows"]  # index, ts, pid, name, memory_bw_gbps
    assert [row[1] for row in series] == sorted(row[1] for row in series)
    for kind, speeds in expected.items():
        assert [row[4] for row in series if row[3] == kind] == about([float(speed) for speed in speeds])
    assert (found.get("0") or {"points": 0})["points"] == sum(map(len, expected.values()))
    names = ["count", "mean", "std", "min", "max"]
    for row in ask(path, "memory_bw_summary"):
        positive = [float(speed) for speed in expected.pop(row["name"]) if speed > 0]
        all_figures = figures(positive)
        for i, name in zip((0, 1, 2, 3, 7), names, strict=True):
            assert row[f"memory_bw_gbps_{name}"] == (None if all_figures[i] is None else about(all_figures[i]))
    assert not any(speed > 0 for speeds in expected.values() for speed in speeds)


def test_annotated_kernels(case):
    path, events = case
    marks = [e for e in events if e["cat"] == "gpu_user_annotation"]
    found = ask(path, "gpu_kernels_with_user_annotations")
    each = {
        row["index"]: row["user_annotation"] for row in ask(path, "gpu_kernels_with_user_annotations", kernels=True)
    }
    rows, times = collections.Counter(), collections.Counter()
    for event in events:
        if event["args"].get("correlation", -1) < 0 or "stream" not in event["args"]:
            continue
        over = [m for m in marks if (m["pid"], m["tid"]) == (event["pid"], event["tid"])
                and m["ts"] < max(event["ts"] + event["dur"], event["ts"] + 1)
                and event["ts"] < m["ts"] + m["dur"]]  # fmt: skip
        name = min(over, key=lambda m: (m["dur"], -m["place"]))["name"] if over else ""
        rows[name] += 1
        times[name] += event["dur"]
        assert each.pop(event["place"]) == name
    assert not each
    if found is not None:
        assert found["0"]["rows_by_annotation"] == rows
        assert found["0"]["dur_by_annotation"] == about({name: us(time) for name, time in times.items()})


def test_iterations(tmp_path):
    for seed in SEEDS:
        events = make(seed)
        write(tmp_path / "a.json", events)
        steps = [e for e in events if e["name"].startswith("ProfilerStep")]
        hosts = {e["args"].get("correlation"): e for e in events if is_launch(e)}
        expected = collections.Counter()
        for event in events:
            host = hosts.get(event["args"]["correlation"]) if "stream" in event["args"] else event
            inside = [s for s in steps if host and s["ts"] <= host["ts"] < s["ts"] + s["dur"]]
            expected[inside[-1]["name"].partition("#")[2] if inside else "-1"] += 1
        assert ask(tmp_path / "a.json", "parse")["0"]["rows_by_iteration"] == expected


def test_times_are_exact(case):
    """And cut to microseconds only on request, as the reference does: inwards, so that short events last -1."""
    path, events = case
    written = json.loads(path.read_text())["traceEvents"]
    first = min((round(1000 * e["ts"]) for e in written), default=0)
    exact = {row["index"]: (row["ts"], row["dur"]) for row in ask(path, "events")}
    assert exact == {e["place"]: (about(us(e["ts"] - first)), about(us(e["dur"]))) for e in events}
    ended = subprocess.run(
        [OPSTROBE, "analyze", "events", "--rounding", "us", "--format", "json", path], capture_output=True
    )
    assert ended.returncode == 0, ended.stderr
    fractional = any(e["ts"] != int(e["ts"]) for e in written)
    cut = {row[1]: (row[2], row[3]) for row in json.loads(ended.stdout)["table"]["rows"]}
    starts = {e["place"]: -(-e["ts"] // 1000) if fractional else us(e["ts"]) for e in events}
    origin = -(-first // 1000) if fractional else us(first)
    for event in events:
        end = (event["ts"] + event["dur"]) // 1000 if fractional else us(event["ts"] + event["dur"])
        start = starts[event["place"]]
        # Which steps and launches belong together depends on the cut times, so rows on their edges may come or go.
        assert cut.get(event["place"], (start - origin, end - start)) == (start - origin, end - start)


@pytest.mark.parametrize("seed", range(5))
def test_forward_and_backward(tmp_path, seed):
    """Arrows from an operator to its backward are kept: those that have both ends."""
    pick, rows, whole = random.Random(seed), [], 0
    for i in range(30):
        ends = pick.choice(["sf", "sf", "s", "f"])
        for ph, tid, ts in (("s", 1, 100 * i), ("f", 2, 5000 + 100 * i)):
            rows.append({"ph": "X", "cat": "cpu_op", "name": f"op {i}", "pid": 1, "tid": tid, "ts": ts, "dur": 50})
            if ph in ends:
                rows.append(
                    {"ph": ph, "cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": 1, "tid": tid, "ts": ts, "bp": "e"}
                )
        whole += ends == "sf"
    pick.shuffle(rows)
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": rows}))
    assert ask(tmp_path / "a.json", "parse")["0"]["fwdbwd_pairs"] == whole > 0


def compare(folder, **args):
    call = [
        OPSTROBE,
        "analyze",
        "trace_diff.compare",
        "--format",
        "json",
        "--args",
        json.dumps({"whole": True, **args}),
    ]
    ended = subprocess.run([*call, folder / "a.json", folder / "b.json"], capture_output=True, timeout=300)
    assert ended.returncode == 0, ended.stderr.decode()
    return {row[0]: row[1:] for row in json.loads(ended.stdout)["table"]["rows"]}


def test_steps_that_are_compared(tmp_path):
    """The first of each trace, those that are named, or all but the last; and how far their steps scatter."""
    pick, sides = random.Random(13), [[], []]
    while any(sum(e["name"].startswith("ProfilerStep") for e in side) < 3 for side in sides):
        sides = [make(pick.randrange(10_000)) for _ in sides]
    for name, side in zip("ab", sides, strict=True):
        write(tmp_path / f"{name}.json", side)

    def step_of(side, event):
        steps = [s for s in side if s["name"].startswith("ProfilerStep")]
        calls = {e["args"]["correlation"]: e for e in side if is_launch(e)}
        host = calls.get(event["args"]["correlation"]) if "stream" in event["args"] else event
        inside = [int(s["name"][13:]) for s in steps if host and s["ts"] <= host["ts"] < s["ts"] + s["dur"]]
        return inside[-1] if inside else None

    for chosen, args in (
        (([0], [0]), {}),
        (([2], [1]), {"control_iteration": 2, "test_iteration": 1}),
        (([0, 1, 2], [1, 2]), {"control_iteration": [0, 1, 2, 1], "test_iteration": [1, 2]}),
        (([0, 1], [0, 1]), {"control_iteration": "all", "test_iteration": "all"}),
    ):
        expected = {}
        for at, (side, steps) in enumerate(zip(sides, chosen, strict=True)):
            for event in side:
                if step_of(side, event) in steps:
                    row = expected.setdefault(event["name"], [0, 0, 0, 0])
                    row[2 * at] += 1
                    row[2 * at + 1] += us(event["dur"])
        found = compare(tmp_path, **args)
        assert {name: row[:4] for name, row in found.items()} == {name: about(row) for name, row in expected.items()}
        for name, row in compare(tmp_path, per_step=True, **args).items():
            times = [[sum(us(e["dur"]) for e in side if e["name"] == name and step_of(side, e) == step) for step in steps]
                     for side, steps in zip(sides, chosen, strict=True)]  # fmt: skip
            control, test = map(statistics.mean, times)
            noise = None
            if min(map(len, times)) > 1:
                noise = 2 * sum(statistics.variance(side) / len(side) for side in times) ** 0.5
            assert row[7:] == [
                about(control),
                about(test),
                about(test - control),
                noise and pytest.approx(noise, abs=1e-5),
            ]


@pytest.mark.parametrize(
    "kernel", ["ncclKernel_AllReduce", "ncclDevKernel_AllReduce_Sum_f32", "ncclDevKernel_SendRecv"]
)
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_stragglers(tmp_path, kernel, steps):
    """By kernels of every NCCL, in step 0 too, and in traces without steps: who comes last to what all leave together."""
    pick, late = random.Random(f"{kernel}{steps}"), collections.Counter()
    arrivals = [[pick.randrange(100, 30_000) for _ in range(4)] for _ in range(max(1, steps - 1))]
    for rank in range(4):
        rows = [{"cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 9, "tid": 9, "ts": 100_000 * i, "dur": 100_000,
                 "args": {}, "place": 0} for i in range(steps)]  # fmt: skip
        for i, times in enumerate(arrivals):
            at, args = 100_000 * i, {"correlation": i + 1}
            rows.append({"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": at + 10, "dur": 10,
                         "args": args, "place": 0})  # fmt: skip
            rows.append({"cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + times[rank],
                         "dur": 50_000 - times[rank], "args": {"stream": 7, "device": 0, **args}, "place": 0})  # fmt: skip
        write(tmp_path / f"rank-{rank}.json", rows)
    for times in arrivals:
        late[times.index(max(times))] += 1
    (found,) = ask(tmp_path, "potential_stragglers", num_candidates=1)
    assert late[found] == max(late.values())


def test_ties_are_ordered(tmp_path):
    """Of equal times the order is that of kinds and of the file, so nothing hangs on how a machine sorts."""
    for seed in range(8):
        events = make(seed)
        for event in events:  # everything at a few moments
            event["ts"] = event["ts"] // 20_000 * 20_000
        write(tmp_path / "a.json", events)
        kept = keep(events)
        points = queue_points(kept)
        found = {
            (r["device"], r["stream"]): r["queue_length_max"] for r in ask(tmp_path / "a.json", "queue_length_summary")
        }
        assert found == {queue: max(length for _, length in series) for queue, series in points.items()}
        texts = set()
        for _ in range(3):
            call = [OPSTROBE, "analyze", "call_graph", "--nodes", "true", tmp_path / "a.json"]
            texts.add(subprocess.run(call, capture_output=True, check=True).stdout)
        assert len(texts) == 1


IDS_OF_RANKS = (
    "discovery parse load events profiler_steps temporal_breakdown gpu_kernel_breakdown.by_type gpu_kernel_breakdown.by_kernel "
    "comm_comp_overlap idle_time_breakdown idle_time_breakdown.interval_stats cuda_kernel_launch_stats queue_length_summary "
    "queue_length_time_series time_blocked_on_full_queue memory_bw_summary memory_bw_time_series user_annotation_breakdown "
    "gpu_kernels_with_user_annotations potential_stragglers cupti_counters roofline nccl_collectives collective_bandwidth "
    "aten_op_kernels_and_delay call_graph frequent_cuda_kernel_sequences module_kernels critical_path key_averages"
).split()
OP = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
CALL = {**OP, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 2, "dur": 1, "args": {"correlation": 1}}
WORK = {
    **OP,
    "cat": "kernel",
    "name": "k",
    "pid": 0,
    "tid": 7,
    "ts": 4,
    "dur": 2.5,
    "args": {"correlation": 1, "stream": 7},
}
BAD_INPUTS = {
    "no events": {"traceEvents": []},
    "a bare array": [OP, CALL, WORK],
    "no GPU": {"traceEvents": [OP]},
    "no host": {"traceEvents": [WORK]},
    "no arguments at all": {"traceEvents": [OP, {**OP, "cat": "user_annotation", "name": "ProfilerStep#1"}]},
    "a launch without kernel": {"traceEvents": [OP, CALL]},
    "a kernel that lasts -1": {"traceEvents": [OP, CALL, {**WORK, "dur": -1}]},
    "all that lasts -1": {"traceEvents": [{**each, "dur": -1} for each in (OP, CALL, WORK)]},
    "steps that are none": {"traceEvents": [OP, CALL, WORK, {**OP, "name": "ProfilerStep#last"}, {**OP, "name": "ProfilerStep"}]},
    "launches nobody knows": {"traceEvents": [OP, {**CALL, "name": "zeLaunch"}, WORK]},
    "MTIA launches": {"traceEvents": [OP, {**CALL, "cat": "mtia_runtime", "name": "runFunction - job_prep_and_submit_for_execution"},
                                      {**WORK, "cat": "mtia_ccp_events"}]},
}  # fmt: skip


@pytest.mark.parametrize("rounding", ["ns", "us"])
@pytest.mark.parametrize("name", BAD_INPUTS)
def test_every_id_returns_a_result_where_the_reference_failed(tmp_path, name, rounding):
    path = tmp_path / "rank-0.json"
    path.write_text(json.dumps(BAD_INPUTS[name]))
    for question in IDS_OF_RANKS:
        call = [OPSTROBE, "analyze", question, "--rounding", rounding, "--format", "json", path]
        ended = subprocess.run(call, capture_output=True, timeout=60)
        assert ended.returncode == 0, (question, ended.stderr)
        text = ended.stdout.decode()
        assert "table" in json.loads(text) or "value" in json.loads(text)
        assert (
            "nan" not in text.lower().replace("name", "") and str(-(2**63)) not in text and str(2**63 - 1) not in text
        )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (json.dumps({"traceEvents": [OP, CALL, WORK]})[:-30], ["aten::mm", "cudaLaunchKernel"]),
        (json.dumps({"traceEvents": [{**OP, "name": "a\nb"}]}).replace("\\n", "\n"), ["a\nb"]),
        (json.dumps({"traceEvents": [{**OP, "name": "??"}]}).replace("??", "\udcff"), None),
    ],
)
def test_readable_files_are_read(tmp_path, text, names):
    """A file that breaks off, raw control characters, invalid UTF-8: reported, and the rest is read."""
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    found = [row["name"] for row in ask(tmp_path / "a.json", "events")]
    assert found == names if names else len(found) == 1
    assert ask(tmp_path / "a.json", "validate")


@pytest.mark.parametrize("text", [None, "", "{", "no JSON"])
def test_invalid_traces_are_refused_at_once(tmp_path, text):
    if text is not None:
        (tmp_path / "a.json").write_text(text)
    for question in IDS_OF_RANKS:
        ended = subprocess.run([OPSTROBE, "analyze", question, tmp_path / "a.json"], capture_output=True, timeout=60)
        assert ended.returncode in (1, 2) and not ended.stdout and b"a.json" in ended.stderr, question


@pytest.mark.parametrize(
    "name",
    ["[param|pytorch.model.alex_net|0|0|0|measure|forward]", "[nul|x]", '"quoted" part', "## forward ##", "[step"],
)
def test_texts_on_the_command_line_are_texts(tmp_path, name):
    """Also those that begin as JSON does: the names of the reference's own samples."""
    rows = [{**OP, "cat": "user_annotation", "name": name, "ts": 0, "dur": 9}, OP, {**OP, "ts": 20}]
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": rows}))
    call = [OPSTROBE, "analyze", "critical_path", "--annotation", name, "--format", "json", tmp_path / "a.json"]
    ended = subprocess.run(call, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["value"]["clipped_events"] == 2


@pytest.mark.parametrize("pattern", ["déjà", 'a "b"', "back\\slash"])
def test_names_are_never_confused(tmp_path, pattern):
    marks = [{**OP, "cat": "gpu_user_annotation", "name": f"{i} {pattern if i == 7 else 'x'}", "dur": 100 - i, "ts": 200 * i}
             for i in range(9)]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": marks}))
    rows = ask(tmp_path / "a.json", "user_annotation_breakdown", num_kernels=2, allowlist_patterns=[pattern, "no such"])
    assert [row["name"] for row in rows] == sorted(["0 x", "1 x", f"7 {pattern}", "others"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["gpu_kernel_breakdown.by_kernel", "--num-kernels", "-7"], "whole number from 0 on, not '-7'"),
        (["key_averages", "--sort-by", "zzz"], "no attribute 'zzz'"),
        (["trace_diff.compare", "--control-iteration", "99"], "the control has no step 99"),
    ],
)
def test_options_without_sense_are_refused(tmp_path, words, reason):
    write(tmp_path / "a.json", make(1))
    traces = [tmp_path / "a.json"] * (2 if words[0].startswith("trace_diff") else 1)
    ended = subprocess.run([OPSTROBE, "analyze", *words, *traces], capture_output=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (2, b"") and reason in ended.stderr.decode()


# --- the shared traces ----------------------------------------------------------------------------------------------------

FOLDER = (
    pathlib.Path(
        os.environ.get("OPSTROBE_TRACES", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "traces")
    )
    / "hta"
)


@pytest.mark.skipif(not FOLDER.exists(), reason=f"no shared traces in {FOLDER}; OPSTROBE_TRACES names their folder")
def test_launch_statistics_of_shared_traces():
    """Triton's and ROCm's launches are found, and a graph's kernels each."""
    for name, rows in {"triton": 1, "amd_mi250": 16, "vllm_decode_graph": 434}.items():
        path = FOLDER / name / "trace.json.gz"
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        kernels = [e for e in events if e.get("cat") in GPU_KINDS]
        assert ask(path, "cuda_kernel_launch_stats")["0"]["rows"] == rows == len(kernels)

# SPDX-License-Identifier: Apache-2.0
"""Gates for continuous integration: counts of two traces, and times of interleaved runs."""

import dataclasses
import itertools
import json
import math
import os
import pty
import random
import subprocess
import sys

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from opstrobe.ci import annotate, counts, intervals, sequential  # noqa: E402


def made(path, *, extra=(), sync=False, regions=("0/0",), copied=64, allocated=512, step_us=1000, steps=3, draw=None):
    """A trace whose steps have the same events; `draw` changes their times."""
    rows = []
    for step in range(steps):
        at = 10_000 * step

        def add(name, ts, cat="cpu_op", tid=1, at=at, **args):
            dur = 10 + (draw.random() if draw else 0)
            rows.append(
                {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": at + ts, "dur": dur, "args": args}
            )

        add(f"ProfilerStep#{step}", 0, "user_annotation")
        rows[-1]["dur"] = step_us
        for i, name in enumerate(["aten::mm", "aten::relu", *extra]):
            add(name, 20 + 20 * i, **{"Call stack": f"train.py({7 + i}): step"})
        for i, region in enumerate(regions):
            add(f"Torch-Compiled Region: {region}", 200 + 20 * i)
        if sync:
            add("cudaStreamSynchronize", 300, "cuda_runtime")
        add("cudaMemcpyAsync", 320, "cuda_runtime", correlation=step + 1)
        add("Memcpy HtoD", 340, "gpu_memcpy", 7, correlation=step + 1, device=0, stream=7, bytes=copied)
        rows.append({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + 400,
                     "args": {"Device Type": 0, "Device Id": -1, "Addr": step + 1, "Bytes": allocated, "Total Allocated": allocated}})  # fmt: skip
    path.write_text(json.dumps({"traceEvents": rows}))
    return path


def gate(*words):
    done = subprocess.run(
        ["opstrobe", "diff", "--gate", "counts", *map(str, words)], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def test_times_do_not_count(tmp_path):
    draw = random.Random(1)
    base, head = (made(tmp_path / f"{name}.json", draw=draw, step_us=900 + draw.randrange(200)) for name in ("a", "b"))
    assert gate(base, head) == (0, "no count differs\n", "")


def test_a_gate_without_a_value_compares_counts(tmp_path):
    base, head = made(tmp_path / "a.json"), made(tmp_path / "b.json", extra=["aten::add"])
    for words in (["--gate", base, head], [base, head, "--gate"], [base, "--gate", head], ["--gate", "--", base, head]):
        done = subprocess.run(["opstrobe", "diff", *map(str, words)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 3 and done.stdout.startswith("regression: operators: 3 -> 4 per step"), words
    done = subprocess.run(
        ["opstrobe", "diff", "--gate", "none", base, head], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2 and "invalid gate 'none'" in done.stderr


def test_one_operator_more_is_found(tmp_path):
    base, head = made(tmp_path / "a.json"), made(tmp_path / "b.json", extra=["aten::add"])
    status, printed, _ = gate(base, head)
    assert status == 3
    assert printed.startswith("regression: operators: 3 -> 4 per step\noperators aten::add: 0 -> 1 per step\n")
    status, printed, _ = gate(head, base)
    assert status == 0 and "operators: 4 -> 3 per step" in printed and "regression" not in printed
    status, printed, _ = gate("--format", "json", base, head)
    found = json.loads(printed)
    assert status == 3 and found["regression"] and found["changes"][1]["name"] == "aten::add"


@pytest.mark.parametrize(
    ("what", "kind", "before", "after"),
    [
        ({"sync": True}, "synchronisations", 0, 1),
        ({"copied": 65}, "copied_bytes", 64, 65),
        ({"allocated": 1024}, "allocated_bytes", 512, 1024),
        ({"regions": ("0/0", "1/0")}, "compiled_regions", 1, 2),
        ({"regions": ("0/1",)}, "recompiles", 0, 1),
    ],
)
def test_each_kind_is_exact(tmp_path, what, kind, before, after):
    found = counts.compare(str(made(tmp_path / "a.json")), str(made(tmp_path / "b.json", **what)))
    sums = {change.kind: (change.base, change.head) for change in found if change.is_regression}
    assert sums[kind] == (before, after)
    assert {*sums} <= {kind, "operators"}


def test_steps_that_differ_are_a_range(tmp_path):
    """A first step that does more does not raise an alarm, nor is another number of steps."""
    base = json.loads(made(tmp_path / "a.json").read_text())
    base["traceEvents"].append(
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 100, "dur": 5}
    )
    (tmp_path / "c.json").write_text(json.dumps(base))
    head = made(tmp_path / "b.json", extra=["aten::add"], steps=5)
    assert counts.compare(str(tmp_path / "c.json"), str(head)) == []


def test_annotations(tmp_path):
    base, head = made(tmp_path / "a.json"), made(tmp_path / "b.json", extra=["aten::add"], sync=True)
    status, printed, _ = gate("--format", "github", base, head)
    assert status == 3 and printed.splitlines() == [
        "::error file=train.py,line=9,title=opstrobe::operators aten::add: 0 -> 1 per step",
        "::error title=opstrobe::synchronisations cudaStreamSynchronize: 0 -> 1 per step",
    ]
    status, printed, _ = gate("--format", "gitlab", base, head)
    first, second = json.loads(printed)
    assert first["location"] == {"path": "train.py", "lines": {"begin": 9}} and first["severity"] == "major"
    assert second["check_name"] == "opstrobe/synchronisations" and first["fingerprint"] != second["fingerprint"]


def test_annotations_are_at_the_added_calls(tmp_path, monkeypatch):
    base, head = made(tmp_path / "a.json", extra=["aten::add"]), made(tmp_path / "b.json", extra=["aten::add"] * 2)
    changes = counts.compare(str(base), str(head))
    assert [(change.file, change.line) for change in changes if change.name] == [("train.py", 10)]
    moved = [dataclasses.replace(change, file=str(tmp_path / "src" / "train.py")) for change in changes]
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert "::error file=src/train.py,line=10," in annotate.text(moved, "github")
    monkeypatch.delenv("GITHUB_WORKSPACE")
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path / "src"))
    (found,) = json.loads(annotate.text(moved, "gitlab"))
    assert found["location"]["path"] == "train.py"
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path / "other"))  # a file outside keeps its path
    (found,) = json.loads(annotate.text(moved, "gitlab"))
    assert found["location"]["path"] == str(tmp_path / "src" / "train.py")


def test_misuse(tmp_path):
    status, _, errors = gate(tmp_path / "none.json", tmp_path / "none.json")
    assert status == 1 and "none.json" in errors
    (tmp_path / "bad.json").write_text("{]")
    assert gate(tmp_path / "bad.json", tmp_path / "bad.json")[0] == 1
    done = subprocess.run(["opstrobe", "ab", "--pairs", "3", "true", "true"], capture_output=True, text=True)
    assert done.returncode == 2 and "fewer pairs decide nothing" in done.stderr


# --- times ------------------------------------------------------------------------------------------------------------


def runs(draw, pairs, slower=0.0):
    """Times on a busy machine: a load that drifts, bursts, and noise; the order within a pair is by chance."""
    base, head, load = [], [], 0.0
    for _ in range(pairs):
        pair = {}
        for name in draw.sample(["base", "head"], 2):
            load = 0.8 * load + abs(draw.gauss(0, 0.03))
            burst = 0.5 if draw.random() < 0.05 else 0
            pair[name] = (1 + load + burst) * (1 + draw.gauss(0, 0.01))
        base.append(pair["base"])
        head.append(pair["head"] * (1 + slower))
    return base, head


def test_no_false_alarm_in_a_thousand_equal_pairs():
    draw = random.Random(11)
    assert sum(intervals.compare(*runs(draw, 15)).lower > 0.01 for _ in range(1000)) == 0
    assert sum(intervals.compare(*runs(draw, 12)).lower > 0 for _ in range(1000)) <= 3


def test_slower_programs_are_found():
    draw = random.Random(12)
    quiet = ([draw.gauss(1, 0.005) for _ in range(15)] for _ in range(200))
    found = [intervals.compare(base, [1.03 * draw.gauss(1, 0.005) for _ in base]) for base in quiet]
    assert all(each.lower > 0.01 and each.lower < 0.03 < each.upper for each in found)
    assert sum(intervals.compare(*runs(draw, 40, slower=0.1)).lower > 0.01 for _ in range(100)) >= 90


def test_interval_of_the_smallest_number_of_pairs():
    found = intervals.compare([1.0] * 11, [1.1] * 11)
    assert (found.lower, found.estimate, found.upper) == pytest.approx((0.1, 0.1, 0.1))
    few = intervals.compare([1.0] * 10, [1.1] * 10)
    assert (few.lower, few.estimate, few.upper) == pytest.approx((-math.inf, 0.1, math.inf))
    mixed = intervals.compare([1.0] * 11, [1.1] * 10 + [0.5])
    assert mixed.lower < 0 < mixed.estimate


def test_limits_of_sums_of_ranks_are_those_of_all_combinations_of_signs():
    for count in (1, 2, 5, 9, 12):
        sums = sorted(
            sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in itertools.product((0, 1), repeat=count)
        )
        for significance in (1 / 2000, 1 / 300, 1 / 40, 0.1):
            limit = intervals._rank_sum_limit(count, significance)
            assert sum(each < limit for each in sums) <= significance * 2**count < sum(each <= limit for each in sums)
    assert intervals._rank_sum_limit(300, 1 / 56000) == 16403


# --- sequential decisions -----------------------------------------------------------------------------------------------


def decide(draw, make, gate=0.01, pairs=300):
    """Adds pairs until a comparison is decided, as `opstrobe ab` does."""
    comparison = sequential.Comparison(gate, pairs)
    for look in comparison.looks:
        while comparison.pairs < look:
            comparison.add(*make(draw))
        decision = comparison.decide()
        if decision.verdict is not sequential.Verdict.UNDECIDED:
            break
    return decision


def steps(noise, slower=0.0):
    def make(draw):
        return tuple(
            {"step": factor * math.exp(draw.gauss(0, noise) * (4 if draw.random() < 0.1 else 1))}
            for factor in (1, 1 + slower)
        )

    return make


def test_looks_are_fixed_by_the_largest_number_of_pairs():
    assert sequential.looks(13) == [13] and sequential.looks(17) == [17] and sequential.looks(18) == [17, 18]
    found = sequential.looks(300)
    assert found[0] == 17 and found[-1] == 300 and len(found) == 12 and found == sorted({*found})


def test_first_look_can_call_a_program_slower():
    """Also with two clocks, which share the rate of false alarms, and few pairs."""
    for pairs in (sequential.PAIRS_MIN, 17, 300, 2000):
        make = {"wall": 1.0, "cpu": 0.9}, {"wall": 1.5, "cpu": 1.35}
        decision = decide(None, lambda _, make=make: make, pairs=pairs)
        assert decision.verdict is sequential.Verdict.SLOWER and decision.pairs == sequential.looks(pairs)[0]


def test_sequential_decisions_keep_their_rates_of_errors():
    """A gate of 0 % is exceeded by one of 2,000 comparisons of equal programs at most, whenever it stops."""
    draw = random.Random(13)
    slower = [decide(draw, steps(0.02), gate=0.0, pairs=40).verdict is sequential.Verdict.SLOWER for _ in range(2000)]
    assert sum(slower) <= 3
    missed = [decide(draw, steps(0.02, 0.0101), pairs=40).verdict is sequential.Verdict.NOT_SLOWER for _ in range(1000)]
    assert sum(missed) <= 15


@pytest.mark.parametrize(("noise", "most"), [(0.002, 30), (0.01, 150), (0.02, 300)])
def test_three_percent_are_found_with_as_many_pairs_as_the_noise_requires(noise, most):
    draw = random.Random(14)
    found = [decide(draw, steps(noise, 0.03)) for _ in range(60)]
    assert all(each.verdict is sequential.Verdict.SLOWER for each in found)
    equal = [decide(draw, steps(noise)) for _ in range(60)]
    assert not any(each.verdict is sequential.Verdict.SLOWER for each in equal)
    assert sum(each.verdict is sequential.Verdict.NOT_SLOWER for each in equal) >= 54
    assert max(each.pairs for each in [*found, *equal]) <= most


def computing(cpu=1.0, wait=0.0, load=0.3, threads=1):
    """A program that computes for `cpu` seconds and waits for `wait`, on a machine with other programs."""

    def run(draw, longer):
        seconds = longer * cpu * math.exp(draw.gauss(0, 0.004))
        queue = max(0.0, draw.gauss(load, load)) * (0 if draw.random() < 0.05 else 1)
        return {"wall": seconds / threads * (1 + queue) + wait, "cpu": seconds}

    return run


def verdict_of(base, head, longer=1.0):
    decision = decide(random.Random(15), lambda draw: (base(draw, 1.0), head(draw, longer)))
    return decision.verdict.value, decision.clock


def test_cpu_time_decides_on_a_busy_machine():
    assert verdict_of(computing(), computing()) == ("not slower", "cpu")
    assert verdict_of(computing(), computing(), 1.03) == ("slower", "cpu")


def test_cpu_time_does_not_hide_waits():
    """Neither a wait that wall-clock time shows, nor one that is too short for it."""
    assert verdict_of(computing(), computing(wait=1.0)) == ("slower", "wall")
    assert verdict_of(computing(), computing(wait=0.03))[0] != "not slower"


def test_cpu_time_of_several_threads_does_not_decide():
    several = computing(cpu=1.02, threads=2, load=0.1)
    assert verdict_of(computing(), several) == ("not slower", "wall")
    assert verdict_of(computing(load=0.01, threads=2), computing(load=0.01, threads=2), 1.03) == ("slower", "wall")


def test_estimate_of_the_pairs_that_are_left():
    comparison = sequential.Comparison(0.01, 300)
    comparison.add({"step": 1.0}, {"step": 1.0})
    assert comparison.pairs_left(None) == 16
    draw = random.Random(16)
    while comparison.pairs < 17:
        comparison.add(*steps(0.02)(draw))
    decision = comparison.decide()
    assert decision.verdict is sequential.Verdict.UNDECIDED
    assert 5 <= comparison.pairs_left(decision) <= 300 - 17


def ab(folder, *words):
    done = subprocess.run(["opstrobe", "ab", *words], capture_output=True, text=True, timeout=300, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def script(folder, name, trace):
    path = folder / name
    path.write_text(f'#!/bin/sh\ngzip -c {trace} > "$OPSTROBE_OUTPUT"\n')
    path.chmod(0o755)


def test_ab_compares_steps_and_counts(tmp_path):
    script(tmp_path, "base.sh", made(tmp_path / "a.json"))
    script(tmp_path, "same.sh", tmp_path / "a.json")
    script(tmp_path, "slow.sh", made(tmp_path / "b.json", step_us=1050))
    script(tmp_path, "more.sh", made(tmp_path / "c.json", extra=["aten::add"]))
    status, printed, errors = ab(tmp_path, "--pairs", "13", "--", "base.sh", "same.sh")
    assert status == 0, errors
    assert printed.startswith(
        "no count differs\nno regression: HEAD takes at most 1 % longer (median step, 13 pairs of runs)\n"
        "  median step of HEAD: 0 % (0 % to 0 %), not slower\n"
    )
    status, printed, _ = ab(tmp_path, "--pairs", "13", "--format", "json", "--", "base.sh", "./slow.sh")
    found = json.loads(printed)
    assert (
        status == 3 and found["slower"] and found["time"]["estimate"] == pytest.approx(0.05) and found["changes"] == []
    )
    status, printed, _ = ab(tmp_path, "--pairs", "13", "--format", "github", "--", "base.sh", "sh more.sh")
    assert (
        status == 3
        and "::error file=train.py" in printed
        and "::notice title=opstrobe::no regression: HEAD takes at most 1 %25 longer" in printed
    )


def test_ab_keeps_commands_from_measuring_the_machine(tmp_path):
    status, _, errors = ab(tmp_path, "--", "true", 'exit "1$OPSTROBE_ROOF"')
    assert status == 1 and "failed with status 10" in errors


def test_ab_says_which_command_failed(tmp_path):
    status, _, errors = ab(tmp_path, "--", "true", "exit 7")
    assert status == 1 and "'exit 7' failed with status 7" in errors


def test_ab_compares_cpu_time(tmp_path):
    """Waiting takes none; work does, whatever the load of the machine."""
    work = "import sys; sum(i * i for i in range(%d))"
    (tmp_path / "base.py").write_text(work % 20_000)
    (tmp_path / "head.py").write_text(work % 2_000_000)
    run = f"{sys.executable} -S -E"
    status, printed, errors = ab(
        tmp_path,
        "--clock",
        "cpu",
        "--pairs",
        "13",
        "--format",
        "json",
        "--",
        f"{run} base.py; sleep 0.2",
        f"{run} head.py",
    )
    assert status == 3, errors
    found = json.loads(printed)
    assert found["slower"] and found["time"]["lower"] > 1 and max(found["clocks"]["cpu"]["base"]) < 0.2
    status, _, errors = ab(tmp_path, "--clock", "sun", "--", "true", "true")
    assert status == 2 and "choose from" in errors and "cpu" in errors


def test_ab_shows_its_progress_on_a_terminal(tmp_path):
    leader, follower = pty.openpty()
    words = ["opstrobe", "ab", "--pairs", "13", "--gate", "1000%", "--", "true", "true"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=follower, timeout=300, cwd=tmp_path)
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.returncode == 0 and shown.endswith("\r\033[K"), shown
    assert "opstrobe ab: 1 of at most 13 pairs, about " in shown and " left\033[K" in shown
    assert ab(tmp_path, *words[2:])[2] == ""


def test_ab_says_what_it_could_not_decide(tmp_path):
    """Noise, or a time that is too short."""
    (tmp_path / "noisy.sh").write_text("sleep 0.0$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')")
    words = ["--pairs", "13", "--clock", "wall", "--", "sh noisy.sh", "sh noisy.sh"]
    status, printed, _ = ab(tmp_path, "--gate", "0%", *words)
    assert status == 4 and printed.startswith(
        "inconclusive after 13 pairs of runs: HEAD may or may not take more than 0 % longer"
    )
    assert printed.rstrip().endswith(", undecided")
    status, printed, _ = ab(tmp_path, "--format", "github", "--gate", "0%", *words)
    assert status == 4 and printed.startswith("::warning title=opstrobe::inconclusive after 13 pairs")
    status, printed, _ = ab(tmp_path, "--format", "gitlab", "--gate", "0%", *words)
    assert status == 4 and [each["severity"] for each in json.loads(printed)] == ["info"]
    status, printed, _ = ab(tmp_path, "--minutes", "1e-6", "--format", "json", "--", "true", "true")
    found = json.loads(printed)
    assert status == 4 and found["pairs"] == 1 and found["time"]["lower"] is None and not found["regression"]
    status, _, errors = ab(tmp_path, "--minutes", "0", "--", "true", "true")
    assert status == 2 and "'0' is not a positive number" in errors

# SPDX-License-Identifier: Apache-2.0
"""`opstrobe prove`: fixes in alternate steps, what they save, and whether results stay the same."""

import json
import random
import subprocess

import pytest

import opstrobe
from opstrobe.proving import plan
from opstrobe.proving.fixes import FIXES
from opstrobe.proving.report import Proof, by_finding

# Each step collects garbage, which takes 20 ms. The second layer has a gradient in every other step; with zeros in the others, its momentum
# goes on. The program sets no seed.
PROGRAM = """
import gc, sys, time
import torch

gc.freeze()  # else a collection visits all of torch
gc.callbacks.append(lambda phase, info: time.sleep(0.01 if info["generation"] == 2 else 0))
first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1, momentum=0.9)
for step in range(70):
    hidden = torch.nn.functional.dropout(first(torch.randn(4, 8)))
    loss = (second(hidden) if step % 2 else hidden).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    gc.collect()
print("arguments", sys.argv[1:])
"""


def prove(tmp_path, program, *words, arguments=()):
    path = tmp_path / "train.py"
    path.write_text(program)
    return subprocess.run(
        ["opstrobe", "prove", *words, str(path), *arguments], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )


def test_a_program_with_a_planted_cause(tmp_path):
    fixes = ["gc-off", "flush-denormals", "set-to-none", "no-grad"]
    words = [word for fix in fixes for word in ("--fix", fix)]
    done = prove(tmp_path, PROGRAM, *words, "-o", "proof.json.gz", "--format", "json", arguments=["--fix", "x"])
    assert done.returncode == 3, done.stderr  # a fix changes results
    assert "arguments ['--fix', 'x']\n" in done.stderr  # once: further runs print nothing
    assert done.stderr.count("arguments") == 1
    found = json.loads(done.stdout)
    collected, flushed, none, refused = found["fixes"]
    assert [fix["fix"] for fix in found["fixes"]] == fixes and found["steps"] == 70
    # The cause is all of the step but for a millisecond.
    assert collected["outcome"] == "measured" and collected["results"] == "equal"
    assert 0 < collected["gain_lower_percent"] < collected["gain_percent"] < 100 and collected["gain_percent"] > 50
    # No number is denormal.
    assert flushed["results"] == "equal" and abs(flushed["gain_percent"]) < collected["gain_percent"] / 2
    assert none["outcome"] == "measured" and none["results"] == "changed"
    assert refused["outcome"] == "refused" and "gradients" in refused["reason"] and refused["gain_percent"] is None
    # What was measured is in the trace, and with it on every surface.
    findings = {each["id"]: each for each in opstrobe.read(tmp_path / "proof.json.gz").advise()["findings"]}
    measured = findings["gc-pauses"]["measured"]
    assert measured["fix"] == "gc-off" and measured["results"] == "equal"
    assert measured["gain_percent"] == pytest.approx(collected["gain_percent"])
    text = subprocess.run(
        ["opstrobe", "advise", "proof.json.gz"], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    words = " ".join(text.stdout.split())
    assert "measured: saves " in words and "results equal [gc-off]" in words


def test_a_program_that_fails(tmp_path):
    done = prove(tmp_path, "print('before')\nraise SystemExit(7)", "--fix", "gc-off")
    assert done.returncode == 7 and done.stdout == "before\n"
    assert "failed with status 7, so nothing was measured" in done.stderr
    done = prove(tmp_path, "raise ValueError('mine')", "--fix", "gc-off")
    assert (
        done.returncode == 1
        and "ValueError: mine" in done.stderr
        and "proving" not in done.stderr.split("opstrobe prove:")[0]
    )


def test_a_program_without_steps(tmp_path):
    done = prove(tmp_path, "print('no torch')", "--fix", "gc-off")
    assert done.returncode == 1 and done.stdout == "no torch\n"
    assert "the program has 0 steps, and 3 are needed" in done.stderr


def test_usage(tmp_path):
    done = prove(tmp_path, "", "--fix", "nothing")
    assert done.returncode == 2 and "'nothing' is not a fix (choose from anomaly-off, " in done.stderr
    assert prove(tmp_path, "", "--pairs", "10").returncode == 2
    assert subprocess.run(["opstrobe", "prove"], capture_output=True, timeout=60).returncode == 2
    listed = subprocess.run(
        ["opstrobe", "prove", "--list", "--format", "json"], capture_output=True, text=True, timeout=60
    )
    assert [fix["fix"] for fix in json.loads(listed.stdout)] == sorted(FIXES)


def test_fixes_belong_to_rules():
    listed = subprocess.run(
        ["opstrobe", "advise", "--list-rules", "--format", "json"], capture_output=True, text=True, timeout=60
    )
    rules = {row[0] for row in json.loads(listed.stdout)["table"]["rows"]}
    assert {finding for fix in FIXES.values() for finding in fix.findings} <= rules


def simulated(draw, effect):
    """Pairs of times of a busy machine, where one in ten takes up to twice as long."""

    def time_of(mean):
        return mean * draw.lognormvariate(0, 0.05) * (draw.uniform(1, 2) if draw.random() < 0.1 else 1)

    return [time_of(1.0) for _ in range(plan.PAIRS)], [time_of(1 - effect) for _ in range(plan.PAIRS)]


@pytest.mark.parametrize("effect", [-0.5, -0.01, 0.0, 0.01, 0.3, 0.6])
def test_the_sign_is_right(effect):
    draw = random.Random(16)
    expected = (effect > 0) - (effect < 0)
    signs = [plan.gain_of(*simulated(draw, effect)).sign for _ in range(200)]
    assert sum(sign not in (0, expected) for sign in signs) <= 2
    if abs(effect) != 0.01:  # less than the noise: it need not be seen
        assert signs.count(expected) >= 198


def test_gain():
    gain = plan.gain_of([0.010] * 15, [0.005] * 15)
    assert gain.percent == pytest.approx(50) and gain.ms_per_step == pytest.approx(5)
    assert gain.lower_percent == pytest.approx(50) and gain.upper_percent == pytest.approx(50) and gain.sign == 1


def test_blocks():
    assert plan.blocks_for(51, 1.0, 30) == plan.Blocks(11, 2) and plan.blocks_for(50, 1.0, 30) is None
    assert plan.blocks_for(70, 1.0, 30) == plan.Blocks(15, 2)
    assert plan.blocks_for(127, 1.0, 30) == plan.Blocks(30, 2)
    assert plan.blocks_for(10_000, 0.01, 30) == plan.Blocks(30, 5)
    assert plan.blocks_for(1_000_000, 1e-9, 15).steps <= plan.STEPS_MAX


def values(*numbers):
    return [[(hash(number), number)] for number in numbers]


def test_results():
    reference = values(4.0, 3.0, 2.0, 1.0)

    def judge(found, *, repeats=reference[:2], exact=True):
        return plan.judge(reference, found, repeats=repeats, first_on=2, close_until=3, exact=exact).kind

    assert judge(reference) == "equal"
    assert judge(values(4.0, 3.0, 2.0, 1.1)) == "changed"
    # Rounding may differ in the first steps with the fix, and grow later.
    close = values(4.0, 3.0, 2.00001, 1.1)
    assert judge(close) == "changed" and judge(close, exact=False) == "close"
    assert judge(values(4.0, 3.0, 2.1, 1.1), exact=False) == "changed"
    assert judge(values(4.0, 3.0, float("nan"), 1.0), exact=False) == "changed"
    assert judge([*values(4.0, 3.0), [], *values(1.0)]) == "changed"
    assert judge(values(4.0, 3.5, 2.0, 1.0), repeats=values(4.0, 3.5)) == "unknown"
    assert plan.judge([[], []], [[], []], repeats=[], first_on=0, close_until=1, exact=True).kind == "unknown"


def test_the_best_fix_that_keeps_results_is_shown():
    def proof(fix, saved, kind):
        gain = plan.Gain(saved, saved - 1, saved + 1, saved, 15)
        return Proof(fix, "measured", gain=gain, results=plan.Sameness(kind, "", 9))

    proofs = [
        proof("fused-optimizer", 9.0, "changed"),
        proof("foreach-optimizer", 2.0, "close"),
        Proof("gc-off", "refused", "why"),
    ]
    assert by_finding(proofs)["optimizer-loop"]["fix"] == "foreach-optimizer"
    assert "gc-pauses" not in by_finding(proofs)


@pytest.mark.parametrize(
    "damage", [{}, {"gain_percent": "many"}, {"results": 7}, {"fix": "<b>"}, {"gain_lower_percent": None}]
)
def test_metadata_of_another_program(tmp_path, damage):
    """Whatever a trace says was measured, advice shows all of it or nothing."""
    rows = []
    for step in range(6):
        rows.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{step}",
                "pid": 1,
                "tid": 1,
                "ts": 1000 * step,
                "dur": 900,
            }
        )
        rows.append(
            {"ph": "X", "cat": "cpu_op", "name": "aten::item", "pid": 1, "tid": 1, "ts": 1000 * step + 5, "dur": 500}
        )
    proof = {"fix": "gc-off", "gain_percent": 60.5, "gain_lower_percent": 55.0, "gain_upper_percent": 65.0,
             "gain_ms_per_step": 0.6, "results": "equal", **damage}  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"proof": {"x": [], "synchronising-calls": proof}, "traceEvents": rows}))
    advice = opstrobe.read(path).advise()
    (finding,) = advice["findings"]
    assert finding["id"] == "synchronising-calls"
    assert finding["measured"] == (None if damage else proof)
    assert ("(measured: 60.5 %, 55.0 % to 65.0 %)" in advice._repr_html_()) == (not damage)

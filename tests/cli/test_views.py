# SPDX-License-Identifier: Apache-2.0
"""opstrobe views and diff: every figure of the shared traces' reference files, by Opstrobe's rules and by those of the reference.

The shared traces are next to the repository, or where OPSTROBE_TRACES says. The reference is the TensorBoard plugin with its
flaws; where ours is another figure on purpose, the flaw is named: by the file itself (`reference_bugs`), or in FLAWS here.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest
from figures import Comparison
from installed import OPSTROBE

FOLDER = (
    pathlib.Path(
        os.environ.get("OPSTROBE_TRACES", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "traces")
    )
    / "kineto-tb"
)
FILES = sorted(FOLDER.glob("**/*.expected.json"))
shared = pytest.mark.skipif(not FILES, reason=f"no shared traces in {FOLDER}; OPSTROBE_TRACES names their folder")

# Times of modern traces went through 64-bit floats in the reference: that many microseconds for each that is added.
FLOAT_US = 0.01

# Where ours differs on purpose, by the file's path and the figure's.
FLAWS = [
    # The time beyond the step that the plugin adds, in its step and the averages.
    ("time counted twice", r"breakdown-gpu-saturated|datapipe|distributed-nccl/worker1", r"steps\..*"),
    ("steps on device rows", r"steps-gpu-annotations", r"steps\..*"),
    # Launches linked by containment: what they launch belongs to the operator, their time does not.
    ("ids that are correlations", r"link-external-is-correlation", r"operators.*|kernels_by_op.*|tensor_cores.*|gpus.*tensor_core.*|.*recomm.*"),
    ("launches by the driver's calls", r"link-variants", r"operators.*|steps.*|tensor_cores.*|recommendations.*|kernels_by_op.*"),
    # Kernels launched outside of operators are in the table by operator, and may be among its first 30 rows.
    ("kernels outside operators", r"samples-202[01]|link-variants", r"kernels_by_op\.(distinct|calls|top.*)"),
    # An operation's time is that of its kernels.
    ("host time of collectives", r"distributed-nccl|rule-communication", r"communication\.ops\[.*\]\.total_latency"),
    # A kernel of NCCL outside of any collective communicates, too.
    ("NCCL outside a collective", r"runtime-launch-multipe-kernels", r"(steps|recommendations).*"),
    ("memory paired across devices", r"memory-(mixed|view)", r"memory\.events.*"),
    # The peak is that of what lives; the allocator frees 256 bytes that it did not count. Its own peak is compared in the curve.
    ("peak", r"memory-mixed", r"memory\.peaks\.GPU0"),
    ("overlapping operators are lost", r"broken-overlapping-ops", r"operators.*"),
    ("unfinished last steps", r"user-annotation-has|memory-curve-no-step", r"steps.*|communication.*|recommendations.*"),
    # The plugin sees one step where the trace marks none.
    ("steps derived from the optimizer", r"resnet50_autograd_api", r"steps\..*|gpus.*"),
    # The plugin stopped and listed no views and no modules; `right` of the file is checked below.
    ("stops at an empty step", r"stop-empty-step", r"views"),
    ("stops at overlapping modules", r"stop-module-overlap", r"views|modules"),
    # Nodes for several calls, or for none, have other names.
    ("names of nodes", r"^diff/", r"(root|children\[\d+\])\.(left|right)\.name"),
]  # fmt: skip

# What `--rules tensorboard` does not reproduce: failures of the plugin.
NOT_REPRODUCED = [
    ("memory paired across devices", r"memory-(mixed|view)", r"memory\.(events.*|peaks\.GPU0)"),
    ("negative length of a step", r"user-annotation-has|memory-curve-no-step", r"steps.*|communication.*|recommendations.*"),
    ("stops", r"stop-(empty-step|module-overlap)", r"views|modules"),
]  # fmt: skip
RULES = {"opstrobe": FLAWS, "tensorboard": NOT_REPRODUCED}


def output(*words):
    ended = subprocess.run([OPSTROBE, *words], capture_output=True, timeout=300)
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout)


def flaw_of(file, figure, flaws):
    for flaw, files, figures in flaws:
        if re.search(files, file) and re.fullmatch(figures, figure):
            return flaw
    return None


def compare(path, found, figures_added=1):
    expected = json.loads(path.read_text())
    is_integer = not ("recorded" in str(path) or "under-one" in str(path))
    comparison = Comparison(absolute=1e-9 if is_integer else FLOAT_US * figures_added)
    comparison.walk(expected, found)
    return expected, comparison


def kind_of(path):
    return json.loads(path.read_text())["schema"].split("/")[0]


def of_kind(kind):
    return [path for path in FILES if kind_of(path) == kind]


def check(path, comparison, record, rules):
    """Every figure that differs must be a flaw's."""
    name = str(path.relative_to(FOLDER))
    unexplained = [wrong for wrong in comparison.wrong if not flaw_of(name, wrong[0], RULES[rules])]
    record("agreed", comparison.agreed)
    record("figures", comparison.total)
    record("deliberate", len(comparison.wrong) - len(unexplained))
    assert not unexplained, f"{name}: {len(unexplained)} of {comparison.total}: {unexplained[:10]}"


@pytest.fixture(scope="module")
def counts():
    """Sums what the tests below count, and prints it at the end."""
    sums = {"agreed": 0, "figures": 0, "deliberate": 0}
    yield lambda key, value: sums.__setitem__(key, sums[key] + value)
    print(f"\nfigures: {sums['agreed']} agreed, of {sums['figures']}; {sums['deliberate']} differ on purpose")


@shared
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("path", of_kind("kineto-tb-expected"), ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_figure_of_a_trace(path, counts, rules):
    found = output(
        "views", "--rules", rules, "--format", "json", str(path).replace(".expected.json", ".pt.trace.json.gz")
    )
    expected = json.loads(path.read_text())
    if "steps" in expected:  # else the plugin failed on the file, and there are none
        check(path, compare(path, found)[1], counts, rules)
    if rules == "tensorboard":
        return
    for bug in expected.get("reference_bugs", []):
        check_bug(bug, found)
    if "right" in expected:
        check_right(expected["right"], found)


def rows(found, table):
    return {row["name"]: row for row in (found[table] or {}).get("rows", [])}


def check_bug(bug, found):
    """The value that a reference file calls right, where it is a figure."""
    where, right = bug["where"], bug["right"]
    row = re.match(r"operators\.rows\[(.*)\]\.(\w+)", where)
    if row and isinstance(right, int):
        assert rows(found, "operators")[row[1]][row[2]] == right
    elif where.startswith("steps.rows[0].runtime ("):
        assert found["steps"]["rows"][0]["runtime"] == right
    elif where.startswith("steps.rows[*]"):
        for step in found["steps"]["rows"]:
            assert [step["runtime"], step["cpu_exec"], step["other"]] == right
    elif where == "steps.names":
        assert found["steps"]["names"] == right
    elif where.startswith("steps.average.") and isinstance(right, int):
        assert found["steps"]["average"][where.split(".")[-1]] == right
    elif where == "communication.ops total_latency":
        assert found["communication"]["ops"][0]["total_latency"] == right
    elif where == "memory.events":
        (mm,) = [row for row in found["memory"]["events"]["CPU"]["largest"] if row["operator"] == "aten::mm"]
        assert (mm["size"], mm["alloc_ts"], mm["free_ts"]) == (100, 1010, 1500)
        (mm,) = [row for row in found["memory"]["events"]["GPU0"]["largest"] if row["operator"] == "aten::mm"]
        assert (mm["size"], mm["alloc_ts"], mm["free_ts"]) == (300, 1020, None)
    elif "must be listed too" in str(right):
        names = {row["name"]: row["operator"] for row in found["kernels_by_op"]["top"]}
        assert names["custom_kernel"] == "my_block"
        assert names["no_external_id"] == "(no operator)"
    elif "4 calls, 360 us" in str(right):
        (row,) = found["kernels_by_op"]["top"]
        assert (row["name"], row["operator"], row["calls"], row["total"]) == ("mul_kernel", "aten::mul", 4, 360)
    elif right == "no step (only memory records)":
        assert found["steps"]["rows"] == []
    elif where.startswith("operators.rows") and "aten::relu" in str(right):
        assert (
            rows(found, "operators")["aten::relu"]["calls"],
            rows(found, "operators")["aten::relu"]["host_total"],
        ) == (1, 100)
    elif str(right).startswith("one step over all events"):
        (step,) = found["steps"]["rows"]
        assert (step["total"], step["communication"]) == (71, 71)
    elif right == "kernel time only":
        latencies = {row["name"]: row["total_latency"] for row in found["communication"]["ops"]}
        kernels = {row["name"].rsplit("_", 1)[-1]: row["total"] for row in found["kernels"]["rows"]}
        assert latencies["nccl:broadcast"] == kernels["broadcast"]


def check_right(right, found):
    """What a file says of which the plugin made nothing."""
    for step, ours in zip(right.get("steps", []), found["steps"]["rows"], strict=False):
        assert {key: ours[key] for key in step} == step
    for kernel in right.get("kernels", []):
        assert {key: rows(found, "kernels")[kernel["name"]][key] for key in kernel} == kernel
    for key, value in right.get("operators", {}).items():
        name, _, figure = key.rpartition(".")
        assert (rows(found, "operators")[name][figure] if name else found["operators"][figure]) == value
    if "modules" in right:
        (net,) = found["modules"]
        (linear,) = net["children"]
        assert (net["name"], net["occurrences"], net["host_total"]) == ("Net_0", 1, 1000)
        assert (linear["name"], linear["occurrences"], linear["host_total"]) == ("Linear_0", 1, 300)
    if right.get("note", "").startswith("must load: 4 operators"):
        assert (found["operators"]["calls"], found["kernels"]["calls"]) == (4, 1)


@shared
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("path", of_kind("kineto-tb-distributed-expected"), ids=lambda path: path.parent.name)
def test_every_figure_of_a_run(path, counts, rules):
    found = output("views", "--rules", rules, "--format", "json", str(path.parent))
    # Averages and sums over all collectives of all steps.
    expected, comparison = compare(path, found["distributed"], 10)
    check(path, comparison, counts, rules)
    assert found["distributed"]["workers"] == expected["workers"]
    assert found["distributed"]["span"] == expected["span"]


@shared
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("path", of_kind("kineto-tb-diff-expected"), ids=lambda path: path.name)
def test_every_figure_of_a_diff(path, counts, rules):
    expected = json.loads(path.read_text())
    words = ("diff", "--rules", rules, "--format", "json")
    found = output(*words, str(FOLDER / expected["base"]), str(FOLDER / expected["exp"]))
    check(path, compare(path, found, 10)[1], counts, rules)


def test_traces_are_there():
    """Says so when there is nothing to compare with."""
    if not FILES:
        pytest.skip(f"no shared traces in {FOLDER}; OPSTROBE_TRACES names their folder")
    assert len(of_kind("kineto-tb-expected")) > 50

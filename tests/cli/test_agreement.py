# SPDX-License-Identifier: Apache-2.0
"""views, analyze, kernels, lines and table say the same of one trace: its steps, what communicates, and which operator
launched what. By hand-made traces; steps and communication also by the shared ones that lie beside the repository."""

import json
import os
import pathlib

import pytest

FOLDER = pathlib.Path(
    os.environ.get("OPSTROBE_TRACES", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "traces")
)
SHARED = sorted(path for path in FOLDER.glob("**/*.json.gz") if path.name != "et.json.gz")
# The filter for steps leaves out work whose launch the trace does not have, as the reference does.
WITHOUT_LAUNCHES = ("negative_queue_length",)
# A step that takes no time has no row that is in it.
EMPTY_STEPS = ("stop-empty-step",)


def row(name, ts, dur, cat="cpu_op", tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def step(name, ts, dur):
    return row(name, ts, dur, "user_annotation")


def call(name, ts, correlation, cat="cuda_runtime", **args):
    return row(name, ts, 5, cat, correlation=correlation, **args)


def kernel(name, ts, dur, correlation, cat="kernel"):
    return {**row(name, ts, dur, cat, 7, correlation=correlation, device=0, stream=7), "pid": 0}


def launched(name, operator, ts, correlation, dur=40, how="cudaLaunchKernel"):
    return [row(operator, ts, 20), call(how, ts + 5, correlation), kernel(name, 10 * ts, dur, correlation)]


ALL_REDUCE = "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)"
# name: rows, steps, communication in microseconds, operators by kernel
TRACES = {
    "steps with a space": (
        [step("ProfilerStep #1", 0, 100), step("ProfilerStep #2", 100, 100), *launched("k", "aten::a", 10, 1)],
        ["1", "2"], 0, {"k": "aten::a"},
    ),
    "no steps": ([step("ProfilerStep#last", 0, 100), *launched("k", "aten::a", 10, 1)], [], 0, {"k": "aten::a"}),
    "communication": (
        [
            step("ProfilerStep#1", 0, 200),
            *launched(ALL_REDUCE, "vllm::all_reduce", 10, 7, 60),
            *launched("gemm", "aten::mm", 50, 8),
        ],
        ["1"], 60, {ALL_REDUCE: "vllm::all_reduce", "gemm": "aten::mm"},
    ),
    "two calls of a correlation": (
        [
            row("aten::a", 0, 40), call("cudaLaunchKernel", 10, 7), row("aten::b", 50, 40),
            call("cuLaunchKernel", 60, 7, "cuda_driver"), kernel("k", 100, 60, 7),
        ],
        [], 0, {"k": "aten::a"},
    ),
    "makers": (
        [
            *launched("hip", "aten::a", 10, 1, how="hipModuleLaunchKernel"),
            *launched("driver", "aten::b", 50, 2, how="cuLaunchKernelEx"),
            *launched("graph", "aten::c", 90, 3, how="cudaGraphLaunch"),
        ],
        [], 0, {"hip": "aten::a", "driver": "aten::b", "graph": "aten::c"},
    ),
    "id instead of time": (
        [
            row("outer", 0, 50, **{"External id": 5}), row("inner", 10, 30, **{"External id": 6}),
            call("cudaLaunchKernel", 20, 7, **{"External id": 5}), kernel("k", 100, 60, 7),
        ],
        [], 0, {"k": "outer"},
    ),
}  # fmt: skip


@pytest.fixture
def ask(opstrobe):
    def call_command(*words):
        ended = opstrobe(*words)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return call_command


def steps_of_views(found):
    if found["steps"]["from"] != "marks":
        return []  # analyses count marked steps alone; a trace without any is one step, which is called 0
    return sorted({int(name) for name in found["steps"]["names"] + found["steps"]["left_out_names"]})


def steps_of_analyze(ask, path):
    found = ask("analyze", "profiler_steps", "--format", "json", "--include-last-profiler-step", "true", path)
    return sorted(found["value"])


def communication_us(ask, path):
    table = ask(
        "analyze", "gpu_kernel_breakdown.by_kernel", "--format", "json", "--num-kernels", "1000000",
        "--duration-ratio", "1", "--include-last-profiler-step", "true", path,
    )["table"]  # fmt: skip
    rows = [dict(zip(table["columns"], values, strict=True)) for values in table["rows"]]
    return sum(row["sum (us)"] for row in rows if row["kernel_type"] == "COMMUNICATION")


@pytest.mark.parametrize("name", TRACES)
def test_hand_made(ask, tmp_path, name):
    rows, steps, communication, operators = TRACES[name]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    found = ask("views", "--format", "json", "t.json")
    assert steps_of_views(found) == [int(step) for step in steps]
    assert steps_of_analyze(ask, "t.json") == [int(step) for step in steps]
    assert communication_us(ask, "t.json") == communication
    assert sum(step["communication"] for step in found["steps"]["rows"]) == communication
    assert {row["name"]: row["operator"] for row in found["kernels_by_op"]["top"]} == operators
    table = ask("kernels", "--by-operator", "--format", "json", "t.json")
    table = table.get("table", table)
    columns = [dict(zip(table["columns"], values, strict=True)) for values in table["rows"]]
    assert {row["name"]: row["operator"] for row in columns} == operators
    # The table of operators and the views sum the same work.
    table = ask("table", "--format", "json", "t.json")["table"]
    times = {row["name"]: row["self_device_time_total"] for row in
             (dict(zip(table["columns"], values, strict=True)) for values in table["rows"])}  # fmt: skip
    for row in found["operators"]["rows"]:
        assert times[row["name"]] == row["device_self"], row["name"]


def test_the_step_left_out_is_said(ask, opstrobe, tmp_path):
    rows = [step(f"ProfilerStep#{i}", 100 * i, 100) for i in (3, 4)] + launched("k", "aten::a", 310, 1)
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    id = "gpu_kernel_breakdown.by_kernel"
    assert ask("analyze", id, "--format", "json", "t.json")["left_out_step"] == 4
    assert "without step 4" in opstrobe("analyze", id, "t.json").stdout
    keep = ("--include-last-profiler-step", "true")
    assert "left_out_step" not in ask("analyze", id, "--format", "json", *keep, "t.json")
    assert "without step" not in opstrobe("analyze", id, *keep, "t.json").stdout
    assert "without step" not in opstrobe("analyze", id, "--format", "csv", "t.json").stdout


def test_a_device_without_kernels_has_no_rows(opstrobe, tmp_path):
    """MTIA has jobs instead of kernels. They are device time in torch's table, and no share of a GPU anywhere."""
    job = {**row("fc", 60, 80, "mtia_ccp_events", 102, correlation=1, stream=102), "pid": 9}
    call_name = "runFunction - job_prep_and_submit_for_execution"
    rows = [step("ProfilerStep#1", 0, 200), row("aten::mm", 10, 100), call(call_name, 20, 1, "mtia_runtime"), job]
    about = {"distributedInfo": {"backend": "mtia:hccl", "rank": 0}, "deviceProperties": [{"id": 0, "name": "MTIA"}]}
    (tmp_path / "t.json").write_text(json.dumps({**about, "traceEvents": rows}))
    text = opstrobe("views", "t.json").stdout
    parts = [line.split("  ")[1] for line in text.splitlines() if line.startswith("  ") and " % " in line]
    assert parts == ["launch calls", "operators", "other"]
    assert "device 0" not in text.lower() and "kernels" not in text
    assert "(no rows)" in opstrobe("kernels", "t.json").stdout
    table = opstrobe("table", "t.json").stdout
    assert "Self MTIA" in table and "CUDA" not in table and "Self MTIA time total: 80.000us" in table


@pytest.mark.skipif(not SHARED, reason=f"no shared traces in {FOLDER}; OPSTROBE_TRACES names their folder")
@pytest.mark.parametrize("path", SHARED, ids=lambda path: str(path.relative_to(FOLDER)))
def test_shared(ask, path):
    found = ask("views", "--format", "json", str(path))
    if path.parent.name not in EMPTY_STEPS:
        assert steps_of_views(found) == steps_of_analyze(ask, str(path))
    communication = communication_us(ask, str(path))
    in_steps = sum(step["communication"] for step in found["steps"]["rows"])
    host = sum(step["communication_calls"] for step in found["steps"]["rows"])
    # What runs at once on two streams counts once in steps; what is in no step, not at all. Without a device, steps
    # have the collectives of the host, of which the analyses of devices know nothing.
    if communication and path.parent.name not in WITHOUT_LAUNCHES:
        assert in_steps - host <= communication + 0.5


def test_derived_steps_are_the_same_everywhere(ask, opstrobe, tmp_path):
    """A trace of torch.profiler without a schedule: steps end with the optimizer that steps first."""
    rows = [row("aten::uniform_", 0, 90)]
    for i in range(3):
        rows += [
            row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100 + 100 * i, 5, "user_annotation"),
            row("aten::mm", 110 + 100 * i, 60),
            row("Optimizer.step#SGD.step", 180 + 100 * i, 10, "user_annotation"),
            row("Optimizer.step#Adam.step", 192 + 100 * i, 4, "user_annotation"),
        ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    about = ask("info", "--format", "json", "t.json")["value"]
    assert (about["steps"], about["steps_from"], about["first_step"], about["last_step"]) == (3, "optimizer", 0, 2)
    found = ask("views", "--format", "json", "t.json")["steps"]
    assert (found["from"], found["names"]) == ("optimizer", ["0", "1", "2"])
    assert [step["total"] for step in found["rows"]] == [90, 100, 100]
    assert ask("lines", "--format", "json", "t.json")["steps"] == 3
    assert opstrobe("cut", "--steps", "1", "t.json", "cut.json").returncode == 0
    names = [event["name"] for event in json.loads((tmp_path / "cut.json").read_text())["traceEvents"]]
    assert names.count("aten::mm") == 1
    assert opstrobe("cut", "--steps", "3", "t.json", "none.json").returncode != 0

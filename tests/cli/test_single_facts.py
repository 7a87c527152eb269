# SPDX-License-Identifier: Apache-2.0
"""Small traces, each with one fact that every surface must show. test_agreement.py compares the surfaces with each other."""

import json
import os
import pathlib

import pytest

FOLDER = pathlib.Path(
    os.environ.get("OPSTROBE_TRACES", pathlib.Path(__file__).resolve().parents[3] / "shared" / "traces")
)
REPRO = FOLDER.parent / "repro"
pytestmark = pytest.mark.skipif(not REPRO.is_dir(), reason=f"no small traces in {REPRO}")


@pytest.fixture
def shown(opstrobe):
    """What a command prints of a trace, as JSON."""

    def show(name, *words):
        ended = opstrobe(*words, "--format", "json", str(REPRO / f"{name}.json"))
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return show


def rows(table):
    table = table.get("table", table)
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def gains(found):
    return {finding["id"]: finding["predicted_gain_ms_per_step"] or 0 for finding in found["findings"]}


def test_a_device_that_waits_for_earlier_work_does_not_wait_for_the_host(shown):
    assert all(gain <= 0.1 for gain in gains(shown("queued-before-the-gap", "advise")).values())


def test_a_compiled_region_is_not_a_python_function(shown):
    found = shown("compiled-region", "advise")
    assert "python-autograd-function" not in gains(found)
    assert all((finding["predicted_gain_percent"] or 0) < 10 for finding in found["findings"])


def test_kernels_without_a_launch_are_not_work_of_the_step(shown):
    found = shown("kernels-without-launch", "advise")
    assert found["base"]["average_step_ms"] == 7
    assert all((finding["predicted_gain_percent"] or 0) <= 100 for finding in found["findings"])
    assert sum(row["calls"] for row in rows(shown("kernels-without-launch", "kernels"))) == 120


def test_unfused_attention_comes_first(shown):
    found = shown("gpu-attention", "advise")
    assert found["findings"][0]["id"] == "unfused-attention"
    assert gains(found)["unfused-attention"] > 50


@pytest.mark.parametrize("name", ["collective-annotation", "collective-cpu-op"])
def test_collectives_have_the_time_and_bytes_of_their_kernels(shown, name):
    (collective,) = shown(name, "views")["communication"]["ops"]
    assert (collective["total_latency"], collective["total_bytes"]) == (24000, 48 << 20)
    assert sum(row["total_us"] for row in rows(shown(name, "kernels", "--by-category"))) == 24000
    assert sum(row["sum"] for row in rows(shown(name, "analyze", "gpu_kernel_breakdown.by_type"))) == 24000


def test_exposed_communication_comes_first(shown):
    found = shown("exposed-allreduce", "advise")["findings"][0]
    assert found["id"] == "communication-bound" and found["predicted_gain_percent"] == pytest.approx(62.7, abs=0.1)
    assert "2.59 GB/s" in found["evidence"]


def test_the_peak_has_the_memory_from_before_the_recording(shown):
    held = rows(shown("memory-before-recording", "memory"))
    assert [row["bytes"] for row in held if row["held_by"] == "all"] == [216 << 20]


def test_a_truncated_trace_has_no_gains_and_diagnostics(shown):
    for command in ("views", "kernels", "advise", "lines", "modules", "memory", "table", "info"):
        assert shown("truncated", command)["diagnostics"][0]["kind"] == "truncated"
    assert not any(gains(shown("truncated", "advise")).values())


def test_kernels_of_a_graph_belong_to_the_line_that_launches_it(shown):
    (file,) = shown("graph-kernels", "lines")["files"]
    assert [(line["line"], line["device_us"]) for line in file["lines"]] == [(42, 2970)]
    assert {row["operator"] for row in rows(shown("graph-kernels", "kernels", "--by-operator"))} == {
        "train.py(42): replay"
    }
    path = shown("graph-kernels", "analyze", "critical_path")["value"]
    assert path["path_duration_by_bound"]["gpu_compute_bound"] == [2970, 3]


def test_a_module_launch_of_hip_is_a_launch(shown):
    assert [row["operator"] for row in rows(shown("hip-module-launch", "kernels", "--by-operator"))] == ["aten::mm"]
    path = shown("hip-module-launch", "analyze", "critical_path")["value"]
    assert path["path_duration_by_bound"]["gpu_compute_bound"][0] == 990


def test_reductions_across_devices_are_communication(shown):
    categories = {
        row["category"]: row["total_us"] for row in rows(shown("communication-kernel", "kernels", "--by-category"))
    }
    assert categories == {"communication": 60, "matrix_product": 40}
    assert shown("communication-kernel", "views")["steps"]["average"]["communication"] == 60


def test_a_shared_correlation_has_one_operator(shown):
    assert [row["operator"] for row in rows(shown("shared-correlation", "kernels", "--by-operator"))] == ["aten::a"]


def test_steps_with_a_space_are_steps(shown):
    assert shown("step-grammar", "views")["steps"]["names"] == ["1", "2"]

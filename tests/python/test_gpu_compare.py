# SPDX-License-Identifier: Apache-2.0
"""The comparison of two profilers' traces of a GPU, which tests/gpu/run.sh makes where there is one, on traces made up."""

import importlib.util
import json
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "gpu" / "compare.py"
_spec = importlib.util.spec_from_file_location("gpu_compare", SCRIPT)
compare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(compare)


def trace(kernels):
    rows = []
    for i, (name, duration, launched) in enumerate(kernels, 1):
        args = {"correlation": i}
        rows.append({"ph": "X", "cat": "kernel", "name": name, "ts": 100 * i, "dur": duration, "args": args})
        if launched:
            rows.append(
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 90 * i, "dur": 5, "args": args}
            )
    return rows


def test_the_same_within_a_hundredth_is_the_same():
    theirs = trace([("gemm", 100.0, True), ("gemm", 102.0, True), ("tiny", 2.0, True)])
    ours = trace([("gemm", 100.5, True), ("gemm", 101.9, True), ("tiny", 2.04, True)])
    assert compare.differences(theirs, ours) == []


def test_each_difference_is_named():
    theirs = trace([("gemm", 100.0, True), ("relu", 10.0, True), ("gone", 1.0, True)])
    ours = trace([("gemm", 102.0, True), ("relu", 10.0, True), ("relu", 10.0, False), ("new", 1.0, True)])
    assert compare.differences(theirs, ours) == [
        "gemm: 100.000 us theirs, 102.000 us ours",
        "gone: only theirs, 1 times",
        "new: only ours, 1 times",
        "relu: 1 times theirs, 2 times ours",
        "relu: no launch",
    ]


def test_the_script_compares_files(tmp_path):
    for name, duration in (("a", 100), ("b", 100), ("c", 200)):
        (tmp_path / name).write_text(json.dumps({"traceEvents": trace([("gemm", duration, True)])}))
    same = subprocess.run([sys.executable, SCRIPT, tmp_path / "a", tmp_path / "b"], capture_output=True, text=True)
    assert (same.returncode, same.stdout) == (0, "the same\n")
    other = subprocess.run([sys.executable, SCRIPT, tmp_path / "a", tmp_path / "c"], capture_output=True, text=True)
    assert (other.returncode, other.stdout) == (1, "gemm: 100.000 us theirs, 200.000 us ours\n")

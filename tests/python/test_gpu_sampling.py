# SPDX-License-Identifier: Apache-2.0
"""Whether sampled counters agree with kernels, which tests/gpu/run.sh asks where there is a GPU, on rows made up."""

import importlib.util
import pathlib

import pytest

_spec = importlib.util.spec_from_file_location(
    "gpu_sampling", pathlib.Path(__file__).resolve().parents[1] / "gpu" / "sampling.py"
)
sampling = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sampling)


def rows(kernels=200, late_us=0, every_us=1000):
    """Half a second without work, 200 kernels of a millisecond, half a second; samples late by that much."""
    found = [{"ph": "X", "cat": "kernel", "name": "mm", "ts": 5e5 + 1000 * i, "dur": 990.0} for i in range(kernels)]
    for i in range(0, 1_200_000, every_us):
        value = 97.5 if 5e5 <= i < 7e5 else 0.25
        for name in sampling.COUNTERS:
            found.append(
                {"ph": "C", "name": name, "ts": i + late_us, "pid": "GPU 0 Counters", "args": {"value": value}}
            )
    return found


def test_samples_where_the_kernels_are_agree(capsys):
    assert sampling.findings(rows()) == []
    assert capsys.readouterr().out == (
        "SM Active (%): 97.5 in the work, 0.2 outside, 1200 samples\nDRAM BW (%): 97.5 in the work, 0.2 outside, 1200 samples\n"
    )


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (rows(kernels=3), "3 kernels of 200 that were launched"),
        (rows(late_us=150_000), "SM Active (%): not where the kernels are"),
        (rows(late_us=10_000_000), "SM Active (%): 0 samples of some 190 in the work, 1200 outside"),
        (rows(every_us=2000), "SM Active (%): 95 samples of some 190 in the work, 495 outside"),
    ],
    ids=["kernels are missing", "another clock", "an unrelated clock", "samples are missing"],
)
def test_what_does_not_agree_is_named(made, text):
    assert sampling.findings(made)[0] == text

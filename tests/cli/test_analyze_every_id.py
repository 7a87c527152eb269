# SPDX-License-Identifier: Apache-2.0
"""opstrobe analyze: every id answers on every shared set, and options are what --help says they are.

test_analyze.py compares what the reference's files have; here is asked what they leave out."""

import json
import re
import subprocess

import pytest
from installed import OPSTROBE
from test_analyze import FOLDER, SETS, entries_of, known_ids, rank_files, shared

# Analyses of one run; for a large set only these run.
SPECIFIED = {
    "discovery", "parse", "load", "profiler_steps", "temporal_breakdown", "gpu_kernel_breakdown.by_type",
    "gpu_kernel_breakdown.by_kernel", "comm_comp_overlap", "idle_time_breakdown", "idle_time_breakdown.interval_stats",
    "cuda_kernel_launch_stats", "queue_length_summary", "queue_length_time_series", "time_blocked_on_full_queue",
    "memory_bw_summary", "memory_bw_time_series", "user_annotation_breakdown", "gpu_kernels_with_user_annotations",
    "potential_stragglers", "cupti_counters", "call_graph", "frequent_cuda_kernel_sequences", "aten_op_kernels_and_delay",
    "critical_path", "nccl_collectives",
}  # fmt: skip
OTHERS = {"execution_trace", "memory_timeline", "trace_diff.iterations", "trace_diff.compare", "trace_diff.ops_diff"}
WRITERS = {"trace_with_counters"}
LARGE_BYTES = 500_000  # compressed


def ask(analysis, *words):
    ended = subprocess.run(
        [OPSTROBE, "analyze", analysis, "--format", "json", *words], capture_output=True, timeout=300
    )
    assert ended.returncode == 0, f"{analysis} {words}: {ended.stderr.decode()}"
    return json.loads(ended.stdout)


def files_of(folder):
    document = json.loads((folder / "expected.json").read_text())
    return rank_files(folder, document) or rank_files(folder, document, next(iter(document.get("also", {})), None))


@shared
@pytest.mark.parametrize(
    "folder", [path for path in SETS if path.name != "memory_timeline"], ids=lambda path: path.name
)
def test_every_id_returns_a_result(folder):
    assert SPECIFIED | OTHERS <= known_ids()
    files = files_of(folder)
    asked = {entry.id for entry in entries_of(folder)}
    is_large = sum((FOLDER / file).stat().st_size for file in files) > LARGE_BYTES
    for analysis in sorted((SPECIFIED if is_large else known_ids() - OTHERS - WRITERS) - asked):
        answer = ask(analysis, *files)
        assert answer.keys() - {"left_out_step", "empty"} in ({"value"}, {"table"}), analysis
        if "table" in answer:
            assert all(len(row) == len(answer["table"]["columns"]) for row in answer["table"]["rows"]), analysis


def options_of(analysis):
    """Names and defaults as --help prints them, before what it says of all ids."""
    text = subprocess.run([OPSTROBE, "analyze", analysis, "--help"], capture_output=True, text=True, check=True).stdout
    assert text.startswith(f"{analysis}: ")
    found = re.findall(r"^  --(\S+) .*\n +\(default: (.*)\)$", text.partition("usage:")[0], re.MULTILINE)
    return {name.replace("-", "_"): value for name, value in found}


@shared
@pytest.mark.parametrize("analysis", sorted(SPECIFIED | {"events", "module_kernels", "roofline", "key_averages"}))
def test_defaults_are_those_that_help_prints(analysis):
    """Given one by one as well as left out. A value of another type is refused with the option's name."""
    path = FOLDER / "event_sync_multi_stream" / "trace.json.gz"
    options = options_of(analysis)
    given = {name: json.loads(value) for name, value in options.items()}
    assert ask(analysis, "--args", json.dumps(given), path) == ask(analysis, path)
    for name, value in given.items():
        if value is None or (analysis.endswith("by_type") and name in ("num_kernels", "duration_ratio")):
            continue
        wrong = json.dumps({name: {"a": 1}})
        ended = subprocess.run([OPSTROBE, "analyze", analysis, "--args", wrong, path], capture_output=True, text=True)
        assert ended.returncode == 2 and f"'{name}'" in ended.stderr, (name, ended.stderr)

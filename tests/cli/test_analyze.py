# SPDX-License-Identifier: Apache-2.0
"""opstrobe analyze: every figure of the shared traces' reference files.

The shared traces are next to the repository, or where OPSTROBE_TRACES says. The reference is Holistic Trace Analysis with its
wrong results; where ours is another figure on purpose, FLAWS names the flaw, and what ours is then is
checked against a plain oracle in test_analyze_flaws.py.
"""

import collections
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess

import pytest
from installed import OPSTROBE

FOLDER = (
    pathlib.Path(
        os.environ.get("OPSTROBE_TRACES", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "traces")
    )
    / "hta"
)
SETS = sorted(path.parent for path in FOLDER.glob("*/expected.json"))
shared = pytest.mark.skipif(not SETS, reason=f"no shared traces in {FOLDER}; OPSTROBE_TRACES names their folder")

# Where ours differs on purpose: flaw, set, "mode id args", figure.
FLAWS = [
    # The file's name says 70, and the reference does not look there.
    ("1 discovery", r"large_integer", r"us discovery ", r"value\.0"),
    # Sums of exact times cut to whole microseconds; absolute times that 64-bit floats do not hold.
    ("1", r".*", r"ns gpu_kernel_breakdown.by_type .*", r"table\[\d\]\.(sum|percentage)"),
    ("1", r"ns_resolution", r"us (temporal_b|gpu_kernel|user_annotation_b|idle|cuda_kernel).*", r".*"),
    ("2", r".*", r"\w+ gpu_kernel_breakdown.by_kernel .*\"num_kernels\": 10,.*", r".*"),
    ("3", r"simple_add|event_sync_multi_stream", r"us temporal_breakdown ", r".*"),
    # A sum of delays, each cut to a float.
    ("none", r"nccl_args", r"ns cuda_kernel_launch_stats .*", r"value\.0\.launch_delay\.sum"),
    # Rounded to two decimals, one way or the other.
    ("none", r"(?!ns_res).*", r"ns idle_time_breakdown.interval_stats .*", r"table\[\d+\]\.(m..|std|\d+%)"),
    # Overlapping kernels, and event 0 as the launch of what has none.
    (
        "4",
        r"b200_vllm_eager|mtia_train|trace_diff_test|negative_queue_length|dlrm_8rank|ns_resolution",
        r"\w+ idle_time_breakdown.*",
        r"table\[\d+\]\..*",
    ),
    (
        "5",
        r"amd_mi250|b200_vllm_eager|h100_bert_small|mi_normalization|negative_queue_length|trace_diff_test|triton|"
        r"vllm_decode_graph",
        r"\w+ cuda_kernel_launch_stats .*",
        r"value\.\d+\..*",
    ),
    ("6", r"trace_diff_test|vllm_decode_graph|negative_queue_length", r"\w+ (queue_length|time_blocked).*", r".*"),
    ("10", r"mtia_train|trace_diff_\w+", r"\w+ time_blocked_on_full_queue .*", r"table\.length"),
    ("17", r"trace_diff_test", r"us memory_bw_summary .*", r"table\[0\]\..*"),
    # What has no partner is taken for event 0's.
    ("4", r"legacy_async_gpu", r"us queue_length.*", r".*"),
    ("4", r"legacy_async_gpu", r"us parse ", r"value\.1\.index_correlation\..*"),
    ("4", r"triton", r"\w+ parse ", r"value\.0\.rows_by_iteration\.1"),
    ("7", r"amd_mi250|mi_normalization|vllm_decode_graph", r"\w+ parse ", r"value\.0\.rows_by_iteration\..*"),
    ("9", r".*", r"\w+ parse ", r"value\.\d+\.fwdbwd_pairs"),
    # Kernels of ROCm's stream 0 have launches, too.
    ("7", r"amd_mi250|mi_normalization|vllm_decode_graph", r"\w+ call_graph ", r"value\.0\..*"),
    ("7", r"amd_mi250", r"\w+ frequent_cuda_kernel_sequences .*ProfilerStep.*", r"table\.rows"),
    # Rows that overlap in part, see test_analyze_graph.py.
    ("16", r".*", r"\w+ call_graph ", r"value\.\d+\.(depth_hist_cpu\.\d+|cpu_rows_with_kernels)"),
    ("16", r"negative_queue_length", r"us frequent_cuda_kernel_sequences .*ProfilerStep.*", r"table\[\d\]\..*"),
    # Ranges on a device are not operators.
    ("14", r"h100_bert_small", r"ns frequent_cuda_kernel_sequences .*ProfilerStep.*", r"table\.rows"),
    # Kernels that start at once on two streams.
    ("15", r"trace_diff_test", r"us frequent_cuda_kernel_sequences .*ProfilerStep.*", r"table\[3\]\.pattern"),
    # Operators of other threads.
    ("7 any thread", r"mtia_train", r"\w+ aten_op_kernels_and_delay .*", r"value\.0(\[6\])?\..*"),
    # Starts and ends that 64-bit floats do not hold.
    ("1", r"ns_resolution", r"us critical_path .*", r"value\.(?!path_weight).*"),
    ("1", r"ns_resolution", r"ns critical_path .*", r"value\.(negative_weight_edges|edges_by_type\..*launch_delay)"),
    # A fill that is not asynchronous is launched, too; a driver's launch has the device; a graph's launch counts as one.
    ("6", r"mi_normalization", r"\w+ (queue_length|critical_path).*", r".*"),
    ("5", r"triton", r"\w+ (parse|load) .*", r"value\.(0\.)?device_type"),
    ("5", r"vllm_decode_graph", r"\w+ critical_path .*", r"value\..*"),
    # All kernels of a graph's launch are on the path, not its last alone.
    ("5", r"negative_queue_length|trace_diff_test", r"us critical_path .*", r"value\..*"),
    # A mix that lasts no time: where one ends as the other begins.
    ("15", r"param_resnet", r"us gpu_kernel_breakdown.by_type .*", r"table(\.length|\[2\]\..*)"),
]

# Sets whose absolute, fractional times went through 64-bit floats in the reference: microseconds an event.
FLOAT_US = 0.5


@dataclasses.dataclass
class Entry:
    """One question and the reference's answer."""

    set: str
    mode: str
    files: tuple
    expected: dict

    @property
    def id(self):
        return self.expected["id"]

    @property
    def question(self):
        args = json.dumps(self.expected["args"]) if self.expected["args"] else ""
        return f"{self.mode} {self.id} {args}"

    def __str__(self):
        return f"{self.set} {self.question}"


def rank_files(folder, document, name=None):
    if name:  # "trace_diff_control" is control/, "execution_trace_kineto" the trace next to the execution trace
        side = folder / name.rsplit("_", 1)[-1]
        return tuple(sorted(str(path) for path in (side if side.is_dir() else folder).glob("[rt]*.json.gz")))
    files = document.get("rank_files") or {}
    return tuple(str(folder / path) for path in files.values())


def extra_files(folder, entry, files):
    """Files that some questions read in addition to, or instead of, the traces."""
    if entry["id"].startswith("trace_diff."):
        return (str(folder / "control"), str(folder / "test"))
    if entry["id"] == "memory_timeline":
        return (str(folder / "memory_timeline.raw.gz"),)
    if entry["id"] == "execution_trace":
        return (str(folder / "trace.json.gz"), str(folder / "et.json.gz"))
    return files


def entries_of(folder):
    document = json.loads((folder / "expected.json").read_text())
    runs = [(None, document["modes"]), *document.get("also", {}).items()]
    for name, modes in runs:
        files = rank_files(folder, document, name)
        for mode, entries in modes.items():
            for entry in entries:
                yield Entry(name or folder.name, mode, extra_files(folder, entry, files), entry)


def known_ids():
    listed = subprocess.run([OPSTROBE, "analyze", "--list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


# What has no answer in the reference because the trace does not have what the options name.
REFUSALS = ("no event's name contains", "invalid instance_id")


def ask(entry, *words):
    rounding = ["--rounding", "us"] if entry.mode == "us" else []
    call = [OPSTROBE, "analyze", entry.id, "--format", "json", "--args", json.dumps(entry.expected["args"])]
    # Two traces and other files are read without rules.
    rules = [] if entry.id.startswith(("trace_diff.", "memory_timeline", "execution_trace")) else ["--rules", "hta"]
    ended = subprocess.run([*call, *rounding, *rules, *words, *entry.files], capture_output=True, timeout=300)
    message = ended.stderr.decode()
    if entry.expected["status"] != "ok" and any(refusal in message for refusal in REFUSALS):
        assert ended.returncode == 2, f"{entry}: {message}"
        return {"value": None}
    assert ended.returncode == 0, f"{entry}: {message}"
    return json.loads(ended.stdout)


def shortened(text):
    """Long texts as the reference files have them (24)."""
    for separator in ("|", " -> "):
        if separator in text:
            break
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"prefix": text[:200], "elements": len(text.split(separator)), "sha256": digest}


class Comparison:
    def __init__(self, entry):
        self.entry = entry
        self.agreed = 0
        self.wrong = []  # (path, expected, found)
        self.absolute = 1e-9 if entry.mode == "us" else 0.03
        self.absolute_float = entry.set == "ns_resolution"

    def figure(self, path, expected, found):
        if self.same(path, expected, found):
            self.agreed += 1
        else:
            self.wrong.append((path, expected, found))

    def same(self, path, expected, found):
        numbers = (int, float)
        if (
            isinstance(expected, dict)
            and expected.keys() == {"prefix", "elements", "sha256"}
            and isinstance(found, str)
        ):
            return expected == shortened(found)
        if isinstance(expected, bool) or not isinstance(expected, numbers) or not isinstance(found, numbers):
            return expected == found
        allowed = max(self.absolute, 6e-9 * abs(expected))
        if self.entry.mode == "us" and not self.absolute_float and isinstance(expected, int) and isinstance(found, int):
            return expected == found or (abs(expected) > 1e9 and abs(expected - found) <= 2e-9 * abs(expected))
        if self.absolute_float:
            allowed = max(allowed, FLOAT_US, 5e-3 * abs(expected))
        return abs(expected - found) <= allowed

    def walk(self, expected, found, path=""):
        if isinstance(expected, dict) and "columns" in expected and isinstance(expected.get("rows"), list):
            self.table(expected, found, path)
        elif isinstance(expected, dict) and isinstance(found, dict):
            for key, value in expected.items():
                self.walk(value, found.get(key, "missing"), f"{path}.{key}")
        elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
            for i, (one, other) in enumerate(zip(expected, found, strict=True)):
                self.walk(one, other, f"{path}[{i}]")
        else:
            self.figure(path, expected, found)

    def table(self, expected, found, path):
        """By column name; rows in any order where names are equal."""
        if not expected["rows"]:
            self.figure(f"{path}.rows", 0, len(found.get("rows", [])))
            return
        if "total_rows" in expected:
            total = found.get("total_rows", len(found.get("rows", [])))
            self.figure(f"{path}.total_rows", expected["total_rows"], total)
        self.figure(f"{path}.length", len(expected["rows"]), len(found.get("rows", [])))
        rows = [dict(zip(found["columns"], row, strict=True)) for row in found.get("rows", [])]
        for i, values in enumerate(expected["rows"]):
            row = dict(zip(expected["columns"], values, strict=True))
            ours = self.partner(row, rows)
            for column, value in row.items():
                self.figure(f"{path}[{i}].{column}", value, ours.get(column, "missing"))

    @staticmethod
    def partner(row, rows):
        """Takes the row with the same texts, and of those the one with most figures in common."""
        keys = [key for key, value in row.items() if isinstance(value, str) or key in ("rank", "stream")]
        same = [other for other in rows if all(other.get(key) == row[key] for key in keys)]
        if not same:
            return {}
        best = max(same, key=lambda other: sum(other.get(key) == value for key, value in row.items()))
        rows.remove(best)
        return best


def compare(entry, found):
    comparison = Comparison(entry)
    expected = entry.expected
    if expected["status"] == "ok":
        kind = "table" if "table" in expected else "value"
        comparison.walk(expected[kind], found.get(kind, found.get("value")), kind)
    elif expected["status"] == "none":
        table = found.get("table")
        comparison.figure(
            "none", True, found.get("value", 1) in (None, {}, []) or (table is not None and not table["rows"])
        )
    return comparison


def flaw_of(entry, figure):
    for flaw, sets, ids, figures in FLAWS:
        if re.fullmatch(sets, entry.set) and re.fullmatch(ids, entry.question) and re.fullmatch(figures, figure):
            return flaw
    return None


COUNTS = collections.defaultdict(collections.Counter)


@pytest.fixture(scope="module", autouse=True)
def print_counts():
    yield
    for name, counts in sorted(COUNTS.items()):
        print(
            f"\n{name}: {counts['agreed']} figures agreed, of {counts['figures']}; "
            f"{counts['deliberate']} differ on purpose",
            end="",
        )
        print(f"; not built: {counts['missing']} entries" if counts["missing"] else "", end="")
    print()


@shared
@pytest.mark.parametrize("folder", SETS, ids=lambda path: path.name)
def test_every_figure_of_a_set(folder):
    known = known_ids()
    unexplained = []
    for entry in entries_of(folder):
        counts = COUNTS[entry.id]
        if entry.id not in known:
            counts["missing"] += 1
            continue
        comparison = compare(entry, ask(entry))
        wrong = [figure for figure in comparison.wrong if not flaw_of(entry, figure[0])]
        counts["agreed"] += comparison.agreed
        counts["figures"] += comparison.agreed + len(comparison.wrong)
        counts["deliberate"] += len(comparison.wrong) - len(wrong)
        if wrong:
            unexplained.append((str(entry), len(wrong), wrong[:4]))
    assert not unexplained, "\n".join(map(str, unexplained))


@shared
def test_every_id_is_built():
    asked = {entry.id for folder in SETS for entry in entries_of(folder)}
    missing = asked - known_ids()
    if missing:
        pytest.xfail(f"not built: {', '.join(sorted(missing))}")

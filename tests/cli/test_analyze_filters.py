# SPDX-License-Identifier: Apache-2.0
"""Filters on made-up runs, compared with the rows that a simple program selects."""

import json
import random
import re

import pytest

NAMES = ["aten::mm", "aten::bmm", "aten::add_", "linear"]
STEPS = 4


def rows_of(seed):
    """Steps of nested operators, which start kernels and copies; times are whole microseconds, and no two the same."""
    draw = random.Random(seed)
    rows, correlation = [], 0
    for step in range(STEPS):
        at = 10_000 * step
        rows.append({"cat": "user_annotation", "name": f"ProfilerStep#{step + 5}", "ts": at, "dur": 9000, "tid": 1})
        for i in range(draw.randrange(3, 7)):
            start, size = at + 10 + 1000 * i, draw.randrange(300, 900)
            rows.append({"cat": "cpu_op", "name": draw.choice(NAMES), "ts": start, "dur": size, "tid": 1 + i % 2})
            rows.append(
                {"cat": "cpu_op", "name": "aten::view", "ts": start + 10, "dur": draw.choice([0, 20]), "tid": 1 + i % 2}
            )
            correlation += 1
            rows.append(
                {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 50, "dur": 10, "tid": 1 + i % 2,
                 "args": {"correlation": correlation}}
            )  # fmt: skip
            name = draw.choice(["gemm", "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pinned)"])
            rows.append(
                {"cat": "kernel" if name == "gemm" else "gpu_memcpy", "name": name, "ts": start + 300, "dur": 100, "pid": 0,
                 "tid": 7, "args": {"correlation": correlation, "stream": 7}}
            )  # fmt: skip
    return [{"ph": "X", "pid": 1, **row} for row in rows]


def plain(rows, where, last=None):
    """The indexes of the rows that the filter leaves."""
    host = {row["args"]["correlation"]: i for i, row in enumerate(rows) if row["cat"] == "cuda_runtime"}
    steps = {i: int(row["name"][13:]) for i, row in enumerate(rows) if row["name"].startswith("ProfilerStep")}

    def launch(row):
        return rows[host[row["args"]["correlation"]]] if on_device(row) else row

    def on_device(row):
        return row["cat"] in ("kernel", "gpu_memcpy")

    def end(row):
        return row["ts"] + row["dur"]

    def step_of(row):
        inside = [number for i, number in steps.items() if rows[i]["ts"] <= launch(row)["ts"] < end(rows[i])]
        return inside[0] if inside else None

    def depth(row):
        around = [r for r in rows if r["tid"] == row["tid"] and r is not row and not on_device(r)]
        return sum(r["ts"] <= row["ts"] and end(row) <= end(r) for r in around)

    last = last or max(rows[i]["ts"] for i in steps)
    kept = [i for i, row in enumerate(rows) if launch(row)["ts"] < last]
    for filter in where if isinstance(where, list) else [where]:
        anchor = None
        for place in {"under", "after", "before"} & set(filter):
            found = sorted((i for i in kept if rows[i]["name"] == filter[place]), key=lambda i: rows[i]["ts"])
            at = filter.get("occurrence", 0)
            anchor = rows[found[at]] if -len(found) <= at < len(found) else None
        checks = {
            "iterations": lambda row, value: step_of(row) in value,
            "iteration_positions": lambda row, value: step_of(row) in [sorted(steps.values())[at] for at in value],
            "first_iteration": lambda row, value: not value or step_of(row) == min(steps.values()),
            "time_range": lambda row, value: value[0] <= row["ts"] and end(row) <= value[1],
            "name": lambda row, value: re.match(value, row["name"]),
            "categories": lambda row, value: row["cat"] in value,
            "streams": lambda row, value: (7 if on_device(row) else -1) in value,
            "non_zero_duration": lambda row, value: row["dur"] > 0,
            "gpu_kernels": lambda row, value: row["cat"] == "kernel",
            "cpu_operators": lambda row, value: row["cat"] == "cpu_op",
            "memcpy": lambda row, value: row["name"].startswith("Memcpy " + value),
            "depth": lambda row, value: not on_device(row) and value[0] <= depth(row) <= value[1],
            "under": lambda row, value: row["ts"] >= anchor["ts"] and end(row) <= end(anchor),
            "after": lambda row, value: row["ts"] >= end(anchor),
            "before": lambda row, value: end(row) <= anchor["ts"],
        }

        def chosen(row, filter=filter, anchor=anchor, checks=checks):
            placed = {"under", "after", "before"} & set(filter)
            if placed and (anchor is None or row["tid"] != anchor["tid"]):
                return False
            return all(checks[key](row, value) for key, value in filter.items() if key in checks)

        taken = {i for i in kept if chosen(rows[i])}
        if filter.get("with_kernels"):
            taken |= {i for i in kept if on_device(rows[i]) and host[rows[i]["args"]["correlation"]] in taken}
        kept = [i for i in kept if i in taken]
    return sorted(kept)


FILTERS = [
    {},
    {"iterations": [6]},
    {"iterations": [5, 7, 99]},
    {"iteration_positions": [1]},
    {"first_iteration": True},
    {"time_range": [1000, 12500]},
    {"name": "aten::(mm|bmm)$"},
    {"name": "mm"},
    {"categories": ["kernel", "cpu_op"]},
    {"streams": [7]},
    {"non_zero_duration": True, "cpu_operators": True},
    {"gpu_kernels": True, "iterations": [5]},
    {"memcpy": "HtoD"},
    {"under": "linear"},
    {"under": "linear", "occurrence": -1, "with_kernels": True},
    {"after": "aten::mm", "occurrence": 1},
    {"before": "aten::add_", "occurrence": 2},
    {"before": "no such name"},
    {"depth": [1, 1]},
    [{"first_iteration": True}, {"under": "ProfilerStep#5", "with_kernels": True}, {"after": "aten::view"}],
    [{"under": "ProfilerStep#6"}, {"depth": [1, 2], "name": "aten"}],
]


@pytest.mark.parametrize("where", FILTERS, ids=lambda where: re.sub(r"[^\w]+", "_", json.dumps(where)).strip("_")[:60])
def test_filters(opstrobe, tmp_path, where):
    for seed in range(3):
        rows = rows_of(seed)
        (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))
        process = opstrobe("analyze", "events", "--format", "json", "--where", json.dumps(where), "trace.json")
        assert process.returncode == 0, process.stderr
        table = json.loads(process.stdout)["table"]
        at = table["columns"].index("index")
        assert sorted(row[at] for row in table["rows"]) == plain(rows, where)


class Text(str):
    """A text with the methods that expressions have, with Python's regular expressions."""

    __slots__ = ()

    @property
    def str(self):
        return self

    def contains(self, pattern):
        return re.search(pattern, self) is not None

    def match(self, pattern):
        return re.match(pattern, self) is not None


QUERIES = [
    "dur > 100",
    "dur > 100 and ts < 20000 or not stream == -1",
    "500 <= dur < 800 and cat == 'cpu_op'",
    "name.str.contains('mm|add_$') and iteration in [5, 7]",
    "name.match('aten') and not name.contains('view')",
    "name.startswith('Memcpy') or name.endswith('e')",
    "'DtoH' in name and end - ts == dur",
    '"DtoH" in name',
    "name in ['gemm', 'linear'] and tid != 2",
    "correlation % 3 == 1 and index // 2 * 2 == index",
    "(ts + dur) / 2 > 15000 and -dur < -350.5",
    "index_correlation > 0 and stream == 7",
    "external_id > 3 and group_size == 0",
    "external_id == -1 or sequence >= 10",
    "collective_name == '' and cat not in ['kernel', 'gpu_memcpy']",
]


def columns_of(rows, i):
    row = rows[i]
    kind = {
        "correlation": row.get("args", {}).get("correlation", -1),
        "cat": Text(row["cat"]),
        "name": Text(row["name"]),
    }
    calls = [
        k for k, other in enumerate(rows) if k != i and other.get("args", {}).get("correlation") == kind["correlation"]
    ]
    steps = [r for r in rows if r["name"].startswith("ProfilerStep")]
    begin = rows[calls[0]]["ts"] if row["cat"] in ("kernel", "gpu_memcpy") else row["ts"]
    step = [int(r["name"][13:]) for r in steps if r["ts"] <= begin < r["ts"] + r["dur"]]
    return {
        **kind, "index": i, "ts": row["ts"], "dur": row["dur"], "end": row["ts"] + row["dur"], "tid": row["tid"],
        "stream": row.get("args", {}).get("stream", -1), "index_correlation": (calls or [-1])[0],
        "iteration": (step or [-1])[0], "external_id": row.get("args", {}).get("External id", -1), "group_size": 0,
        "sequence": row.get("args", {}).get("Sequence number", float("nan")), "collective_name": "",
    }  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_free_query(opstrobe, tmp_path, query):
    """Compared with Python's own eval, whose expressions these are."""
    rows = rows_of(4)
    for i, row in enumerate(rows):
        if row["cat"] == "cpu_op" and i % 3:
            row["args"] = {"External id": i % 7, "Sequence number": i}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))
    words = ["events", "--format", "json", "--include-last-profiler-step", "true", "trace.json"]
    kept = plain(rows, {}, last=float("inf"))
    wanted = [i for i in kept if eval(query, {}, columns_of(rows, i))]
    assert 0 < len(wanted) < len(kept)
    for where in (query, json.dumps(query), json.dumps([{"query": query}])):
        process = opstrobe("analyze", *words, "--where", where)
        assert process.returncode == 0, process.stderr
        table = json.loads(process.stdout)["table"]
        assert sorted(row[1] for row in table["rows"]) == wanted


def test_filter_and_where(opstrobe, tmp_path):
    """Of collective operations: those of all steps, until a filter takes some away."""
    rows = rows_of(0)
    for i, row in enumerate(rows):
        if row["name"] == "gemm" or row["name"] == "cudaLaunchKernel":
            row["args"] |= {"Collective name": "allreduce", "dtype": "Float", "Group size": 2, "In msg nelems": i}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))

    def ask(question, *words):
        process = opstrobe("analyze", question, "--format", "json", *words, "trace.json")
        assert process.returncode == 0, process.stderr
        answer = json.loads(process.stdout)
        table = answer["table"] if "table" in answer else answer["value"]["0"]
        return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]

    works = [i for i, row in enumerate(rows) if row["name"] == "gemm"]
    calls = [i for i, row in enumerate(rows) if row["name"] == "cudaLaunchKernel"]
    late = [i for i in works if rows[i]["ts"] > 15000]
    assert late and len(late) < len(works)
    for words, wanted in (
        ([], works),
        (["--filter", "stream == -1"], calls),
        (["--where", "ts > 15000 - 10"], late),  # times count from the first event, at 0
        (["--where", "ts > 15000 - 10", "--filter", "in_msg_nelems == " + str(late[0])], late[:1]),
    ):
        (row,) = ask("nccl_collectives", *words)
        assert (row["count"], row["in_msg_nelems"]) == (len(wanted), sum(wanted))
    (row,) = ask("collective_bandwidth")
    assert row["count"] == len(works)
    (row,) = ask("collective_bandwidth", "--where", "ts > 15000 - 10")
    assert row["count"] == len(late)


def test_filters_hold_for_every_analysis_of_ranks(opstrobe, tmp_path):
    rows = rows_of(0)
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))
    where = {"iterations": [6]}
    process = opstrobe("analyze", "load", "--where", json.dumps(where), "--format", "json", "trace.json")
    assert json.loads(process.stdout)["value"]["0"]["rows"] == len(plain(rows, where))
    where = {"gpu_kernels": True}
    busy = sum(rows[i]["dur"] for i in plain(rows, where))
    process = opstrobe("analyze", "temporal_breakdown", "--where", json.dumps(where), "--format", "json", "trace.json")
    table = json.loads(process.stdout)["table"]
    assert table["rows"][0][table["columns"].index("compute_time(us)")] == busy


def step_of(rows, i):
    return columns_of(rows, i)["iteration"]


@pytest.mark.parametrize(
    "where",
    [
        "dur > 350",
        "ts < 12000 and stream == 7",
        {"name": "aten::"},
        {"time_range": [0, 12500]},
        {"iteration_positions": [0, 1], "gpu_kernels": True},
        {"first_iteration": True},
        {"under": "linear", "with_kernels": True},
        [{"iterations": [5, 6]}, {"query": "name != 'aten::view'"}],
        {"name": "no such name"},
    ],
    ids=lambda where: re.sub(r"[^\w]+", "_", json.dumps(where)).strip("_"),
)
def test_filters_hold_for_both_traces(opstrobe, tmp_path, where):
    """Times and places of steps are each trace's own: the second one begins half a second later."""
    sides = {"control": rows_of(5), "test": rows_of(6)}
    for name, rows in sides.items():
        late = [{**row, "ts": row["ts"] + 500_000 * (name == "test")} for row in rows]
        (tmp_path / f"{name}.json").write_text(json.dumps({"traceEvents": late}))

    def ask(question, *words):
        process = opstrobe(
            "analyze", question, "--format", "json", "--where", json.dumps(where), *words, "control.json", "test.json"
        )
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    def left(rows):
        if isinstance(where, str):
            return [i for i in range(len(rows)) if eval(where, {}, columns_of(rows, i))]
        simple = [
            {key: value for key, value in each.items() if key != "query"}
            for each in (where if isinstance(where, list) else [where])
        ]
        kept = plain(rows, simple, last=float("inf"))
        return [i for i in kept if "query" not in json.dumps(where) or rows[i]["name"] != "aten::view"]

    chosen = {name: left(rows) for name, rows in sides.items()}
    steps = ask("trace_diff.iterations")["value"]
    for name, rows in sides.items():
        assert steps[name]["iterations"] == sorted({step_of(rows, i) for i in chosen[name]} - {-1})
    table = ask("trace_diff.compare", "--whole", "true", "--control-iteration", "5,6", "--test-iteration", "5,6")[
        "table"
    ]
    found = {row[0]: row[1:5] for row in table["rows"]}
    expected = {}
    for name, rows in sides.items():
        for i in chosen[name]:
            if step_of(rows, i) in (5, 6):
                figures = expected.setdefault(rows[i]["name"], [0, 0, 0, 0])
                figures[2 * (name == "test")] += 1
                figures[2 * (name == "test") + 1] += rows[i]["dur"]
    assert found == expected
    fates = ask("trace_diff.ops_diff", "--control-iteration", "5,6", "--test-iteration", "5,6", "--limit", "99")[
        "value"
    ]
    assert set(fates["added"]["names"]) == {name for name, (before, _, after, _) in expected.items() if not before}
    assert set(fates["deleted"]["names"]) == {name for name, (before, _, after, _) in expected.items() if not after}


@pytest.mark.parametrize(
    "question, reason",
    [
        ("discovery", "it lists files"),
        ("parse", "'load' describes what a filter selects"),
        ("info", "'load' describes what a filter selects"),
        ("validate", "checks complete files"),
        ("key_averages", "'opstrobe cut'"),
        ("memory_timeline", "no events"),
        ("execution_trace", "two complete files"),
    ],
)
def test_filters_where_there_is_nothing_to_filter(opstrobe, tmp_path, question, reason):
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows_of(0)}))
    process = opstrobe("analyze", question, "--where", "dur > 1", "trace.json")
    assert process.returncode == 2 and not process.stdout
    assert f"{question} takes no filter: " in process.stderr and reason in process.stderr


@pytest.mark.parametrize(
    "where, word",
    [
        ({"nam": 1}, "nam"),
        ({"name": "("}, "name"),
        ({"iterations": 5}, "iterations"),
        ({"time_range": [1]}, "time_range"),
        ({"depth": [1]}, "depth"),
        ({"first_iteration": 1}, "first_iteration"),
        ([3], "object"),
        ("dur >", "a value is missing at character 6"),
        ({"query": "duration > 3"}, "no column of this name"),
    ],
)
def test_invalid_filters(opstrobe, tmp_path, where, word):
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows_of(0)}))
    process = opstrobe("analyze", "events", "--where", json.dumps(where), "trace.json")
    assert process.returncode == 2 and word in process.stderr and not process.stdout


def test_last_step(opstrobe, tmp_path):
    """It is dropped, with what comes behind; or all stays, as the reference's figures have it (set amd_mi250)."""
    rows = [
        {"cat": "user_annotation", "name": "ProfilerStep#1", "ts": 100, "dur": 100},
        {"cat": "user_annotation", "name": "ProfilerStep#2", "ts": 300, "dur": 100},
        {"cat": "cpu_op", "name": "between", "ts": 250, "dur": 10},
        {"cat": "cpu_op", "name": "in the last", "ts": 300, "dur": 500},
        {"cat": "cpu_op", "name": "behind", "ts": 401, "dur": 10},
    ]
    rows = [{"ph": "X", "pid": 1, "tid": 9, **row} for row in rows]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))
    for words, wanted in ([], [0, 2]), (["--include-last-profiler-step", "true"], [0, 1, 2, 3, 4]):
        process = opstrobe("analyze", "events", "--format", "json", *words, "trace.json")
        assert sorted(row[1] for row in json.loads(process.stdout)["table"]["rows"]) == wanted


def test_steps_of_mtia(opstrobe, tmp_path):
    """Whole rows of the host between the first step and the last, what they started, and copies in a step."""
    rows = [
        {"cat": "cpu_op", "name": "before", "ts": 0, "dur": 10},
        {"cat": "user_annotation", "name": "ProfilerStep#1", "ts": 100, "dur": 100},
        {"cat": "user_annotation", "name": "ProfilerStep#2", "ts": 300, "dur": 100},
        {"cat": "mtia_runtime", "name": "run", "ts": 110, "dur": 10, "args": {"correlation": 1}},
        {"cat": "mtia_runtime", "name": "run", "ts": 395, "dur": 10, "args": {"correlation": 2}},  # ends behind it
        {"cat": "mtia_ccp_events", "name": "work", "ts": 150, "dur": 10, "args": {"correlation": 1, "stream": 1}},
        {"cat": "mtia_ccp_events", "name": "work", "ts": 410, "dur": 10, "args": {"correlation": 2, "stream": 1}},
        {"cat": "mtia_ccp_events", "name": "dma copy", "ts": 320, "dur": 10, "args": {"stream": 2}},
        {"cat": "mtia_ccp_events", "name": "dma copy", "ts": 250, "dur": 10, "args": {"stream": 2}},  # in no step
        {"cat": "mtia_ccp_events", "name": "work", "ts": 120, "dur": 10, "args": {"stream": 2}},  # of no call
    ]
    rows = [{"ph": "X", "pid": 1, "tid": 9, **row} for row in rows]
    text = json.dumps({"distributedInfo": {"backend": "mtia:hccl", "rank": 0}, "traceEvents": rows})
    (tmp_path / "trace.json").write_text(text)
    process = opstrobe("analyze", "events", "--format", "json", "trace.json")
    table = json.loads(process.stdout)["table"]
    at, step = table["columns"].index("index"), table["columns"].index("iteration")
    assert {row[at]: row[step] for row in table["rows"]} == {1: 1, 2: 2, 3: 1, 5: 1, 7: 2}

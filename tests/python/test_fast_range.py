# SPDX-License-Identifier: Apache-2.0
"""_RecordFunctionFast compared with torch's, and the low-level entry points around it."""

import gc
import json
import threading
import warnings

import pytest
import torch

import opstrobe
from opstrobe import _RecordFunctionFast, profile

VALUES = {"i": 1, "f": 1.5, "b": True, "s": 'te "x"\n', "l": ["a", "b"], "é": "ü"}


def row_of(prof, path, name):
    prof.export_chrome_trace(str(path))
    with open(path) as file:
        (row,) = [row for row in json.load(file)["traceEvents"] if row.get("name") == name]
    return row


def test_fast_range_with_values(tmp_path):
    x = torch.ones(2, 3)
    with profile(record_shapes=True) as prof:
        with _RecordFunctionFast("fast", [x, 3, "s", None, 2.5, True, [1, 2], 1 << 70], VALUES):
            torch.ones(2)
    prof.profiler.trace.check()
    (event,) = [event for event in prof.events() if event.name == "fast"]
    assert event.scope == 0 and not event.is_user_annotation
    assert event.kwinputs == VALUES and event.performance_counters == {}
    assert event.input_shapes == [[2, 3], [], [], [], [], [], [], []]
    assert event.concrete_inputs == [None, 3, None, None, 2.5, True, [1, 2], None]
    assert event.input_dtypes[:2] == ["float", "Scalar"]
    assert [child.name for child in event.cpu_children] == ["aten::ones"]
    row = row_of(prof, tmp_path / "trace.json", "fast")
    assert row["cat"] == "cpu_op" and {key: row["args"][key] for key in VALUES} == VALUES
    again = opstrobe.read(tmp_path / "trace.json").events()
    assert [event.kwinputs for event in again if event.name == "fast"] == [VALUES]


@pytest.mark.torch_like("2.13", "2.15")  # torch 2.4 shows no keyword values, 2.9 no lists among them
def test_fast_range_as_torch_shows_it(tmp_path):
    values = {"i": 1, "f": 1.5, "b": True, "s": "text", "l": ["a", "b"]}
    inputs = [torch.ones(2, 3), 3, 2.5, [1, 2], None]
    with torch.profiler.profile(record_shapes=True) as theirs:
        with torch._C._profiler._RecordFunctionFast("fast", inputs, values):
            pass
    with profile(record_shapes=True) as ours:
        with _RecordFunctionFast("fast", inputs, values):
            pass
    (a,), (b,) = theirs.events(), ours.events()
    for name in ("kwinputs", "input_shapes", "concrete_inputs", "input_dtypes", "structured_input_strides", "scope"):
        if hasattr(a, name):
            assert getattr(a, name) == getattr(b, name), name
    a, b = row_of(theirs, tmp_path / "a.json", "fast"), row_of(ours, tmp_path / "b.json", "fast")
    for row in (a, b):
        for key in ("External id", "Ev Idx"):
            del row["args"][key]
    assert a["args"] == b["args"] and a["cat"] == b["cat"]


def test_fast_range_without_shapes_and_profile():
    with _RecordFunctionFast("nothing", [1], {"a": 1}):
        pass
    with profile() as prof:
        with _RecordFunctionFast("fast", [torch.ones(2)], {"a": 1}):
            pass
        plain = _RecordFunctionFast("plain")
        for _ in range(2):
            with plain:
                pass
    events = [event for event in prof.events() if not event.name.startswith("aten")]
    assert [event.name for event in events] == ["fast", "plain", "plain"]
    assert all(event.input_shapes == [] for event in events)


def test_fast_range_with_other_values():
    with pytest.warns(UserWarning, match="keyword: t"):
        record = _RecordFunctionFast("fast", keyword_values={"t": torch.ones(1), "i": 1})
    with profile() as prof, record:
        pass
    (event,) = prof.events()
    assert event.kwinputs == {"t": "NULL", "i": 1}


def test_fast_range_misuse():
    for arguments in [(1,), ("x", 1), ("x", None, []), ("x", None, {1: 1})]:
        with pytest.raises(TypeError):
            _RecordFunctionFast(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            _RecordFunctionFast("x", None, {"a": object()})
    with profile() as prof:
        record = _RecordFunctionFast("x")
        record.__exit__(None, None, None)
        record.__enter__()
        record.__enter__()
        del record
        gc.collect()
    prof.profiler.trace.check()
    assert [event.name for event in prof.events()] == ["x"]


def test_fast_range_too_large_keeps_its_name():
    with profile() as prof:
        with _RecordFunctionFast("large", None, {"text": "x" * 100_000}):
            pass
        with _RecordFunctionFast("threads"):
            thread = threading.Thread(target=lambda: _RecordFunctionFast("other").__enter__())
            thread.start()
            thread.join()
    assert {event.name for event in prof.events()} == {"large", "threads", "other"}


def test_record_function_with_args():
    x = torch.ones(2, 3)
    with profile(record_shapes=True) as prof:
        handle = torch.autograd._record_function_with_args_enter("annotated", x, 3, "text")
        torch.ones(2)
        torch.autograd._record_function_with_args_exit(handle)
    (event,) = [event for event in prof.events() if event.name == "annotated"]
    assert event.is_user_annotation and event.scope == 7
    assert event.input_shapes == [[2, 3], [], []] and event.concrete_inputs == [None, 3, None]
    assert [child.name for child in event.cpu_children] == ["aten::ones"]


def test_argument_text_is_kept_and_shown(tmp_path):
    with profile() as prof:
        with opstrobe.record_function("ours", "own text"):
            pass
        with torch.profiler.record_function("theirs", "torch's text"):
            pass
    assert row_of(prof, tmp_path / "trace.json", "ours")["args"]["Args"] == "own text"
    assert row_of(prof, tmp_path / "trace.json", "theirs")["args"]["Args"] == "torch's text"


def show(prof, path):
    """What events and trace say of the ranges: names, kinds, inputs and values."""
    prof.export_chrome_trace(str(path))
    with open(path) as file:
        rows = [row for row in json.load(file)["traceEvents"] if "External id" in row.get("args", {})]
    arguments = []
    for row in rows:
        if not row["name"].startswith("aten::"):
            args = {key: value for key, value in row["args"].items() if key not in ("External id", "Ev Idx", "Args")}
            arguments.append((row["name"], row["cat"], args))
    return arguments, [
        (e.scope, e.is_user_annotation, e.input_shapes, e.concrete_inputs, e.kwinputs, e.structured_input_shapes)
        for e in prof.events()
        if not e.name.startswith("aten::")
    ]


@pytest.mark.torch_like("2.13", "2.15")
@pytest.mark.parametrize("record_shapes", [False, True])
def test_torchs_own_fast_ranges_beside_torch(record_shapes, tmp_path):
    """Inductor and Triton describe their kernels with these."""
    fast = torch._C._profiler._RecordFunctionFast
    x, y = torch.ones(2, 3), torch.ones(4, dtype=torch.float64)

    def run():
        with fast(
            "triton_poi_0", [x, y], {"stream": 0, "grid": "grid(1,)", "flop": 2.5, "hot": True, "files": ["a", "b"]}
        ):
            torch.ones(2)
        with fast("values", (x, 3, 2.5, "s", None, [x, y], [1, 2])):
            pass
        with fast("## Call CompiledFxGraph f3 ##", keyword_values={"scope": "user_scope", "stream": 7}):
            torch.ones(2)
        with fast("another scope", [x], {"scope": "function"}):
            pass
        with fast("bare"):
            pass

    profiles = []
    for module in (torch.profiler, opstrobe):
        with module.profile(record_shapes=record_shapes) as prof:
            run()
        profiles.append(prof)
    theirs, ours = (show(prof, tmp_path / "trace.json") for prof in profiles)
    assert ours == theirs
    assert [scope for scope, *_ in ours[1]] == [0, 0, 7 if record_shapes else 0, 0, 0]
    profiles[1].profiler.trace.check()
    again = opstrobe.read(str(tmp_path / "trace.json"))
    assert show(again, tmp_path / "again.json") == ours


@pytest.mark.torch_like("2.13", "2.15")
def test_own_fast_ranges_are_users_as_torchs_are(tmp_path):
    def run(fast):
        with fast("named by a user", [torch.ones(2)], {"scope": "user_scope"}):
            pass

    with torch.profiler.profile(record_shapes=True) as theirs:
        run(torch._C._profiler._RecordFunctionFast)
    with profile(record_shapes=True) as ours:
        run(_RecordFunctionFast)
    assert show(ours, tmp_path / "a.json") == show(theirs, tmp_path / "b.json")


@pytest.mark.torch_like("2.13", "2.15")
@pytest.mark.parametrize("record_shapes", [False, True])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_arguments_of_ranges_are_inputs_beside_torch(record_shapes, tmp_path):
    x = torch.ones(5)
    enter = torch.autograd._record_function_with_args_enter

    def run(module):
        with module.record_function("range", "1, 2, 3"):
            pass
        with module.record_function("a text " * 500, "long"):
            pass
        with module.record_function("none"):
            pass
        torch.autograd._record_function_with_args_exit(enter("many", 1, False, 2.5, [x, x], "s", x))

    shown = []
    for module in (torch.profiler, opstrobe):
        with module.profile(record_shapes=record_shapes) as prof:
            run(module)
        shown.append(show(prof, tmp_path / "trace.json"))
    assert shown[0] == shown[1]
    assert [shapes for _, _, shapes, *_ in shown[1][1]] == (
        [[[]], [[]], [], [[], [], [], [], [], [5]]] if record_shapes else [[]] * 4
    )

# SPDX-License-Identifier: Apache-2.0
"""ExecutionTraceObserver: its files against a strict schema and against those of torch's own observer."""

import gzip
import json
import math
import os
import subprocess
import sys
import textwrap
import threading

import pytest
import torch

import opstrobe
from opstrobe import ExecutionTraceObserver, profile

ATTRIBUTES = {
    "rf_id": "uint64",
    "fw_parent": "uint64",
    "seq_id": "int64",
    "scope": "uint64",
    "tid": "uint64",
    "fw_tid": "uint64",
    "op_schema": "string",
    "kernel_backend": "string",
    "kernel_file": "string",
    "tensor_range": "string",
}
PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"


def read(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt") as file:
        return json.load(file)


def run_python(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def attributes(node):
    return {item["name"]: item["value"] for item in node["attrs"]}


def names(trace):
    return [node["name"] for node in trace["nodes"]]


def check_value(value, shape, kind, stride):
    if kind.startswith("Tensor("):
        tensor, storage, offset, elements, size, device = value
        assert all(isinstance(number, int) for number in (tensor, storage, offset, elements, size))
        assert isinstance(device, str) and len(shape) == len(stride)
        assert math.prod(shape) == elements or elements == 0
    elif kind.startswith(("GenericList[", "Tuple[")):
        assert isinstance(value, list) and len(value) == len(shape) == len(stride)
    else:
        types = {"Int": int, "Double": (float, str), "Bool": bool, "String": str, "Device": str}
        assert isinstance(value, types.get(kind, str)), (kind, value)
        if kind not in types:
            assert value == f"<{kind}>"
        assert shape == [] and stride == []


def check(trace):
    """The Chakra schema, strictly."""
    assert list(trace) == ["schema", "pid", "time", "start_ts", "nodes", "finish_ts"]
    assert trace["schema"] == "1.1.1-chakra.0.0.4" and trace["pid"] == os.getpid()
    assert trace["finish_ts"] >= trace["start_ts"] > 0
    ids = [node["id"] for node in trace["nodes"]]
    assert len(set(ids)) == len(ids)
    for node in trace["nodes"]:
        assert list(node) == ["id", "name", "ctrl_deps", "inputs", "outputs", "attrs"]
        assert node["ctrl_deps"] in ids
        assert [(item["name"], item["type"]) for item in node["attrs"]] == list(ATTRIBUTES.items())
        for side in (node["inputs"], node["outputs"]):
            assert list(side) == ["values", "shapes", "types", "strides"]
            assert len({len(part) for part in side.values()}) == 1
            for parts in zip(*side.values()):
                check_value(*parts)
    assert trace["nodes"][-1]["name"] == PROCESS and trace["nodes"][-1]["id"] == 1
    threads = [node for node in trace["nodes"] if node["name"] == THREAD]
    assert all(node["ctrl_deps"] == 1 for node in threads)
    return trace


def observe(path, program):
    observer = ExecutionTraceObserver().register_callback(str(path))
    assert observer.is_registered and not observer.is_running()
    observer.start()
    assert observer.is_running()
    program()
    observer.stop()
    observer.unregister_callback()
    assert not observer.is_registered
    return check(read(path))


def work():
    x = torch.ones(2, 4, requires_grad=True)
    linear = torch.nn.Linear(4, 3)
    with torch.profiler.record_function("forward", "of work"):
        y = torch.relu(linear(x)).sum()
    y.backward()


def everything():
    work()
    x = torch.randn(2, 4)
    x.to(torch.float64)
    x[torch.tensor([True, False])]
    torch.einsum("ij,kj->ik", x, x)
    torch.nn.functional.pad(x, (1, 1), value=2.5)
    torch.rand(3, generator=torch.Generator())
    torch.topk(x, 2)
    torch.split(x, 2)
    torch.mul(torch.complex(x, x), 1 + 2j)
    torch.full((2,), float("inf"))
    torch.full((2,), 1e300, dtype=torch.float64)
    torch._foreach_add([x, x], [1.0, 2.0])
    torch.nn.LSTM(4, 3)(x.view(2, 1, 4))
    torch.tensor(5).item()
    torch.empty(3, device="meta") + 1
    torch.linalg.svd(x)
    torch.ops.aten.view(x, [4, 2])
    thread = threading.Thread(target=lambda: torch.ones(3) + 1)
    thread.start()
    thread.join()


class Isomorphism:
    """Ids of one trace as those of another, each for exactly one."""

    def __init__(self):
        self.there = {}
        self.back = {}

    def __call__(self, a, b):
        return self.there.setdefault(a, b) == b and self.back.setdefault(b, a) == a

    def values(self, a, b, kind):
        if kind.startswith("Tensor("):
            return self(a[0], b[0]) and self(("s", a[1]), ("s", b[1])) and a[2:] == b[2:]
        if "Tensor(" in kind:
            return len(a) == len(b) and all(self.values(x, y, "Tensor(") for x, y in zip(a, b))
        if kind == "Double" and not isinstance(a, str):
            return math.isclose(a, b, rel_tol=1e-5)  # torch writes six digits
        return a == b


@pytest.mark.torch_like("2.13", "2.15")  # 2.4 writes an older schema; 2.9 numbers some tensors otherwise
def test_same_as_torch_observer(tmp_path):
    work()
    theirs = torch.profiler.ExecutionTraceObserver()
    theirs.register_callback(str(tmp_path / "torch.json"))
    ours = ExecutionTraceObserver().register_callback(str(tmp_path / "ours.json"))
    theirs.start()
    ours.start()
    everything()
    ours.stop()
    theirs.stop()
    theirs.unregister_callback()
    ours.unregister_callback()
    a, b = read(tmp_path / "torch.json"), check(read(tmp_path / "ours.json"))
    assert names(a) == names(b)
    same = Isomorphism()
    for x, y in zip(a["nodes"], b["nodes"]):
        assert same(x["id"], y["id"]) and same(x["ctrl_deps"], y["ctrl_deps"]), x["name"]
        for side in ("inputs", "outputs"):
            for part in ("shapes", "types", "strides"):
                assert x[side][part] == y[side][part], (x["name"], side, part)
            assert len(x[side]["values"]) == len(y[side]["values"])
            for v, w, kind in zip(x[side]["values"], y[side]["values"], x[side]["types"]):
                assert same.values(v, w, kind), (x["name"], side, v, w, kind)
        left, right = attributes(x), attributes(y)
        parents = left.pop("fw_parent"), right.pop("fw_parent")
        assert left == right, x["name"]
        assert parents == (0, 0) or same(*parents), x["name"]


def test_nodes_describe_operators(tmp_path):
    trace = observe(tmp_path / "et.json", lambda: torch.add(torch.ones(2, 3), 1, alpha=2))
    (add,) = [node for node in trace["nodes"] if node["name"] == "aten::add" and node["outputs"]["values"]]
    assert add["inputs"]["types"][0] == "Tensor(float)" and add["inputs"]["shapes"][0] == [2, 3]
    assert add["inputs"]["strides"][0] == [3, 1] and add["inputs"]["values"][0][3:] == [6, 4, "cpu"]
    assert attributes(add)["op_schema"].startswith("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)")


def test_several_at_once_d2(tmp_path):
    first = ExecutionTraceObserver().register_callback(str(tmp_path / "1.json"))
    second = ExecutionTraceObserver().register_callback(str(tmp_path / "2.json"))
    first.start()
    torch.ones(2)
    second.start()
    torch.zeros(2)
    first.stop()
    torch.eye(2)
    second.stop()
    first.cleanup()
    second.cleanup()
    one, two = check(read(tmp_path / "1.json")), check(read(tmp_path / "2.json"))
    assert "aten::ones" in names(one) and "aten::zeros" in names(one) and "aten::eye" not in names(one)
    assert "aten::ones" not in names(two) and "aten::zeros" in names(two) and "aten::eye" in names(two)


def test_nine_at_once_are_refused(tmp_path):
    observers = [ExecutionTraceObserver().register_callback(str(tmp_path / f"{i}.json")) for i in range(8)]
    with pytest.raises(RuntimeError, match="eight"):
        ExecutionTraceObserver().register_callback(str(tmp_path / "8.json"))
    for observer in observers:
        observer.cleanup()
    ExecutionTraceObserver().register_callback(str(tmp_path / "8.json")).cleanup()


def test_stop_and_start_again(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    observer.start()
    observer.start()
    torch.ones(2)
    observer.stop()
    observer.stop()
    torch.eye(2)
    observer.start()
    torch.zeros(2)
    observer.cleanup()
    observer.cleanup()
    found = names(check(read(tmp_path / "et.json")))
    assert "aten::ones" in found and "aten::zeros" in found and "aten::eye" not in found


def test_with_profile(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    with profile(execution_trace_observer=observer, schedule=opstrobe.schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(3):
            torch.ones(2)
            with torch.profiler.record_function("here"):
                torch.zeros(2)
            prof.step()
    assert not observer.is_registered
    trace = check(read(tmp_path / "et.json"))
    assert names(trace).count("aten::zeros") == 1
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    with open(tmp_path / "trace.json") as file:
        rows = [row for row in json.load(file)["traceEvents"] if row.get("cat") in ("cpu_op", "user_annotation")]
    ids = {attributes(node)["rf_id"]: node["name"] for node in trace["nodes"]}
    assert rows and all(ids[row["args"]["Record function id"]] == row["name"] for row in rows)
    prof.profiler.trace.check()
    opstrobe.read(tmp_path / "trace.json")


def test_record_function_id_is_0_without_observer(tmp_path):
    with profile() as prof:
        torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    with open(tmp_path / "trace.json") as file:
        rows = [row for row in json.load(file)["traceEvents"] if row.get("cat") == "cpu_op"]
    assert rows and all(row["args"]["Record function id"] == 0 for row in rows)


def test_torch_observer_in_our_profile(tmp_path):
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "et.json"))
    with profile(execution_trace_observer=observer) as prof:
        torch.ones(2)
    found = {attributes(node)["rf_id"]: node["name"] for node in read(tmp_path / "et.json")["nodes"]}
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    with open(tmp_path / "trace.json") as file:
        rows = [row for row in json.load(file)["traceEvents"] if row.get("cat") == "cpu_op"]
    assert [found[row["args"]["Record function id"]] for row in rows] == [row["name"] for row in rows]
    assert rows


def test_any_object_is_accepted():
    class Observer:
        def __init__(self):
            self.calls = []

        def __getattr__(self, name):
            if name not in ("start", "stop", "cleanup"):
                raise AttributeError(name)
            return lambda: self.calls.append(name)

    observer = Observer()
    with profile(execution_trace_observer=observer):
        assert observer.calls == ["start"]
    assert observer.calls == ["start", "stop", "cleanup"]
    explicit = Observer()
    prof = profile(execution_trace_observer=explicit)
    prof.start()
    prof.stop()
    assert explicit.calls == ["start", "stop"]


def test_own_ranges_are_nodes(tmp_path):
    def program():
        with opstrobe.record_function('outer "quoted"\n', "its args"):
            torch.ones(2)

    trace = observe(tmp_path / "et.json", program)
    (outer,) = [node for node in trace["nodes"] if node["name"] == 'outer "quoted"\n']
    (ones,) = [node for node in trace["nodes"] if node["name"] == "aten::ones"]
    assert ones["ctrl_deps"] == outer["id"]
    assert outer["inputs"]["values"] == ["its args"] and attributes(outer)["scope"] == 7


def test_nested_tensors(tmp_path):
    trace = observe(tmp_path / "et.json", lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    assert "aten::_nested_tensor_from_tensor_list" in names(trace)


def test_gz_path_is_compressed(tmp_path, capfd):
    observe(tmp_path / "et.json.gz", lambda: torch.ones(2))
    assert (tmp_path / "et.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert capfd.readouterr() == ("", "")


def test_bad_path_warns_and_registers_nothing(tmp_path):
    observer = ExecutionTraceObserver()
    with pytest.warns(UserWarning, match="cannot be written"):
        assert observer.register_callback(str(tmp_path / "nowhere" / "et.json")) is observer
    assert not observer.is_registered
    observer.start()
    assert not observer.is_running()
    observer.cleanup()


def test_paths_and_resources(tmp_path):
    observer = ExecutionTraceObserver()
    assert observer.get_output_file_path() is None and observer.get_resources_dir() is None
    observer.register_callback(str(tmp_path / "et.json"))
    assert observer.get_output_file_path() == str(tmp_path / "et.json")
    observer.set_extra_resource_collection(True)
    assert observer.get_resources_dir() == str(tmp_path / "et_resources")
    assert (tmp_path / "et_resources").is_dir()
    observer.cleanup()


def test_environment_starts_an_observer(monkeypatch):
    assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "1")
    with profile() as prof:
        torch.ones(2)
    path = prof.execution_trace_observer.get_output_file_path()
    try:
        assert path.endswith(".et.json") and "aten::ones" in names(check(read(path)))
        assert os.path.isdir(prof.execution_trace_observer.get_resources_dir())
        assert opstrobe._KinetoProfile().execution_trace_observer is None
    finally:
        os.unlink(path)
        os.rmdir(path.removesuffix(".json") + "_resources")


def test_written_when_the_program_ends(tmp_path):
    path = tmp_path / "et.json"
    run_python(
        f"""
        import torch, opstrobe
        observer = opstrobe.ExecutionTraceObserver().register_callback({str(path)!r})
        observer.start()
        torch.ones(2)
        """
    )
    assert "aten::ones" in names(read(path))


def test_fork_leaves_the_file_to_the_parent(tmp_path):
    path = tmp_path / "et.json"
    run_python(
        f"""
        import os, torch, opstrobe
        observer = opstrobe.ExecutionTraceObserver().register_callback({str(path)!r})
        observer.start()
        child = os.fork()
        if child == 0:
            torch.eye(2)
            own = opstrobe.ExecutionTraceObserver().register_callback({str(path)!r} + ".child")
            own.start()
            torch.zeros(2)
            own.cleanup()
            observer.cleanup()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert not os.path.exists({str(path)!r})
        torch.ones(2)
        observer.cleanup()
        """
    )
    assert "aten::ones" in names(read(path)) and "aten::eye" not in names(read(path))
    assert names(read(str(path) + ".child")).count("aten::zeros") == 1


def test_process_groups(tmp_path):
    path = tmp_path / "et.json"
    run_python(
        f"""
        import torch, torch.distributed as dist, opstrobe
        dist.init_process_group("gloo", init_method="file://{tmp_path}/rendezvous", rank=0, world_size=1)
        observer = opstrobe.ExecutionTraceObserver().register_callback({str(path)!r})
        observer.start()
        reduced = torch.ones(4)  # that torch 2.4 must not free on a thread of the group, which waits for the GIL
        dist.all_reduce(reduced)
        observer.cleanup()
        dist.destroy_process_group()
        """
    )
    nodes = {node["name"]: node for node in read(path)["nodes"]}
    (groups,) = nodes["## process_group:init ##"]["inputs"]["values"]
    assert json.loads(groups)[0]["pg_name"] == "0"
    assert "Object" in nodes["c10d::allreduce_"]["inputs"]["types"]


# --- tensors of integers ------------------------------------------------------------------------------------------------

INTEGERS = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR"


def gather_integers(observer_type, path):
    """What an observer records of integer inputs: by node, their ranges and the bytes of the files next to it."""
    first, second = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[0, 0], [1, 0]])
    weight, picked = torch.ones(5, 2), torch.tensor([3, 0], dtype=torch.int32)
    small = torch.tensor([-5, 9], dtype=torch.int8)
    nothing, truths = torch.zeros(0, 2, dtype=torch.int64), torch.ones(3, dtype=torch.bool)
    observer = observer_type()
    observer.register_callback(str(path))
    observer.set_extra_resource_collection(True)
    observer.start()
    torch.gather(first, 1, second)
    torch.stack([first.t(), second])
    torch.index_select(weight, 0, picked)
    torch.gather(nothing, 1, nothing)
    torch.add(small, 1)
    torch.bitwise_or(truths, truths)
    observer.stop()
    observer.unregister_callback()
    folder = path.with_name(f"{path.stem}_resources")
    kept = {file.name: file.read_bytes() for file in folder.iterdir()}
    said, files = [], {}
    for node in sorted(read(path)["nodes"], key=lambda node: node["id"]):
        if node["name"] in ("aten::gather", "aten::stack", "aten::index_select", "aten::add", "aten::bitwise_or"):
            prefix = f"nid_{node['id']}_tid_"
            own = {name.removeprefix(prefix): kept.pop(name) for name in list(kept) if name.startswith(prefix)}
            said.append((node["name"], attributes(node)["tensor_range"]))
            files[len(said), node["name"]] = own
    assert kept == {}
    return said, files


@pytest.mark.torch_like("2.13", "2.15")
@pytest.mark.parametrize("ranges", [False, True])
@pytest.mark.parametrize("data", ["", "aten::gather", "aten::stack,aten::index_select,aten::add"])
def test_integers_as_torchs_observer_keeps_them(ranges, data, tmp_path, monkeypatch):
    for name, value in (("RANGE", "1" if ranges else None), ("DATA", data or None)):
        if value is None:
            monkeypatch.delenv(f"{INTEGERS}_{name}", raising=False)
        else:
            monkeypatch.setenv(f"{INTEGERS}_{name}", value)
    theirs = gather_integers(torch.profiler.ExecutionTraceObserver, tmp_path / "theirs.json")
    ours = gather_integers(ExecutionTraceObserver, tmp_path / "ours.json")
    assert ours == theirs
    assert dict(ours[0])["aten::add"] == ('{"0":[-5,9],"1":[1,1]}' if ranges else "")
    if data == "aten::gather":
        assert ours[1][1, "aten::gather"]["1.dat"] == bytes(16) + b"\1" + bytes(15)


def test_integers_are_kept_only_where_there_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(f"{INTEGERS}_DATA", "aten::add")
    trace = observe(tmp_path / "trace.json", lambda: torch.ones(3, dtype=torch.int64) + torch.arange(6)[::2])
    assert "aten::add" in names(trace) and [file.name for file in tmp_path.iterdir()] == ["trace.json"]


def test_integers_with_gaps_are_kept_without(tmp_path, monkeypatch):
    monkeypatch.setenv(f"{INTEGERS}_DATA", "aten::neg")
    monkeypatch.setenv(f"{INTEGERS}_RANGE", "1")
    (tmp_path / "trace_resources").mkdir()
    tensors = [torch.arange(6)[::2], torch.arange(3).expand(2, 3), torch.ones(2, dtype=torch.int64, device="meta")]
    with profile() as prof:
        trace = observe(tmp_path / "trace.json", lambda: [torch.neg(tensor) for tensor in tensors])
    said = [(node["id"], attributes(node)["tensor_range"]) for node in trace["nodes"] if node["name"] == "aten::neg"]
    assert [text for _, text in said] == ['{"0":[0,4]}', '{"0":[0,2]}', ""]
    kept = {
        file.name: list(memoryview(file.read_bytes()).cast("q")) for file in (tmp_path / "trace_resources").iterdir()
    }
    assert kept == {f"nid_{said[0][0]}_tid_0.dat": [0, 2, 4], f"nid_{said[1][0]}_tid_0.dat": [0, 1, 2, 0, 1, 2]}
    assert "aten::contiguous" not in [
        event.name for event in prof.events()
    ]  # what it takes to read them is not recorded


@pytest.mark.parametrize("module", [torch.profiler, opstrobe])
def test_whether_an_observer_runs(module, tmp_path):
    observer = module.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "trace.json"))
    seen = [observer._execution_trace_running]
    for change in (observer.start, observer.start, observer.stop, observer.start, observer.cleanup):
        change()
        seen.append(observer._execution_trace_running)
    assert seen == [False, True, True, False, True, False]

# SPDX-License-Identifier: Apache-2.0
"""Calls of nn.Module: an event for each call, their costs, and no change of the modules."""

import copy
import gc
import json
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity  # noqa: E402

import opstrobe  # noqa: E402
from opstrobe import _core  # noqa: E402


def block_class():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(self.fc(x))

    return Block


Block, OtherBlock = block_class(), block_class()  # two classes of one name


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), OtherBlock()])
        self.head = nn.Linear(4, 2)
        self.spare = nn.Linear(3, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Calling(nn.Linear):
    """Python code calls the function Module.__call__ here, and not C code."""

    def __call__(self, x):
        return super().__call__(x)


X = torch.randn(3, 4)

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


def profiled(work, **options):
    with opstrobe.profile(with_modules=True, **options) as prof:
        work()
    prof.profiler.trace.check()
    return prof


def module_events(prof):
    return [event for event in prof.events() if event.name.startswith("nn.Module: ")]


def calls(prof):
    return [event.name.removeprefix("nn.Module: ") for event in module_events(prof)]


def by_path(prof):
    return {row["path"]: row for row in prof.module_summary().rows()}


class Uncalled(nn.Module):
    """What Lightning makes of a model: nobody calls the module itself."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def training_step(self, work):
        return [work() for _ in range(2) if self.parts is not None]  # in a function inside a method


def test_a_module_that_is_not_called_gives_its_parts_their_paths():
    net, other = nn.Sequential(Block()), nn.Linear(4, 4)
    step, inner = Uncalled(Uncalled(net)), Uncalled(nn.Linear(2, 2))
    prof = profiled(lambda: inner.training_step(lambda: step.training_step(lambda: (net(X), other(X)))))
    rows = by_path(prof)
    paths = [f"parts.0.parts.0.0{part}" for part in ("", ".fc", ".act")]
    assert sorted(rows) == sorted(
        ["Linear", "Uncalled", "parts", "parts.0", "parts.0.parts", "parts.0.parts.0", *paths]
    )
    assert [rows[path]["calls"] for path in ("Uncalled", "parts.0", "parts.0.parts.0", "Linear")] == [0, 0, 4, 4]


# --- rows ---------------------------------------------------------------------------------------------------------------


def rows_of(prof, path):
    """Name, number and enclosing module of each module row in the exported file, in order."""
    prof.export_chrome_trace(str(path))
    events = [row for row in json.loads(path.read_text())["traceEvents"] if row.get("cat") == "python_function"]
    by_id = {row["args"].get("Python id"): row for row in events}
    rows = []
    for row in events:
        if row["name"].startswith("nn.Module: "):
            outer = by_id.get(row["args"].get("Python parent id"))
            while outer is not None and not outer["name"].startswith("nn.Module: "):
                outer = by_id.get(outer["args"].get("Python parent id"))
            rows.append((row["name"], row["args"]["Python module id"], outer and outer["name"]))
    return rows


def work_of_all_kinds():
    torch.manual_seed(0)
    net, calling, lazy = Net(), Calling(4, 4), nn.Sequential(nn.LazyLinear(4), nn.Tanh())
    script = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    traced = torch.jit.trace(nn.Linear(4, 4), X)

    def work():
        net(X), net(X), lazy(X), script(X), traced(X), calling(X)
        net.head.forward(X)  # no call of a module
        nn.Module.__call__(net.head, X)
        torch.func.functional_call(net, dict(net.named_parameters()), (X,))
        with pytest.raises(RuntimeError):
            net(torch.randn(2, 5))

    return work


@pytest.mark.parametrize(
    "options", [{"with_stack": True}, {"with_modules": True}, {"with_stack": True, "with_modules": True}]
)
def test_rows_are_those_of_torch(tmp_path, options):
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], with_stack=True) as theirs:
        work_of_all_kinds()()
    with opstrobe.profile(**options) as ours:
        work_of_all_kinds()()
    expected = rows_of(theirs, tmp_path / "torch.json")
    assert len(expected) > 30
    assert rows_of(ours, tmp_path / "ours.json") == expected


def test_module_events():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    events = module_events(profiled(lambda: (net(X), net(X))))
    assert [event.name for event in events[:3]] == [
        "nn.Module: Sequential_0",
        "nn.Module: Linear_0",
        "nn.Module: ReLU_0",
    ]
    outer, linear = events[:2]
    assert (linear.python_module_id, linear.python_parent_id) == (0, outer.python_id)
    assert (outer.python_id, outer.python_parent_id) == (1, -1)
    assert linear.cpu_parent.id == outer.id
    assert linear.is_python_function and not linear.is_user_annotation
    assert (linear.activity_type, linear.scope) == ("python_function", 0)
    assert {child.name for child in linear.cpu_children} == {"aten::linear"}


def test_no_modules_without_the_option():
    net = Net()
    with opstrobe.profile() as prof:
        net(X)
    assert module_events(prof) == []
    with pytest.raises(RuntimeError, match="with_modules=True"):
        prof.module_summary()


def test_no_warning_of_with_modules():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profiled(lambda: nn.ReLU()(X))


def test_exceptions_end_calls():
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError(x)

    def work():
        with pytest.raises(KeyError):
            nn.Sequential(nn.ReLU(), Failing())(X)
        nn.ReLU()(X)

    prof = profiled(work)
    assert calls(prof) == ["Sequential_0", "ReLU_0", "Failing_0", "ReLU_1"]
    assert module_events(prof)[3].cpu_parent is None


def test_calls_on_many_threads():
    nets = [Net() for _ in range(4)]

    def work():
        threads = [threading.Thread(target=lambda net=net: [net(X) for _ in range(20)]) for net in nets]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]

    prof = profiled(work)
    assert len(calls(prof)) == 4 * 20 * 8
    assert {row["calls"] for row in prof.module_summary().rows() if row["path"].endswith(".layers.1.fc")} == {20}
    assert len({event.thread for event in module_events(prof)}) == 4


def test_modules_made_and_dropped_while_recording():
    """One that comes to lie where another was is another one."""

    def work():
        for _ in range(50):
            nn.ReLU()(X)
        net = Net()
        net(X)
        net.late = nn.Tanh()
        net.late(X)

    prof = profiled(work)
    assert calls(prof)[:50] == [f"ReLU_{i}" for i in range(50)]
    assert by_path(prof)["layers.0.fc"]["calls"] == 1
    assert by_path(prof)["Tanh"]["calls"] == 1  # it was not part of the net when the net was registered

    kept = Net()

    def grow():
        kept(X)
        kept.late = nn.Tanh()
        kept.late(X)

    assert by_path(profiled(grow))["late"]["calls"] == 1


def test_paused_and_resumed():
    net = nn.ReLU()
    schedule = opstrobe.schedule(wait=1, warmup=1, active=1, repeat=2)
    seen = []
    with opstrobe.profile(
        with_modules=True, schedule=schedule, on_trace_ready=lambda prof: seen.append(calls(prof))
    ) as prof:
        for _ in range(6):
            net(X)
            prof.step()
    assert seen == [["ReLU_0"], ["ReLU_0"]]


# --- who they are -------------------------------------------------------------------------------------------------------


def test_paths_and_parameters():
    net = Net()
    rows = by_path(profiled(lambda: net(X)))
    assert list(rows) == [
        *("Net", "layers", "layers.0", "layers.0.fc", "layers.0.act"),
        *("layers.1", "layers.1.fc", "layers.1.act", "head", "spare"),
    ]
    for name, module in net.named_modules():
        row = rows[name or "Net"]
        assert row["class"] == f"{type(module).__module__}.{type(module).__qualname__}"
        assert row["parameters"] == sum(p.numel() for p in module.parameters())
        assert row["parameter_bytes"] == 4 * row["parameters"]
        assert row["own_parameters"] == sum(p.numel() for p in module.parameters(recurse=False))
    assert rows["layers.1"]["name"] == "nn.Module: Block_0"  # the first of its class
    assert (rows["spare"]["name"], rows["spare"]["calls"]) == ("", 0)


def test_models_gone_before_the_stop():
    def work():
        Net()(X)
        gc.collect()

    assert by_path(profiled(work))["layers.1.fc"]["parameters"] == 20


def test_shared_modules_and_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(4, 4)
            self.decoder = nn.Linear(4, 4)
            self.decoder.weight = self.encoder.weight
            self.again = nn.Sequential(self.encoder)
            self.again.append(self.encoder)

        def forward(self, x):
            return self.decoder(self.again(self.encoder(x)))

    net = Tied()
    rows = by_path(profiled(lambda: net(X)))
    assert rows["encoder"]["calls"] == 3
    assert rows["encoder"]["aliases"] == ["again.0", "again.1"]
    assert rows["Tied"]["parameters"] == sum(p.numel() for p in net.parameters()) == 24
    assert rows["again"]["parameters"] == 20


def test_lazy_modules():
    net = nn.Sequential(nn.LazyLinear(3))
    assert by_path(profiled(lambda: net(X)))["0"]["parameters"] == 15


def test_circles_and_odd_modules():
    class Odd(nn.Module):
        def forward(self, x):
            return x

        @property
        def _parameters(self):
            raise RuntimeError("no")

        @_parameters.setter
        def _parameters(self, value):
            pass

        def __eq__(self, other):
            raise RuntimeError("no")

        __hash__ = None

    net = Net()
    net.layers[0].up = net.layers
    net._modules["none"] = None
    odd = Odd()
    prof = profiled(lambda: (net(X), odd(X)))
    assert calls(prof)[-1] == "Odd_0"
    assert by_path(prof)["layers.0.fc"]["calls"] == 1


def test_scripted_and_compiled_models():
    script = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    model = nn.Sequential(nn.Linear(4, 4), torch.compile(nn.Sequential(nn.Tanh()), backend="eager"))
    prof = profiled(lambda: (script(X), model(X), model(X)))
    rows = prof.module_summary().rows()
    paths = [(row["path"], row["class"].rpartition(".")[2], row["calls"]) for row in rows]
    assert ("RecursiveScriptModule", "RecursiveScriptModule", 1) in paths
    assert ("Sequential.1", "OptimizedModule", 2) in paths  # what torch.compile puts around a module has the path of it
    assert ("Sequential.1", "Sequential", 0) in paths or ("Sequential.1", "Sequential", 2) in paths
    assert ("Sequential.1.0", "Tanh", 0) in paths  # compiled away


def test_wrapped_modules_have_the_path_of_their_wrapper():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    net = nn.Sequential(nn.ReLU(), checkpoint_wrapper(Block()))
    rows = profiled(lambda: net(X)).module_summary().rows()
    assert [(row["path"], row["class"].rpartition(".")[2]) for row in rows] == [
        ("Sequential", "Sequential"),
        ("0", "ReLU"),
        ("1", "CheckpointWrapper"),
        ("1", "Block"),
        ("1.fc", "Linear"),
        ("1.act", "ReLU"),
    ]


def test_compiling_while_recording():
    """The compiler sees Module.__call__ as it always is: no break in the graph."""
    net = Net()

    def work():
        torch.compile(net, backend="eager", fullgraph=True)(X)
        net.compile(backend="eager", fullgraph=True)
        net(X)

    torch.compiler.reset()
    prof = profiled(work)
    assert calls(prof)[0] == "OptimizedModule_0"
    assert calls(prof).count("Net_0") >= 1


# --- what they cost -----------------------------------------------------------------------------------------------------


def test_times_add_up():
    net = Net()
    prof = profiled(lambda: [net(X).sum().backward() for _ in range(5)])
    rows = prof.module_summary().rows()
    spans = {event.name: 0 for event in module_events(prof)}
    for event in module_events(prof):
        spans[event.name] += round(event.time_range.elapsed_us() * 1000)
    assert rows[0]["host_ns"] == spans["nn.Module: Net_0"] == sum(row["self_host_ns"] for row in rows)
    assert rows[1]["host_ns"] == rows[2]["host_ns"] + rows[5]["host_ns"]  # the list that is not called
    nodes = sum(
        round(event.time_range.elapsed_us() * 1000)
        for event in prof.events()
        if event.name.startswith("autograd::engine::evaluate_function: ") and not event.name.endswith("SumBackward0")
    )
    assert rows[0]["backward_ns"] == nodes == sum(row["self_backward_ns"] for row in rows)
    assert rows[3]["path"] == "layers.0.fc" and rows[3]["backward_ns"] > 0
    assert rows[0]["calls"] == 5


def test_flops_by_module():
    net = Net()
    prof = profiled(lambda: net(X).sum().backward(), with_flops=True)
    rows = by_path(prof)
    assert rows["head"]["flops"] == 2 * 3 * 4 * 2
    assert rows["Net"]["flops"] == rows["layers"]["flops"] + rows["head"]["flops"]
    assert rows["Net"]["self_flops"] == 0
    bias = 3 * 4  # its gradient is a sum
    assert rows["layers.1.fc"]["backward_flops"] == 2 * rows["layers.1.fc"]["flops"] + bias
    of_torch = sum(event.flops or 0 for event in prof.events())  # of products only
    assert 0 < of_torch < rows["Net"]["flops"] + rows["Net"]["backward_flops"]


def test_memory_by_module():
    big = nn.Sequential(nn.Linear(256, 256, bias=False), nn.ReLU())
    x = torch.randn(256, 256)
    kept = []
    rows = by_path(profiled(lambda: kept.append(big(x)), profile_memory=True))
    size = 256 * 256 * 4
    assert rows["0"]["cpu_allocated_bytes"] == rows["0"]["cpu_memory_bytes"] == size
    assert rows["Sequential"]["cpu_allocated_bytes"] == 2 * size
    assert rows["Sequential"]["cpu_peak_bytes"] == 2 * size
    assert rows["1"]["cpu_peak_bytes"] == size


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpointing(use_reentrant):
    from torch.utils.checkpoint import checkpoint

    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    x = X.clone().requires_grad_()
    rows = by_path(profiled(lambda: checkpoint(net, x, use_reentrant=use_reentrant).sum().backward()))
    assert [rows[path]["calls"] for path in ("Sequential", "0", "1")] == [2, 2, 2]
    assert rows["1"]["backward_ns"] > 0


def test_hooks_belong_to_their_module():
    net = nn.Sequential(nn.Linear(4, 4))
    net[0].register_forward_hook(lambda module, args, result: result.exp())
    net[0].register_forward_pre_hook(lambda module, args: (args[0].sin(),))
    prof = profiled(lambda: net(X))
    linear = module_events(prof)[1]
    assert [child.name for child in linear.cpu_children] == ["aten::sin", "aten::linear", "aten::exp"]


# --- the summary --------------------------------------------------------------------------------------------------------


def test_summary_as_text():
    net = Net()
    summary = profiled(lambda: net(X).sum().backward()).module_summary()
    lines = str(summary).splitlines()
    titles = ["Module", "Class", "Calls", "Parameters", "Share", "Forward", "Per call", "Backward", "Self forward"]
    assert lines[0].split() == " ".join(titles).split()
    assert [line.split()[0] for line in lines[1:]] == ["Net", "layers", "0", "fc", "act", "1", "fc", "act", "head"]
    assert lines[4].startswith("      fc ")
    assert len({len(line) for line in lines}) == 1
    assert [line.split()[0] for line in summary.table(depth=2).splitlines()[1:]] == ["Net", "layers", "head"]
    ordered = summary.table(depth=2, sort_by="parameters").splitlines()[1:]
    assert [line.split()[0] for line in ordered] == ["Net", "layers", "head"]
    classes = summary.table(by_class=True, sort_by="calls").splitlines()
    assert classes[1].split()[:2] == ["torch.nn.modules.linear.Linear", "3"]
    assert repr(summary) == "<ModuleSummary of 10 modules, 8 calls>"
    with pytest.raises(ValueError, match="cannot be sorted by 'path'"):
        summary.table(sort_by="path")
    with pytest.raises(ValueError, match="depth"):
        summary.table(depth=0)


def test_summary_as_data():
    net = Net()
    summary = profiled(lambda: net(X)).module_summary()
    (root,) = summary.tree()
    assert [child["path"] for child in root["children"]] == ["layers", "head", "spare"]
    assert [child["path"] for child in root["children"][0]["children"]] == ["layers.0", "layers.1"]
    rows = summary.rows()
    assert all(rows[row["parent"]]["depth"] == row["depth"] - 1 for row in rows[1:])
    classes = {row["class"]: row for row in summary.rows(by_class=True)}
    assert classes["torch.nn.modules.linear.Linear"]["calls"] == 3
    assert classes["torch.nn.modules.linear.Linear"]["modules"] == 3
    json.dumps(rows)


def test_summary_of_the_file_is_the_same(tmp_path):
    net = Net()
    prof = profiled(lambda: net(X).sum().backward(), profile_memory=True, with_flops=True)
    for name in ("trace.json", "trace.json.gz"):
        prof.export_chrome_trace(str(tmp_path / name))
        again = _core.read_trace(tmp_path / name)
        again.check()
        assert _core.ModuleSummary(again).rows() == prof.module_summary().rows()
        assert str(opstrobe.read(tmp_path / name).module_summary()) == str(prof.module_summary())


def test_summary_of_a_file_of_torch(tmp_path):
    net = Net()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        net(X).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "torch.json"))
    rows = _core.ModuleSummary(_core.read_trace(tmp_path / "torch.json")).rows()
    assert [row["path"] for row in rows] == ["Net_0", "Block_0", "Linear_0", "ReLU_0", "Linear_1", "ReLU_1", "Linear_2"]
    assert rows[1]["calls"] == 2 and rows[0]["backward_ns"] > 0


def test_summary_before_the_stop():
    prof = opstrobe.profile(with_modules=True)
    with pytest.raises(AssertionError):
        prof.module_summary()
    prof.start()
    with pytest.raises(RuntimeError, match="still recording"):
        prof.module_summary()
    prof.stop()
    assert (
        str(prof.module_summary())
        == "no calls of modules were recorded: record with opstrobe run, or with with_modules=True\n"
    )


def test_summary_of_several_windows():
    net = Net()
    prof = opstrobe.profile(
        with_modules=True, acc_events=True, schedule=opstrobe.schedule(wait=0, warmup=1, active=1, repeat=2)
    )
    with prof:
        for _ in range(4):
            net(X)
            prof.step()
    assert by_path(prof)["layers.0"]["calls"] == 2
    assert len(prof.module_summary().rows()) == 10


# --- no trace is left ---------------------------------------------------------------------------------------------------


def state_of_torch():
    module = torch.nn.modules.module
    hooks = {
        name: len(value)
        for name, value in vars(module).items()
        if name.startswith("_global") and hasattr(value, "__len__")
    }
    return dict(vars(nn.Module)), dict(vars(Net)), hooks


def test_python_sees_no_change():
    before = state_of_torch()
    net = Net()
    during = []

    def work():
        net(X)
        during.append(state_of_torch())
        pickle.dumps(net.head)
        copy.deepcopy(net)(X)

    prof = profiled(work)
    assert before == during[0] == state_of_torch()
    assert nn.Module.__call__ is before[0]["__call__"]
    assert calls(prof).count("Net_1") == 1
    assert vars(net).keys() == vars(Net()).keys()


def test_modules_are_not_kept():
    net = Net()
    gone = weakref.ref(net.layers[0])
    with opstrobe.profile(with_modules=True) as prof:
        net(X)
        net.layers = nn.ModuleList()
        gc.collect()
        assert gone() is None  # nor for as long as it records
        whole = weakref.ref(net)
    del net
    assert whole() is None
    assert by_path(prof)["layers.0.fc"]["calls"] == 1


def test_no_references_leak():
    net = Net()
    profiled(lambda: net(X)).module_summary().tree()
    gc.collect()
    counts = [
        sys.getrefcount(thing) for thing in (net, Net, nn.Module._wrapped_call_impl, None.__class__, net.head.weight)
    ]
    for _ in range(20):
        profiled(lambda: net(X)).module_summary().tree()
    gc.collect()
    assert counts == [
        sys.getrefcount(thing) for thing in (net, Net, nn.Module._wrapped_call_impl, None.__class__, net.head.weight)
    ]


def test_other_patches_work():
    original, seen = nn.Module.__call__, []

    def patched(self, *args, **kwargs):
        seen.append(type(self).__name__)
        return original(self, *args, **kwargs)

    net = nn.Sequential(nn.ReLU())

    def work():
        nn.Module.__call__ = patched
        net(X)

    try:
        prof = profiled(work)
        assert nn.Module.__call__ is patched
    finally:
        nn.Module.__call__ = original
    assert seen == ["Sequential", "ReLU"]
    assert calls(prof) == ["Sequential_0", "ReLU_0"]
    graph = torch.fx.symbolic_trace(net).graph  # puts its own __call__ in place for a while
    prof = profiled(lambda: torch.fx.symbolic_trace(net))
    assert len(torch.fx.symbolic_trace(net).graph.nodes) == len(graph.nodes)


# --- other processes ----------------------------------------------------------------------------------------------------


def run(code, *words):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return "".join(line for line in done.stdout.splitlines(True) if not line.startswith("[Gloo]"))


def test_children_of_fork():
    out = run(
        """
        import os, torch, opstrobe
        net = torch.nn.ReLU(); x = torch.ones(2)
        with opstrobe.profile(with_modules=True) as prof:
            net(x)
            child = os.fork()
            if child == 0:
                net(x)
                for options in ({}, {"with_modules": True}):
                    with opstrobe.profile(**options) as own:
                        net(x)
                    print(own.profiler.trace.lost, sum(e.name == "nn.Module: ReLU_0" for e in own.events()), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            net(x)
        print(sum(e.name == "nn.Module: ReLU_0" for e in prof.events()))
        """
    )
    assert out.split() == ["0", "0", "0", "1", "2"]


def test_torch_imported_while_recording():
    out = run(
        """
        import warnings, opstrobe
        warnings.simplefilter("ignore")
        with opstrobe.profile(with_modules=True) as prof:
            import torch
            torch.nn.ReLU()(torch.ones(2))
        print(prof.module_summary(), end="")
        """
    )
    assert out == "no calls of modules were recorded: record with opstrobe run, or with with_modules=True\n"


DISTRIBUTED = """
    import sys, torch, opstrobe, torch.distributed as dist
    def work(rank, file):
        dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2)))
        net = WRAP
        with opstrobe.profile(with_modules=True) as prof:
            for _ in range(2):
                net(torch.ones(3, 4)).sum().backward()
        prof.profiler.trace.check()
        if rank == 0:
            for row in prof.module_summary().rows():
                print(row["path"], row["class"].rpartition(".")[2], row["calls"], row["backward_ns"] > 0)
        dist.destroy_process_group()
    if __name__ == "__main__":
        file = sys.argv[1]
        import os
        if os.fork() == 0:
            work(1, file)
            os._exit(0)
        work(0, file)
        os.wait()
"""


def test_distributed_data_parallel(tmp_path):
    out = run(DISTRIBUTED.replace("WRAP", "torch.nn.parallel.DistributedDataParallel(net)"), str(tmp_path / "store"))
    assert out.splitlines() == [
        "DistributedDataParallel DistributedDataParallel 2 True",
        "Sequential Sequential 2 True",
        "0 Linear 2 True",
        "1 Sequential 2 True",
        "1.0 ReLU 2 True",
        "1.1 Linear 2 True",
    ]


@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6), reason="before torch 2.6 fully_shard takes a GPU"
)
def test_fully_sharded(tmp_path):
    code = DISTRIBUTED.replace(
        "net = WRAP",
        """from torch.distributed.fsdp import fully_shard
        mesh = dist.init_device_mesh("cpu", (2,))
        fully_shard(net[1], mesh=mesh)
        fully_shard(net, mesh=mesh)""",
    )
    out = run(code, str(tmp_path / "store"))
    assert [line.split()[0] for line in out.splitlines()] == ["FSDPSequential", "0", "1", "1.0", "1.1"]
    assert {line.split()[2] for line in out.splitlines()} == {"2"}


def test_a_traced_function_has_nothing_of_the_recording():
    """torch.jit.trace traces twice and compares: the parameters of a module were read in the first graph only."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval()
    traced = []
    profiled(lambda: traced.append(torch.jit.trace(model, torch.rand(2, 4))))
    names = [value.debugName() for node in traced[0].inlined_graph.nodes() for value in node.outputs()]
    assert torch._C._get_tracing_state() is None
    plain = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval(), torch.rand(2, 4))
    assert names == [value.debugName() for node in plain.inlined_graph.nodes() for value in node.outputs()]


@pytest.mark.parametrize("memory", [False, True])
def test_a_torch_function_mode_sees_nothing_of_the_recording(memory):
    class Seen(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.names.append(getattr(function, "__qualname__", str(function)))
            return function(*args, **(kwargs or {}))

    def seen():
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with Seen() as mode:
            for _ in range(2):
                model(torch.rand(2, 4)).sum().backward()
                optimizer.step()
        return mode.names

    expected, recorded = seen(), []
    profiled(lambda: recorded.extend(seen()), profile_memory=memory, record_shapes=memory, with_stack=memory)
    assert expected and recorded == expected

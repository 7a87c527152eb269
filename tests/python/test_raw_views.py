# SPDX-License-Identifier: Apache-2.0
"""`kineto_results` as programs read it that know torch's classes; each fact is compared with torch's own."""

import collections
import sys
import threading
import warnings

import pytest

import opstrobe

torch = pytest.importorskip("torch")
from torch._C._autograd import _KinetoEvent  # noqa: E402
from torch._C._profiler import (  # noqa: E402
    RecordScope,
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _NNModuleInfo,
    _ProfilerEvent,
    _PyFrameState,
    _TensorMetadata,
)

pytestmark = pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="compares with torch 2.13")

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}


def train(model, optimizer):
    for _ in range(2):
        loss = (model(torch.ones(2, 4)) * 2).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def record(module, **options):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    optimizer = torch.optim.Adam(model.parameters())
    with module.profile(activities=[module.ProfilerActivity.CPU], **{**ALL, **options}) as prof:
        train(model, optimizer)
    return prof


@pytest.fixture(scope="module")
def both():
    bystander = torch.ones(1000)  # which no operator of the recordings takes
    record(torch.profiler)  # torch imports modules at its first step
    recordings = record(opstrobe), record(torch.profiler)
    assert bystander.sum() == 1000
    return recordings


def walk(nodes):
    for node in nodes:
        yield node
        yield from walk(node.children)


def nodes_of(prof):
    return list(walk(prof.profiler.kineto_results.experimental_event_tree()))


# --- events() ---------------------------------------------------------------------------------------------------------


def test_events_have_all_methods_of_torch(both):
    names = [name for name in dir(_KinetoEvent) if not name.startswith("_")]
    assert len(names) > 30
    for event in both[0].profiler.kineto_results.events():
        values = {name: getattr(event, name)() for name in names}
        assert values["duration_ns"] == values["end_ns"] - values["start_ns"]
    assert isinstance(event, _KinetoEvent)


# Numbers that torch gives out as it goes, times, and stacks, which torch leaves out unless it is asked twice.
VARYING = {
    "correlation_id", "duration_ns", "end_ns", "external_id", "flow_id", "sequence_nr", "stack", "start_ns", "python_id",
    "python_parent_id", "nbytes", "flops",
}  # fmt: skip


@pytest.mark.parametrize("category", ["cpu_op", "user_annotation"])
def test_events_of_operators_are_those_of_torch(both, category):
    names = [name for name in dir(_KinetoEvent) if not name.startswith("_") and name not in VARYING]

    def rows(prof):
        events = [e for e in prof.profiler.kineto_results.events() if e.activity_type() == category]
        return [{name: getattr(event, name)() for name in names} for event in events]

    ours, theirs = map(rows, both)
    assert len(ours) == len(theirs) > 3
    for row, other in zip(ours, theirs):
        assert row == other


def test_events_have_the_flops_of_torch(both):
    """Those of the operators that torch counts: ours counts more."""
    ours, theirs = (
        [event.flops() for event in prof.profiler.kineto_results.events() if event.activity_type() == "cpu_op"]
        for prof in both
    )
    counted = [(mine, other) for mine, other in zip(ours, theirs) if other]
    assert len(counted) > 10
    assert all(mine == other for mine, other in counted)


def test_events_have_allocations(both):
    def sizes(prof):
        reports = [event.nbytes() for event in prof.profiler.kineto_results.events() if event.name() == "[memory]"]
        return {size: reports.count(size) for size in (-64, -48, 48, 64)}

    ours, theirs = map(sizes, both)
    assert ours == theirs
    assert all(ours.values())


def test_without_flops_there_are_none():
    prof = record(opstrobe, with_flops=False)
    assert {event.flops() for event in prof.profiler.kineto_results.events()} == {0}


# --- experimental_event_tree() ------------------------------------------------------------------------------------------


def test_tree_is_that_of_torch(both):
    def shape(node):
        return node.name, node.tag == _EventType.Allocation, [shape(child) for child in node.children if keep(child)]

    def keep(node):
        return node.tag in (_EventType.TorchOp, _EventType.Allocation)

    def operators(prof):
        return [
            shape(node) for node in nodes_of(prof) if node.tag == _EventType.TorchOp and node.name == "aten::linear"
        ]

    ours, theirs = map(operators, both)
    assert ours == theirs
    assert len(ours) == 4


def test_nodes_are_accepted_as_torchs(both):
    kinds = {
        _EventType.TorchOp: _ExtraFields_TorchOp,
        _EventType.Allocation: _ExtraFields_Allocation,
        _EventType.PyCall: _ExtraFields_PyCall,
        _EventType.PyCCall: _ExtraFields_PyCCall,
    }
    seen = collections.Counter()
    for node in nodes_of(both[0]):
        tag, fields = node.typed
        assert tag == node.tag and isinstance(tag, _EventType)
        assert isinstance(node, _ProfilerEvent)
        assert isinstance(fields, kinds[tag])
        for child in node.children:
            assert child.parent == node and child in node.children
        names = [name for name in dir(kinds[tag]) if not name.startswith("_")]
        assert all(hasattr(fields, name) for name in names)
        seen[tag.name] += 1
    assert set(seen) == {"TorchOp", "Allocation", "PyCall", "PyCCall"}


def test_inputs_are_tensors_as_torch_shows_them(both):
    def show(value):
        if isinstance(value, list):
            return [show(item) for item in value]
        if not isinstance(value, _TensorMetadata):
            return value
        return value.sizes, value.strides, value.dtype, value.layout, value.device, value.dim

    def inputs(prof):
        nodes = [node for node in nodes_of(prof) if node.tag == _EventType.TorchOp]
        return [(node.name, show(node.extra_fields.inputs)) for node in nodes]

    ours, theirs = map(inputs, both)
    assert ours == theirs
    assert any(isinstance(value, tuple) for _, values in ours for value in values)


def test_lists_and_tensors_without_memory(both):
    def body():
        a = torch.ones(2, 3)
        torch.cat([a, a])
        a[:, 0:0].sum()
        torch.ones(3, device="meta") + 1
        a.to_sparse()

    def inputs(module):
        with module.profile(activities=[module.ProfilerActivity.CPU], **ALL) as prof:
            body()
        found = {}
        for node in nodes_of(prof):
            if node.name in ("aten::cat", "aten::sum", "aten::to_sparse", "aten::view"):
                found.setdefault(node.name, node.extra_fields.inputs)
        return found

    ours, theirs = inputs(opstrobe), inputs(torch.profiler)
    assert ours.keys() == theirs.keys()
    first, second = ours["aten::cat"][0]
    assert first.id == second.id is not None
    assert [t.sizes for t in theirs["aten::cat"][0]] == [first.sizes, second.sizes]
    assert (ours["aten::sum"][0].id is None) == (theirs["aten::sum"][0].id is None)


def test_a_storage_has_one_number_from_allocation_to_free(both):
    for prof in both:
        signs = collections.defaultdict(list)
        used = set()
        for node in sorted(nodes_of(prof), key=lambda node: node.start_time_ns):
            fields = node.extra_fields
            if node.tag == _EventType.Allocation and fields.allocation_id is not None:
                signs[fields.allocation_id].append(fields.alloc_size > 0)
            elif node.tag == _EventType.TorchOp:
                used |= {t.allocation_id for t in fields.inputs if isinstance(t, _TensorMetadata)}
        assert len(signs) > 20
        assert len(used & signs.keys()) > 10
        assert all(order in ([True], [True, False], [False]) for order in signs.values())


def test_calls_of_modules_have_their_parameters(both):
    def modules(prof):
        found = []
        for node in nodes_of(prof):
            if node.tag != _EventType.PyCall or node.extra_fields.module is None:
                continue
            info = node.extra_fields.module
            assert isinstance(info, _NNModuleInfo)
            assert info.self_ptr and info.cls_ptr
            parameters = [(name, t.sizes, t.strides, t.dtype) for name, t, _ in info.parameters]
            found.append((node.name.rpartition("_")[0], info.cls_name, parameters))
        return found

    ours, theirs = map(modules, both)
    assert ours == theirs
    assert (
        "nn.Module: Linear",
        "Linear",
        [("weight", [4, 4], [4, 1], torch.float32), ("bias", [4], [1], torch.float32)],
    ) in ours


def test_a_module_that_is_gone_keeps_its_parameters():
    prof = record(opstrobe)  # its model is gone
    infos = [n.extra_fields.module for n in nodes_of(prof) if n.tag == _EventType.PyCall]
    assert any(info is not None and info.parameters for info in infos)


def test_steps_of_optimizers_have_their_tensors(both):
    def steps(prof):
        found = []
        for node in nodes_of(prof):
            info = node.extra_fields.optimizer if node.tag == _EventType.PyCall else None
            if info is not None:
                found.append([
                    (p.sizes, grad.sizes, grad.dtype, [(name, t.sizes, t.dtype) for name, t in state])
                    for p, grad, state in info.parameters
                ])  # fmt: skip
        return found

    ours, theirs = map(steps, both)
    assert ours == theirs
    assert len(ours) == 2


def test_calls_have_their_caller(both):
    def calls(prof):
        found = set()
        for node in nodes_of(prof):
            if node.tag == _EventType.PyCall and node.name.startswith("torch/nn/functional"):
                site, caller = node.extra_fields.callsite, node.extra_fields.caller
                assert isinstance(site, _PyFrameState)
                found.add(
                    (site.file_name, site.line_number, site.function_name, caller.file_name, caller.function_name)
                )
        return found

    ours, theirs = map(calls, both)
    assert ours == theirs and ours


def test_backward_on_another_thread_is_below_the_call():
    """torch also lists the open functions of a thread that only waits, without a number; such a thread has no rows here.

    Threads that other tests left may wake up in either recording, so only threads with operators are compared.
    """
    unknown = 2**64 - 1
    stop = threading.Event()
    waiting = threading.Thread(target=stop.wait)
    waiting.start()
    try:
        ours, theirs = (nodes_of(record(module)) for module in (opstrobe, torch.profiler))
    finally:
        stop.set()
        waiting.join()
    of_operators = [{node.start_tid for node in nodes if node.tag == _EventType.TorchOp} for nodes in (ours, theirs)]
    assert of_operators[0] == of_operators[1] and of_operators[0]
    assert unknown in {node.start_tid for node in theirs}
    assert unknown not in {node.start_tid for node in ours}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is not counted")
def test_reading_keeps_no_references():
    """Tensors of a recording without memory have None for what is not known."""
    prof = record(opstrobe, profile_memory=False)
    (node, *_) = (node for node in nodes_of(prof) if node.name == "aten::addmm")
    before = sys.getrefcount(None)
    for _ in range(1000):
        tensors = node.extra_fields.inputs
    assert tensors[0].id is None
    assert sys.getrefcount(None) - before < 500


# --- torch's own readers --------------------------------------------------------------------------------------------------


def test_memory_profiler_of_torch_gives_the_same(both):
    from torch.profiler._memory_profiler import MemoryProfile

    def changes(prof):
        profile = MemoryProfile(prof.profiler.kineto_results)
        return collections.Counter(
            (action.name, profile._categories.get(key, version), size)
            for _, action, (key, version), size in profile.timeline
            if hasattr(key, "id")
        )

    ours, theirs = map(changes, both)
    assert ours == theirs
    assert sum(ours.values()) > 100


def test_patterns_of_torch_find_the_same():
    from torch.profiler import _pattern_matcher

    kinds = [
        _pattern_matcher.ForLoopIndexingPattern, _pattern_matcher.OptimizerSingleTensorPattern,
        _pattern_matcher.SynchronizedDataLoaderPattern, _pattern_matcher.GradNotSetToNonePattern,
        _pattern_matcher.Conv2dBiasFollowedByBatchNorm2dPattern, _pattern_matcher.ExtraCUDACopyPattern,
    ]  # fmt: skip

    def find(module):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.BatchNorm2d(2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        with module.profile(activities=[module.ProfilerActivity.CPU], **ALL) as prof:
            for _ in range(2):
                model(torch.ones(2, 3, 4, 4)).sum().backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
            filled = torch.empty(20)
            for i in range(20):
                filled[i] = i
        patterns = [kind(prof) for kind in kinds]
        return [(p.name, [p.report(event) for event in p.matched_events()]) for p in patterns]

    find(torch.profiler)
    ours, theirs = find(opstrobe), find(torch.profiler)
    assert [(name, len(reports)) for name, reports in ours] == [(name, len(reports)) for name, reports in theirs]
    assert sum(len(reports) for _, reports in ours) >= 3
    places = [line for _, reports in ours for line in reports if "[Source Code Location]" in line]
    assert all("test_raw_views.py" in line for line in places)


def test_memory_timeline_of_torch_takes_our_memory_profile(both, tmp_path):
    """As composer writes it. Ours also counts tensors alive at the start that no operator takes, such as those of other tests."""
    import json

    from torch.profiler._memory_profiler import MemoryProfileTimeline

    starts, growths = [], []
    for prof in both:
        timeline = MemoryProfileTimeline(prof._memory_profile())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            timeline.export_memory_timeline(str(tmp_path / "t.json"), "cpu")
            timeline.export_memory_timeline_raw(str(tmp_path / "t.raw.json"), "cpu")
        times, sizes = json.loads((tmp_path / "t.json").read_text())
        assert len(times) == len(sizes) > 50
        starts.append(sum(sizes[0]))
        growths.append(max(map(sum, sizes)) - starts[-1])
        raw = json.loads((tmp_path / "t.raw.json").read_text())
        assert {action for _, action, _, _ in raw} == {0 + 1, 2, 3, 4}
    assert starts[0] >= starts[1] > 0
    assert growths[0] == pytest.approx(growths[1], rel=0.1) and growths[1] > 0


def test_profile_plot_of_torch_draws_our_memory_profile(both):
    from torch.cuda._memory_viz import _profile_to_snapshot, profile_plot

    for prof in both:
        events = _profile_to_snapshot(prof)["device_traces"][-1]
        categories = {event["category"] for event in events if event["action"] == "alloc"}
        assert {"gradient", "activation", "optimizer_state"} <= categories
        assert any(event["frames"] for event in events)
        assert "<html" in profile_plot(prof) or "<!DOCTYPE" in profile_plot(prof)


def test_layers_are_read_as_by_layerwise_profilers(both):
    """A walk that keeps modules and, at the leaves, the operators with their inputs, as serving engines have one."""

    def show(value):
        if value is None or type(value) in (float, int, bool, str):
            return str(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(show, value))}]"
        assert isinstance(value, _TensorMetadata), type(value)
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.sizes))}]"

    def rows(prof):
        found = []

        def visit(event, depth):
            if event.start_tid != 1:
                return
            kind, fields = event.typed
            if kind == _EventType.PyCall and fields.module is not None:
                arguments = ", ".join(f"{name}={show(tensor)}" for name, tensor, *_ in fields.module.parameters)
                found.append((depth, f"{fields.module.cls_name}({arguments})"))
                depth += 1
            elif kind == _EventType.TorchOp and not event.children and fields.scope == RecordScope.FUNCTION and depth:
                found.append((depth, f"{event.name}({', '.join(map(show, fields.inputs))})"))
            for child in event.children:
                visit(child, depth)

        for root in prof.profiler.kineto_results.experimental_event_tree():
            visit(root, 0)
        return found

    ours, theirs = map(rows, both)
    assert ours == theirs
    assert (1, "Linear(weight=float32[4, 4], bias=float32[4])") in ours

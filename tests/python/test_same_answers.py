# SPDX-License-Identifier: Apache-2.0
"""Questions that programs ask a profile, put to torch's and to ours: the answers are the same."""

import contextlib
import json

import pytest

import opstrobe
import opstrobe.autograd_profiler

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [
    pytest.mark.torch_like("2.13", "2.15"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

QUESTIONS = []
AUTOGRAD = {torch.profiler: torch.autograd.profiler, opstrobe: opstrobe.autograd_profiler}


@pytest.fixture(scope="module", autouse=True)
def warm():
    with torch.profiler.profile(), torch.profiler.record_function("torch imports a module at its first range"):
        pass


def question(ask):
    QUESTIONS.append(ask)
    return ask


@pytest.mark.parametrize("ask", QUESTIONS, ids=lambda ask: ask.__name__)
def test_same_answers(ask, tmp_path):
    ours, theirs = ask(opstrobe, tmp_path), ask(torch.profiler, tmp_path)
    assert ours == theirs
    assert ours not in (None, [], {}, "")


def work():
    return torch.mm(torch.randn(8, 8), torch.randn(8, 8)) + torch.randn(8, 8)


def saved(prof, folder):
    prof.export_chrome_trace(str(folder / "trace.json"))
    return json.loads((folder / "trace.json").read_text())["traceEvents"]


def train():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(torch.ones(5, 3)), torch.ones(5, 2)).backward()
    optimizer.step()


# 1.4


@question
def stats_get_events_when_they_are_made(module, folder):
    with module.profile() as prof:
        work()
    stats = prof._stats()
    before = stats.number_of_events, stats.function_events_build_tree_call_duration_us
    events = prof.events()
    assert stats.number_of_events == len(events)
    durations = (
        stats.profiler_prepare_call_duration_us,
        stats.profiler_enable_call_duration_us,
        stats.profiler_disable_call_duration_us,
        stats.parse_kineto_call_duration_us,
        stats.function_events_build_tree_call_duration_us,
    )
    return before, stats is prof._stats(), all(us > 0 for us in durations), stats.profiling_window_duration_sec > 0


@question
def the_flag_that_a_profiler_records(module, folder):
    seen = [torch.autograd.profiler._is_profiler_enabled]
    for profile in (module.profile, AUTOGRAD[module].profile):
        with profile():
            seen.append(torch.autograd.profiler._is_profiler_enabled)
        seen.append(torch.autograd.profiler._is_profiler_enabled)
    return seen


@question
def pauses(module, folder):
    cpu = [module.ProfilerActivity.CPU]
    with module.profile(activities=cpu) as prof:
        torch.ones(1) + 1
        prof.toggle_collection_dynamic(False, cpu)
        torch.ones(1) * 2
        prof.toggle_collection_dynamic(True, cpu)
        torch.ones(1) - 1
    return sorted({event.name for event in prof.events()})


# 1.5 to 1.7


@question
def cycles_are_kept(module, folder):
    with module.profile(schedule=module.schedule(wait=0, warmup=1, active=1, repeat=2), acc_events=True) as prof:
        for _ in range(4):
            work()
            prof.step()
    return {row.key: row.count for row in prof.key_averages()}


@question
def handlers_of_a_schedule(module, folder):
    seen = []
    with module.profile(
        schedule=module.schedule(skip_first=2, wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda prof: seen.append((prof.step_num, [e.name for e in prof.events()].count("aten::mm"))),
    ) as prof:
        for _ in range(12):
            work()
            prof.step()
    return seen, prof.step_num


@question
def steps_drive_a_profile_that_was_never_entered(module, folder):
    seen = []
    prof = module.profile(
        schedule=module.schedule(wait=2, warmup=2, active=2, repeat=1),
        on_trace_ready=lambda prof: seen.append(prof.step_num),
    )
    for _ in range(10):
        work()
        prof.step()
        seen.append(prof.current_action.name)
    return seen, prof.step_num, [e.name for e in prof.events() if not e.name.startswith("Profiler")]


# 1.10


@question
def ranges_of_torch_itself(module, folder):
    with module.profile() as prof:
        train()
        for _ in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=2):
            pass
    return sorted((row.key, row.count) for row in prof.key_averages() if "#" in row.key)


@question
def ranges_with_a_future(module, folder):
    with AUTOGRAD[module].profile() as prof:
        with module.record_function("range") as range_:
            future = torch.futures.Future()
            after = range_._call_end_callbacks_on_future(future)
        future.set_result(3)
        answer = after.wait()
    return answer, [event.name for event in prof.function_events]


@question
def ranges_in_functions_that_torch_traces(module, folder):
    def forked(x):
        with module.record_function("forked", "with a text"):
            return x * 2

    x = torch.ones(3, 4)
    traced = torch.jit.trace(forked, x)

    def program(x):
        with module.record_function("before"):
            y = torch.jit._wait(torch.jit._fork(traced, x))
        with module.record_function("after"):
            return y * 2

    traced_program = torch.jit.trace(program, x)
    assert torch.equal(traced_program(x), x * 4)
    with module.profile() as prof:
        traced_program(x)
    main = next(e.thread for e in prof.events() if e.name == "before")
    # Whether "after" stays on the first thread depends on whether the forked function has already ended when torch waits
    # for it: if it has not, torch goes on with the program on the thread that ends it.
    return sorted(
        (
            e.name,
            e.is_user_annotation,
            e.name == "after" or e.thread == main,
            str(traced_program.graph).count(e.name),
        )
        for e in prof.events()
        if e.name in ("before", "forked", "after")
    )


@question
def traced_function_that_fails(module, folder):
    def fails(x):
        with module.record_function("range"):
            raise KeyError("x")

    with pytest.raises(KeyError):
        torch.jit.trace(fails, torch.ones(1))
    with module.profile() as prof, module.record_function("later"):
        work()
    return [e.name for e in prof.events() if e.is_user_annotation]


@question
def decorators(module, folder):
    @module.record_function("decorated")
    def decorated():
        return work()

    with module.profile() as prof:
        decorated()
        decorated()
    (row,) = (row for row in prof.key_averages() if row.key == "decorated")
    return row.count, row.is_user_annotation, decorated.__name__


# 1.13


@question
def steps_are_counted_once(module, folder):
    tracker = AUTOGRAD[module].KinetoStepTracker
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KINETO_USE_DAEMON", "1")
        first = tracker.current_step()
        for _ in range(4):
            tracker.increment_step("another")
        with module.profile(schedule=module.schedule(wait=1, warmup=1, active=2)) as prof:
            for _ in range(4):
                tracker.increment_step("another")
                prof.step()
        tracker.erase_step_count("another")
        return tracker.current_step() - first


@question
def text_of_an_autograd_profile(module, folder):
    with AUTOGRAD[module].profile() as prof:
        unfinished = str(prof), repr(prof)
        work()
    return unfinished, str(prof).split()[1:4], "aten::mm" in prof.table()


# 2


@question
def numbers_of_arrows(module, folder):
    with module.profile() as prof:
        train()
    return [(event.name, event.flow_id, event.flow_type, event.flow_start) for event in prof.events() if event.flow_id]


@question
def correlation_ids(module, folder):
    with module.profile() as prof:
        train()
    ids = [event.correlation_id() for event in prof.profiler.kineto_results.events() if event.correlation_id()]
    return len(ids) == len(set(ids)), len(ids) > 10, all(0 < number < 2**32 for number in ids)


@question
def memory_by_range(module, folder):
    with module.profile(profile_memory=True, record_shapes=True) as prof:
        with module.record_function("takes"):
            kept = torch.rand(10, 3, 224, 224)
        with module.record_function("gives"):
            del kept
        kept = torch.rand(5, 5)
        del kept
    wanted = ("takes", "gives", "aten::rand", "aten::empty", "[memory]")
    return {
        row.key: (row.cpu_memory_usage, row.self_cpu_memory_usage) for row in prof.key_averages() if row.key in wanted
    }


@question
def out_of_memory(module, folder):
    with module.profile(profile_memory=True, record_shapes=True) as prof:
        with pytest.raises(RuntimeError, match="allocate"):
            torch.empty(1 << 50, dtype=torch.uint8)
    (row,) = (row for row in saved(prof, folder) if row["name"] == "[OutOfMemory]")
    return (
        [event.name for event in prof.events()],
        sorted(set(row["args"]) - {"finished"}),
        row["args"]["Bytes"],
    )


@question
def lines_of_tables(module, folder):
    with module.profile(record_shapes=True) as prof:
        work()
    rows = prof.key_averages(group_by_input_shape=True)
    options = ({}, {"row_limit": 2}, {"row_limit": -1}, {"header": "h"}, {"time_unit": "ms"}, {"sort_by": "count"})
    top = prof.key_averages().table(top_level_events_only=True)
    return [len(rows.table(**each).splitlines()) for each in options], len(top.splitlines())


@question
def unit_of_flops(module, folder):
    model = nn.Sequential(nn.Conv2d(16, 33, 18), nn.ReLU(), nn.Linear(243, 243), nn.ReLU())
    with module.profile(record_shapes=True, with_flops=True) as prof:
        model(torch.randn(1, 16, 18, 260))
    table = prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10)
    return [word for word in table.split() if word.endswith("FLOPs")]


@question
def list_made_of_a_list(module, folder):
    kind = opstrobe.EventList if module is opstrobe else torch.autograd.profiler_util.EventList
    with module.profile() as prof:
        work()
    events = kind(prof.events())
    events.export_chrome_trace(str(folder / "events.json"))
    rows = json.loads((folder / "events.json").read_text())
    rows = rows if isinstance(rows, list) else rows["traceEvents"]  # ours is a whole trace
    return sorted(row["name"] for row in rows if row.get("cat", "cpu_op") == "cpu_op" and row["ph"] == "X"), (
        "aten::mm" in events.table()
    )


# 3


@question
def arrows_count_from_the_first_backward_node(module, folder):
    with module.profile() as prof:
        train()
    rows = saved(prof, folder)
    names = {row["ts"]: row["name"] for row in rows if row["ph"] == "X"}
    return {
        (row["id"], row["ph"]): names[row["ts"]] for row in rows if row.get("cat") == "fwdbwd" and row["ph"] in "sf"
    }


@question
def arrows_that_torch_was_told_to_leave_out(module, folder):
    counts = []
    for enabled in (False, True):
        torch._C._profiler._set_fwd_bwd_enabled_val(enabled)
        try:
            with module.profile() as prof:
                train()
        finally:
            torch._C._profiler._set_fwd_bwd_enabled_val(True)
        counts.append(sum(row.get("cat") == "fwdbwd" for row in saved(prof, folder)))
        if module is opstrobe:  # what is read back is worked out all the same
            again = opstrobe.read(str(folder / "trace.json"))
            assert len(again.trace.rows()) == len(prof.profiler.trace.rows())
            assert [e.stack for e in again.events()] == [e.stack for e in prof.events()]
            assert again.key_averages().table() == prof.key_averages().table()
    return counts


class Trainer:
    """Calls step() in a method, as trainers do, with ranges that a generator opens and closes."""

    def __init__(self, module, prof):
        self.module, self.prof = module, prof

    @contextlib.contextmanager
    def phase(self, name):
        with self.module.record_function(name):
            yield

    def end_batch(self):
        work()
        self.prof.step()
        work()

    def run(self, batches):
        for _ in range(batches):
            with self.phase("forward"):
                work()
            with self.module.record_function("crosses steps"):
                self.end_batch()


@pytest.mark.parametrize("stacks", [False, True])
def test_ranges_are_complete_events(stacks, tmp_path):
    """Readers look for steps among the complete events alone. What cuts through them is a frame, and gives way."""

    def record(module):
        schedule = module.schedule(wait=1, warmup=1, active=3)
        with module.profile(schedule=schedule, with_stack=stacks) as prof:
            Trainer(module, prof).run(5)
        rows = saved(prof, tmp_path)
        return rows, sorted((e["name"], e["ph"]) for e in rows if e.get("cat") == "user_annotation")

    (rows, ours), (_, theirs) = record(opstrobe), record(torch.profiler)
    assert ours == theirs
    assert [pair for pair in ours if pair[0].startswith("ProfilerStep")] == [
        (f"ProfilerStep#{i}", "X") for i in (2, 3, 4)
    ]
    paired = {e["name"].rpartition(".")[2] for e in rows if e["ph"] == "b"}
    assert paired == ({"end_batch", "phase", "<built-in function next>", "__enter__", "__exit__"} if stacks else set())


# Private names of kineto_results


def nodes(tree):
    for node in tree:
        yield node
        yield from nodes(node.children)


@question
def raw_events(module, folder):
    with module.profile(record_shapes=True) as prof:
        work()
    (event,) = (event for event in prof.profiler.kineto_results.events() if event.name() == "aten::mm")
    return [
        event.shapes(),
        event.dtypes(),
        event.device_type() == torch.autograd.DeviceType.CPU or event.device_type() == opstrobe.DeviceType.CPU,
        event.start_thread_id() == event.end_thread_id(),
        event.is_async(),
        event.scope(),
        event.fwd_thread_id(),
        event.duration_ns() == event.end_ns() - event.start_ns(),
        event.activity_type(),
        event.stack(),
        event.is_user_annotation(),
    ]


@question
def inputs_in_the_tree(module, folder):
    half, one = torch.ones(4, 4)[:, ::2], torch.ones(1, dtype=torch.int64)
    with module.profile(record_shapes=True) as prof:
        torch.add(half, one, alpha=2)
        torch.cat([half, half])
    said = []
    for node in nodes(prof.profiler.kineto_results.experimental_event_tree()):
        if node.name in ("aten::add", "aten::cat") and node.parent is None:
            for given in node.extra_fields.inputs:
                tensors = given if isinstance(given, list) else [given]
                said.append([(t.sizes, t.strides, t.dtype) if hasattr(t, "sizes") else t for t in tensors])
                said[-1] = [entry[:2] for entry in said[-1]] if isinstance(given, list) else said[-1]
    return said


@pytest.mark.torch_like("2.9", "2.13")  # torch 2.15 has neither any more
def test_tools_of_torch_take_our_profiles():
    from torch.profiler import _pattern_matcher, _utils

    def answers(module):
        x, model = torch.ones(10, 10), nn.Sequential(nn.Conv2d(3, 3, 3, 1, 1), nn.BatchNorm2d(3))
        optimizer = torch.optim.Adam(model.parameters())
        with module.profile(with_stack=True, record_shapes=True) as prof:
            for i in range(10):
                x[i] = i
            optimizer.zero_grad(set_to_none=False)
            model(torch.rand(2, 3, 8, 8)).sum().backward()
            optimizer.step()
        found = {
            name: len(getattr(_pattern_matcher, name)(prof).matched_events())
            for name in (
                "ForLoopIndexingPattern",
                "OptimizerSingleTensorPattern",
                "Conv2dBiasFollowedByBatchNorm2dPattern",
                "SynchronizedDataLoaderPattern",
            )
        }
        for key, metrics in _utils.BasicEvaluation(prof.profiler).metrics.items():
            inside = sum(child.duration_time_ns for child in key.event.children)
            assert metrics.self_time_ns == key.event.duration_time_ns - inside
        return found

    ours = answers(opstrobe)
    assert ours == answers(torch.profiler)
    assert any(ours.values())

# SPDX-License-Identifier: Apache-2.0
"""The torch bridge where it could go wrong: other profilers, threads, operators that come and go, the end of things."""

import gc
import os
import queue
import subprocess
import sys
import textwrap
import threading

import pytest

torch = pytest.importorskip("torch")

import opstrobe  # noqa: E402
from opstrobe import _core  # noqa: E402
from opstrobe.recording import bridge  # noqa: E402

bridge.load()
A, B = torch.ones(4), torch.ones(4)


class Session:
    """A `_core.Session` around a block, with its trace and events afterwards."""

    def __init__(self, **options):
        self.session = _core.Session(**options)

    def __enter__(self):
        self.session.start()
        return self

    def __exit__(self, *_):
        self.trace = self.session.stop()
        self.trace.check()
        self.events = self.trace.function_events(profile_memory=True)

    def names(self):
        return [event.name for event in self.events]

    def count(self, name):
        return self.names().count(name)


def in_thread(function):
    """Runs it in a new thread and returns its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def run(program, *, code=0):
    """The output of a Python program in a separate process, which ends with this exit code."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "KINETO_LOG_LEVEL": "99"},
    )
    assert process.returncode == code, process.stderr
    return process.stdout


# --- operators --------------------------------------------------------------------------------------------------------


def test_operators_are_counted_exactly():
    with Session() as s:
        for _ in range(10_000):
            torch.add(A, B)
    assert s.count("aten::add") == 10_000
    assert s.trace.lost == 0


def test_nothing_before_nothing_after():
    torch.mul(A, B)
    with Session() as s:
        torch.add(A, B)
    torch.mul(A, B)
    assert set(s.names()) == {"aten::add"}


def test_pause():
    session = _core.Session()
    session.start()
    torch.add(A, B)
    session.pause()
    torch.mul(A, B)
    session.resume()
    torch.sub(A, B)
    trace = session.stop()
    assert [e.name for e in trace.function_events()] == ["aten::add", "aten::sub"]


def experimental(**fields):
    """Torch's configuration, where this torch has these fields."""
    try:
        return torch.profiler._ExperimentalConfig(**fields)
    except TypeError:
        pytest.skip(f"this torch knows no {fields}")


@pytest.mark.parametrize("shapes", [False, True])
def test_overload_names(shapes):
    def program():
        torch.add(A, B)
        torch.add(A, 2)
        A.sum()
        A.sum(dim=0)

    with Session(record_shapes=shapes) as s:
        program()
    assert {e.overload_name for e in s.events} == {""}
    with Session(record_shapes=shapes, capture_overload_names=True) as s:
        program()
    ours = [(e.name, e.overload_name) for e in s.events]
    assert {overload for _, overload in ours} > {"Tensor", "dim_IntList"}
    config = experimental(capture_overload_names=True)
    with torch.profiler.profile(record_shapes=shapes, experimental_config=config) as prof:
        program()
    assert ours == [(e.name, e.overload_name) for e in prof.events()]


def test_a_deregistered_operator_leaves_its_name_behind():
    """Memory of schemas is reused; each event keeps the name it had when it ran."""
    expected = []
    with Session(capture_overload_names=True) as s:
        for i in range(40):
            library = torch.library.Library("opstrobe_test", "DEF")
            # Names of many lengths, equal ones among them, so that memory is reused in every way.
            name = f"n{i % 7}" + "x" * (i * 5 % 31)
            overload = f"o{i % 3}"
            library.define(f"{name}.{overload}(Tensor x) -> Tensor")
            library.impl(f"{name}.{overload}", lambda x: x.clone(), "CompositeExplicitAutograd")
            for _ in range(3):
                getattr(getattr(torch.ops.opstrobe_test, name), overload)(A)
                expected.append((f"opstrobe_test::{name}", overload))
            library._destroy()
            del library
    ours = [(e.name, e.overload_name) for e in s.events if e.name.startswith("opstrobe_test")]
    assert ours == expected


def test_many_operators_share_the_cache_of_names():
    functions = [f for f in dir(torch.special) if not f.startswith("_")]
    functions = [getattr(torch.special, f) for f in functions]
    x = torch.rand(3) * 0.5 + 0.25

    def run_all():
        for function in functions:
            try:
                function(x)
            except (TypeError, RuntimeError):
                pass

    def record(module):
        with module.profile() as prof:
            for _ in range(3):
                run_all()
        return [e.name for e in prof.events()]

    ours = record(opstrobe)
    assert ours == record(torch.profiler)
    assert len(set(ours)) > 30


def test_autograd_nodes_sequence_numbers_and_forward_threads():
    """Backward of one thread's forward on another thread."""
    leaf = torch.ones(3, requires_grad=True)

    def record(module):
        with module.profile() as prof:
            loss = (leaf.exp() * leaf.tanh()).sum()
            loss.backward()
        return prof.events()

    record(torch.profiler)
    theirs, ours = record(torch.profiler), record(opstrobe)
    first = {id(events): min(e.sequence_nr for e in events if e.sequence_nr >= 0) for events in (theirs, ours)}

    def facts(events):
        return [
            (e.name, e.scope, e.sequence_nr - first[id(events)] if e.sequence_nr >= 0 else -1, e.thread, e.fwd_thread)
            for e in events
        ]

    assert facts(ours) == facts(theirs)
    assert any(e.fwd_thread for e in ours)


def test_a_long_function_name():
    name = "opstrobe::" + "é" * 5000
    with Session() as s:
        with torch._C._profiler._RecordFunctionFast(name):
            torch.add(A, B)
        with torch.profiler.record_function(name):
            pass
    assert s.count(name) == 2


# --- ranges -----------------------------------------------------------------------------------------------------------


def test_ranges_of_torch_end_when_they_are_left():
    """Torch deletes a range's state long after its end: then nothing may happen any more."""
    kept = []
    with Session() as s:
        for i in range(100):
            with torch.profiler.record_function(f"range {i}") as handle:
                torch.add(A, B)
            kept.append(handle)
        torch.mul(A, B)
    multiply = s.events[s.names().index("aten::mul")]
    ranges = [e for e in s.events if e.name.startswith("range")]
    assert len(ranges) == 100
    assert all(e.time_range.end <= multiply.time_range.start for e in ranges)
    assert all(e.is_user_annotation and e.scope == 7 for e in ranges)
    with Session():
        torch.add(A, B)
        kept.clear()


def test_a_range_left_after_its_session():
    handle = torch.profiler.record_function("open")
    with Session() as s:
        handle.__enter__()
        torch.add(A, B)
    for _ in range(3):
        with Session():
            torch.add(A, B)
    handle.__exit__(None, None, None)
    del handle
    event = s.events[s.names().index("open")]
    assert event.time_range.end == pytest.approx((s.trace.stop_ns - s.trace.start_ns) / 1e3, abs=1)


def test_asynchronous_ranges():
    """Ended by a future's callback, on another thread."""

    def record(module):
        with module.profile() as prof:
            future = torch.futures.Future()
            with torch.profiler.record_function("asynchronous") as handle:
                chained = handle._call_end_callbacks_on_future(future)
            torch.add(A, B)
            thread = threading.Thread(target=future.set_result, args=(1,))
            thread.start()
            thread.join()
            assert chained.wait() == 1
            torch.mul(A, B)
        return prof.events()

    ours, theirs = record(opstrobe), record(torch.profiler)
    for events in (ours, theirs):
        by_name = {e.name: e for e in events}
        span = by_name["asynchronous"].time_range
        assert span.start < by_name["aten::add"].time_range.start
        assert by_name["aten::add"].time_range.end < span.end < by_name["aten::mul"].time_range.start
        assert by_name["asynchronous"].is_async


def test_jit_fork():
    @torch.jit.script
    def forked(x):
        return x.exp()

    @torch.jit.script
    def program(x):
        future = torch.jit.fork(forked, x)
        return torch.jit.wait(future) + 1

    def record(module):
        program(A)
        with module.profile() as prof:
            program(A)
        return prof.events()

    ours, theirs = record(opstrobe), record(torch.profiler)
    assert sorted(e.name for e in ours) == sorted(e.name for e in theirs)
    assert "aten::exp" in [e.name for e in ours]


# --- threads ----------------------------------------------------------------------------------------------------------


def test_other_threads_only_on_request():
    with Session() as s:
        in_thread(lambda: torch.mul(A, B))
        torch.add(A, B)
    assert s.names() == ["aten::add"]
    with Session(all_threads=True) as s:
        in_thread(lambda: torch.mul(A, B))
        torch.add(A, B)
    assert sorted(s.names()) == ["aten::add", "aten::mul"]


def test_threads_that_end_keep_their_events():
    def work():
        for _ in range(500):
            torch.add(A, B)
        return threading.get_native_id()

    with Session(all_threads=True, record_shapes=True) as s:
        tids = {in_thread(work) for _ in range(20)}
    assert s.count("aten::add") == 20 * 500
    assert {e.device_resource_id for e in s.events} == tids
    assert len({e.thread for e in s.events}) == 20


def test_many_threads_at_once():
    go = threading.Barrier(9)

    def work():
        go.wait()
        for _ in range(2000):
            torch.add(A, B)
        return 0

    threads = [threading.Thread(target=work) for _ in range(8)]
    with Session(all_threads=True, record_shapes=True, profile_memory=True) as s:
        for thread in threads:
            thread.start()
        go.wait()
        for thread in threads:
            thread.join()
    assert s.count("aten::add") == 8 * 2000
    assert s.trace.lost == 0


def test_all_threads_backward_is_recorded_once():
    x = torch.ones(3, requires_grad=True)
    with Session(all_threads=True) as s:
        x.exp().sum().backward()
    assert s.count("ExpBackward0") == 1


def test_stopped_by_another_thread():
    """The starter keeps callbacks of a session that is over: they record nothing, whatever is recorded elsewhere."""
    first = _core.Session(profile_memory=True)
    first.start()
    torch.add(A, B)
    trace = in_thread(first.stop)
    assert [e.name for e in trace.function_events()].count("aten::add") == 1

    def second():
        with Session(profile_memory=True) as s:
            torch.mul(A, B)
            ready.set()
            done.wait()
        return s

    ready, done = threading.Event(), threading.Event()
    results = []
    thread = threading.Thread(target=lambda: results.append(second()))
    thread.start()
    ready.wait()
    torch.sub(A, B)
    torch.sub(A, B)
    done.set()
    thread.join()
    assert "aten::sub" not in results[0].names()
    assert results[0].count("aten::mul") == 1
    # The first operator removed what remained: this thread is free for every profiler.
    with torch.profiler.profile() as prof:
        torch.add(A, B)
    assert len(prof.events()) == 1
    with Session(profile_memory=True) as s:
        torch.add(A, B)
    assert s.count("aten::add") == 1
    assert s.count("[memory]") >= 0


def test_sessions_of_two_threads_in_turn():
    for _ in range(5):
        session = _core.Session()
        in_thread(session.start)
        torch.add(A, B)
        names = [e.name for e in session.stop().function_events()]
        assert names == []
        session = _core.Session()
        session.start()
        torch.add(A, B)
        names = [e.name for e in in_thread(session.stop).function_events()]
        assert names == ["aten::add"]


def test_the_end_of_a_thread_in_the_middle_of_a_range():
    held = []

    def work():
        range_ = torch.profiler.record_function("left open")
        range_.__enter__()
        held.append(range_)
        return 0

    with Session(all_threads=True) as s:
        in_thread(work)
        held.pop().__exit__(None, None, None)
    assert s.count("left open") == 1


def test_autograd_threads_inherit(tmp_path):
    """Reentrant backward and hooks run wherever torch runs them."""

    class Reentrant(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                y.tanh().sum().backward()
            return grad * y.grad

    x = torch.ones(3, requires_grad=True)

    def record(module):
        with module.profile(record_shapes=True, profile_memory=True) as prof:
            Reentrant.apply(x).sum().backward()
        return [e.name for e in prof.events() if e.name != "[memory]"]

    record(torch.profiler)
    assert record(opstrobe) == record(torch.profiler)


# --- other profilers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [False, True])
def test_inside_torch_profiler(memory):
    with torch.profiler.profile(profile_memory=memory) as prof:
        torch.add(A, B)
        with pytest.raises(RuntimeError, match=r"torch\.profiler"):
            _core.Session(profile_memory=memory).start()
        torch.add(A, B)
    assert [e.name for e in prof.events()].count("aten::add") == 2
    with Session() as s:
        torch.add(A, B)
    assert s.names() == ["aten::add"]


@pytest.mark.parametrize("memory", [False, True])
def test_torch_profiler_inside(memory):
    """An error the first time. Having failed, torch throws away what it takes for its own state, and may then run, or
    (2.4) never again in this process. Our sessions do not mind."""
    out = run(f"""
        import torch
        from opstrobe import _core
        from opstrobe.recording import bridge
        bridge.load()
        a = torch.ones(4)
        session = _core.Session(profile_memory={memory})
        session.start()
        try:
            torch.profiler.profile().start()
        except RuntimeError as error:
            print(error)
        torch.add(a, a)
        for _ in range(3):
            try:
                with torch.profiler.profile():
                    torch.mul(a, a)
            except RuntimeError:
                pass
        torch.add(a, a)
        print([e.name for e in session.stop().function_events()].count("aten::add"))
        for _ in range(2):
            session = _core.Session(profile_memory=True)
            session.start()
            x = torch.empty(1000)
            print([(e.name, e.cpu_memory_usage) for e in session.stop().function_events(profile_memory=True)])
            del x
        """)
    first, *others = out.splitlines()
    assert "already enabled" in first
    assert others == ["2"] + ["[('aten::empty', 4000)]"] * 2


def test_torch_asks_whose_state_it_is():
    """Torch reads our memory reporter as one of its profiler states: one that records, and that it cannot stop."""
    assert not torch._C._autograd._profiler_enabled()
    with Session(profile_memory=True) as s:
        for _ in range(3):
            assert torch._C._autograd._profiler_enabled()
            kind = getattr(torch._C._autograd, "_profiler_type", None)
            assert kind is None or kind() == torch._C._profiler.ActiveProfilerType.NONE
        with pytest.raises(RuntimeError):
            torch._C._autograd._disable_profiler()
        torch.add(A, B)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(8)), batch_size=2)
        assert len(list(loader)) == 4
    assert s.count("aten::add") == 1
    assert not torch._C._autograd._profiler_enabled()


@pytest.mark.parametrize("memory", [False, True])
def test_the_older_profilers_of_torch(memory):
    from torch.autograd import profiler_legacy

    with Session(profile_memory=memory):
        with pytest.raises(RuntimeError), profiler_legacy.profile():
            torch.add(A, B)
    with profiler_legacy.profile() as prof, pytest.raises(RuntimeError, match=r"torch\.profiler"):
        _core.Session(profile_memory=memory).start()
    del prof
    with Session() as s:
        torch.add(A, B)
    assert s.names() == ["aten::add"]


def test_torch_profiler_of_all_threads_beside():
    config = experimental(profile_all_threads=True)
    with torch.profiler.profile(experimental_config=config) as prof, Session(profile_memory=True) as s:
        torch.add(A, B)
    assert [e.name for e in prof.events()].count("aten::add") == 1
    assert s.count("aten::add") == 1


# --- memory -----------------------------------------------------------------------------------------------------------


def test_fast_ranges_are_recorded():
    """Torch runs them only where it finds a profiler state."""
    with Session() as s, torch._C._profiler._RecordFunctionFast("fast"):
        torch.add(A, B)
    assert s.names() == ["fast", "aten::add"]


def memory_records(trace):
    """(address, bytes, total, thread) of each allocator report, in order."""
    import json
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        trace.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    reports = [e for e in events if e.get("name") == "[memory]"]
    reports.sort(key=lambda e: e["ts"])
    return [(e["args"]["Addr"], e["args"]["Bytes"], e["args"]["Total Allocated"], e["tid"]) for e in reports]


def test_memory_reports_add_up():
    with Session(profile_memory=True) as s:
        x = torch.empty(1000)
        y = torch.empty(500)
        del x
        z = y.double()
        del y, z
    reports = memory_records(s.trace)
    assert [r[1] for r in reports] == [4000, 2000, -4000, 4000, -2000, -4000] or sum(r[1] for r in reports) == 0
    assert {abs(r[1]) for r in reports} == {4000, 2000}
    assert sum(r[1] for r in reports) == 0
    total = reports[0][2] - reports[0][1]
    for _, size, running, _ in reports:
        total += size
        assert running == total


def test_memory_equals_torch():
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    x = torch.ones(8, 16)

    def step():
        model(x).square().mean().backward()
        model.zero_grad()

    def record(module):
        step()
        gc.collect()  # or else it may free other tests' tensors in here
        with module.profile(profile_memory=True) as prof:
            step()
        return [(e.name, e.cpu_memory_usage, e.self_cpu_memory_usage) for e in prof.events()]

    # Torch attributes by time alone and now and then finds a report outside of the operator that made it.
    assert any(record(opstrobe) == record(torch.profiler) for _ in range(5))


def test_memory_of_all_threads():
    def work():
        x = torch.empty(1000)
        del x
        return threading.get_native_id()

    with Session(profile_memory=True, all_threads=True) as s:
        tids = {in_thread(work) for _ in range(3)}
        x = torch.empty(10)
        del x
    reports = memory_records(s.trace)
    for tid in tids:
        assert [r[1] for r in reports if r[3] == tid] == [4000, -4000]
    assert [r[1] for r in reports if r[3] not in tids] == [40, -40]


@pytest.mark.parametrize("began", ["before", "during"])
def test_frees_of_threads_that_run_no_operator(began):
    """A thread that only drops tensors, as consumers of a queue do."""
    tensors = queue.Queue()

    def drop():
        while (item := tensors.get()) is not None:
            del item

    thread = threading.Thread(target=drop)
    if began == "before":
        thread.start()
    kept = torch.ones(10)
    with Session(profile_memory=True, all_threads=True) as s:
        if began == "during":
            thread.start()
        for _ in range(8):
            tensors.put(torch.empty(250_000))
        tensors.put(None)
        thread.join()
        late = torch.empty(5)
    reports = memory_records(s.trace)
    assert [r[1] for r in reports if r[1] > 0] == [1_000_000] * 8 + [20]
    assert [r[1] for r in reports if r[3] == thread.native_id] == [-1_000_000] * 8
    assert sum(r[1] for r in reports) == 20
    late.resize_(100_000)
    late.untyped_storage().resize_(8)
    del kept, late  # freed as ever, after the session


def test_the_allocator_is_torchs_again_afterwards():
    program = """
import threading, torch
from opstrobe import _core
from opstrobe.recording import bridge
bridge.load()
held = []
for _ in range(3):
    session = _core.Session(profile_memory=True, all_threads=True)
    session.start()
    held.append(torch.empty(1000))
    session.stop()
held.append(torch.empty(1000).share_memory_())
x = torch.empty(10).numpy()
del held
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_a_failed_allocation_is_recorded_or_raised():
    with Session(profile_memory=True) as s, pytest.raises(RuntimeError, match="allocate|memory"):
        torch.empty(1 << 60, dtype=torch.uint8)
    assert s.count("aten::empty") == 1


def test_memory_while_paused():
    session = _core.Session(profile_memory=True)
    session.start()
    session.pause()
    x = torch.empty(1000)
    session.resume()
    y = torch.empty(10)
    trace = session.stop()
    assert [r[1] for r in memory_records(trace)] == [40]
    del x, y


# --- the end of things --------------------------------------------------------------------------------------------------


def test_results_are_the_same_bit_for_bit():
    def train(profiler):
        torch.manual_seed(7)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
        )
        optimizer = torch.optim.Adam(model.parameters())
        losses = []
        for _ in range(5):
            with profiler():
                loss = model(torch.randn(6, 1, 8, 8)).logsumexp(1).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        return [p.detach() for p in model.parameters()] + losses

    import contextlib

    plain = train(contextlib.nullcontext)
    for options in ({}, {"record_shapes": True, "profile_memory": True}, {"all_threads": True, "profile_memory": True}):
        profiled = train(lambda options=options: Session(**options))
        assert all(torch.equal(a, b) for a, b in zip(plain, profiled))


@pytest.mark.parametrize(
    "options", ["", "record_shapes=True, profile_memory=True", "all_threads=True, profile_memory=True"]
)
def test_exit_in_the_middle(options):
    run(f"""
        import torch
        from opstrobe import _core
        from opstrobe.recording import bridge
        bridge.load()
        session = _core.Session({options})
        session.start()
        range_ = torch.profiler.record_function("open")
        range_.__enter__()
        x = torch.ones(3) + 1
        """)


@pytest.mark.parametrize("options", ["", "all_threads=True"])
def test_fork(options):
    out = run(f"""
        import os, torch
        from opstrobe import _core
        from opstrobe.recording import bridge
        bridge.load()
        torch.set_num_threads(1)
        a = torch.ones(4)
        session = _core.Session(record_shapes=True, profile_memory=True, {options})
        session.start()
        torch.add(a, a)
        range_ = torch.profiler.record_function("over the fork")
        range_.__enter__()
        child = os.fork()
        if child == 0:
            assert not session.running
            torch.mul(a, a)
            range_.__exit__(None, None, None)
            own = _core.Session(profile_memory=True)
            own.start()
            torch.sub(a, a)
            names = [e.name for e in own.stop().function_events()]
            assert [n for n in names if n != "[memory]"] == ["aten::sub"], names
            try:
                session.stop()
            except RuntimeError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        torch.div(a, a)
        range_.__exit__(None, None, None)
        trace = session.stop()
        trace.check()
        print([e.name for e in trace.function_events() if e.name != "[memory]"])
        """)
    assert out.strip() == "['aten::add', 'over the fork', 'aten::div']"


def test_dropped_while_recording():
    for _ in range(20):
        session = _core.Session(record_shapes=True, profile_memory=True)
        session.start()
        torch.add(A, B)
        del session
    with Session() as s:
        torch.add(A, B)
    assert s.names() == ["aten::add"]


def test_a_session_in_the_thread_states_of_ended_threads():
    """Thread ends, its destructors and a session that outlives it."""
    run("""
        import threading, torch
        from opstrobe import _core
        from opstrobe.recording import bridge
        bridge.load()
        for i in range(200):
            session = _core.Session(profile_memory=True)
            def work():
                session.start()
                torch.ones(3) + 1
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert len([e for e in session.stop().function_events() if e.name == "aten::add"]) == 1
        """)


def test_threading_local_destructors_run_operators():
    """Operators in what a thread does last."""
    run("""
        import threading, torch
        from opstrobe import _core
        from opstrobe.recording import bridge
        bridge.load()
        class Last:
            def __del__(self):
                torch.ones(3) + 1
        session = _core.Session(all_threads=True, profile_memory=True)
        session.start()
        local = threading.local()
        def work():
            local.last = Last()
        for _ in range(50):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        names = [e.name for e in session.stop().function_events()]
        assert names.count("aten::add") == 50, names
        """)

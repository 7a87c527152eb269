# SPDX-License-Identifier: Apache-2.0
"""record_function: context manager, decorator, threads, hostile names, and what it costs when nothing records."""

import asyncio
import gc
import inspect
import threading
import time
import timeit
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opstrobe
from opstrobe import record_function


def names_of(body):
    """The ranges that `body` records, in order of start, as (name, parent's name)."""
    with opstrobe.profile() as prof:
        body()
    prof.profiler.trace.check()
    return [
        (event.name, event.cpu_parent.name if event.cpu_parent else None)
        for event in prof.events()
        if event.is_user_annotation
    ]


def enter(name):
    with record_function(name):
        pass


def test_context_manager():
    def body():
        with record_function("outer"):
            enter("inner")

    assert names_of(body) == [("outer", None), ("inner", "outer")]


def test_attributes():
    both = record_function("x", args="y")
    assert (both.name, both.args) == ("x", "y")
    assert record_function(name="x").args is None
    assert record_function("x", "y").args == "y"
    assert isinstance(both.__enter__(), record_function)
    assert both.__exit__(None, None, None) is None


@pytest.mark.parametrize("arguments", [(3,), (b"x",), (None,), ("x", 3), (), ("x", "y", "z")])
def test_wrong_arguments(arguments):
    with pytest.raises(TypeError):
        record_function(*arguments)


def test_wrong_keyword():
    with pytest.raises(TypeError):
        record_function("x", label="y")
    with pytest.raises(TypeError):
        record_function("x", name="y")


def test_exit_without_enter():
    with pytest.raises(AssertionError):
        record_function("x").__exit__(None, None, None)
    used = record_function("x")
    with used:
        pass
    with pytest.raises(AssertionError):
        used.__exit__(None, None, None)


def test_used_again_and_inside_itself():
    one = record_function("one")

    def body():
        for _ in range(2):
            with one:
                pass
        with one, one, one:
            pass

    with opstrobe.profile() as prof:
        body()
    prof.profiler.trace.check()
    assert prof.profiler.trace.event_count == 5


def test_exception_closes_the_range():
    def body():
        with pytest.raises(KeyError), record_function("failing"):
            raise KeyError
        enter("after")

    assert names_of(body) == [("failing", None), ("after", None)]


def test_dropped_without_exit():
    def body():
        record_function("dropped").__enter__()
        nested = record_function("nested")
        nested.__enter__()
        nested.__enter__()
        del nested
        enter("after")

    assert names_of(body) == [("dropped", None), ("nested", None), ("nested", "nested"), ("after", None)]


def test_open_across_start_and_stop():
    early, late = record_function("early"), record_function("late")
    early.__enter__()
    with opstrobe.profile() as prof:
        early.__exit__(None, None, None)
        late.__enter__()
        enter("inside")
    late.__exit__(None, None, None)
    assert [event.name for event in prof.events()] == ["late", "inside"]


def test_every_thread():
    def body():
        threads = [threading.Thread(target=enter, args=(f"thread {i}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(name for name, _ in names_of(body)) == [f"thread {i}" for i in range(8)]


def test_decorated_function():
    @record_function("decorated")
    def double(x, *, plus=0):
        """Doubles."""
        return 2 * x + plus

    assert (double.__name__, double.__doc__) == ("double", "Doubles.")
    assert str(inspect.signature(double)) == "(x, *, plus=0)"
    results = []
    assert names_of(lambda: results.extend([double(2), double(3, plus=1)])) == [("decorated", None)] * 2
    assert results == [4, 7]


def test_decorated_method_and_recursion():
    class Tree:
        @record_function("visit")
        def visit(self, depth):
            enter(f"leaf {depth}")
            if depth:
                self.visit(depth - 1)

    with opstrobe.profile() as prof:
        Tree().visit(3)
    prof.profiler.trace.check()
    assert prof.profiler.trace.event_count == 8


def test_decorated_coroutine_covers_its_awaits():
    @record_function("coroutine")
    async def work():
        await asyncio.sleep(0.01)
        enter("inside")
        return 5

    assert inspect.iscoroutinefunction(work)
    with opstrobe.profile() as prof:
        assert asyncio.run(work()) == 5
    events = {event.name: event for event in prof.events()}
    assert events["coroutine"].cpu_time_total >= 10_000
    assert events["inside"].cpu_parent.name == "coroutine"


def test_decorated_coroutines_at_once():
    @record_function("task")
    async def work(n):
        for _ in range(n):
            await asyncio.sleep(0)

    async def all_of_them():
        await asyncio.gather(*(work(n) for n in range(10)))

    with opstrobe.profile() as prof:
        asyncio.run(all_of_them())
    prof.profiler.trace.check()
    assert prof.profiler.trace.event_count == 10


def test_decorated_generator_covers_its_body():
    @record_function("generator")
    def count():
        received = yield 1
        enter(f"received {received}")
        yield 2
        return 3

    results = []

    def body():
        def outer():
            results.append((yield from count()))

        generator = outer()
        results.append(next(generator))
        results.append(generator.send("this"))
        results.extend(generator)

    assert names_of(body) == [("generator", None), ("received this", "generator")]
    assert results == [1, 2, 3]


def test_subclass():
    class Prefixed(record_function):
        def __init__(self, name):
            super().__init__("prefix " + name)
            self.entered = 0

        def __enter__(self):
            self.entered += 1
            return super().__enter__()

    one = Prefixed("x")

    @one
    def function():
        pass

    def body():
        with one:
            pass
        function()

    assert names_of(body) == [("prefix x", None)] * 2
    assert one.entered == 2


def test_subclass_without_init():
    class Careless(record_function):
        def __init__(self):
            pass

    with opstrobe.profile(), Careless() as careless:
        assert (careless.name, careless.args) == ("", None)


def completed_later(record, value):
    """A range that a future ends, which another thread completes; what the future gives."""
    torch = pytest.importorskip("torch")
    future = torch.futures.Future()
    with record:
        after = record._call_end_callbacks_on_future(future)
    assert record.run_callbacks_on_exit is False and not after.done()
    with record_function("between"):
        pass
    thread = threading.Thread(target=value, args=(future,))
    thread.start()
    thread.join()
    return after


def test_future_ends_the_range():
    with opstrobe.profile() as prof:
        record = record_function("waits")
        assert record.record is None and record.run_callbacks_on_exit is True
        assert completed_later(record, lambda future: future.set_result(5)).wait() == 5
        with pytest.raises(RuntimeError, match="once"):
            record._call_end_callbacks_on_future(None)
    events = {event.name: event for event in prof.events()}
    assert events["waits"].is_async
    assert events["waits"].time_range.end > events["between"].time_range.end
    prof.profiler.trace.check()


def test_future_with_an_error_ends_the_range():
    with opstrobe.profile() as prof:
        after = completed_later(record_function("fails"), lambda future: future.set_exception(KeyError("x")))
        with pytest.raises(RuntimeError, match="KeyError"):  # so torch passes errors on
            after.wait()
    (event,) = [event for event in prof.events() if event.name == "fails"]
    assert event.time_range.end > event.time_range.start


def test_future_that_never_completes():
    torch = pytest.importorskip("torch")
    with opstrobe.profile() as prof:
        future = torch.futures.Future()
        with record_function("forgotten") as record:
            record._call_end_callbacks_on_future(future)
        del future
    prof.profiler.trace.check()
    assert [event.name for event in prof.events()] == ["forgotten"]


def test_future_of_a_jit_fork():
    torch = pytest.importorskip("torch")
    function = torch.jit.trace(lambda x: x + 1, torch.ones(2))
    with opstrobe.profile() as prof:
        with record_function("forks") as record:
            after = record._call_end_callbacks_on_future(torch.jit.fork(function, torch.ones(2)))
        assert torch.equal(after.wait(), torch.full((2,), 2.0))
    assert "forks" in [event.name for event in prof.events()]
    prof.profiler.trace.check()


HOSTILE = [
    "",
    "\0",
    "a\0b",
    'quote " backslash \\ slash /',
    "tab\tnewline\nreturn\r\x1b\x7f",
    "übergröße 模型 🔥",
    "\ud800",
    "\udc80 lone \udfff",
    "\ud83d\ude00 pair as two",
    "[memory]x",
    "</script><!--",
    "rf",
    "Pi",
    "_Z3foov",
    "x" * 100_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:20]))
def test_hostile_names(name):
    assert names_of(lambda: enter(name)) == [(name, None)]


def test_name_of_ten_megabytes():
    name = "ü" * 5_000_000
    assert names_of(lambda: enter(name)) == [(name, None)]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(), max_size=40), max_size=20))
def test_any_names(names):
    with opstrobe.profile() as prof:
        for name in names:
            enter(name)
    recorded = [event.name for event in prof.events()]
    hidden = {"[memory]", "[OutOfMemory]"}
    assert recorded == [name for name in names if name not in hidden]


def test_no_memory_kept():
    for _ in range(100):
        enter("warm")
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for i in range(1000):
            nested = record_function(f"n{i}", "args")
            with nested, nested:
                pass
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()


def test_cheap_when_nothing_records():
    """Against the cost of an empty `with` of contextlib's, so that no absolute time is asserted."""
    import contextlib

    def ranges(manager):
        for _ in range(10_000):
            with manager("x"):
                pass

    def cost(manager):
        return min(timeit.repeat(lambda: ranges(manager), number=1, repeat=20, timer=time.thread_time))

    assert cost(record_function) < cost(contextlib.nullcontext)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_inside_and_around_compiled_functions(backend):
    torch = pytest.importorskip("torch")

    def inside(x):
        y = torch.sin(x)
        with record_function("inside"):
            y = y + torch.cos(x)
        return y * 2

    @record_function("decorated")
    def decorated(x):
        return torch.tanh(inside(x))

    torch._dynamo.reset()
    compiled = torch.compile(decorated, backend=backend)
    x = torch.linspace(0, 1, 16)
    expected = decorated(x)
    results = []

    def body():
        with record_function("around"):
            results.append(compiled(x))

    for _ in range(2):  # compiling, and compiled
        assert [name for name, _ in names_of(body) if name in ("around", "decorated", "inside")] == [
            "around",
            "decorated",
            "inside",
        ]
    for result in results:
        torch.testing.assert_close(result, expected)

# SPDX-License-Identifier: Apache-2.0
"""Python calls in a profile: names, nesting, threads, and defects of torch."""

import asyncio
import gc
import importlib
import os
import subprocess
import sys
import textwrap
import threading

import pytest
from calls import events_of, find, functions, roots_of, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

import opstrobe
from opstrobe import StackOptions, _ExperimentalConfig, profile, record_function

HERE = os.path.basename(__file__)


def recorded(run, **options):
    """The calls that `run` makes, below it."""
    with profile(**{"with_stack": True, **options}) as p:
        run()
    roots = roots_of(p)
    call = find(roots, run.__qualname__)
    assert call is not None, functions(roots)
    return call


def leaf():
    pass


def twice():
    leaf()
    leaf()


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_calls_nest():
    def run():
        twice()
        leaf()

    call = recorded(run)
    assert call.tree()[1] == [("twice", [("leaf", []), ("leaf", [])]), ("leaf", [])]
    assert call.finished


def test_one_place_calls_many_functions():
    """What a place called last is remembered there; the next call may be another's, of the same name or the same type."""
    items = [3, 1]
    callables = [len, len, items.count, len, (1, 2).count, items.index, leaf, items.index, sorted, len]

    def run():
        for _ in range(3):
            for function in callables:
                function(*arguments[function])

    arguments = {
        function: [items] if function in (len, sorted) else [] if function is leaf else [1] for function in callables
    }
    names = {
        len: "<built-in function len>",
        leaf: "leaf",
        sorted: "<built-in function sorted>",
        callables[2]: "<built-in method count of list>",
        callables[4]: "<built-in method count of tuple>",
        callables[5]: "<built-in method index of list>",
    }
    assert functions(recorded(run).children) == [names[function] for function in callables] * 3


def test_c_functions():
    def run():
        items = []
        items.append(len("abc"))
        sorted([2, 1], key=lambda x: -x)
        "a,b".split(",")
        dict.fromkeys("ab")
        try:
            int("x")  # a class: only what it calls would be seen
            items.pop(9)
        except (ValueError, IndexError):
            pass
        try:
            items.pop(9)
        except IndexError:
            pass
        leaf()

    name = run.__qualname__
    assert recorded(run).tree()[1] == [
        ("<built-in function len>", []),
        ("<built-in method append of list>", []),
        ("<built-in function sorted>", [(f"{name}.<locals>.<lambda>", [])] * 2),
        ("<built-in method split of str>", []),
        ("<built-in method fromkeys of type>", []),
        ("<built-in method pop of list>", []),
        ("leaf", []),
    ]


def test_frames_open_at_start_and_stop():
    p = profile(with_stack=True)

    def begins():
        p.start()
        leaf()

    def ends():
        leaf()
        p.stop()

    def run():
        begins()
        ends()

    run()
    roots = roots_of(p)
    call = find(roots, run.__qualname__)
    assert functions(call.children) == [begins.__qualname__, ends.__qualname__]
    assert not call.finished and call.children[0].finished and not call.children[1].finished
    assert [functions(child.children) for child in call.children] == [["leaf"], ["leaf"]]
    assert find(roots, "<module>") is not None or find(roots, "_run_code") is not None
    outer = roots[0]
    while outer.children and outer is not call:  # from the outermost inwards they were open when it began
        assert outer.start == roots[0].start and not outer.finished
        outer = next(child for child in outer.children if child.start == roots[0].start)
    assert outer is call


def test_exceptions_end_calls():
    def raises(depth):
        if depth:
            raises(depth - 1)
        raise ValueError(depth)

    def run():
        for _ in range(2):
            try:
                raises(2)
            except ValueError:
                leaf()

    inner = raises.__qualname__
    tree = [(inner, [(inner, [(inner, [])])]), ("leaf", [])]
    assert recorded(run).tree()[1] == tree * 2


def test_recursion_is_kept_d10():
    def down(depth):
        if depth:
            down(depth - 1)

    def run():
        down(30)

    call, depth = recorded(run), 0
    while call.children:
        (call,) = call.children
        depth += 1
    assert depth == 31
    with profile(with_stack=True) as p:
        run()
    assert sum(e.name.endswith(down.__qualname__) for e in p.events()) == 31


def test_generators_resume():
    def numbers():
        leaf()
        got = yield 1
        assert got is None
        try:
            yield 2
        finally:
            leaf()

    def run():
        for _ in numbers():
            len("")
        half = numbers()
        next(half)
        half.close()
        thrown = numbers()
        next(thrown)
        try:
            thrown.throw(KeyError)
        except KeyError:
            pass

    with profile(with_stack=True) as p:
        run()
    call = find(roots_of(p), run.__qualname__)
    name = numbers.__qualname__
    steps = [child for child in call.children if child.function == name]
    assert len({step.name for step in steps}) == 1  # one function, however often it resumes
    assert [functions(step.children) for step in steps[:3]] == [["leaf"], [], ["leaf"]]
    assert functions(call.children)[:5] == [name, "<built-in function len>"] * 2 + [name]
    assert all(step.finished for step in steps)
    throw = call.children[-1]  # it is closed by what is thrown into it
    assert throw.function.startswith("<built-in method throw") and functions(throw.children) == [name]


def test_coroutines_resume():
    async def inner():
        leaf()
        await asyncio.sleep(0)
        leaf()

    async def outer():
        await inner()
        await asyncio.gather(inner(), inner())

    def run():
        asyncio.run(outer())

    with profile(with_stack=True) as p:
        run()
    rows = rows_of(p)
    inners = [row for row in rows if row.function == inner.__qualname__]
    assert len(inners) == 6 and len({row.name for row in inners}) == 1
    assert len([row for row in rows if row.function == "leaf"]) == 6
    assert all(row.finished for row in inners)
    by_id = {row.id: row for row in rows}
    for row in rows:
        if row.function == "leaf":
            assert by_id[row.parent_id].function == inner.__qualname__


def test_comprehensions_lambdas_classes():
    def run():
        class Local:
            leaf()

            def __init__(self):
                leaf()

            @property
            def value(self):
                return (lambda: leaf())()

        Local().value  # noqa: B018

    name = run.__qualname__
    local = f"{name}.<locals>.Local"
    tree = recorded(run).tree()[1]
    if sys.version_info >= (3, 11):
        made, calls = tree[0], tree[1:]
        assert made == ("<built-in function __build_class__>", [(local, [("leaf", [])])])
        assert calls == [
            (f"{local}.__init__", [("leaf", [])]),
            (f"{local}.value", [(f"{local}.value.<locals>.<lambda>", [("leaf", [])])]),
        ]
    else:
        assert [call[0] for call in tree[1:]] == [f"{local}.__init__", f"{local}.value"]


# --- names ------------------------------------------------------------------------------------------------------------


def test_names():
    class Thing:
        def method(self):
            leaf()

        @classmethod
        def of_class(cls):
            pass

        @staticmethod
        def free():
            pass

    def run():
        Thing().method()
        Thing.of_class()
        if sys.version_info >= (3, 11):
            Thing.free()

    with profile(with_stack=True) as p:
        run()
    call = find(roots_of(p), run.__qualname__)
    thing = Thing.__qualname__
    methods = [f"{thing}.method", f"{thing}.of_class", f"{thing}.free"]
    assert functions(call.children) == methods[: len(call.children)] and len(call.children) >= 2
    line = Thing.method.__code__.co_firstlineno
    assert call.children[0].name.endswith(f"{HERE}({line}): {thing}.method")
    assert call.children[0].children[0].name.endswith(f"{HERE}({leaf.__code__.co_firstlineno}): leaf")


def test_paths_are_shortened(tmp_path):
    (tmp_path / "somewhere").mkdir()
    (tmp_path / "somewhere" / "a_module.py").write_text("def f():\n    pass\n")
    sys.path.insert(0, str(tmp_path))
    try:
        from somewhere import a_module

        with profile(with_stack=True) as p:
            a_module.f()
    finally:
        sys.path.remove(str(tmp_path))
    assert "somewhere/a_module.py(1): f" in [row.name for row in rows_of(p)]


def test_no_addresses_d19():
    def run():
        for items in ([], {}, set()):
            items.copy()
        threading.Lock().acquire()

    with profile(with_stack=True) as p:
        run()
    names = {row.name for row in rows_of(p)}
    assert not [name for name in names if "0x" in name]
    assert {"<built-in method copy of list>", "<built-in method copy of dict>"} <= names


def test_odd_names():
    file, name = 'a "quoted"\\\t(3): path\udcff.py', "ünï"
    scope = {}
    exec(compile(f"def {name}(): pass", file, "exec"), scope)
    with profile(with_stack=True) as p:
        scope[name]()
    assert [row.function for row in rows_of(p)].count(name) == 1
    events = [event for event in p.events() if event.name.endswith(name)]
    assert events[0].name == f"{file}(1): {name}"


def test_d1_code_that_is_freed():
    """Names are those of the functions that ran, though their code objects are gone and others lie in their place."""

    def run():
        for i in range(300):
            scope = {}
            exec(compile(f"def f_{i}():\n    pass\nf_{i}()", f"<made {i}>", "exec"), scope)
            del scope

    with profile(with_stack=True) as p:
        run()
    gc.collect()
    made = [row.name for row in rows_of(p) if row.name.startswith("<made")]
    assert made == [text for i in range(300) for text in (f"<made {i}>(1): <module>", f"<made {i}>(1): f_{i}")]


def test_objects_are_not_held():
    class Big:
        def method(self):
            pass

    alive = []

    def run():
        import weakref

        big = Big()
        alive.append(weakref.ref(big))
        big.method()
        big.__class__.__subclasses__()

    with profile(with_stack=True):
        run()
        gc.collect()
        assert alive[0]() is None


# --- callers ----------------------------------------------------------------------------------------------------------


def line_of(function, text):
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_call_from():
    def run():
        len("")
        leaf()
        with record_function("range"):
            twice()

    with profile(with_stack=True) as p:
        run()
    rows = rows_of(p, ("python_function", "user_annotation"))
    by_id = {row.id: row for row in rows if row.id}
    here = [row for row in rows if row.parent_id and by_id[row.parent_id].function == run.__qualname__]
    found = {row.function: row.caller.rpartition(":") for row in here}
    found["range"] = next(row for row in rows if row.name == "range").caller.rpartition(":")
    assert {name: int(line) for name, (_, _, line) in found.items()} == {
        "<built-in function len>": line_of(run, "len("),
        "leaf": line_of(run, "leaf()"),
        "range": line_of(run, "record_function"),
        "twice": line_of(run, "twice()"),
    }
    assert all(file.endswith(HERE) for file, _, _ in found.values())


def test_call_from_c_functions():
    """What a C function calls is called from the line that called the C function."""

    def run():
        list(
            map(
                lambda x: leaf(),
                [1],
            )
        )

    call = recorded(run)
    (function,) = [c for c in call.children if c.function.endswith("<lambda>")]
    assert int(function.caller.rpartition(":")[2]) in range(line_of(run, "list("), line_of(run, "[1]") + 1)
    assert int(function.children[0].caller.rpartition(":")[2]) == line_of(run, "leaf()")


# --- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["opstrobe", "torch.profiler"])
def test_d9_ranges_nest_in_calls(of):
    named = importlib.import_module(of).record_function
    with named("first"):
        pass

    def run():
        for _ in range(20):
            with named("a"), named("b"):
                leaf()

    with profile(with_stack=True) as p:
        run()
    assert not [row for row in rows_of(p) if "__exit__" in row.name or "__enter__" in row.name]
    assert not [event for event in events_of(p) if event["ph"] == "b"]
    events = p.events()
    for event in events:
        assert event.self_cpu_time_total >= 0
        if event.name == "b":
            assert event.cpu_parent.name == "a" and event.cpu_parent.cpu_parent.name.endswith(run.__qualname__)
            assert [child.name.rpartition(" ")[2] for child in event.cpu_children] == ["leaf"]


# --- threads ----------------------------------------------------------------------------------------------------------


def test_threads_d18():
    """Threads that were there and threads that come later, also those that `threading` does not know."""
    import _thread

    go, done = threading.Event(), threading.Event()

    def early():
        go.wait()
        twice()
        done.set()

    def late():
        twice()

    def raw():
        twice()
        released.release()

    thread = threading.Thread(target=early)
    thread.start()
    released = _thread.allocate_lock()
    released.acquire()
    with profile(with_stack=True) as p:
        go.set()
        done.wait()
        thread.join()
        later = [threading.Thread(target=late) for _ in range(3)]
        for one in later:
            one.start()
        for one in later:
            one.join()
        _thread.start_new_thread(raw, ())
        released.acquire()
    roots = roots_of(p)
    for function, count in ((early, 1), (late, 3), (raw, 1)):
        calls = [row for row in rows_of(p) if row.function == function.__qualname__]
        assert len(calls) == count, function
        assert len({call.thread for call in calls} - {threading.get_native_id()}) >= 1
        assert functions(find(roots, function.__qualname__).children)[:1] != []
        assert "twice" in functions(find(roots, function.__qualname__).children)


def test_many_threads():
    def work():
        for _ in range(200):
            twice()

    with profile(with_stack=True) as p:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    roots = roots_of(p)
    assert sum(row.function == "leaf" for row in rows_of(p)) == 8 * 400
    works = [call for call in rows_of(p) if call.function == work.__qualname__]
    assert len(works) == 8 and roots


def test_stopped_by_another_thread():
    p = profile(with_stack=True)
    p.start()
    twice()
    thread = threading.Thread(target=p.stop)
    thread.start()
    thread.join()
    twice()
    assert sum(row.function == "leaf" for row in rows_of(p)) == 2


# --- options ----------------------------------------------------------------------------------------------------------


def test_options_include_exclude(tmp_path):
    inside = tmp_path / "inside.py"
    inside.write_text("def f(callback):\n    len('')\n    callback()\n")
    scope = {}
    exec(compile(inside.read_text(), str(inside), "exec"), scope)

    def run():
        scope["f"](leaf)
        leaf()

    for exclude in (str(tmp_path), "*/ins?de.py"):
        call = recorded(run, with_stack=StackOptions(exclude=[exclude]))
        assert call.tree()[1] == [("leaf", []), ("leaf", [])]
        assert {int(child.caller.rpartition(":")[2]) for child in call.children} == {
            line_of(run, "scope"),
            line_of(run, "leaf()"),
        }
    with profile(with_stack=StackOptions(include=[str(tmp_path)])) as p:
        run()
    assert [row.function for row in rows_of(p)] == ["f", "<built-in function len>"]


def test_options_max_depth():
    def down(depth):
        if depth:
            down(depth - 1)

    with profile(with_stack=True) as p:
        base = len(rows_of_stack())
        down(0)
    with profile(with_stack=StackOptions(max_depth=base + 3)) as p:
        down(9)
        leaf()
    assert [row.function for row in rows_of(p)].count(down.__qualname__) in (3, 4)
    assert "leaf" in functions(rows_of(p))


def rows_of_stack():
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def test_options_min_duration():
    def slow():
        leaf()
        threading.Event().wait(0.02)
        leaf()

    def run():
        for _ in range(100):
            twice()
        slow()

    call = recorded(run, with_stack=StackOptions(min_duration_us=10_000))
    assert functions(call.children) == [slow.__qualname__]
    assert call.children[0].end - call.children[0].start >= 10_000


def test_options_lines_are_those_of_the_function_that_is_shown(tmp_path):
    """What a dropped function does is called from the line where its caller calls it, in the caller's file."""
    source = tmp_path / "dropped.py"
    source.write_text("\n" * 5000 + "def quick(range):\n    with range('inside'):\n        pass\n    return range\n")
    scope = {}
    exec(compile(source.read_text(), str(source), "exec"), scope)

    def run():
        scope["quick"](record_function)
        threading.Event().wait(0.02)

    with profile(with_stack=StackOptions(min_duration_us=10_000)) as p:
        run()
    rows = rows_of(p, ("python_function", "user_annotation"))
    assert "quick" not in functions(rows)
    (inside,) = [row for row in rows if row.name == "inside"]
    assert inside.caller.endswith(f"{os.path.basename(__file__)}:{line_of(run, 'quick')}")


def test_options_short_calls_in_libraries(tmp_path):
    """What a program calls stays, and so does what has a range or a call of the program in it; the rest of a library counts for its caller."""
    library = tmp_path / "site-packages" / "package.py"
    library.parent.mkdir()
    library.write_text(
        "def inner():\n    return len('')\n\ndef step(work):\n    inner()\n    return work()\n\n"
        "def ranged(range):\n    with range('inside'):\n        inner()\n"
    )
    scope = {}
    exec(compile(library.read_text(), str(library), "exec"), scope)

    def of_program():
        len("")

    def run():
        scope["inner"]()
        scope["step"](of_program)
        scope["ranged"](record_function)

    def names(**options):
        with profile(with_stack=StackOptions(**options)) as p:
            run()
        return [row.name.rsplit(": ", 1)[-1].rsplit(".", 1)[-1] for row in rows_of(p, ("python_function",))]

    everything, most = names(), names(library_min_duration_us=60_000_000)
    assert [everything.count(name) for name in ("inner", "step", "ranged", "<built-in function len>")] == [3, 1, 1, 4]
    assert [most.count(name) for name in ("inner", "step", "of_program", "ranged", "<built-in function len>")] == [
        1,
        1,
        1,
        1,
        1,
    ]


def test_options_are_checked():
    with pytest.raises(TypeError, match="include"):
        StackOptions(include="*/a.py")
    with pytest.raises(ValueError, match="negative"):
        StackOptions(max_depth=-1)
    assert repr(StackOptions(max_depth=3)) == "StackOptions(max_depth=3)"
    assert repr(StackOptions()) == "StackOptions()"


@pytest.fixture
def no_gc_callbacks():
    """Those of test tools are Python functions, which are rows as others are."""
    others = list(gc.callbacks)
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = others


def test_gc_info(no_gc_callbacks):
    def run():
        gc.collect()

    config = _ExperimentalConfig(record_python_gc_info=True)
    before = list(gc.callbacks)
    call = recorded(run, experimental_config=config)
    assert gc.callbacks == before
    assert call.tree()[1][0][0] == "<built-in function collect>"
    assert call.tree()[1][0][1][0][0] == "Python GC"
    with profile(experimental_config=config) as p:
        run()
    assert rows_of(p) == []


def test_gc_with_finalizers(no_gc_callbacks):
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            leaf()

    def run():
        Cycle()
        gc.collect()

    gc.collect()
    call = recorded(run, experimental_config=_ExperimentalConfig(record_python_gc_info=True))
    collection = find([call], "Python GC")
    assert functions(collection.children) == [f"{Cycle.__qualname__}.__del__"]


# --- life -------------------------------------------------------------------------------------------------------------


def test_nothing_is_left_behind():
    with profile(with_stack=True):
        leaf()
    assert sys.getprofile() is None
    if sys.version_info >= (3, 12):
        assert [sys.monitoring.get_tool(tool) for tool in range(6)] == [None] * 6
    with profile() as p:
        twice()
    assert rows_of(p) == []


def test_steps():
    with profile(
        with_stack=True, schedule=opstrobe.schedule(wait=1, warmup=1, active=2), on_trace_ready=lambda p: None
    ) as p:
        for _ in range(4):
            leaf()
            p.step()
    assert functions(rows_of(p)).count("leaf") == 2


def test_pause_and_resume():
    """Calls that begin while nothing records are left out, and what they call later is their callers'."""
    with profile(with_stack=True) as p:
        session = p.profiler._session

        def run():
            leaf()
            session.pause()
            paused()
            session.resume()
            twice()

        def paused():
            leaf()

        def resumed():
            session.pause()
            within()

        def within():
            session.resume()
            leaf()

        run()
        resumed()
    roots = roots_of(p)
    assert find(roots, run.__qualname__).tree()[1] == [("leaf", []), ("twice", [("leaf", []), ("leaf", [])])]
    assert find(roots, resumed.__qualname__).tree()[1] == [("leaf", [])]
    assert find(roots, paused.__qualname__) is None and find(roots, within.__qualname__) is None


def test_fork():
    code = """
        import os, sys
        sys.path.insert(0, %r)
        from calls import rows_of
        from opstrobe import profile
        def leaf(): pass
        def child():
            leaf()
            with profile(with_stack=True) as own:
                leaf()
            names = [row.function for row in rows_of(own)]
            os._exit(0 if names.count("leaf") == 1 and sys.getprofile() is None else 1)
        with profile(with_stack=True) as p:
            leaf()
            pid = os.fork()
            if pid == 0:
                child()
            assert os.waitpid(pid, 0)[1] == 0
            leaf()
        assert [row.function for row in rows_of(p)].count("leaf") == 2
        print("ok")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code % os.path.dirname(__file__))],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert (run.stdout, run.returncode) == ("ok\n", 0), run.stderr


def test_exit_while_recording():
    code = "from opstrobe import profile\np = profile(with_stack=True)\np.start()\n[len('') for _ in range(9)]\nprint('ok')"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert (run.stdout, run.stderr, run.returncode) == ("ok\n", "", 0)


def test_deep_recursion():
    def down(depth):
        if depth:
            down(depth - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        with profile(with_stack=True) as p:
            down(5_000)
    finally:
        sys.setrecursionlimit(limit)
    assert functions(rows_of(p)).count(down.__qualname__) == 5_001


# --- anything ---------------------------------------------------------------------------------------------------------

trees = st.recursive(
    st.just(()),
    lambda children: st.lists(
        st.tuples(st.sampled_from(["call", "c", "raise", "generator", "range"]), children), max_size=4
    ),
    max_leaves=25,
)


class Stop(Exception):
    pass


def play(tree):
    """Calls what the tree says."""
    for kind, children in tree:
        PLAYERS[kind](children)


def call(children):
    play(children)


def through_c(children):
    next(map(play, [children]))
    max([children], key=call)


def raising(children):
    try:
        raise_below(children)
    except Stop:
        pass


def raise_below(children):
    play(children)
    raise Stop


def generator(children):
    for _ in steps(children):
        pass


def steps(children):
    yield 1
    play(children)
    yield 2


def in_range(children):
    with record_function("range"):
        play(children)


PLAYERS = {"call": call, "c": through_c, "raise": raising, "generator": generator, "range": in_range}


def expected(tree):
    """What `play` of it calls, but for C functions other than max."""
    calls = []
    for kind, children in tree:
        played = ("play", expected(children))
        if kind == "c":
            below = [played, ("<built-in function max>", [("call", [played])])]
        elif kind == "raise":
            below = [("raise_below", [played])]
        elif kind == "generator":
            below = [("steps", []), ("steps", [played]), ("steps", [])]
        else:
            below = [played]
        calls.append((PLAYERS[kind].__name__, below))
    return calls


def without_c(tree):
    name, children = tree
    kept = []
    for child in children:
        inner = without_c(child)
        kept += inner[1] if inner[0] in ("<built-in function next>",) else [inner]
    return (name, kept)


@settings(max_examples=60, deadline=None)
@given(trees)
def test_any_tree_of_calls(tree):
    with profile(with_stack=True) as p:
        play(tree)
    assert without_c(find(roots_of(p), "play").tree()) == ("play", expected(tree))

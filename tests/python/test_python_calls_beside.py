# SPDX-License-Identifier: Apache-2.0
"""Python calls are recorded next to other profilers, tracers and torch, which are not disturbed."""

import cProfile
import io
import os
import pstats
import subprocess
import sys
import textwrap
import threading

import pytest
import torch
from calls import find, functions, roots_of, rows_of, without_addresses

from opstrobe import ProfilerActivity, StackOptions, profile

MONITORING = sys.version_info >= (3, 12)


def leaf():
    pass


def work():
    leaf()
    len("")


def count(p, function="leaf"):
    return functions(rows_of(p)).count(function)


# --- other profilers --------------------------------------------------------------------------------------------------


def test_d17_sys_setprofile():
    seen = []

    def hook(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    sys.setprofile(hook)
    try:
        leaf()
        with profile(with_stack=True) as p:
            leaf()
            assert sys.getprofile() is hook
            leaf()
        assert sys.getprofile() is hook
        leaf()
    finally:
        sys.setprofile(None)
    assert seen == ["call", "return"] * 4
    assert count(p) == 2


def test_d17_sys_setprofile_while_recording():
    seen = []

    def hook(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    with profile(with_stack=True) as p:
        leaf()
        sys.setprofile(hook)
        leaf()
        assert sys.getprofile() is hook
        sys.setprofile(None)
        leaf()
        assert sys.getprofile() is None
    assert sys.getprofile() is None
    assert seen == ["call", "return"]
    assert count(p) == 3


def test_d17_setprofile_stays_after_the_stop():
    seen = []

    def hook(frame, event, argument):
        seen.append(event)

    p = profile(with_stack=True)
    p.start()
    sys.setprofile(hook)
    p.stop()
    try:
        assert sys.getprofile() is hook
        seen.clear()
        leaf()
        assert seen[1:3] == ["call", "return"]
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("outside", [True, False])
def test_d17_cprofile(outside):
    profiler = cProfile.Profile()
    p = profile(with_stack=True)
    if outside:
        profiler.enable()
        with p:
            work()
        work()
        profiler.disable()
    else:
        with p:
            work()
            profiler.enable()
            work()
            profiler.disable()
            work()
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).print_stats("leaf")
    assert f"        {2 if outside else 1}    0.0" in text.getvalue()
    assert count(p) == (1 if outside else 3)


def test_d17_settrace():
    """As debuggers and coverage do."""
    lines = []

    def tracer(frame, event, argument):
        if frame.f_code is work.__code__:
            lines.append((event, frame.f_lineno - work.__code__.co_firstlineno))
            return tracer
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with profile(with_stack=True) as p:
            work()
            assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert lines == [("call", 0), ("line", 1), ("line", 2), ("return", 2)]
    assert count(p) == 1


def test_d17_hook_of_a_thread():
    seen = []
    ready, go = threading.Event(), threading.Event()

    def hook(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    def run():
        sys.setprofile(hook)
        ready.set()
        go.wait()
        leaf()
        found.append(sys.getprofile())

    found = []
    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    with profile(with_stack=True) as p:
        go.set()
        thread.join()
    assert found == [hook] and seen == ["call", "return"] and count(p) == 1


def test_d17_threading_setprofile():
    seen = []

    def hook(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    threading.setprofile(hook)
    p = profile(with_stack=True)
    try:
        p.start()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.setprofile(None)
    if MONITORING:
        p.stop()
        assert count(p) == 1
    else:  # there is one place for a hook, and the thread puts its own there
        with pytest.warns(UserWarning, match="another profiler was set"):
            p.stop()
    assert seen == ["call", "return"]


@pytest.mark.skipif(not MONITORING, reason="there is no sys.monitoring before Python 3.12")
def test_d17_all_tools_are_taken():
    taken = [tool for tool in range(5) if sys.monitoring.get_tool(tool) is None]
    for tool in taken:
        sys.monitoring.use_tool_id(tool, "other")
    try:
        with pytest.raises(RuntimeError, match="tool id"):
            profile(with_stack=True).start()
        with profile() as p:  # nothing runs any more
            work()
        assert rows_of(p) == []
    finally:
        for tool in taken:
            sys.monitoring.free_tool_id(tool)
    with profile(with_stack=True) as p:
        work()
    assert count(p) == 1


def test_coverage_of_a_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from opstrobe import profile\n\ndef f(x):\n    if x:\n        return 1\n    return 2\n\n"
        "with profile(with_stack=True) as p:\n    f(0)\nassert any(e.name.endswith(': f') for e in p.events())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([sys.executable, "-m", "coverage", "run", str(program)], cwd=tmp_path, env=environment, check=True)
    report = subprocess.run(
        [sys.executable, "-m", "coverage", "report", "-m", str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert report.stdout.splitlines()[2].split()[-1] == "5"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="no _xxsubinterpreters")
def test_other_interpreters_are_refused():
    code = """
        import sys
        sys.path[:0] = %r
        import %s as interpreters
        made = interpreters.create()
        try:
            interpreters.run_string(made, "import sys; sys.path[:0] = %%r\\nimport opstrobe" %% (sys.path,))
        except Exception as error:
            print(type(error).__name__)
    """
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    code = textwrap.dedent(code % ([path for path in sys.path if path], name))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


# --- torch ------------------------------------------------------------------------------------------------------------


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x.sum()


def step(net, optimizer):
    loss = net(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def outline(rows, first):
    """The names below the first call of a function, with their depth, but for what either profiler has for itself alone."""
    start = next(i for i, row in enumerate(rows) if row.name.endswith(first))
    end = rows[start].end
    stack, lines = [], []
    for row in rows[start:]:
        if row.start >= end:
            break
        while stack and stack[-1].end <= row.start:
            stack.pop()
        lines.append((len(stack), row.name))
        stack.append(row)
    return lines


def test_python_calls_like_torch():
    """The same calls in the same order and nesting as torch's own profiler, where that is right."""
    torch_profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True)

    def calls_of_all_kinds():
        values = [3, 1, 2]
        values.append(len(values))
        sorted(values, key=abs)
        work()
        try:
            int.from_bytes(b"x", "big")
            values.index(99)
        except ValueError:
            leaf()
        return "".join(str(x) for x in values)

    def plain(lines):
        # Theirs: plain names, the line of a generator's resumption, objects' addresses.
        kept = []
        for depth, name in lines:
            path, _, function = without_addresses(name).rpartition("): ")
            kept.append(
                (depth, path.rpartition("(")[0], function.rpartition(".")[2]) if path else (depth, "", function)
            )
        return kept

    with torch_profile:
        calls_of_all_kinds()
    with profile(with_stack=True) as p:
        calls_of_all_kinds()
    assert plain(outline(rows_of(p), "calls_of_all_kinds")) == plain(
        outline(rows_of(torch_profile), "calls_of_all_kinds")
    )


@pytest.mark.parametrize("options", [{}, {"record_shapes": True, "profile_memory": True, "with_flops": True}])
def test_operators_nest_in_calls(options):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step(net, optimizer)
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, **options) as p:
        step(net, optimizer)
    events = p.events()
    relu = next(event for event in events if event.name == "aten::relu")
    names, parent = [], relu.cpu_parent
    while parent is not None:
        names.append(parent.name.rpartition("): ")[2])
        parent = parent.cpu_parent
    assert names[:2] == ["<built-in method relu of type>", "Net.forward"]
    assert "step" in names
    range_ = next(event for event in events if event.name.startswith("Optimizer.step"))
    assert range_.cpu_parent.name.endswith("wrapper")
    assert not [event for event in events if event.self_cpu_time_total < 0]
    assert not [event for event in events if "_record_function" in event.name or "__enter__" in event.name]
    for row in rows_of(p, ("cpu_op",)):
        if row.name == "aten::relu":
            assert int(row.caller.rpartition(":")[2]) == Net.forward.__code__.co_firstlineno + 1
        if row.name == "aten::sum" and row.caller and row.caller.startswith(os.path.basename(__file__)):
            assert int(row.caller.rpartition(":")[2]) in (
                Net.forward.__code__.co_firstlineno + 1,
                step.__code__.co_firstlineno + 1,
            )


def test_operators_without_a_c_call_know_their_line():
    x = torch.ones(2)

    def run():
        y = x + x
        y = -y
        return y[0]

    with profile(with_stack=True) as p:
        run()
    first = run.__code__.co_firstlineno
    lines = {row.name: int(row.caller.rpartition(":")[2]) - first for row in rows_of(p, ("cpu_op",)) if row.caller}
    assert {name: lines[name] for name in ("aten::add", "aten::neg", "aten::select")} == {
        "aten::add": 1,
        "aten::neg": 2,
        "aten::select": 3,
    }


def test_custom_autograd_functions_in_backward():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            leaf()
            return grad * 2

    x = torch.ones(3, requires_grad=True)
    with profile(with_stack=True) as p:
        Double.apply(x).sum().backward()
    rows = rows_of(p, ("python_function", "cpu_op"))
    assert count(p) == 1
    call = next(row for row in rows if row.function == "leaf")
    node = next(row for row in rows if row.name == "DoubleBackward")
    assert node.start <= call.start and call.end <= node.end and node.thread == call.thread


def test_torch_compile():
    """torch.compile takes the frame-evaluation hook while it runs."""
    compiled = torch.compile(lambda x: torch.relu(x) * 2, backend="eager")
    x = torch.ones(3)
    with profile(with_stack=StackOptions(exclude=["*/torch/*"])) as p:
        compiled(x)
        leaf()
        compiled(x)
        leaf()
    assert count(p) == 2
    assert find(roots_of(p), "leaf").finished

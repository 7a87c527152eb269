# SPDX-License-Identifier: Apache-2.0
"""`StackOptions(calls=False)`: operators know the lines of the program that called them, without recorded calls."""

import json
import threading
import time

import pytest
import torch
from calls import events_of

import opstrobe
from opstrobe import StackOptions


def record(work):
    with opstrobe.profile(with_stack=StackOptions(calls=False)) as profile:
        work()
    return profile


def stacks_of(profile):
    """By name of the event, the functions of its stacks with lines relative to the function's first line, the innermost first,
    down to `work`."""
    found = {}
    for event in events_of(profile):
        stack = event.get("args", {}).get("Call stack")
        if stack is None:
            continue
        assert stack.endswith(";")
        frames = []
        for frame in stack[:-1].split(";"):
            place, function = frame.split(": ")
            file, line = place[:-1].split("(")
            assert file.endswith("test_call_stacks.py")
            frames.append((function.rpartition(".")[2], int(line)))
            if frames[-1][0] == "work":
                break
        found.setdefault(event["name"], []).append(frames)
    return found


def add(x):
    return x + 1


def lines_of(function, *lines):
    return [function.__code__.co_firstlineno + line for line in lines]


def test_operators_have_the_lines_that_call_them():
    def work():
        x = torch.ones(4, 4, requires_grad=True)
        add(x)
        add(x)
        with opstrobe.record_function("range"):
            torch.nn.functional.linear(x, x).sum().backward()

    profile = record(work)
    found = stacks_of(profile)
    ones, first, second, opened, inside = lines_of(work, 1, 2, 3, 4, 5)
    (line_of_add,) = lines_of(add, 1)
    assert found["aten::ones"] == [[("work", ones)]]
    assert found["aten::add"] == [[("add", line_of_add), ("work", line)] for line in (first, second)]
    assert found["range"] == [[("work", opened)]]
    assert found["aten::linear"] == [[("work", inside)]]
    assert found["autograd::engine::evaluate_function: SumBackward0"] == [[("work", inside)]]
    names = {event["name"] for event in events_of(profile)}
    assert names > {"aten::empty", "aten::mm"} and not found.keys() & {"aten::empty", "aten::mm"}  # within others
    assert not any(event.get("cat") == "python_function" for event in events_of(profile))


def test_recursion_and_names_that_are_not_ascii():
    def größe(x, depth):
        return größe(x, depth - 1) if depth else x * 2

    def work():
        größe(torch.ones(2), 5)

    (stack,) = stacks_of(record(work))["aten::mul"]
    assert [function for function, _ in stack] == ["größe"] * 6 + ["work"]


def test_deep_stacks_keep_the_innermost_functions():
    def deep(depth):
        return deep(depth - 1) if depth else torch.ones(3)

    def work():
        deep(200)

    (stack,) = stacks_of(record(work))["aten::ones"]
    assert [function for function, _ in stack] == ["deep"] * 16


def test_threads_have_their_own_stacks():
    def on_thread():
        barrier.wait()
        for _ in range(50):
            torch.ones(3).neg()

    def work():
        thread.start()
        barrier.wait()
        for _ in range(50):
            torch.ones(3).abs()
        thread.join()

    barrier = threading.Barrier(2)
    thread = threading.Thread(target=on_thread)
    with opstrobe.profile(
        with_stack=StackOptions(calls=False),
        experimental_config=opstrobe._ExperimentalConfig(profile_all_threads=True),
    ) as profile:
        work()
    found = stacks_of(profile)
    assert {tuple(stack) for stack in found["aten::abs"]} == {(("work", *lines_of(work, 4)),)}
    assert {tuple(stack[:1]) for stack in found["aten::neg"]} == {(("on_thread", *lines_of(on_thread, 3)),)}
    assert len(found["aten::neg"]) == len(found["aten::abs"]) == 50


def test_each_recording_has_its_own_stacks():
    def work():
        torch.ones(3).neg()

    def other():
        torch.ones(3).neg()
        torch.ones(3).abs()

    first = stacks_of(record(work))
    second = stacks_of(record(lambda: other()))
    assert first["aten::neg"] == [[("work", *lines_of(work, 1))]]
    assert [stack[0] for stack in second["aten::neg"] + second["aten::abs"]] == [
        ("other", line) for line in lines_of(other, 1, 2)
    ]
    with opstrobe.profile() as profile:
        work()
    assert not stacks_of(profile)


def test_code_that_is_made_again_and_again():
    """New code objects at the addresses of old ones."""

    def work():
        for i in range(200):
            namespace = {}
            source = "\n" * i + "def made(x):\n return x.neg()\n"
            exec(compile(source, __file__, "exec"), namespace)
            namespace["made"](x)
            del namespace

    x = torch.ones(2)
    stacks = stacks_of(record(work))["aten::neg"]
    assert [stack[0] for stack in stacks] == [("made", i + 2) for i in range(200)]


@pytest.mark.parametrize("sample_ms", [0, 5])
def test_stacks_are_sampled(sample_ms):
    def work():
        begin = time.monotonic()
        while time.monotonic() < begin + 0.5:
            pass

    def recorded():
        with opstrobe.profile(with_stack=StackOptions(calls=False, sample_ms=sample_ms)) as profile:
            work()
        return json.loads(profile.profiler.trace.metadata().get("python_samples", "null"))

    samples = recorded()
    if not sample_ms:
        assert samples is None
        return
    while "work" not in str(
        samples
    ):  # the machine may be so busy that the thread which samples does not run in half a second
        samples = recorded()
    names = [tuple(function) for function in samples["functions"]]
    assert any(file.endswith("test_call_stacks.py") and name.endswith("work") for file, name in names)
    assert not any(file == __file__ for file, _ in names)  # shortened, as in call stacks


def test_sample_ms_is_a_time():
    with pytest.raises(ValueError, match="sample_ms must be a number of milliseconds"):
        StackOptions(calls=False, sample_ms=0.5)


def test_options_are_shown():
    assert repr(StackOptions(calls=False)) == "StackOptions(calls=False)"
    assert repr(StackOptions(calls=False, sample_ms=0)) == "StackOptions(calls=False, sample_ms=0.0)"

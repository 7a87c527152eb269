# SPDX-License-Identifier: Apache-2.0
"""toggle_collection_dynamic: pausing and resuming while a profile records."""

import torch

import opstrobe
from opstrobe import ProfilerActivity, profile, record_function

CPU = [ProfilerActivity.CPU]


def names(prof):
    return [event.name for event in prof.events() if event.cpu_parent is None]


def test_toggle_collection_dynamic():
    with profile(profile_memory=True) as prof:
        torch.ones(2)
        prof.toggle_collection_dynamic(False, CPU)
        torch.eye(2)
        with record_function("unseen"):
            torch.zeros(2)
        prof.toggle_collection_dynamic(False, CPU)
        prof.toggle_collection_dynamic(True, CPU)
        with record_function("seen"):
            torch.zeros(2)
    found = names(prof)
    assert "aten::ones" in found and "seen" in found
    assert "aten::eye" not in found and "unseen" not in found and "aten::zeros" not in found
    prof.profiler.trace.check()


def test_toggle_of_another_activity_changes_nothing():
    with profile() as prof:
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
        torch.ones(2)
    assert names(prof) == ["aten::ones"]


def test_toggle_takes_torch_members_and_open_ranges():
    with profile() as prof:
        with record_function("open"):
            prof.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
            torch.ones(2)
        prof.toggle_collection_dynamic(True, CPU)
    (event,) = prof.events()
    assert event.name == "open" and event.time_range.end > event.time_range.start


def test_toggle_without_a_recording_does_nothing(capfd):
    prof = profile()
    prof.toggle_collection_dynamic(False, CPU)
    with prof:
        torch.ones(2)
    prof.toggle_collection_dynamic(False, CPU)
    assert names(prof) == ["aten::ones"]
    assert capfd.readouterr().err == ""


def test_stopped_while_paused():
    with profile() as prof:
        torch.ones(2)
        prof.toggle_collection_dynamic(False, CPU)
    assert names(prof) == ["aten::ones"]
    with opstrobe.profile() as after:
        torch.ones(2)
    assert names(after) == ["aten::ones"]


def test_toggle_with_stacks():
    """Calls that were open at the pause go on; what was called and returned meanwhile is missing."""

    def unseen():
        return torch.eye(2)

    def inner(prof, resume):
        prof.toggle_collection_dynamic(False, CPU)
        unseen()
        if resume:
            prof.toggle_collection_dynamic(True, CPU)
            torch.ones(2)

    def outer(prof, resume):
        inner(prof, resume)
        unseen()
        prof.toggle_collection_dynamic(True, CPU)
        torch.zeros(2)

    for resume in (True, False):
        with profile(with_stack=True) as prof:
            torch.arange(2)
            outer(prof, resume)
            torch.full((2,), 1.0)
        prof.profiler.trace.check()
        events = prof.events()
        functions = {
            event.name: [frame.rpartition(" ")[2].rpartition(".")[2] for frame in event.stack] for event in events
        }
        assert functions["aten::zeros"][1:3] == ["outer", "test_toggle_with_stacks"]
        assert functions["aten::full"][1] == functions["aten::arange"][1] == "test_toggle_with_stacks"
        if resume:
            assert functions["aten::ones"][1:4] == ["inner", "outer", "test_toggle_with_stacks"]
        assert ("aten::eye" in functions) == resume
        assert all(event.self_cpu_time_total >= 0 for event in events)

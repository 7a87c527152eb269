# SPDX-License-Identifier: Apache-2.0
"""patch_torch, OPSTROBE_PATCH: torch's names lead to Opstrobe, and back."""

import json
import os
import subprocess
import sys

import pytest

import opstrobe

torch = pytest.importorskip("torch")
pytest.importorskip("torch.autograd.profiler_util")

MODULES = [
    torch.autograd,
    torch.profiler,
    torch.profiler.profiler,
    torch.autograd.profiler,
    torch.autograd.profiler_util,
]
EARLY_PROFILE, EARLY_SCHEDULE = torch.profiler.profile, torch.profiler.schedule
EARLY_AUTOGRAD, EARLY_EVENT = torch.autograd.profiler.profile, torch.autograd.profiler.FunctionEvent
CPU = torch.profiler.ProfilerActivity.CPU


# Attributes that torch and the warnings module set there.
NOTES = ("_cupti_monitor", "_cupti_monitor_checked", "_cupti_monitor_module", "__warningregistry__")


def snapshot():
    """What the modules hold."""
    return [{name: id(value) for name, value in vars(module).items() if name not in NOTES} for module in MODULES]


@pytest.fixture
def patched():
    before = snapshot()
    with opstrobe.patch_torch() as patch:
        assert snapshot() != before
        yield patch
    assert snapshot() == before


def test_a_program_gets_opstrobe(patched, tmp_path):
    ready = []

    def handler(prof):
        ready.append(prof.step_num)
        torch.profiler.tensorboard_trace_handler(str(tmp_path))(prof)

    with torch.profiler.profile(
        activities=[CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=handler,
        record_shapes=True,
        experimental_config=torch.profiler._ExperimentalConfig(verbose=True),
    ) as prof:
        for _ in range(4):
            with torch.profiler.record_function("a range"):
                torch.ones(2, 3) + 1
            prof.step()
    assert type(prof) is opstrobe.profile
    assert type(prof.profiler) is opstrobe.autograd_profiler.profile
    assert ready == [3]
    assert [row.count for row in prof.key_averages() if row.key == "a range"] == [2]
    assert [e.name for e in prof.events()].count("aten::add") == 2
    (file,) = tmp_path.iterdir()
    assert "opstrobe" in json.loads(file.read_text())


def test_members_of_enumerations_are_equal_either_way():
    kinds = ("ProfilerActivity", "RecordScope")
    pairs = [
        (getattr(torch._C._profiler, kind).__members__, getattr(opstrobe.profiler, kind).__members__) for kind in kinds
    ]
    pairs.append((torch._C._autograd.DeviceType.__members__, opstrobe.DeviceType.__members__))
    with opstrobe.patch_torch():
        for theirs, ours in pairs:
            for name in theirs.keys() & ours.keys():
                assert theirs[name] == ours[name] == theirs[name] == theirs[name]
                assert not theirs[name] != ours[name]
                if theirs[name].value == ours[name].value:  # torch 2.4 counts otherwise
                    assert theirs[name] in {ours[name]} and ours[name] in {theirs[name]}
            assert theirs["CPU" if "CPU" in theirs else "FUNCTION"] != list(ours.values())[-1]
            assert list(theirs.values())[0] != list(theirs.values())[1]
            assert theirs[name] != 0 and theirs[name] != name
    assert torch.profiler.ProfilerActivity.CPU != opstrobe.ProfilerActivity.CPU  # torch's own rule again
    assert torch.profiler.ProfilerActivity.CPU == torch.profiler.ProfilerActivity.CPU


def test_torch_knows_that_a_profile_records(patched):
    assert not torch.autograd._profiler_enabled()
    with torch.profiler.profile():
        assert torch.autograd._profiler_enabled()
    with EARLY_AUTOGRAD(use_kineto=True):
        assert torch.autograd._profiler_enabled()
    assert not torch.autograd._profiler_enabled()


def test_torch_autograd_profiler_too(patched):
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        torch.ones(2)
    assert type(prof) is opstrobe.autograd_profiler.profile
    assert [e.name for e in prof.function_events] == ["aten::ones", "aten::empty", "aten::fill_"]


def test_modules_bound_before_are_patched_as_well(patched):
    assert MODULES[1].profile is opstrobe.profile
    from torch.profiler import profile

    assert profile is opstrobe.profile


def test_type_checks(patched):
    with torch.profiler.profile(activities=[CPU]) as prof:
        torch.ones(2)
    ours = [e for e in prof.events()]
    assert isinstance(prof, torch.profiler.profile)
    assert isinstance(prof, torch.profiler._KinetoProfile)
    assert isinstance(prof.profiler, torch.autograd.profiler.profile)
    assert issubclass(torch.profiler.profile, torch.profiler._KinetoProfile)
    for module in (torch.autograd.profiler, torch.autograd.profiler_util):
        assert isinstance(prof.events(), module.EventList)
        assert isinstance(ours[0], module.FunctionEvent)
        assert not isinstance(ours[0], module.EventList)
        assert not isinstance([], module.EventList)
    assert isinstance(prof.key_averages()[0], torch.autograd.profiler_util.FunctionEventAvg)
    assert isinstance(opstrobe.profile(), torch.profiler.profile)


def test_device_types_are_equal_from_either_side(patched):
    with torch.profiler.profile(activities=[CPU]) as prof:
        torch.ones(2)
    (kind,) = {e.device_type for e in prof.events()}
    assert kind == torch.autograd.DeviceType.CPU
    assert torch.autograd.DeviceType.CPU == kind
    assert torch.profiler.DeviceType.CPU == kind
    assert torch.profiler.ProfilerAction.RECORD is prof.current_action


def test_what_was_bound_before_keeps_torchs(patched, tmp_path):
    """Torch's own classes find all they need in their modules, whatever was put there."""
    with EARLY_PROFILE(activities=[CPU], schedule=EARLY_SCHEDULE(wait=0, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(4):
            torch.ones(2)
            prof.step()
    assert type(prof.profiler) is EARLY_AUTOGRAD
    assert type(prof.events()[0]) is EARLY_EVENT
    assert isinstance(prof.events()[0], torch.autograd.profiler.FunctionEvent)
    assert {"aten::ones", "ProfilerStep*"} <= {e.key for e in prof.key_averages()}
    assert prof.key_averages().table()
    with EARLY_AUTOGRAD(use_kineto=True) as inner:
        torch.ones(2)
    assert [e.name for e in inner.function_events] == ["aten::ones", "aten::empty", "aten::fill_"]
    assert inner.total_average().count == 3
    with EARLY_PROFILE(activities=[CPU], schedule=torch.profiler.schedule(wait=0, warmup=0, active=1)) as mixed:
        mixed.step()
    assert mixed.step_num == 1


def test_undo_comes_with_the_last_patch():
    before = snapshot()
    first, second = opstrobe.patch_torch(), opstrobe.patch_torch()
    first.undo()
    first.undo()
    assert torch.profiler.profile is opstrobe.profile
    assert repr(first) == "<opstrobe.patch_torch(): undone>"
    assert repr(second) == "<opstrobe.patch_torch(): in force>"
    second.undo()
    assert snapshot() == before


def test_undo_leaves_replacements_by_others(monkeypatch):
    before = snapshot()
    monkeypatch.setattr(torch.profiler, "profile", torch.profiler.profile)  # to put back torch's and not ours
    with opstrobe.patch_torch():
        monkeypatch.setattr(torch.profiler, "profile", "theirs")
    assert torch.profiler.profile == "theirs"
    monkeypatch.setattr(torch.profiler, "profile", EARLY_PROFILE)
    assert snapshot() == before


def test_a_body_that_raises_undoes():
    before = snapshot()
    with pytest.raises(KeyError), opstrobe.patch_torch():
        raise KeyError
    assert snapshot() == before


def test_record_function_stays_torchs(patched):
    """torch.compile knows it by identity: another one would break compiled functions that have it inside."""
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="eager")
    def compiled(x):
        with torch.profiler.record_function("inside"):
            return x.sin()

    with torch.profiler.profile(activities=[CPU]) as prof:
        compiled(torch.ones(3))
        with torch.autograd.profiler.record_function("outside"):
            pass
    assert {"aten::sin", "outside"} <= {e.name for e in prof.events()}


# --- OPSTROBE_PATCH -----------------------------------------------------------------------------------------------------


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


PROGRAM = """
import torch
from torch.profiler import profile
with profile() as prof:
    torch.ones(2)
print(type(prof).__module__, [e.name for e in prof.events()][0], 'opstrobe' in __import__('sys').modules)
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", "opstrobe.profiler aten::ones True"),
        ("0", "torch.profiler.profiler aten::ones False"),
        ("", "torch.profiler.profiler aten::ones False"),
    ],
)
def test_opstrobe_patch_reaches_programs_that_know_nothing_of_it(value, expected):
    result = run(PROGRAM, OPSTROBE_PATCH=value)
    assert (result.returncode, result.stdout.strip()) == (0, expected), result.stderr


def fails_to_build(tmp_path, kind):
    if kind == "none":
        return {"CXX": "", "PATH": "/nowhere"}
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho this went wrong >&2\nexit 3\n")
    compiler.chmod(0o755)
    return {"CXX": str(compiler)}


@pytest.mark.parametrize("compiler", ["none", "broken"])
def test_opstrobe_patch_without_a_bridge_leaves_torch_alone(tmp_path, compiler):
    environment = {
        **os.environ,
        "OPSTROBE_PATCH": "1",
        "XDG_CACHE_HOME": str(tmp_path),
        **fails_to_build(tmp_path, compiler),
    }
    program = """
import torch
with torch.profiler.profile() as prof:
    torch.ones(2) + 1
print(type(prof).__module__, sum(event.name == "aten::add" for event in prof.events()))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "torch.profiler.profiler 1\n"
    (said,) = [line for line in done.stderr.splitlines() if "opstrobe" in line]
    assert said.startswith("opstrobe: OPSTROBE_PATCH has no effect, torch's own profiler is used: the torch bridge")


def test_opstrobe_patch_without_torch_costs_no_import():
    result = run("import sys; print('torch' in sys.modules)", OPSTROBE_PATCH="1")
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "False", "")


def test_opstrobe_patch_reaches_children():
    code = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    result = subprocess.run(
        [sys.executable, "-c", code, PROGRAM],
        env={**os.environ, "OPSTROBE_PATCH": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.stdout.startswith("opstrobe.profiler"), result.stderr


def test_torch_annotates_what_it_compiles_while_we_record():
    flag = torch.autograd.profiler
    with opstrobe.profile():
        assert flag._is_profiler_enabled is True
    assert flag._is_profiler_enabled is False

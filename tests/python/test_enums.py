# SPDX-License-Identifier: Apache-2.0
"""The enumerations equal torch's in name, value and text, and can replace them."""

import copy
import pickle

import pytest

import opstrobe

torch_profiler = pytest.importorskip("torch.profiler")
NAMES = ["ProfilerActivity", "ProfilerAction", "DeviceType", "RecordScope"]


@pytest.mark.torch_like("2.13", "2.15")
@pytest.mark.parametrize("name", NAMES)
def test_members(name):
    ours, theirs = getattr(opstrobe, name), getattr(torch_profiler, name)
    assert {n: m.value for n, m in ours.__members__.items()} == {n: m.value for n, m in theirs.__members__.items()}
    for member in ours:
        twin = getattr(theirs, member.name)
        assert member == twin
        assert hash(member) == hash(twin)
        assert (repr(member), str(member)) == (repr(twin), str(twin))
        assert member in {twin: None} or name != "ProfilerAction"
        assert ours(member.value) is member
        assert pickle.loads(pickle.dumps(member)) is member
        assert copy.deepcopy(member) is member
        assert [other for other in ours if other == twin] == [member]


@pytest.mark.parametrize("name", ["ProfilerActivity", "DeviceType", "RecordScope"])
def test_int(name):
    for member in getattr(opstrobe, name):
        assert int(member) == member.value
        assert list(range(30))[member] == member.value


def test_different_enumerations_differ():
    assert opstrobe.ProfilerActivity.CPU != opstrobe.DeviceType.CPU
    assert opstrobe.ProfilerActivity.CPU != 0
    assert opstrobe.ProfilerActivity.CPU != "CPU"
    assert opstrobe.ProfilerActivity.CPU != torch_profiler.DeviceType.CPU
    assert opstrobe.ProfilerAction.RECORD != 2

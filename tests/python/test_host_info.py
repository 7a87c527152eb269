# SPDX-License-Identifier: Apache-2.0
"""Whose threads have the processors while a step waits for one."""

import json
import multiprocessing
import time

import pytest

from opstrobe.recording import host_info


def burn(cpu_s):
    while time.process_time() < cpu_s:
        pass


@pytest.fixture
def child():
    process = multiprocessing.get_context("fork").Process(target=burn, args=(time.process_time() + 60,))
    process.start()
    yield process
    process.kill()
    process.join()


def wait_for_cpu_time(pid, seconds):
    """Until a process has that much CPU time."""
    while sum(int(field) for field in host_info._read(f"/proc/{pid}/stat").split()[13:15]) * 1e-2 < seconds:
        time.sleep(0.01)


def test_child_processes_have_a_share_of_the_processors(child, monkeypatch):
    monkeypatch.setattr(host_info, "_READ_EVERY_S", 0)
    clock = host_info.StepClock()
    clock.begin()
    wait_for_cpu_time(child.pid, 0.3)
    clock.end(0)
    threads, children = clock.shares()
    assert 0 < children <= 1 and 0 <= threads and threads + children <= 1
    assert json.loads(host_info.make_json(clock))["children_share"] == pytest.approx(children, abs=1e-4)


def test_a_child_that_has_ended_still_counts(child, monkeypatch):
    monkeypatch.setattr(host_info, "_READ_EVERY_S", 0)
    clock = host_info.StepClock()
    clock.begin()
    clock.end(0)
    wait_for_cpu_time(child.pid, 0.3)
    child.kill()
    child.join()
    clock.begin()
    clock.end(1)
    assert clock.shares()[1] > 0


def test_without_child_processes_there_are_no_shares(monkeypatch):
    monkeypatch.setattr(host_info, "_READ_EVERY_S", 0)
    monkeypatch.setattr(host_info, "_children", list)
    clock = host_info.StepClock()
    clock.begin()
    clock.end(0)
    assert clock.shares() == (0.0, 0.0)

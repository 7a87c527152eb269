# SPDX-License-Identifier: Apache-2.0
"""The parts of the interface that work on a whole process, called at random against a model: patches of torch, pauses of
the recording, and observers of execution traces, with a profile that starts and stops between.

Nothing crashes, and afterwards torch has its own names, the profile has what was not paused, and each file its nodes.
"""

import json
import os

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import opstrobe
from opstrobe import ProfilerActivity, record_function

TORCHS = torch.profiler.profile
OBSERVERS = 3


class Observed:
    """An observer of ours and what its file should say."""

    def __init__(self, path):
        self.path = path
        self.observer = opstrobe.ExecutionTraceObserver()
        self.registered = self.running = False
        self.names = []


class Calls(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.patches = []
        self.prof = None
        self.paused = False
        self.expected = []
        folder = os.environ["OPSTROBE_TEST_FOLDER"]
        self.observed = [Observed(f"{folder}/{number}.json") for number in range(OBSERVERS)]

    # --- patches ---------------------------------------------------------------------------------------------------

    @rule()
    def patch(self):
        self.patches.append(opstrobe.patch_torch())

    @rule(which=st.integers(0, 5), twice=st.booleans())
    def undo(self, which, twice):
        if self.patches:
            patch = self.patches.pop(which % len(self.patches))
            patch.undo()
            if twice:
                patch.undo()

    @invariant()
    def torch_has_ours_while_a_patch_is_in_force(self):
        assert (torch.profiler.profile is opstrobe.profile) == bool(self.patches)
        assert bool(self.patches) or torch.profiler.profile is TORCHS

    # --- the profile -----------------------------------------------------------------------------------------------

    @rule()
    def start(self):
        if self.prof is None:
            kind = torch.profiler.profile if self.patches else opstrobe.profile
            self.prof = kind()
            self.prof.start()
            self.paused, self.expected = False, []
        else:
            with pytest.raises(RuntimeError, match="another one is recording"):
                opstrobe.profile().start()

    @rule()
    def stop(self):
        if self.prof is not None:
            self.prof.stop()
            found = [event.name for event in self.prof.events() if event.is_user_annotation]
            assert found == self.expected
            self.prof = None

    @rule(enable=st.booleans(), kinds=st.sets(st.sampled_from(["CPU", "CUDA", "XPU"]), max_size=2))
    def toggle(self, enable, kinds):
        if self.prof is not None:
            self.prof.toggle_collection_dynamic(enable, [ProfilerActivity[kind] for kind in kinds])
            if "CPU" in kinds:
                self.paused = not enable

    @rule()
    def work(self):
        self.count += 1
        name = f"range {self.count}"
        with record_function(name):
            pass
        if self.prof is not None and not self.paused:
            self.expected.append(name)
        for observed in self.observed:
            if observed.running:
                observed.names.append(name)

    # --- observers -------------------------------------------------------------------------------------------------

    @rule(which=st.integers(0, OBSERVERS - 1))
    def register(self, which):
        observed = self.observed[which]
        observed.observer.register_callback(observed.path)
        if not observed.registered:
            observed.registered, observed.names = True, []
        assert observed.observer.is_registered

    @rule(which=st.integers(0, OBSERVERS - 1), running=st.booleans())
    def observe(self, which, running):
        observed = self.observed[which]
        (observed.observer.start if running else observed.observer.stop)()
        observed.running = observed.registered and running
        assert observed.observer.is_running() == observed.running

    @rule(which=st.integers(0, OBSERVERS - 1))
    def unregister(self, which):
        observed = self.observed[which]
        observed.observer.unregister_callback()
        if observed.registered:
            with open(observed.path) as file:
                names = [node["name"] for node in json.load(file)["nodes"]]
            assert [name for name in names if name.startswith("range ")] == observed.names
        observed.registered = observed.running = False
        assert not observed.observer.is_registered and not observed.observer.is_running()

    def teardown(self):
        for patch in self.patches:
            patch.undo()
        self.patches = []
        self.torch_has_ours_while_a_patch_is_in_force()
        self.stop()
        for which in range(OBSERVERS):
            self.unregister(which)


def test_calls_at_random(tmp_path, monkeypatch):
    """CALL_SEQUENCES: how many; `make soak` makes 10,000."""
    monkeypatch.setenv("OPSTROBE_TEST_FOLDER", str(tmp_path))
    opstrobe.patch_torch().undo()
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
    limits = settings(
        max_examples=int(os.environ.get("CALL_SEQUENCES", "300")),
        stateful_step_count=10,
        deadline=None,
        suppress_health_check=checks,
        database=None,
        derandomize=bool(os.environ.get("CI")),
    )
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Calls, settings=limits)

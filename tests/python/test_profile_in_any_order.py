# SPDX-License-Identifier: Apache-2.0
"""Random calls of the interface against a model: which transitions between states are valid, and which calls raise an error.

Nothing crashes, every call does what the model says or raises what it says, and each window holds its own ranges alone.
"""

import json
import os
import warnings

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import opstrobe
from opstrobe import ProfilerAction, record_function

NONE, WARMUP, RECORD, SAVE = (ProfilerAction[n] for n in ("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"))

# What is done between two actions: P prepare, G start, X stop, T the handler; the last of a row at the end.
TABLE = {
    NONE: {NONE: "", WARMUP: "P", RECORD: "PG", SAVE: "PG", None: ""},
    WARMUP: {NONE: "GX", WARMUP: "", RECORD: "G", SAVE: "G", None: "GX"},
    RECORD: {NONE: "X", WARMUP: "XP", RECORD: "", SAVE: "", None: "XT"},
    SAVE: {NONE: "XT", WARMUP: "XTP", RECORD: "XTPG", SAVE: "XTPG", None: "XT"},
}


class HandlerError(Exception):
    pass


class Model:
    """What a profile should be in, and hold."""

    def __init__(self, actions, acc_events):
        self.actions, self.acc_events = actions, acc_events
        self.started = False
        self.fresh = True  # never started: the first step starts it
        self.by_step = False  # started by a step, and not by start() since
        self.step = 0
        self.window = "none"  # prepared, open, closed
        self.held = []  # of the last window
        self.earlier = []
        self.handled = 0
        self.prepared = False

    def action(self, step=None):
        return self.actions[(self.step if step is None else step) % len(self.actions)]

    def do(self, letters):
        for letter in letters:
            if letter == "P":
                if self.acc_events and self.window == "closed":
                    self.earlier = self.earlier + self.held
                self.window, self.held, self.prepared = "prepared", [], True
            elif letter == "G":
                if self.window == "closed":
                    self.do("P")
                self.window = "open"
            elif letter == "X":
                self.window = "closed"
            else:
                self.handled += 1

    def listed(self):
        now = self.held if self.window == "closed" else []
        return self.earlier + now


class Calls(RuleBasedStateMachine):
    @initialize(
        actions=st.lists(st.sampled_from([NONE, WARMUP, RECORD, SAVE]), min_size=1, max_size=6),
        acc_events=st.booleans(),
        memory=st.booleans(),
    )
    def make(self, actions, acc_events, memory):
        self.model = Model(actions, acc_events)
        self.raising = False
        self.metadata = {}
        self.count = 0
        self.prof = opstrobe.profile(
            schedule=self.model.action, on_trace_ready=self.ready, acc_events=acc_events, profile_memory=memory
        )
        self.path = f"{os.environ['OPSTROBE_TEST_FOLDER']}/trace.json"

    def ready(self, prof):
        assert prof is self.prof
        self.seen_in_handler = [e.trace_name for e in prof.events() if e.is_user_annotation]
        for call in (prof.start, prof.step):
            with pytest.raises(RuntimeError, match="on_trace_ready"):
                call()
        if self.raising:
            raise HandlerError

    def expect_handler_error(self, letters):
        return self.raising and "T" in letters

    def call(self, function, letters):
        """Calls it, and the model does the letters. The handler's exception comes out if it is to raise."""
        if self.expect_handler_error(letters):
            with pytest.raises(HandlerError):
                function()
        else:
            function()

    @rule()
    def start(self):
        model = self.model
        if model.by_step:
            self.prof.start()
            model.by_step = False
            return
        if model.started:
            with pytest.raises(RuntimeError, match="already"):
                self.prof.start()
            return
        self.prof.start()
        model.started, model.fresh = True, False
        model.do(TABLE[NONE][model.action()])
        self.open_step()

    @rule()
    def stop(self):
        model = self.model
        if not model.started:
            if not model.prepared and self.prof.current_action is not NONE:
                with pytest.raises(AssertionError, match="initialized"):
                    self.prof.stop()
            else:
                self.prof.stop()
            return
        letters = TABLE[model.action()][None]
        self.call(self.prof.stop, letters)
        model.started = model.by_step = False
        model.do(letters)

    @rule()
    def step(self):
        model = self.model
        before = NONE if model.fresh else model.action()
        if model.fresh:
            model.fresh, model.started, model.by_step = False, True, True
        letters = TABLE[before][model.action(model.step + 1)] if model.started else ""
        self.call(self.prof.step, letters)
        model.step += 1
        model.do(letters)
        self.open_step()

    def open_step(self):
        if self.model.started and self.model.window == "open":
            self.model.held.append(f"ProfilerStep#{self.model.step}")

    @rule(how=st.sampled_from(["plain", "raises", "nested"]))
    def work(self, how):
        self.count += 1
        name = f"range {self.count}"
        names = [name]
        try:
            with record_function(name):
                if how == "raises":
                    raise KeyError
                if how == "nested":
                    names.append(f"inner {self.count}")
                    with record_function(names[-1]):
                        pass
        except KeyError:
            pass
        if self.model.window == "open":
            self.model.held += names

    @rule(raising=st.booleans())
    def let_the_handler_raise(self, raising):
        self.raising = raising

    @rule()
    def a_second_profile(self):
        if self.model.window == "open":
            with pytest.raises(RuntimeError):
                opstrobe.profile().start()
        else:
            with opstrobe.profile() as other, record_function("elsewhere"):
                pass
            assert [e.name for e in other.events()] == ["elsewhere"]

    @rule()
    def begin_a_window_by_hand(self):
        if self.model.window == "open":
            with pytest.raises(RuntimeError):
                self.prof.start_trace()
            with pytest.raises(RuntimeError):
                self.prof.prepare_trace()

    @rule(number=st.integers(0, 9))
    def add_metadata(self, number):
        self.metadata[f"key {number}"] = number
        self.prof.add_metadata_json(f"key {number}", str(number))

    @rule()
    def add_wrong_metadata(self):
        with pytest.raises(ValueError):
            self.prof.add_metadata_json("key", "{")
        with pytest.raises(TypeError):
            self.prof.add_metadata("key", 3)

    @rule()
    def list_events(self):
        if not self.model.prepared:
            for call in (self.prof.events, self.prof.key_averages):
                with pytest.raises(AssertionError, match="initialized"):
                    call()
            return
        names = [e.trace_name for e in self.prof.events() if e.is_user_annotation]
        assert names == self.model.listed()
        assert sum(row.count for row in self.prof.key_averages() if row.is_user_annotation) == len(names)

    @rule()
    def export(self):
        model = self.model
        if not model.prepared:
            with pytest.raises(AssertionError, match="initialized"):
                self.prof.export_chrome_trace(self.path)
        elif model.window != "closed":
            with pytest.raises(RuntimeError, match="cannot export"):
                self.prof.export_chrome_trace(self.path)
        else:
            self.prof.export_chrome_trace(self.path)
            with open(self.path) as file:
                document = json.load(file)
            names = [row["name"] for row in document["traceEvents"] if row.get("cat") == "user_annotation"]
            assert sorted(names) == sorted(model.held)
            assert {key: document[key] for key in self.metadata} == self.metadata

    @invariant()
    def agrees(self):
        if not hasattr(self, "model"):
            return
        model, prof = self.model, self.prof
        assert (prof.step_num, prof.current_action) == (model.step, model.action())
        assert (prof.profiler is not None) == model.prepared
        assert (prof.get_trace_id() is not None) == model.prepared
        if prof.profiler is not None:
            assert prof.profiler.running == (model.window == "open")
            assert prof.profiler.finished == (model.window == "closed")
            if prof.profiler.trace is not None:
                prof.profiler.trace.check()

    def teardown(self):
        if hasattr(self, "prof"):
            self.raising = False
            if self.model.started:
                self.prof.stop()
            assert not opstrobe._core.Session().running


def test_calls_at_random(tmp_path, monkeypatch):
    """CALL_SEQUENCES: how many; `make soak` makes 10,000."""
    monkeypatch.setenv("OPSTROBE_TEST_FOLDER", str(tmp_path))
    from hypothesis.stateful import run_state_machine_as_test

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_state_machine_as_test(
            Calls,
            settings=settings(
                max_examples=int(os.environ.get("CALL_SEQUENCES", "300")),
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                derandomize=bool(os.environ.get("CI")),
                database=None,
            ),
        )

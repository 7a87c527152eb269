# SPDX-License-Identifier: Apache-2.0
"""Misuse gives a clear exception and leaves the profile, and the program, in order."""

import gc
import json
import os
import subprocess
import sys
import threading
import warnings

import pytest

import opstrobe
from opstrobe import ProfilerAction, ProfilerActivity, record_function

WARMUP, RECORD, SAVE = ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE


def enter(name):
    with record_function(name):
        pass


def names(prof):
    return [event.trace_name for event in prof.events()]


def run(code):
    """The code in a separate process, where a crash is an exit status."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    return result.returncode, result.stdout, result.stderr


# --- constructor --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (dict(activities=[]), AssertionError, "No valid profiler activities"),
        (dict(activities=["cpu"]), AssertionError, "No valid profiler activities"),
        (dict(activities=[ProfilerActivity.CPU, "cpu"]), TypeError, "Expected ProfilerActivity or dict"),
        (dict(activities=[ProfilerActivity.CPU] * 2), ValueError, "ProfilerActivity.CPU"),
        (dict(activities=5), TypeError, "iterable"),
        (dict(schedule=3), TypeError, "callable"),
        (dict(schedule=lambda step: ProfilerAction.DEVICE_STOPPED), ValueError, "DEVICE_STOPPED"),
        (dict(schedule=lambda step: None), ValueError, "None"),
        (dict(schedule=lambda step: 2), ValueError, "2"),
        (dict(experimental_config={}), AttributeError, "_ExperimentalConfig"),
        (dict(unknown=1), TypeError, "unknown"),
    ],
)
def test_constructor(arguments, error, text):
    with pytest.raises(error, match=text):
        opstrobe.profile(**arguments)


def test_positional_arguments():
    with pytest.raises(TypeError):
        opstrobe.profile([ProfilerActivity.CPU])


def test_use_cuda_is_deprecated():
    with pytest.warns(FutureWarning, match="use_cuda") as caught:
        opstrobe.profile(use_cuda=False)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("device", ["CUDA", "XPU", "HPU"])
@pytest.mark.parametrize("kind", [opstrobe.profile, opstrobe._KinetoProfile])
def test_missing_devices(device, kind):
    activity = ProfilerActivity[device]
    both = kind(activities=[ProfilerActivity.CPU, activity])
    with pytest.warns(UserWarning, match=f"{device} is not available") as caught:
        both.start()
    assert caught[0].filename == __file__
    enter("a")
    both.stop()
    assert (names(both), both.profiler.use_device, both.use_device) == (["a"], None, device.lower())
    alone = kind(activities=[activity])
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="No activities specified"):
        alone.start()


def test_kineto_profile_without_activities():
    prof = opstrobe._KinetoProfile(activities=[])
    with pytest.raises(AssertionError, match="No activities specified"):
        prof.start()


def test_experimental_config():
    import pickle

    config = opstrobe._ExperimentalConfig([], False, False, [], False, False, False, True)
    assert config.profile_all_threads is True
    assert vars(pickle.loads(pickle.dumps(config))) == vars(config)
    for wrong in [dict(unknown=1), dict(verbose=None, **{"": 1})]:
        with pytest.raises(TypeError):
            opstrobe._ExperimentalConfig(**wrong)
    with pytest.raises(TypeError, match="multiple values"):
        opstrobe._ExperimentalConfig([], profiler_metrics=[])
    with pytest.raises(TypeError):
        opstrobe._ExperimentalConfig(*range(15))


# --- methods at the wrong time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        lambda p: p.events(),
        lambda p: p.key_averages(),
        lambda p: p.export_chrome_trace("/nowhere"),
        lambda p: p.export_stacks("/nowhere"),
        lambda p: p.start_trace(),
        lambda p: p.stop_trace(),
        lambda p: p.stop(),
    ],
)
@pytest.mark.parametrize("kind", [opstrobe.profile, opstrobe._KinetoProfile])
def test_before_start(kind, method):
    with pytest.raises(AssertionError, match="must be initialized"):
        method(kind())


def test_stop_before_start_with_an_idle_first_step():
    opstrobe.profile(schedule=opstrobe.schedule(wait=1, warmup=1, active=1)).stop()


def test_step_before_start():
    prof = opstrobe.profile(schedule=opstrobe.schedule(wait=1, warmup=1, active=2))
    for _ in range(3):
        prof.step()
    assert (prof.step_num, prof.current_action) == (3, SAVE)
    with prof:  # goes on with what the steps have started
        enter("a")
        prof.step()
    assert names(prof) == ["ProfilerStep#2", "ProfilerStep#3", "a"]
    with prof, pytest.raises(RuntimeError, match="started already"):
        prof.start()


def test_while_recording(tmp_path):
    with opstrobe.profile() as prof:
        enter("a")
        assert list(prof.events()) == []
        assert prof.key_averages().table() == ""
        with pytest.raises(RuntimeError, match="still recording"):
            prof.export_chrome_trace(tmp_path / "t.json")
        with pytest.raises(RuntimeError, match="recording already"):
            prof.prepare_trace()
        with pytest.raises(RuntimeError):
            prof.start_trace()
    assert names(prof) == ["a"]
    assert os.listdir(tmp_path) == []


def test_export_before_anything_was_recorded(tmp_path):
    with opstrobe.profile(schedule=lambda step: WARMUP) as prof:
        with pytest.raises(RuntimeError, match="has recorded nothing"):
            prof.export_chrome_trace(tmp_path / "t.json")


@pytest.mark.parametrize("kind", [opstrobe.profile, opstrobe._KinetoProfile])
def test_start_twice(kind):
    prof = kind()
    prof.start()
    enter("a")
    with pytest.raises(RuntimeError, match="already"):
        prof.start()
    enter("b")
    prof.stop()
    assert names(prof) == ["a", "b"]


@pytest.mark.parametrize("kind", [opstrobe.profile, opstrobe._KinetoProfile])
def test_stop_twice(kind, tmp_path):
    prof = kind()
    prof.start()
    enter("a")
    prof.stop()
    prof.stop()
    assert names(prof) == ["a"]
    prof.export_chrome_trace(tmp_path / "t.json")


def test_stop_twice_calls_the_handler_once():
    ready = []
    with opstrobe.profile(on_trace_ready=ready.append) as prof:
        prof.stop()
        prof.step()
        prof.stop()
    assert ready == [prof]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("missing/t.json", FileNotFoundError),
        ("missing/t.json.gz", FileNotFoundError),
        (".", OSError),
        ("", OSError),
        ("nul\0", ValueError),
        (3, TypeError),
        (None, TypeError),
    ],
)
def test_bad_path(path, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opstrobe.profile() as prof:
        enter("a")
    with pytest.raises(error):
        prof.export_chrome_trace(path)
    assert os.listdir(tmp_path) == []
    prof.export_chrome_trace("good.json")
    assert json.loads((tmp_path / "good.json").read_text())


def test_an_old_file_stays_complete_when_the_disk_is_full(tmp_path):
    with opstrobe.profile() as prof:
        enter("a")
    with pytest.raises(OSError):
        prof.export_chrome_trace("/dev/full/t.json")
    with pytest.raises(OSError):
        prof.export_chrome_trace("/proc/t.json")


def test_averages_of_averages():
    with opstrobe.profile() as prof:
        enter("a")
    with pytest.raises(AssertionError):
        prof.key_averages().key_averages()
    assert len(prof.key_averages(group_by_stack_n=-3)) == len(prof.key_averages(group_by_stack_n=10**6)) == 1


@pytest.mark.parametrize("sort_by", ["unknown", ""])
def test_unknown_sort_by(sort_by):
    with opstrobe.profile() as prof:
        enter("a")
        enter("b")
    with pytest.raises(AttributeError):
        prof.key_averages().table(sort_by=sort_by)
    assert prof.key_averages().table(time_unit="h") == prof.key_averages().table()


def test_negative_timeout():
    prof = opstrobe.profile(post_processing_timeout_s=-1)
    with pytest.raises(ValueError, match="post_processing_timeout_s"):
        prof.start()


# --- several profiles ---------------------------------------------------------------------------------------------------


def test_nested():
    ready = []
    with opstrobe.profile(on_trace_ready=ready.append) as outer:
        enter("a")
        inner = opstrobe.profile()
        with pytest.raises(RuntimeError, match="record"):
            inner.start()
        with pytest.raises(RuntimeError, match="record"), opstrobe.profile():
            pytest.fail("must not be entered")
        enter("b")
    assert names(outer) == ["a", "b"]
    assert ready == [outer]
    with inner:
        enter("c")
    assert names(inner) == ["c"]


def test_two_threads():
    errors = []

    def other():
        try:
            opstrobe.profile().start()
        except RuntimeError as error:
            errors.append(str(error))

    with opstrobe.profile() as prof:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        enter("a")
    assert len(errors) == 1
    assert names(prof) == ["a"]


def test_torchs_profiler_at_the_same_time():
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        with pytest.raises(RuntimeError, match="torch"):
            opstrobe.profile().start()
        torch.ones(3)
    assert "aten::ones" in {event.name for event in theirs.events()}
    with opstrobe.profile() as ours:
        torch.ones(3)
    assert "aten::ones" in names(ours)


def test_a_busy_window_in_a_schedule_is_reported_and_survived():
    prof = opstrobe.profile(schedule=lambda step: [WARMUP, RECORD, SAVE][step % 3])
    other = opstrobe.profile()
    with prof:
        other.start()
        with pytest.raises(RuntimeError):
            prof.step()
        prof.step()
        other.stop()
        prof.step()
        prof.step()
        enter("a")
        prof.step()
        prof.step()
    assert names(other) == ["ProfilerStep#1", "ProfilerStep#2"]  # ranges are the process's
    assert prof.step_num == 6


def test_a_bridge_that_cannot_be_built(monkeypatch):
    torch = pytest.importorskip("torch")
    from opstrobe.recording import bridge

    def load():
        raise bridge.BridgeError("no compiler")

    prof = opstrobe.profile()
    with monkeypatch.context() as patch:
        patch.setattr(bridge, "load", load)
        with pytest.raises(RuntimeError, match="no compiler"):
            prof.start()
    assert prof.profiler is None
    with prof:
        torch.ones(3)
    assert "aten::ones" in names(prof)


def test_dropped_while_recording():
    prof = opstrobe.profile(schedule=lambda step: RECORD)
    prof.start()
    del prof
    gc.collect()
    with opstrobe.profile() as prof:
        enter("a")
    assert names(prof) == ["a"]


# --- handlers and schedules ---------------------------------------------------------------------------------------------


def test_handler_raises_at_exit():
    def handler(prof):
        raise OSError("handler")

    with pytest.raises(OSError, match="handler") as caught:
        with opstrobe.profile(on_trace_ready=handler) as prof:
            enter("a")
            raise KeyError("body")
    assert isinstance(caught.value.__context__, KeyError)
    assert names(prof) == ["a"]
    prof.stop()
    with opstrobe.profile():
        pass


def test_handler_raises_in_a_step():
    calls = []

    def handler(prof):
        calls.append(names(prof))
        raise OSError("handler")

    schedule = opstrobe.schedule(wait=0, warmup=1, active=1)
    prof = opstrobe.profile(schedule=schedule, on_trace_ready=handler)
    with prof:
        for step in range(4):
            enter(f"body {step}")
            if step % 2:
                with pytest.raises(OSError):
                    prof.step()
            else:
                prof.step()
    assert calls == [["ProfilerStep#1", "body 1"], ["ProfilerStep#3", "body 3"]]


def test_handler_raises_where_the_next_window_follows_at_once():
    calls = []

    def handler(prof):
        calls.append(names(prof))
        raise OSError("handler")

    with pytest.warns(UserWarning, match="warmup"):
        schedule = opstrobe.schedule(wait=0, warmup=0, active=2, repeat=2)
    with opstrobe.profile(schedule=schedule, on_trace_ready=handler) as prof:
        for step in range(4):
            enter(f"body {step}")
            if step % 2:
                with pytest.raises(OSError):
                    prof.step()
            else:
                prof.step()
    assert [[name for name in found if name.startswith("body")] for found in calls] == [
        ["body 0", "body 1"],
        ["body 2", "body 3"],
    ]


def test_handler_stops_the_profile():
    calls = []

    def handler(prof):
        calls.append(names(prof))
        prof.stop()

    with opstrobe.profile(schedule=lambda step: SAVE, on_trace_ready=handler) as prof:
        for _ in range(3):
            prof.step()
            assert not prof.profiler.running
    assert calls == [["ProfilerStep#0"]]
    with opstrobe.profile(on_trace_ready=handler):
        enter("a")
    assert calls[1:] == [["a"]]


@pytest.mark.parametrize("method", ["start", "step"])
def test_handler_starts_or_steps(method):
    def handler(prof):
        with pytest.raises(RuntimeError, match=f"{method}.. cannot be called in on_trace_ready"):
            getattr(prof, method)()
        called.append(1)

    called = []
    with opstrobe.profile(schedule=lambda step: SAVE, on_trace_ready=handler) as prof:
        prof.step()
    assert called == [1, 1]


def test_schedule_raises_or_returns_garbage():
    answers = {2: KeyError("schedule"), 3: None, 4: "RECORD", 5: 2, 6: ProfilerAction.DEVICE_STOPPED}
    ready = []

    def schedule(step):
        answer = answers.get(step, RECORD)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with opstrobe.profile(schedule=schedule, on_trace_ready=ready.append) as prof:
        prof.step()
        for step in sorted(answers):
            with pytest.raises(KeyError if step == 2 else ValueError):
                prof.step()
            del answers[step]
            assert prof.step_num == step - 1
            prof.step()
    assert ready == [prof]
    assert "ProfilerStep#1" in names(prof)


@pytest.mark.parametrize("bad", [lambda: 3, lambda: None])
def test_trace_id_of_the_wrong_type(bad):
    prof = opstrobe.profile(custom_trace_id_callback=bad)
    with pytest.raises(TypeError, match="custom_trace_id_callback"):
        prof.start()


# --- what crashes torch --------------------------------------------------------------------------------------------

PREFIX = "import opstrobe, warnings; from opstrobe import *\n"
CRASHES = {
    "export after a double stop": """
        p = profile(); p.start(); p.stop(); p.stop(); p.export_chrome_trace('/dev/null')""",
    "nested profilers, then export of the outer": """
        outer = profile(); outer.start(); inner = profile()
        try: inner.start()
        except RuntimeError as e: print('refused')
        outer.stop(); outer.export_chrome_trace('/tmp/opstrobe-nested.json')""",
    "two threads profiling": """
        import threading
        def other():
            try:
                with profile(): pass
            except RuntimeError: print('refused')
        with profile() as p:
            t = threading.Thread(target=other); t.start(); t.join()""",
    "handler raising inside step": """
        warnings.simplefilter('ignore')
        def handler(p): raise KeyError
        with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handler) as p:
            p.step()
            try: p.step()
            except KeyError: print('raised')""",
    "record followed by warmup": """
        warnings.simplefilter('ignore')
        actions = [ProfilerAction.RECORD, ProfilerAction.WARMUP] * 3
        with profile(schedule=lambda n: actions[n]) as p:
            for _ in range(5): p.step()""",
    "exit while recording": """
        p = profile(); p.start()
        with record_function('x'): pass""",
    "exit while recording, within a range": """
        p = profile(schedule=lambda n: ProfilerAction.RECORD); p.start()
        r = record_function('x'); r.__enter__()""",
    "exit by sys.exit": """
        import sys
        p = profile(); p.start(); sys.exit(0)""",
    "exit while a thread runs": """
        import threading, time
        def work():
            while True:
                with record_function('x'): pass
        p = profile(); p.start()
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)""",
    "a second execution trace observer": """
        import os, tempfile
        folder = tempfile.mkdtemp()
        observers = [ExecutionTraceObserver().register_callback(os.path.join(folder, f'{i}.json')) for i in range(2)]
        for o in observers: o.start()
        with record_function('x'): pass
        del o, observers[0]""",
}


@pytest.mark.parametrize("torch_too", [False, True], ids=["ranges", "torch"])
@pytest.mark.parametrize("case", CRASHES)
def test_crashes_of_torch(case, torch_too, tmp_path):
    import textwrap

    if torch_too:
        pytest.importorskip("torch")
    code = textwrap.dedent(CRASHES[case]).replace("/tmp/opstrobe-nested.json", str(tmp_path / "t.json"))
    code = code.replace("'/dev/null'", repr(str(tmp_path / "t.json")))
    operators = "import torch; torch.ones(3).add(1)\n" if torch_too else ""
    status, _, errors = run(operators + PREFIX + code)
    assert (status, errors) == (0, "")


def test_profiles_on_many_threads_at_once():
    """Whoever comes second is refused; nobody crashes; every profile that ran is whole."""
    done, refused = [], []

    def work():
        for _ in range(30):
            try:
                with opstrobe.profile() as prof:
                    enter("a")
                assert "a" in names(prof)
                done.append(1)
            except RuntimeError:
                refused.append(1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert done and len(done) + len(refused) == 120


def test_many_cycles_keep_no_memory():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cycles(n):
        for _ in range(n):
            with opstrobe.profile():
                enter("a")

    cycles(1_000)
    before = resident()
    cycles(10_000)
    assert resident() - before < 4_000_000


# --- forks --------------------------------------------------------------------------------------------------------------


def test_fork_while_recording(tmp_path):
    ready = []
    with opstrobe.profile(on_trace_ready=ready.append) as prof:
        enter("before")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                enter("child")
                prof.stop()
                assert ready == [] and list(prof.events()) == []
                with pytest.raises(RuntimeError, match="has recorded nothing"):
                    prof.export_chrome_trace(tmp_path / "child.json")
                with opstrobe.profile() as own:
                    enter("own")
                assert names(own) == ["own"]
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        enter("after")
    assert names(prof) == ["before", "after"]
    assert ready == [prof]


def test_forked_workers_of_a_loader():
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2, num_workers=2)
    with opstrobe.profile() as prof:
        total = sum(batch.sum().item() for batch in loader)
    assert total == 28
    prof.profiler.trace.check()
    assert "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" in names(prof)


def test_memory_timeline_of_a_device_that_is_not_there(tmp_path):
    torch = pytest.importorskip("torch")
    with opstrobe.profile(profile_memory=True) as prof:
        torch.ones(8)
    prof.export_memory_timeline(str(tmp_path / "memory.json"), device="cuda:0")
    assert json.loads((tmp_path / "memory.json").read_text()) == [[], []]


def test_an_empty_profile(tmp_path):
    with opstrobe.profile() as prof:
        pass
    assert (list(prof.events()), prof.key_averages().table()) == ([], "")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {row["ph"] for row in rows} <= {"M", "X", "i"}
    assert [row["name"] for row in rows if row["ph"] == "X"] == ["PyTorch Profiler (0)"]

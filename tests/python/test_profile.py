# SPDX-License-Identifier: Apache-2.0
"""What profile does when it is used as meant, with and without a schedule, and its built-in annotations."""

import contextlib
import dataclasses
import gc
import gzip
import inspect
import json
import os
import pickle
import subprocess
import sys
import threading
import types
import warnings

import pytest

import opstrobe
from opstrobe import ProfilerActivity, record_function, schedule

pytestmark = pytest.mark.filterwarnings("ignore:Profiler clears")


def enter(name):
    with record_function(name):
        pass


def load(path):
    with (gzip.open if str(path).endswith("gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def spans(path):
    return [row["name"] for row in load(path)["traceEvents"] if row.get("cat") == "user_annotation"]


# --- the package --------------------------------------------------------------------------------------------------------


@pytest.mark.torch_like("2.13")
def test_names_of_torch():
    torch_profiler = pytest.importorskip("torch.profiler")
    public = [
        "profile",
        "schedule",
        "supported_activities",
        "tensorboard_trace_handler",
        "ProfilerAction",
        "ProfilerActivity",
        "kineto_available",
        "DeviceType",
        "record_function",
        "ExecutionTraceObserver",
    ]
    assert sorted(opstrobe.__all__) == sorted(torch_profiler.__all__) == sorted(public)
    for name in [*public, "_KinetoProfile", "_ExperimentalConfig", "RecordScope"]:
        assert hasattr(opstrobe, name)
    assert isinstance(opstrobe.profiler, types.ModuleType)
    from opstrobe.profiler import _KinetoProfile, profile, record_function, tensorboard_trace_handler  # noqa: F401

    assert profile is opstrobe.profile


OWN_PARAMETERS = {"max_bytes", "spill"}


@pytest.mark.torch_like("2.13")
@pytest.mark.parametrize("name", ["profile", "_KinetoProfile", "schedule", "tensorboard_trace_handler"])
def test_signatures_of_torch(name):
    torch_profiler = pytest.importorskip("torch.profiler")
    ours, theirs = (inspect.signature(getattr(module, name)) for module in (opstrobe, torch_profiler))
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values() if p.name not in OWN_PARAMETERS] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


@pytest.mark.torch_like("2.13")
def test_methods_of_torch():
    torch_profiler = pytest.importorskip("torch.profiler")
    for name in dir(torch_profiler.profile):
        method = getattr(torch_profiler.profile, name)
        if name.startswith("__") or not callable(method):
            continue
        ours = getattr(opstrobe.profile, name)
        assert list(inspect.signature(ours).parameters)[:1] == ["self"]
        if name not in ("_trace_ready", "_transit_action"):
            theirs = list(inspect.signature(method).parameters)
            assert list(inspect.signature(ours).parameters)[: len(theirs)] == theirs, name  # later torches have more


def test_available():
    assert opstrobe.supported_activities() == {ProfilerActivity.CPU}
    assert opstrobe.kineto_available() is True


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


def test_import_is_light_and_quiet():
    """What files in site-packages have imported before is not ours."""
    result = run(
        "import sys, threading; before = set(sys.modules)\n"
        "import opstrobe, opstrobe.profiler\n"
        "heavy = {'torch', 'numpy', 'typing', 'inspect', 'dataclasses', 'asyncio', 'socket'} & (set(sys.modules) - before)\n"
        "assert not heavy, heavy\n"
        "assert threading.active_count() == 1"
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_without_torch():
    """Ranges are recorded without torch."""
    result = run(
        "import sys; sys.modules['torch'] = None; import opstrobe\n"
        "with opstrobe.profile(record_shapes=True) as p, opstrobe.record_function('x'): pass\n"
        "assert [e.name for e in p.events()] == ['x'], p.events()\n"
        "assert sys.modules['torch'] is None\n"
        "assert '# of Calls' in p.key_averages().table()"
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_torch_imported_too_late_is_reported():
    pytest.importorskip("torch")
    result = run("import opstrobe\nwith opstrobe.profile() as p: import torch\n")
    assert result.returncode == 0
    assert "import torch before the profile starts" in result.stderr


def test_no_threads_and_no_output(capfd):
    threads = len(os.listdir("/proc/self/task"))
    with opstrobe.profile() as prof:
        assert len(os.listdir("/proc/self/task")) == threads
    prof.key_averages()
    assert capfd.readouterr() == ("", "")


# --- recording ----------------------------------------------------------------------------------------------------------


def test_without_schedule():
    ready = []
    with opstrobe.profile(on_trace_ready=ready.append) as prof:
        enter("a")
        prof.step()
        enter("b")
        prof.step()
    assert ready == [prof]
    assert prof.step_num == 2
    assert [event.trace_name for event in prof.events()] == ["a", "b"]
    assert prof.events() is prof.events()
    assert (prof.record_steps, prof.step_rec_fn) == (False, None)


def test_with_schedule():
    seen = []

    def ready(prof):
        seen.append((prof.step_num, [event.trace_name for event in prof.events()], prof.profiler.running))

    with opstrobe.profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
        for i in range(9):
            enter(f"body {i}")
            prof.step()
    assert seen == [
        (4, ["ProfilerStep#2", "body 2", "ProfilerStep#3", "body 3"], False),
        (8, ["ProfilerStep#6", "body 6", "ProfilerStep#7", "body 7"], False),
    ]
    assert prof.step_num == 9
    assert prof.record_steps is True


def test_steps_are_averaged_under_one_name():
    with opstrobe.profile(schedule=lambda _: opstrobe.ProfilerAction.RECORD) as prof:
        prof.step()
        prof.step()
    assert [(row.key, row.count) for row in prof.key_averages()] == [("ProfilerStep*", 3)]


def test_attributes():
    prof = opstrobe.profile(record_shapes=True, with_flops=True)
    expected = dict(
        activities={ProfilerActivity.CPU},
        activity_filters={},
        record_shapes=True,
        with_flops=True,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        profiler=None,
        use_device=None,
        has_cudagraphs=False,
        mem_tl=None,
        preset_metadata={},
        record_steps=False,
        on_trace_ready=None,
        step_num=0,
        current_action=opstrobe.ProfilerAction.RECORD,
        step_rec_fn=None,
    )
    assert {name: getattr(prof, name) for name in expected} == expected
    assert prof.schedule(7) is opstrobe.ProfilerAction.RECORD


def test_twice():
    prof = opstrobe.profile()
    with prof:
        enter("a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with prof:
            enter("b")
    assert [event.trace_name for event in prof.events()] == ["b"]


def test_kineto_profile():
    prof = opstrobe._KinetoProfile()
    prof.start()
    enter("a")
    prof.stop()
    assert [event.trace_name for event in prof.events()] == ["a"]
    prof.prepare_trace()
    enter("not yet")
    prof.start_trace()
    enter("b")
    prof.stop_trace()
    assert [event.trace_name for event in prof.events()] == ["b"]
    assert not hasattr(prof, "step")
    assert not hasattr(prof, "__enter__")


def test_a_later_cycle_replaces_the_results_and_says_so_once():
    code = (
        "import opstrobe\n"
        "for _ in range(2):\n"
        "    p = opstrobe.profile(schedule=lambda _: opstrobe.ProfilerAction.RECORD_AND_SAVE)\n"
        "    with p:\n"
        "        p.step()\n"
        "        p.step()\n"
    )
    result = run(code, PYTHONWARNINGS="always")
    assert (result.returncode, result.stderr.count("clears events")) == (0, 1)


def test_started_and_stopped_on_different_threads():
    prof = opstrobe.profile()
    starter = threading.Thread(target=prof.start)
    starter.start()
    starter.join()
    enter("here")
    stopper = threading.Thread(target=prof.stop)
    stopper.start()
    stopper.join()
    assert [event.trace_name for event in prof.events()] == ["here"]


def test_exception_in_the_body():
    ready = []
    with pytest.raises(KeyError), opstrobe.profile(on_trace_ready=ready.append) as prof:
        with record_function("a"):
            raise KeyError
    assert [event.trace_name for event in prof.events()] == ["a"]
    assert ready == [prof]


def test_thread_names(tmp_path):
    def work():
        enter("in the thread")
        done.wait()

    done = threading.Event()
    with opstrobe.profile() as prof:
        thread = threading.Thread(target=work, name='loader "α"')
        thread.start()
        enter("here")
        prof.step()
        done.set()
        thread.join()
    prof.export_chrome_trace(tmp_path / "t.json")
    labels = [row["args"]["name"] for row in load(tmp_path / "t.json")["traceEvents"] if row["name"] == "thread_name"]
    assert any("MainThread" in label for label in labels)
    assert any('loader "α"' in label for label in labels)


@pytest.mark.parametrize("with_stack", [False, True])
def test_threads_that_came_and_went_have_names(tmp_path, with_stack):
    """D18. Nobody is left to ask when the profile stops."""
    theirs = threading.Thread.start
    with opstrobe.profile(with_stack=with_stack) as prof:
        threads = [threading.Thread(target=enter, args=("there",), name=f"worker {i}") for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del threads, thread
        assert threading.Thread.start is not theirs
    assert threading.Thread.start is theirs
    prof.export_chrome_trace(tmp_path / "t.json")
    rows = load(tmp_path / "t.json")["traceEvents"]
    labels = {row["tid"]: row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    named = {labels[row["tid"]].partition("worker ")[2] for row in rows if row["name"] == "there"}
    assert named == {f"{i})" for i in range(20)} or len(labels) < 20  # a thread may get the id of one that ended
    assert not [row for row in rows if "opstrobe/recording/thread" in row["name"]]


def test_what_others_put_around_the_start_of_threads_stays():
    theirs, seen = threading.Thread.start, []

    def around(self, start):
        seen.append(self.name)
        start(self)

    try:
        with opstrobe.profile():
            ours = threading.Thread.start
            threading.Thread.start = lambda self: around(self, ours)
            thread = threading.Thread(target=enter, args=("a",), name="first")
            thread.start()
            thread.join()
        thread = threading.Thread(target=enter, args=("b",), name="second")
        thread.start()
        thread.join()
        assert seen == ["first", "second"]
    finally:
        threading.Thread.start = theirs


# --- results ------------------------------------------------------------------------------------------------------------


def test_export_as_often_as_wanted(tmp_path):
    with opstrobe.profile() as prof:
        enter("a")
    for path in [str(tmp_path / "1.json"), tmp_path / "2.json", tmp_path / "3.json.gz", str(tmp_path / "1.json")]:
        prof.export_chrome_trace(path)
        assert spans(path) == ["a"]
    prof.export_chrome_trace(tmp_path / "4.json", use_python_export=True)
    assert load(tmp_path / "4.json")["traceEvents"] == load(tmp_path / "1.json")["traceEvents"]
    assert sorted(os.listdir(tmp_path)) == ["1.json", "2.json", "3.json.gz", "4.json"]


def test_export_with_torchs_validator(tmp_path):
    pytest.importorskip("torch")
    validator = pytest.importorskip("torch.profiler._trace_validator")
    with opstrobe.profile() as prof:
        enter("a")
    prof.export_chrome_trace(tmp_path / "t.json")
    assert validator.validate_trace(str(tmp_path / "t.json")) == (True, [])


def test_empty_profile(tmp_path):
    with opstrobe.profile() as prof:
        pass
    assert list(prof.events()) == []
    assert list(prof.key_averages()) == []
    assert prof.key_averages().table() == ""
    prof.export_chrome_trace(tmp_path / "t.json")
    assert spans(tmp_path / "t.json") == []


def test_stats():
    with opstrobe.profile() as prof:
        enter("a")
    prof.events()
    stats = prof._stats()
    assert stats.number_of_events == 1
    assert stats.profiling_window_duration_sec > 0
    assert stats.profiler_enable_call_duration_us >= 0
    assert opstrobe.profile()._stats() is None


def test_results_outlive_the_profile():
    with opstrobe.profile() as prof:
        enter("a")
    events, averages = prof.events(), prof.key_averages()
    del prof
    gc.collect()
    assert (events[0].name, averages[0].count) == ("a", 1)


# --- tensorboard_trace_handler ------------------------------------------------------------------------------------------


def test_handler_writes_to_a_url():
    fsspec = pytest.importorskip("fsspec")
    place = f"memory://traces-{os.getpid()}/run"
    with opstrobe.profile(on_trace_ready=opstrobe.tensorboard_trace_handler(place, "rank0", use_gzip=True)):
        enter("a")
    files, folder = fsspec.core.url_to_fs(place)
    (name,) = files.ls(folder, detail=False)
    assert name.rpartition("/")[2].startswith("rank0.") and name.endswith(".pt.trace.json.gz")
    rows = json.loads(gzip.decompress(files.cat_file(name)))["traceEvents"]
    assert "a" in {row["name"] for row in rows}


def test_handler_of_a_url_fails_before_the_program_runs(monkeypatch):
    pytest.importorskip("fsspec")
    with pytest.raises(ValueError, match="nowhere"):
        opstrobe.tensorboard_trace_handler("nowhere://bucket/traces")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        ImportError, match=r"writing traces to 's3://bucket' needs fsspec: pip install 'opstrobe\[archive\]'"
    ):
        opstrobe.tensorboard_trace_handler("s3://bucket")


@pytest.mark.parametrize(("arguments", "end"), [({}, "json"), ({"use_gzip": True}, "json.gz")])
def test_tensorboard_handler(tmp_path, arguments, end):
    where = tmp_path / "made" / "by it"
    with opstrobe.profile(on_trace_ready=opstrobe.tensorboard_trace_handler(str(where), "worker", **arguments)):
        enter("a")
    (name,) = os.listdir(where)
    worker, stamp, rest = name.split(".", 2)
    assert (worker, rest, stamp.isdigit()) == ("worker", f"pt.trace.{end}", True)
    assert spans(where / name) == ["a"]


def test_tensorboard_handler_names_the_process_that_writes(tmp_path):
    import socket

    handler = opstrobe.tensorboard_trace_handler(tmp_path)
    with opstrobe.profile(on_trace_ready=handler):
        enter("parent")
    child = os.fork()
    if child == 0:
        with opstrobe.profile(on_trace_ready=handler):
            enter("child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    written = {name.rsplit(".", 4)[0]: spans(tmp_path / name) for name in os.listdir(tmp_path)}
    host = socket.gethostname()
    assert written == {f"{host}_{os.getpid()}": ["parent"], f"{host}_{child}": ["child"]}


def test_tensorboard_handler_without_a_directory():
    with pytest.raises(RuntimeError, match="Can't create directory") as caught:
        opstrobe.tensorboard_trace_handler("/proc/nowhere/x")(opstrobe.profile())
    assert isinstance(caught.value.__cause__, OSError)


def test_tensorboard_handler_that_is_not_called_is_reported():
    with pytest.warns(UserWarning, match="uncalled"):
        with opstrobe.profile(on_trace_ready=opstrobe.tensorboard_trace_handler):
            pass


# --- with torch ---------------------------------------------------------------------------------------------------------


def names(prof):
    return [event.trace_name for event in prof.events()]


def test_operators():
    torch = pytest.importorskip("torch")
    x = torch.ones(4, 5, requires_grad=True)
    with opstrobe.profile(record_shapes=True) as prof, record_function("forward"):
        torch.mm(x, torch.ones(5, 6)).sum().backward()
    prof.profiler.trace.check()
    by_name = {event.name: event for event in prof.events()}
    assert by_name["aten::mm"].cpu_parent.name in ("forward", "MmBackward0")
    assert [4, 5] in by_name["aten::sum"].input_shapes or by_name["aten::sum"].input_shapes[0] == [4, 6]
    assert "autograd::engine::evaluate_function: MmBackward0" in by_name


def test_annotations_of_torch():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.ones(6, 4), batch_size=2)
    with opstrobe.profile(schedule=lambda _: opstrobe.ProfilerAction.RECORD) as prof:
        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            prof.step()
    counts = {row.key: row.count for row in prof.key_averages() if row.is_user_annotation}
    assert counts["ProfilerStep*"] == 4
    assert counts["Optimizer.step#SGD.step"] == 3
    assert counts["Optimizer.zero_grad#SGD.zero_grad"] == 3
    assert counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 4
    step = next(event for event in prof.events() if event.name == "Optimizer.step#SGD.step")
    assert step.cpu_parent.trace_name == "ProfilerStep#0"


@pytest.mark.torch_like("2.9", "2.15")  # the configs of earlier ones do not take the option
def test_other_threads_only_on_request():
    torch = pytest.importorskip("torch")

    def operators(config):
        with opstrobe.profile(experimental_config=config) as prof:
            thread = threading.Thread(target=lambda: torch.ones(3).neg())
            thread.start()
            thread.join()
        return names(prof).count("aten::neg")

    assert operators(None) == 0
    assert operators(opstrobe._ExperimentalConfig(profile_all_threads=True)) == 1
    torch_config = pytest.importorskip("torch.profiler")._ExperimentalConfig
    assert operators(torch_config(profile_all_threads=True)) == 1


@pytest.mark.torch_like("2.9", "2.15")  # the configs of earlier ones do not take the option
def test_overload_names_when_asked():
    torch = pytest.importorskip("torch")
    torch_config = pytest.importorskip("torch.profiler")._ExperimentalConfig
    for config in [
        opstrobe._ExperimentalConfig(capture_overload_names=True),
        torch_config(capture_overload_names=True),
    ]:
        with opstrobe.profile(experimental_config=config) as prof:
            torch.ones(3).add(1)
        assert "Tensor" in {event.overload_name for event in prof.events() if event.name == "aten::add"}


def test_flops_imply_shapes_without_saying_so(tmp_path):
    torch = pytest.importorskip("torch")
    with opstrobe.profile(with_flops=True) as prof:
        torch.mm(torch.ones(3, 4), torch.ones(4, 5))
    assert {event.flops for event in prof.events() if event.name == "aten::mm"} == {120}
    metadata = prof.profiler.trace.metadata()
    assert "with_flops" in metadata and "record_shapes" not in metadata


def test_training_gives_the_same_bits():
    torch = pytest.importorskip("torch")

    def train(prof):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(), torch.nn.ReLU(), torch.nn.Linear(16, 2))
        optimizer = torch.optim.Adam(model.parameters())
        with prof:
            for _ in range(5):
                optimizer.zero_grad()
                model(torch.randn(4, 8)).square().sum().backward()
                optimizer.step()
        return pickle.dumps([p.detach().numpy().tobytes() for p in model.parameters()])

    options = dict(record_shapes=True, profile_memory=True, with_flops=True)
    assert train(contextlib.nullcontext()) == train(opstrobe.profile(**options))


def test_options_are_attributes_that_the_next_window_uses():
    prof = opstrobe.profile(record_shapes=True, max_bytes=2**20)
    assert (prof.record_shapes, prof.with_flops, prof.max_bytes) == (True, False, 2**20)
    prof.with_flops = True
    prof.custom_trace_id_callback = lambda: "set later"
    with prof:
        pass
    assert prof.profiler.with_flops and prof.get_trace_id() == "set later"
    with pytest.raises(ValueError, match="max_bytes must be at least"):
        prof.max_bytes = 1
    assert prof.max_bytes == 2**20


def test_the_configuration_of_a_session_does_not_change():
    config = opstrobe.profile(with_stack=True)._config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.with_stack = False

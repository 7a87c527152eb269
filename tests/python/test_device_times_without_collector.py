# SPDX-License-Identifier: Apache-2.0
"""Devices without a collector: a pair of the device's events around each operator, by what torch's own profiler uses for
that. The device is device_events.cpp: its clock moves on by one tick at every event, so that a time is a number of events."""

import json
import os
import subprocess
import sys
import sysconfig

import pytest
from test_cuda import libraries  # noqa: F401
from torch_library import build

torch = pytest.importorskip("torch")

PRELUDE = """
import ctypes, json, os, threading, warnings
import torch
import opstrobe
from opstrobe.autograd_profiler import profile as window

device = ctypes.CDLL({library!r})
device.device_tick.argtypes = [ctypes.c_int64]
device.device_fail.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_bool]
device.device_living.restype = device.device_waits.restype = device.device_ticks.restype = ctypes.c_int64
as_cuda = {as_cuda}
device.device_register(as_cuda)
if as_cuda:
    name = "cuda"
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = lambda: None
else:
    name = "fridge"
    torch.utils.rename_privateuse1_backend(name)
CPU, CUDA, PRIVATE = (opstrobe.ProfilerActivity[each] for each in ("CPU", "CUDA", "PrivateUse1"))
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
x = torch.ones(3, 8)

def work():
    with torch.profiler.record_function("forward"):
        y = model(x)
    with torch.profiler.record_function("backward", "with text"):
        y.sum().backward()

work()
def rows(events):
    return [[e.name, e.is_legacy, e.device_time_total, e.self_device_time_total,
             [[k.name, k.duration] for k in e.kernels], len(e.cpu_children)]
            for e in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end))]

def caught(function):
    with warnings.catch_warnings(record=True) as all:
        warnings.simplefilter("always")
        function()
    return [str(warning.message) for warning in all]
"""
WARNING = "{} is timed by events around operators, so kernels, copies and streams are missing: "
INCOMPLETE = (
    "the record of FRIDGE's devices may be incomplete: {} calls of the device's events failed, the first with: {}"
)
WITHOUT_COLLECTOR = WARNING.format("FRIDGE") + "no collector supports it"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build("device_events.cpp", tmp_path_factory.mktemp("device_events"))


@pytest.fixture
def run(library):
    def run(code, as_cuda=False, **environment):
        """What the program prints last, as JSON. No event of the device is left behind."""
        left = "\nassert device.device_living() == expected_living, device.device_living()\n"
        program = PRELUDE.format(library=str(library), as_cuda=as_cuda) + "expected_living = 0\n" + code + left
        environment = {**os.environ, "OPSTROBE_CUPTI": "/nowhere", **environment}
        process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout.splitlines()[-1])

    return run


@pytest.mark.parametrize("as_cuda", [False, True])
def test_fallback_equals_torch(run, as_cuda):
    theirs, ours, texts = run(
        """
options = {"record_shapes": not as_cuda, "profile_memory": not as_cuda}
def both(prof):
    events, averages = prof.function_events, prof.key_averages()
    columns = [[a.key, a.count, a.is_legacy, a.device_time_total, a.self_device_time_total, a.device_time]
               for a in averages]
    cells = [[cell for cell in line.split("  ") if cell][0::1] for line in averages.table(row_limit=-1).splitlines()]
    at = cells[1].index(next(cell for cell in cells[1] if cell.strip() == "Self " + name.upper()))
    table = [[cell.strip() for cell in line[at:at + 4]] for line in cells[1:-1] if len(line) > at]
    foot = averages.table().splitlines()[-1]
    return rows(events), columns, table, foot, [e.use_device for e in events[:1]], prof.total_average().device_time_total

with torch.autograd.profiler.profile(use_device=name, **options) as theirs:
    work()
def record():
    global ours
    with window(use_device=name, **options) as ours:
        work()
texts = caught(record)
results = both(theirs), both(ours)
del theirs
print(json.dumps([*results, texts]))
""",
        as_cuda,
    )
    assert ours == theirs
    assert len(ours[0]) > 50 and all(row[1] for row in ours[0] if row[0] != "[memory]")
    (text,) = texts
    assert text.startswith(WARNING.format("CUDA" if as_cuda else "FRIDGE"))


def test_fallback_times_are_what_lies_between_the_events(run):
    events, texts = run(
        """
def record():
    global prof
    device.device_tick(7)
    with opstrobe.profile(activities=[CPU, PRIVATE]) as prof:
        with opstrobe.record_function("range"):
            torch.add(x, x)
            torch.empty(1)
texts = caught(record)
print(json.dumps([rows(prof.events()), texts]))
"""
    )
    assert events == [
        ["range", True, 35.0, 21.0, [["range", 35.0]], 2],
        ["aten::add", True, 7.0, 7.0, [["aten::add", 7.0]], 0],
        ["aten::empty", True, 7.0, 7.0, [["aten::empty", 7.0]], 0],
    ]
    assert texts == [WITHOUT_COLLECTOR]


def test_fallback_in_each_window_of_a_schedule_and_in_none_after(run):
    windows, texts, waits, after, ticks = run(
        """
windows = []
def ready(prof):
    windows.append(rows(prof.events()))
def record():
    schedule = opstrobe.schedule(wait=1, warmup=1, active=2, repeat=3)
    with opstrobe.profile(activities=[CPU, PRIVATE], schedule=schedule, on_trace_ready=ready) as prof:
        for _ in range(12):
            torch.add(x, x)
            prof.step()
texts = caught(record)
waits, ticks = device.device_waits(), device.device_ticks()
with opstrobe.profile(activities=[CPU]) as prof:
    torch.add(x, x)
    with opstrobe.record_function("range"):
        pass
after = [rows(prof.events()), prof.key_averages().table(), "device_times_of" in str(prof.profiler.trace.metadata())]
print(json.dumps([windows, texts, waits, after, device.device_ticks() - ticks]))
"""
    )
    step = [
        ["ProfilerStep*", True, 3.0, 2.0, [["ProfilerStep*", 3.0]], 1],
        ["aten::add", True, 1.0, 1.0, [["aten::add", 1.0]], 0],
    ]
    assert windows == [step * 2] * 3
    assert [text for text in texts if "events" in text and "FRIDGE" in text] == [WITHOUT_COLLECTOR]
    assert waits == 3
    assert after[0] == [["aten::add", False, 0.0, 0.0, [], 0], ["range", False, 0.0, 0.0, [], 0]]
    assert "FRIDGE" not in after[1] and not after[2]
    assert ticks == 0


def test_fallback_follows_threads(run):
    found = run(
        """
def other():
    with opstrobe.record_function("there"):
        torch.add(x, x)
config = opstrobe._ExperimentalConfig(profile_all_threads=True)
warnings.simplefilter("ignore")
with opstrobe.profile(activities=[CPU, PRIVATE], experimental_config=config) as prof:
    with opstrobe.record_function("here"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
print(json.dumps([rows(prof.events()), len({e.thread for e in prof.events()})]))
"""
    )
    assert found == [
        [
            ["here", True, 5.0, 5.0, [["here", 5.0]], 0],
            ["there", True, 3.0, 2.0, [["there", 3.0]], 1],
            ["aten::add", True, 1.0, 1.0, [["aten::add", 1.0]], 0],
        ],
        2,
    ]


def test_fallback_python_functions_have_the_time_of_their_operators(run):
    found = run(
        """
def function():
    torch.add(x, x)
    torch.add(x, x)
warnings.simplefilter("ignore")
with opstrobe.profile(activities=[CPU, PRIVATE], with_stack=True) as prof:
    function()
(event,) = [e for e in prof.events() if e.name.endswith(": function")]
print(json.dumps([event.is_legacy, event.device_time_total, event.self_device_time_total, event.kernels]))
"""
    )
    assert found == [False, 2.0, 0.0, []]


# The events in order: 1 range's start, 2 3 first operator, 4 5 second, 6 range's end, 7 8 third operator. One that fails takes
# no tick, and without a start no end is tried. What fails is not freed, for that might fail too.
LOST, NO_EVENT, NOBODY = "the device is lost", "no such event", "nobody to wait for"
NOTHING = [[False, 0.0]] * 4
FAULTS = [  # records, measurements and waits that fail; is_legacy and time of each; how often what failed; events left
    ((1, 0, False), [[False, 2.0], [True, 1.0], [True, 1.0], [True, 1.0]], 1, LOST, 0),
    ((2, 0, False), [[False, 1.0], [False, 0.0], [True, 1.0], [True, 1.0]], 2, LOST, 0),
    ((1000, 0, False), NOTHING, 4, LOST, 0),
    ((0, 1, False), [[True, 5.0], [False, 0.0], [True, 1.0], [True, 1.0]], 1, NO_EVENT, 2),
    ((0, 1000, False), NOTHING, 4, NO_EVENT, 8),
    ((0, 0, True), NOTHING, 1, NOBODY, 8),
]


def test_fallback_survives_a_device_that_fails(run):
    found = run(
        f"""
def record(fault):
    global prof
    with opstrobe.profile(activities=[CPU, PRIVATE]) as prof:
        device.device_fail(*fault)
        with opstrobe.record_function("range"):
            torch.add(x, x)
            torch.add(x, x)
        torch.add(x, x)
    device.device_fail(0, 0, False)
found = []
for fault in {[fault for fault, *_ in FAULTS]}:
    before = device.device_living()
    texts = caught(lambda: record(fault))
    events = [[e.name, e.cpu_time_total > 0, e.is_legacy, e.device_time_total] for e in prof.events()]
    found.append([events, texts, device.device_living() - before])
expected_living = {sum(left for *_, left in FAULTS)}
print(json.dumps(found))
"""
    )
    names = ["range", "aten::add", "aten::add", "aten::add"]
    assert len(found) == len(FAULTS)
    for (events, texts, events_left), (_, times, failures, why, left) in zip(found, FAULTS, strict=True):
        assert events == [[name, True, *each] for name, each in zip(names, times, strict=True)]
        assert texts == [WITHOUT_COLLECTOR, INCOMPLETE.format(failures, why)]
        assert events_left == left


def test_fallback_without_an_end_there_is_no_time(run):
    found, text = run(
        """
def record():
    global prof, late
    with opstrobe.profile(activities=[CPU, PRIVATE]) as prof:
        with opstrobe.record_function("fails"):
            device.device_fail(1, 0, False)
        late = opstrobe.record_function("late")
        late.__enter__()
        torch.add(x, x)
text = caught(record)[-1]
late.__exit__(None, None, None)
expected_living = 2  # the starts of both
print(json.dumps([rows(prof.events()), text]))
"""
    )
    assert found == [
        ["fails", False, 0.0, 0.0, [], 0],
        ["late", False, 1.0, 0.0, [], 1],
        ["aten::add", True, 1.0, 1.0, [["aten::add", 1.0]], 0],
    ]
    assert text == INCOMPLETE.format(1, LOST)


def test_fallback_records_no_device_events(run):
    with_operators, without = run(
        """
warnings.simplefilter("ignore")
found = []
for runs in True, False:
    device.device_run_operators(runs)
    with opstrobe.profile(activities=[CPU, PRIVATE], record_shapes=True) as prof:
        with opstrobe.record_function("range", "text"):
            torch.add(x, x)
    found.append(rows(prof.events()))
print(json.dumps(found))
"""
    )
    assert with_operators == without and len(without) == 2


def test_fallback_in_a_forked_process(run):
    child, parent = run(
        """
warnings.simplefilter("ignore")
reader, writer = os.pipe()
with opstrobe.profile(activities=[CPU, PRIVATE]) as prof:
    with opstrobe.record_function("around"):
        pid = os.fork()
        if pid == 0:
            torch.add(x, x)
    if pid == 0:
        prof.stop()
        with opstrobe.profile(activities=[CPU, PRIVATE]) as own:
            torch.add(x, x)
        os.write(writer, json.dumps(rows(own.events())).encode())
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print(json.dumps([json.loads(os.read(reader, 10000)), rows(prof.events())]))
"""
    )
    assert child == [["aten::add", True, 1.0, 1.0, [["aten::add", 1.0]], 0]]
    assert parent == [["around", True, 1.0, 1.0, [["around", 1.0]], 0]]


def test_fallback_is_none_without_operators_or_events(run):
    error, texts, ticks, used = run(
        """
try:
    window(use_device=name, use_cpu=False, use_kineto=True)
except AssertionError as refusal:
    error = str(refusal)
device.device_enable(False)
def record():
    global prof
    with opstrobe.profile(activities=[CPU, PRIVATE]) as prof:
        torch.add(x, x)
    assert rows(prof.events()) == [["aten::add", False, 0.0, 0.0, [], 0]]
ticks = device.device_ticks()
print(json.dumps([error, caught(record), device.device_ticks() - ticks, prof.profiler.use_device]))
"""
    )
    assert error == "fridge is timed by events around operators, which requires use_cpu=True"
    assert texts == ["FRIDGE is not available, disabling FRIDGE profiling"]
    assert ticks == 0 and used is None


def test_fallback_where_the_collector_does_not_start(run, libraries):  # noqa: F811
    cupti = str(libraries / "libfake-cupti.so")
    found, texts, used = run(
        """
not_started = ctypes.CDLL(os.environ["OPSTROBE_CUPTI"])
not_started.fake_cupti_fail(b"cuptiActivityEnable", 35)  # no privileges
def record():
    global prof
    with opstrobe.profile(activities=[CPU, CUDA]) as prof:
        torch.add(x, x)
texts = caught(record)
not_started.fake_cupti_fail(b"", 0)
with opstrobe.profile(activities=[CPU, CUDA]) as recorded:
    torch.add(x, x)
found = [rows(prof.events()), rows(recorded.events())]
print(json.dumps([found, texts, prof.profiler.use_device]))
""",
        as_cuda=True,
        OPSTROBE_CUPTI=cupti,
        LD_LIBRARY_PATH=str(libraries),
    )
    timed = ["aten::add", True, 1.0, 1.0, [["aten::add", 1.0]], 0]
    assert found == [[timed], [["aten::add", False, 0.0, 0.0, [], 0]]]
    assert texts == [
        WARNING.format("CUDA")
        + "cannot record devices with CUPTI: CUPTI does not collect activity: the driver lets only "
        "administrators profile (ERR_NVGPUCTRPERM)"
    ]
    assert used == "cuda"


def test_fallback_stays_in_files_and_copies(run, tmp_path):
    first, again = run(
        f"""
import pickle
from opstrobe.autograd_profiler import profile
warnings.simplefilter("ignore")
device.device_tick(3)
with opstrobe.profile(activities=[{{CPU: ["CPU_OP"]}}, PRIVATE], record_shapes=True) as prof:
    work()
prof.export_chrome_trace({str(tmp_path)!r} + "/trace.json")
read = opstrobe.read({str(tmp_path)!r} + "/trace.json")
events = read.events()
first = rows(prof.events())
copied = pickle.loads(pickle.dumps(prof.events()))
assert rows(copied) == first
print(json.dumps([first, [read.trace.device, rows(events)]]))
"""
    )
    assert again == ["fridge", first]
    assert {row[0] for row in first}.isdisjoint({"forward", "backward"}) and all(row[1] for row in first)
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert (trace["device_times"], trace["device_times_of"]) == ("events around operators", "fridge")
    operators = [row for row in trace["traceEvents"] if row.get("cat") == "cpu_op"]
    shown = [row["args"]["Device time (ns)"] for row in operators]
    assert all(each % 3000 == 0 and each > 0 for each in shown)
    assert not any(row.get("cat") == "kernel" for row in trace["traceEvents"])
    table = subprocess.run(
        [os.path.join(sysconfig.get_path("scripts"), "opstrobe"), "table", str(tmp_path / "trace.json")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    total = sum(row[3] for row in first)
    assert "Self FRIDGE" in table and f"Self FRIDGE time total: {total:.3f}us" in table

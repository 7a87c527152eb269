# SPDX-License-Identifier: Apache-2.0
"""Compares the results of one program under torch's profiler and under Opstrobe, for what no other file compares."""

import collections
import json
import pickle
import re

import pytest

import opstrobe

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch_like("2.13")
BOTH = pytest.mark.parametrize("module", [torch.profiler, opstrobe], ids=["torch", "ours"])


def training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(72, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.utils.data.TensorDataset(torch.randn(4, 1, 8, 8))
    loader = torch.utils.data.DataLoader(data, batch_size=2)

    def step():
        for (batch,) in loader:
            torch.cat([model(batch), model(batch)]).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    step()
    return step


def trace_of(module, path, program, **options):
    with module.profile(**options) as prof:
        program()
    prof.export_chrome_trace(str(path))
    return prof, json.loads(path.read_text())


def rows(trace, **wanted):
    return [row for row in trace["traceEvents"] if all(row.get(key) == value for key, value in wanted.items())]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Torch's and ours of the same training with all that is about operators."""
    options = dict(record_shapes=True, profile_memory=True, with_flops=True)
    folder, program = tmp_path_factory.mktemp("compared"), training()
    return [
        trace_of(module, folder / f"{module.__name__}.json", program, **options)[1]
        for module in (torch.profiler, opstrobe)
    ]


# --- 1: the profile ---------------------------------------------------------------------------------------------------------


@BOTH
def test_the_handler_comes_before_the_next_step(module):
    """It sees the number of the step to come, results, and no open step."""
    seen = []

    def ready(prof):
        names = [event.trace_name for event in prof.events()]
        seen.append((prof.step_num, [name for name in names if name.startswith("ProfilerStep#")]))

    schedule = module.schedule(wait=1, warmup=1, active=2, repeat=2)
    with module.profile(schedule=schedule, on_trace_ready=ready) as prof:
        for _ in range(8):
            torch.ones(1)
            prof.step()
    assert seen == [(4, ["ProfilerStep#2", "ProfilerStep#3"]), (8, ["ProfilerStep#6", "ProfilerStep#7"])]


@BOTH
def test_configurations_are_pickled(module):
    config = module._ExperimentalConfig(
        performance_events=["cycles"],
        verbose=True,
        profile_all_threads=True,
        trace_only=True,
        custom_profiler_config="x",
    )
    again = pickle.loads(pickle.dumps(config))
    assert again.trace_only is True and again.custom_profiler_config == "x"


@BOTH
def test_ranges_of_torch_and_their_order(module):
    with module.profile() as prof:
        training()()
    marks = [event.name for event in prof.events() if event.is_user_annotation]
    step = ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"]
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert marks == [loader, *step, loader, *step, loader] * 2


# --- 2: events, averages, tables ----------------------------------------------------------------------------------------------

DTYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long int",
    torch.int32: "int",
    torch.int16: "short int",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "bool",
    torch.complex64: "c10::complex<float>",
    torch.complex128: "c10::complex<double>",
    torch.float8_e4m3fn: "c10::Float8_e4m3fn",
}


@BOTH
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_names_of_types(module, dtype):
    tensor = torch.zeros(2).to(dtype)
    with module.profile(record_shapes=True) as prof:
        tensor.clone()
    assert next(e for e in prof.events() if e.name == "aten::clone").input_dtypes[0] == DTYPES[dtype]


@BOTH
def test_no_details_without_a_device(module):
    config = module._ExperimentalConfig(expose_kineto_event_metadata=True)
    with module.profile(experimental_config=config) as prof:
        torch.ones(1)
    assert [event.event_metadata for event in prof.events()] == [None] * 3


@BOTH
def test_averages_have_no_name_and_refuse_others(module):
    with module.profile() as prof:
        torch.ones(1)
    ones, empty = (next(row for row in prof.key_averages() if row.key == f"aten::{key}") for key in ("ones", "empty"))
    assert not hasattr(ones, "name")
    with pytest.raises(AssertionError):
        ones += empty
    assert "cuda_time=" in repr(ones)


@BOTH
def test_footer_separators_and_units(module):
    with module.profile() as prof:
        for _ in range(3):
            torch.ones(1)
    for unit, end in (("s", r"\d\.\d{3}s"), ("ms", r"\d+\.\d{3}ms"), ("us", r"\d+\.\d{3}us"), ("h", r"[\d.]+[mu]?s")):
        lines = prof.key_averages().table(time_unit=unit, header="here").split("\n")
        assert lines[0] == "=" * (len(lines[2]) - 2) and lines[1] == "here"
        assert lines[2] == lines[4] and set(lines[2]) == {"-", " "} and lines[2].endswith("-  ")
        assert re.fullmatch(f"Self CPU time total: {end}", lines[-2]) and lines[-1] == ""


# --- 3: the trace ---------------------------------------------------------------------------------------------------------------


def test_keys_of_the_file(traces):
    theirs, ours = traces
    assert set(ours) - set(theirs) - {"roof"} == {"machine", "opstrobe", "recording"} and set(theirs) <= set(ours)
    for key in ("schemaVersion", "deviceProperties", "displayTimeUnit", "host_name"):
        assert ours[key] == theirs[key], key
    assert [ours[key] for key in ("profile_memory", "record_shapes", "with_flops")] == [1, 1, 1]


def test_metadata_rows(traces):
    """A row of each kind for each process and thread; torch has some twice, and threads of sessions before."""

    def without_own_fields(trace):
        threads = {str(row["tid"]) for row in rows(trace, ph="X")}
        return {
            (row["name"], str(row["pid"]), str(row["tid"])): row["args"]
            for row in rows(trace, ph="M")
            if row["name"] != "thread_name" and (row["name"] != "thread_sort_index" or str(row["tid"]) in threads)
        }

    theirs, ours = (without_own_fields(trace) for trace in traces)
    assert ours == theirs
    assert any(name == "thread_sort_index" for name, _, _ in ours)
    names = [row for row in rows(traces[1], ph="M", name="thread_name")]
    assert len({(row["pid"], row["tid"]) for row in names}) == len(names)


def test_span_and_marks(traces):
    for name in ("PyTorch Profiler (0)", "Iteration Start: PyTorch Profiler", "Record Window End"):
        (theirs,), (ours,) = (rows(trace, name=name) for trace in traces)
        for key in ("ph", "cat", "pid", "tid", "s"):
            assert ours.get(key) == theirs.get(key), (name, key)
        assert ours.get("args", {}).get("Op count") == theirs.get("args", {}).get("Op count")


def test_arguments_of_rows(traces):
    """Row for row what torch has; also a scope where the category does not imply it, storages, and no bogus `finished`."""

    def arguments(trace):
        found = collections.Counter()
        for row in trace["traceEvents"]:
            if row["ph"] in "Xi" and row.get("cat") in ("cpu_op", "user_annotation", "cpu_instant_event"):
                found[row["cat"], row["name"], frozenset(row["args"]) - {"Scope", "Storages", "finished"}] += 1
        return found

    theirs, ours = map(arguments, traces)
    assert ours == theirs and len(ours) > 40


def test_inputs_of_operators(traces):
    """Dims, strides, types and values of every operator, in the order of its thread."""

    def inputs(trace):
        found = collections.defaultdict(list)
        for row in sorted(rows(trace, cat="cpu_op"), key=lambda row: (row["ts"], -row["dur"])):
            keys = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
            found[row["tid"]].append((row["name"], *(row["args"].get(key) for key in keys)))
        return list(found.values())

    theirs, ours = map(inputs, traces)
    assert ours == theirs


def test_memory_rows(traces):
    def reports(trace):
        found = sorted(rows(trace, name="[memory]"), key=lambda row: row["ts"])
        keys = ("Bytes", "Device Type", "Device Id", "Total Reserved")
        return [[row["args"][key] for key in keys] for row in found]

    theirs, ours = map(reports, traces)
    assert ours == theirs and ours


def test_arrows(traces):
    """As many, between the same operators, numbered from 1."""

    def arrows(trace):
        at = {
            (row["ts"], row["tid"]): row["name"]
            for row in rows(trace, cat="cpu_op")
            if "Sequence number" in row["args"]
        }
        starts, ends = ({row["id"]: row for row in rows(trace, cat="fwdbwd", ph=phase)} for phase in "sf")
        assert starts.keys() == ends.keys() and min(starts) == 1
        assert all(row["bp"] == "e" for row in ends.values())
        return collections.Counter(ends[number]["tid"] == start["tid"] for number, start in starts.items()), len(at)

    theirs, ours = map(arrows, traces)
    assert ours == theirs


@BOTH
def test_no_folder_for_a_compressed_file(module, tmp_path):
    with module.profile() as prof:
        torch.ones(1)
    with pytest.raises(FileNotFoundError):
        prof.export_chrome_trace(str(tmp_path / "no" / "t.json.gz"))


# --- 5: FLOPs -------------------------------------------------------------------------------------------------------------------

FLOPS = {
    "aten::mm": (lambda: torch.ones(3, 4).mm(torch.ones(4, 5)), 120),
    "aten::addmm": (lambda: torch.addmm(torch.ones(5), torch.ones(3, 4), torch.ones(4, 5)), 120),
    "aten::bmm": (lambda: torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5)), 240),
    "aten::baddbmm": (lambda: torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5)), 240),
    "aten::add": (lambda: torch.ones(3, 4) + torch.ones(4), 12),
    "aten::mul": (lambda: torch.ones(3, 4) * 2, 12),
    "aten::conv2d": (
        lambda: torch.conv2d(torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3), stride=2, padding=1),
        6912,
    ),
}


@BOTH
@pytest.mark.parametrize("name", FLOPS)
def test_formulas(module, name):
    program, flops = FLOPS[name]
    with module.profile(with_flops=True) as prof:
        program()
    assert [event.flops for event in prof.events() if event.name == name] == [flops]


@BOTH
def test_grouped_and_dilated(module):
    with module.profile(with_flops=True) as prof:
        torch.conv2d(torch.ones(2, 4, 8, 8), torch.ones(4, 2, 3, 3), groups=2, dilation=2)
        torch.nn.functional.linear(torch.ones(3, 4), torch.ones(5, 4), torch.ones(5))
    flops = {event.name: event.flops for event in prof.events()}
    assert (flops["aten::conv2d"], flops["aten::linear"], flops["aten::addmm"]) == (4608, 0, 120)

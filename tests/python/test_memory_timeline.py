# SPDX-License-Identifier: Apache-2.0
"""The memory timeline and its peak: against tensors known by construction, against torch, against the allocator."""

import gc
import gzip
import json
import subprocess
import sys
import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Resnet
from torch.utils.checkpoint import checkpoint

import opstrobe
from opstrobe.recording.tensors import TensorWatch
from opstrobe.results.memory import Action, Category, MemoryProfileTimeline

NAMES = (
    "PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "UNKNOWN",
)  # fmt: skip
PREEXISTING, CREATE, INCREMENT_VERSION, DESTROY = 1, 2, 3, 4


def record(program, **options):
    gc.collect()  # what the tests before have left lives as long as nobody looks for cycles
    with opstrobe.profile(**{"profile_memory": True, "record_shapes": True, **options}) as prof:
        program()
    prof.profiler.trace.check()
    return prof


def raw(prof, tmp_path, device="cpu"):
    prof.export_memory_timeline(str(tmp_path / "ours.raw.json.gz"), device)
    with gzip.open(tmp_path / "ours.raw.json.gz") as file:
        return json.load(file)


def totals(rows, action):
    """Bytes of each category that steps of one kind bring."""
    sums = dict.fromkeys(NAMES, 0)
    for _, kind, size, category in rows:
        if kind == action:
            sums[NAMES[category]] += abs(size)
    return sums


def bystanders(tmp_path):
    """What there is before the test's own: constants of programs that ran in this process before."""
    return totals(raw(record(lambda: None), tmp_path), PREEXISTING)


def nbytes(tensors):
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 128)
        self.second = torch.nn.Linear(128, 32)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def trained(model, optimizer, make_input, steps=2):
    def program():
        for _ in range(steps):
            model(make_input()).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    return program


# --- categories, known by construction -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam", "adamw_foreach", "rmsprop"])
@pytest.mark.parametrize("shapes", [True, False])
def test_categories_of_training(kind, shapes, tmp_path):
    model = Mlp()
    make = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "adam": torch.optim.Adam,
        "adamw_foreach": lambda p: torch.optim.AdamW(p, foreach=True),
        "rmsprop": torch.optim.RMSprop,
    }[kind]
    optimizer = make(model.parameters())
    parameters = nbytes(model.parameters())
    steps = 3
    prof = record(trained(model, optimizer, lambda: torch.randn(16, 64), steps), record_shapes=shapes)
    rows = raw(prof, tmp_path)
    before, made = totals(rows, PREEXISTING), totals(rows, CREATE)
    state = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
    assert before["PARAMETER"] == parameters
    assert made["PARAMETER"] == 0
    assert made["GRADIENT"] == steps * parameters
    assert made["OPTIMIZER_STATE"] == nbytes(state)
    assert before["OPTIMIZER_STATE"] == 0
    assert made["INPUT"] == (steps * 16 * 64 * 4 if shapes else 0)
    # linear, relu, linear, square, mean
    assert made["ACTIVATION"] == (steps * 4 * (16 * 128 * 2 + 16 * 32 * 2 + 1 + 1) if shapes else 0)
    if not shapes:
        assert any("record_shapes" in text for text in prof.memory_peak().as_dict()["missing"])


def test_scratch_of_optimizers_is_temporary(tmp_path):
    """D28: torch counts some of it as PARAMETER or INPUT."""
    others = bystanders(tmp_path)
    model = Mlp()
    optimizer = torch.optim.Adam(model.parameters())
    trained(model, optimizer, lambda: torch.randn(16, 64))()
    parameters = nbytes(model.parameters())
    prof = record(optimizer.step)
    assert totals(raw(prof, tmp_path), CREATE)["INPUT"] == 0
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    rows = raw(record(optimizer.step), tmp_path)
    made = totals(rows, CREATE)
    assert {name for name, size in made.items() if size} == {"TEMPORARY"}
    assert totals(rows, PREEXISTING) == others | {
        "PARAMETER": parameters,
        "GRADIENT": parameters,
        "OPTIMIZER_STATE": nbytes(t for s in optimizer.state.values() for t in s.values()),
    }


def test_everything_is_freed_within_the_recording(tmp_path):
    sizes = {}

    def program():
        model = Mlp()
        sizes["parameters"] = nbytes(model.parameters())
        trained(model, torch.optim.Adam(model.parameters()), lambda: torch.randn(16, 64))()

    made = totals(raw(record(program), tmp_path), CREATE)
    assert made["PARAMETER"] == sizes["parameters"]
    assert made["GRADIENT"] == 2 * sizes["parameters"]
    assert made["OPTIMIZER_STATE"] == 2 * sizes["parameters"] + 4 * 4


def test_inference_without_gradients(tmp_path):
    model = Mlp()
    x = torch.randn(16, 64)

    def program():
        with torch.no_grad():
            model(x)

    rows = raw(record(program), tmp_path)
    assert totals(rows, PREEXISTING)["PARAMETER"] == nbytes(model.parameters())
    assert totals(rows, PREEXISTING)["INPUT"] == nbytes([x])
    assert totals(rows, CREATE) == dict.fromkeys(NAMES, 0) | {"ACTIVATION": 4 * (16 * 128 * 2 + 16 * 32)}


def test_gradient_accumulation(tmp_path):
    model = Mlp()

    def program():
        for _ in range(3):
            model(torch.randn(16, 64)).sum().backward()

    made = totals(raw(record(program), tmp_path), CREATE)
    assert made["GRADIENT"] == nbytes(model.parameters())
    assert made["INPUT"] == 3 * 16 * 64 * 4


def test_programs_without_modules(tmp_path):
    others = bystanders(tmp_path)
    w = torch.randn(64, 64, requires_grad=True)

    def program():
        for _ in range(2):
            (torch.randn(16, 64) @ w).sum().backward()
            with torch.no_grad():
                w.sub_(0.1 * w.grad)
            w.grad = None

    rows = raw(record(program), tmp_path)
    assert totals(rows, PREEXISTING) == others | {"PARAMETER": nbytes([w])}
    assert totals(rows, CREATE)["GRADIENT"] == 2 * nbytes([w])
    assert totals(rows, CREATE)["INPUT"] == 2 * 16 * 64 * 4
    assert totals(rows, INCREMENT_VERSION)["PARAMETER"] == 2 * 2 * nbytes([w])


def test_memory_of_other_libraries(tmp_path):
    """Not reported by torch's allocator: it lives from its first use to its last, and is not there before."""
    numpy = pytest.importorskip("numpy")
    model = torch.nn.Linear(64, 8)

    def program():
        for _ in range(3):
            model(torch.from_numpy(numpy.ones((16, 64), dtype=numpy.float32)))

    rows = raw(record(program), tmp_path)
    assert totals(rows, PREEXISTING)["INPUT"] == 0
    assert totals(rows, CREATE)["INPUT"] == totals(rows, DESTROY)["INPUT"] > 0


@pytest.mark.parametrize("kept", ["nothing", "a view", "a graph"])
def test_memory_from_before_that_was_freed(kept, tmp_path):
    """Torch's CPU allocator does not report such a freeing. A storage lives as long as anything holds it, Python or not."""
    holder = {"x": torch.ones(5000, requires_grad=True)}
    gc.collect()

    def program():
        x = holder.pop("x")
        if kept == "a view":
            holder["view"] = x[1:3]
        if kept == "a graph":
            holder["graph"] = torch.dot(x, x)  # keeps x for its backward
        else:
            x.detach().sum()

    rows = raw(record(program), tmp_path)
    assert sum(totals(rows, PREEXISTING).values()) >= 4 * 5000
    freed = sum(action == DESTROY and size == -4 * 5000 for _, action, size, _ in rows)
    assert freed == (kept == "nothing")


@pytest.mark.parametrize("shapes", [True, False])
def test_models_made_within_the_recording(shapes, tmp_path):
    """They are known once they are called, without an optimizer and without rows for modules."""
    kept = []

    def program():
        kept.append(Mlp())
        with torch.no_grad():
            kept[0](torch.randn(16, 64))

    made = totals(raw(record(program, record_shapes=shapes), tmp_path), CREATE)
    assert made["PARAMETER"] == nbytes(kept[0].parameters())


def test_optimizers_that_allocate_their_state_again(tmp_path):
    class Replaces(torch.optim.Optimizer):
        def step(self):
            for parameter in self.param_groups[0]["params"]:
                self.state[parameter] = {"slots": [{"mean": parameter.grad * 0.5}, (parameter.grad * 2,)]}

    model = Mlp()
    optimizer = Replaces(model.parameters(), {})
    made = totals(raw(record(trained(model, optimizer, lambda: torch.ones(16, 64), 3)), tmp_path), CREATE)
    assert made["OPTIMIZER_STATE"] == 3 * 2 * nbytes(model.parameters())


# --- against torch, which is right on these --------------------------------------------------------------------------


def programs():
    def resnet():
        model, x = Resnet(), torch.randn(2, 3, 32, 32)
        return trained(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), lambda: x)

    def transformer():
        model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True), 2)
        return trained(model, torch.optim.AdamW(model.parameters()), lambda: torch.randn(2, 8, 32))

    def checkpointed():
        layers = [torch.nn.Linear(32, 32) for _ in range(3)]

        def program():
            x = torch.randn(8, 32)
            for layer in layers:
                x = checkpoint(lambda v, layer=layer: torch.relu(layer(v)), x, use_reentrant=False)
            x.sum().backward()

        return program

    return {"resnet": resnet, "transformer": transformer, "checkpointed": checkpointed}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["resnet", "transformer", "checkpointed"])
def test_timeline_equals_torch(name, tmp_path):
    """What torch reports, with memory of unknown category assigned to its owners."""
    make = programs()[name]
    torch.manual_seed(0)
    program = make()
    program()
    ours = raw(record(program), tmp_path)
    torch.manual_seed(0)
    program = make()
    program()
    with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        program()
    prof.export_memory_timeline(str(tmp_path / "torch.raw.json.gz"), "cpu")
    with gzip.open(tmp_path / "torch.raw.json.gz") as file:
        theirs = json.load(file)
    made, reference = totals(ours, CREATE), totals(theirs, CREATE)
    assert sum(made.values()) == sum(reference.values())
    assert made["GRADIENT"] == reference["GRADIENT"]
    assert made["INPUT"] <= reference["INPUT"] + 64
    assert made["PARAMETER"] == 0
    before, reference = totals(ours, PREEXISTING), totals(theirs, PREEXISTING)
    for category in ("PARAMETER", "OPTIMIZER_STATE"):
        assert before[category] == reference[category]
    assert {row[1] for row in ours} <= {1, 2, 3, 4}
    assert all(type(value) is int for row in ours for value in row)


# --- against the allocator --------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 5000)), min_size=1, max_size=40))
def test_every_allocation_is_followed(moves):
    """Tensors made and dropped at will; what is held after each, by plain addition."""
    most = 0

    def program():
        nonlocal most
        kept = {}
        for slot, size in moves:
            if slot in kept:
                del kept[slot]
            else:
                kept[slot] = torch.empty(size, dtype=torch.uint8)
            most = max(most, sum(tensor.numel() for tensor in kept.values()))

    prof = record(program)
    timeline = opstrobe._core.MemoryTimeline(prof.profiler.trace)
    peak = json.loads(timeline.peak(0, -1, 0, True))
    before = sum(a["bytes"] for a in peak["allocations"] if a["start_ns"] is None)
    assert peak["bytes"] - before == most
    rows = timeline.steps((None, *Action), lambda *key: key)
    change = {Action.CREATE: 1, Action.DESTROY: -1}
    recorded = [
        row for row in rows if row[0] != -1 and row[2][0][1] in {r[2][0][1] for r in rows if r[1] is Action.CREATE}
    ]
    assert sum(change.get(action, 0) * size for _, action, _, size in recorded) == 0


def test_all_threads():
    """D15: memory is recorded on every thread, and belongs to the events of that thread."""
    prof = None

    def work():
        for _ in range(3):
            torch.ones(1000)

    def program():
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.empty(10)

    config = opstrobe._ExperimentalConfig(profile_all_threads=True)
    prof = record(program, experimental_config=config)
    ones = [event for event in prof.events() if event.name == "aten::ones"]
    assert len(ones) == 6
    assert [event.cpu_memory_usage for event in ones] == [4000] * 6
    assert len({event.thread for event in ones}) == 2
    assert sum(e.cpu_memory_usage for e in prof.events() if e.name == "aten::empty" and e.cpu_parent is None) == 40


# --- files ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def training():
    model = Mlp()
    program = trained(model, torch.optim.Adam(model.parameters()), lambda: torch.randn(16, 64))
    program()
    return record(program, with_stack=True)


def test_times_and_sizes(training, tmp_path):
    for name, opener in (("a.json", open), ("a.txt", open), ("a.json.gz", gzip.open)):
        training.export_memory_timeline(str(tmp_path / name))
        with opener(tmp_path / name, "rt") as file:
            times, sizes = json.load(file)
        assert len(times) == len(sizes) > 10
        assert times == sorted(times)
        assert times[0] == times[1]
        assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in sizes)
        assert max(map(sum, sizes)) == training.memory_peak().as_dict()["bytes"]


def test_raw_by_name(training, tmp_path):
    training.export_memory_timeline(str(tmp_path / "a.raw.json"))
    training.export_memory_timeline(str(tmp_path / "a.raw.json.gz"))
    with gzip.open(tmp_path / "a.raw.json.gz", "rt") as file:
        assert file.read() == (tmp_path / "a.raw.json").read_text()


def test_html_is_one_file(training, tmp_path):
    training.export_memory_timeline(str(tmp_path / "a.html"))
    page = (tmp_path / "a.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "Optimizer state" in page
    assert "second.weight" in page


def test_devices(training, tmp_path):
    path = str(tmp_path / "a.json")
    training.export_memory_timeline(path, device="cpu:0")
    assert json.load(open(path)) == [[], []]
    training.export_memory_timeline(path, device="cuda")
    assert json.load(open(path)) == [[], []]
    with pytest.raises(RuntimeError, match="nonsense"):
        training.export_memory_timeline(path, device="nonsense")
    with pytest.raises(FileNotFoundError):
        training.export_memory_timeline(str(tmp_path / "no" / "a.json"))


def test_misuse(tmp_path):
    with pytest.raises(AssertionError):
        opstrobe.profile(profile_memory=True).export_memory_timeline(str(tmp_path / "a.json"))
    with opstrobe.profile() as prof:
        pass
    with pytest.raises(ValueError, match="profile_memory"):
        prof.export_memory_timeline(str(tmp_path / "a.json"))
    with pytest.raises(ValueError, match="record_shapes, profile_memory, with_stack"):
        prof._memory_profile()


def test_memory_profile(training):
    timeline = training._memory_profile().timeline
    assert timeline[0][0] == -1
    assert timeline[0][1] is torch.profiler._memory_profiler.Action.PREEXISTING
    times = [time for time, *_ in timeline]
    assert times == sorted(times)
    key, version = timeline[0][2]
    assert (key.device, version) == (torch.device("cpu"), 0)
    assert [c.name for c in Category] == [
        "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "PARAMETER", "OPTIMIZER_STATE",
    ]  # fmt: skip
    training.export_memory_timeline("/dev/null")
    assert isinstance(training.mem_tl, MemoryProfileTimeline)


# --- the peak ---------------------------------------------------------------------------------------------------------


def test_peak_names_lines_modules_and_stacks():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = torch.nn.Linear(8, 4000)

        def forward(self, x):
            return self.wide(x)

    net, kept = Net(), []
    line = 0

    def program():
        nonlocal line
        kept.append(net(torch.ones(100, 8)))
        line = sys._getframe().f_lineno - 1

    prof = record(program, with_stack=True, with_modules=True)
    data = prof.memory_peak().as_dict()
    top = max(data["allocations"], key=lambda a: a["bytes"])
    assert top["bytes"] == 100 * 4000 * 4
    assert top["category"] == "ACTIVATION"
    assert top["operator"] == "aten::linear"
    assert top["module"].endswith("wide")
    assert any("program" in frame for frame in top["stack"])
    assert top["file"].endswith("test_memory_timeline.py")
    assert data["lines"][0]["bytes"] >= top["bytes"]
    assert sum(share["bytes"] for share in data["operators"]) == data["bytes"]
    assert sum(data["categories"].values()) == data["bytes"]
    assert {a["name"] for a in data["allocations"]} >= {"wide.weight", "wide.bias"}
    text = str(prof.memory_peak(top=3))
    assert "Activation" in text
    assert "Module" in text


def test_modules_are_watched_without_rows_for_them():
    model = Mlp()
    plain, memory = (
        [event.name for event in record(lambda: model(torch.ones(2, 64)), profile_memory=on).events()]
        for on in (False, True)
    )
    assert [name for name in memory if name != "[memory]"] == plain
    assert "aten::linear" in plain


def test_peak_names_the_module_of_a_backward_pass():
    """What a backward node allocates belongs to the module of its forward operator."""
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3000))

    def program():
        net(torch.ones(4, 8)).sum().backward()

    data = record(program, with_modules=True).memory_peak().as_dict()
    gradients = {a["bytes"]: a for a in data["allocations"] if a["category"] == "GRADIENT"}
    weight = gradients[16 * 3000 * 4]
    assert weight["operator"].endswith("Backward0")
    assert weight["module"].endswith("2")


# --- a profile changes nothing --------------------------------------------------------------------------------------------


def test_nothing_is_left_behind():
    from torch.optim import optimizer

    before = len(optimizer._global_optimizer_post_hooks)
    model = Mlp()
    step = trained(model, torch.optim.SGD(model.parameters(), lr=0.1), lambda: torch.ones(2, 64))
    with pytest.raises(KeyError):
        with opstrobe.profile(profile_memory=True, record_shapes=True):
            step()
            assert len(optimizer._global_optimizer_post_hooks) == before + 1
            raise KeyError
    assert len(optimizer._global_optimizer_post_hooks) == before
    with opstrobe.profile(record_shapes=True):
        assert len(optimizer._global_optimizer_post_hooks) == before


def test_odd_tensors_and_optimizers():
    """Subclasses, tensors without memory, an optimizer that keeps lists and one that keeps nothing torch knows."""

    class Odd(torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {})
            self.state = None

        def step(self):
            pass

    class Calls(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise AssertionError("the profiler called a tensor's methods")

    kept = [torch.empty(3, device="meta"), torch.ones(2, 2).to_sparse(), torch.ones(3).as_subclass(Calls)]
    model = Mlp()
    odd = Odd(model.parameters())
    lbfgs = torch.optim.LBFGS(model.parameters())

    def program():
        def closure():
            lbfgs.zero_grad()
            loss = model(torch.ones(2, 64)).sum()
            loss.backward()
            return loss

        lbfgs.step(closure)
        odd.step()

    prof = record(program)
    assert prof.memory_peak().as_dict()["categories"]["OPTIMIZER_STATE"] > nbytes(model.parameters())
    assert len(kept) == 3


def test_quiet_under_a_fresh_interpreter():
    script = (
        "import torch, opstrobe\n"
        "with opstrobe.profile(profile_memory=True, record_shapes=True) as p: torch.ones(3)\n"
        "assert p.memory_peak().as_dict()['bytes'] >= 12\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_work_of_watching_tensors_is_not_in_the_window(monkeypatch, tmp_path):
    began = []
    stop = TensorWatch.stop

    def watched(self):
        began.append(time.time_ns())
        stop(self)

    monkeypatch.setattr(TensorWatch, "stop", watched)
    parameter = torch.nn.Parameter(torch.ones(1000))
    with opstrobe.profile(profile_memory=True, with_stack=True) as prof:
        kept = parameter * 2
    trace = prof.profiler.trace
    trace.check()
    assert trace.stop_ns <= began[0]
    assert max(row[4] for row in trace.rows()) <= trace.stop_ns
    prof.export_memory_timeline(str(tmp_path / "t.raw.json"))
    rows = json.loads((tmp_path / "t.raw.json").read_text())
    assert {(action, size) for _, action, size, _ in rows} >= {(PREEXISTING, 4000), (CREATE, kept.numel() * 4)}

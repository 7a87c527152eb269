# SPDX-License-Identifier: Apache-2.0
"""`opstrobe run` runs a program as Python does, and writes its trace however it ends."""

import gzip
import json
import re
import signal
import subprocess
import textwrap
import urllib.request
import zipfile
from decimal import Decimal

import pytest
from installed import OPSTROBE, PYTHON

NANOSECOND = Decimal("0.001")  # in the microseconds of a trace
WORK = "import torch\ntorch.ones(2) + torch.ones(2)\n"


@pytest.fixture
def program(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return name

    return write


def events(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="surrogatepass") as file:
        return json.load(file, parse_float=Decimal)["traceEvents"]


def names(path, category="cpu_op"):
    return [row["name"] for row in events(path) if row.get("cat") == category]


# --- as Python does -----------------------------------------------------------------------------------------------------

SHOW = """
import sys, __main__
types = {name: type(value).__name__ for name, value in vars(__main__).items() if name.startswith("__")}
print(types, __name__, __main__.__dict__ is globals(), sys.modules["__main__"] is __main__)
print({name: globals().get(name) for name in ("__file__", "__package__", "__cached__", "__doc__")})
print(sys.argv, sys.path)
import helper
"""


@pytest.mark.parametrize(
    "words",
    [
        ["show.py", "a", "--table", "-m", "--"],
        ["sub/show.py"],
        ["link.py"],
        ["./sub/../show.py"],
        ["folder"],
        ["archive.zip", "b"],
        ["show.pyc"],
        ["-m", "show", "-x"],
        ["-mshow"],
        ["-m", "sub.show"],
        ["-m", "folder"],
        ["-c", SHOW, "-c", "d"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("safe_path", [False, True])
def test_a_program_finds_what_python_gives_it(tmp_path, program, opstrobe, environment, words, safe_path):
    for place in ("", "sub/", "folder/"):
        program("", f"{place}helper.py")
        program(SHOW, f"{place}show.py")
    program(SHOW, "folder/__main__.py")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", SHOW)
        archive.writestr("helper.py", "")
    (tmp_path / "link.py").symlink_to("sub/show.py")
    subprocess.run(
        [PYTHON, "-c", "import py_compile; py_compile.compile('show.py', 'show.pyc')"], cwd=tmp_path, check=True
    )
    if safe_path:
        environment["PYTHONSAFEPATH"] = "1"
    python = subprocess.run([PYTHON, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    ours = opstrobe("run", *words)
    assert ours.stdout == python.stdout
    assert ours.returncode == python.returncode


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit()",
        "sys.exit(7)",
        "sys.exit('a message')",
        "raise SystemExit",
        "raise ValueError('from the program')",
        "raise KeyError('inner') from OSError('outer')",
        "raise KeyboardInterrupt",
        "sys.excepthook = lambda kind, error, tb: print('hook:', error, tb.tb_lineno, file=sys.stderr); 1 / 0",
        "atexit.register(print, 'at exit'); 1 / 0",
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start(); sys.exit(3)",
        "os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)",
        "os.kill(os.getpid(), signal.SIGHUP); time.sleep(9)",
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)",
        "exec('def f(:')",
    ],
)
def test_a_program_ends_as_under_python_and_leaves_its_trace(tmp_path, program, opstrobe, environment, ending):
    name = program("import atexit, os, signal, sys, threading, time\n" + WORK + f"def end():\n    {ending}\nend()\n")
    python = subprocess.run([PYTHON, name], cwd=tmp_path, env=environment, capture_output=True, text=True)
    ours = opstrobe("run", "-o", "trace.json", name)
    assert ours.returncode == python.returncode
    assert ours.stdout == python.stdout
    lines = [line for line in ours.stderr.splitlines(True) if not line.startswith("opstrobe: ")]
    assert "opstrobe: wrote trace.json: " in ours.stderr
    assert "".join(lines) == python.stderr
    assert names(tmp_path / "trace.json").count("aten::add") == 1


@pytest.mark.parametrize("words", [["broken.py"], ["-m", "broken"], ["-m", "nowhere"], ["-c", "1 +"], ["-c", "1 / 0"]])
def test_a_program_that_cannot_start_says_what_python_says(tmp_path, program, opstrobe, environment, words):
    program("def f(:\n", "broken.py")
    python = subprocess.run([PYTHON, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    ours = opstrobe("run", *words)
    assert ours.returncode == python.returncode
    lines = [line for line in ours.stderr.splitlines(True) if not line.startswith("opstrobe: ")]
    expected = python.stderr.splitlines(True)
    if "1 / 0" in words:  # from Python 3.13 on it shows the line of code that stood on the command line
        lines, expected = lines[-1:], expected[-1:]
    assert lines == expected


def test_without_a_compiler_the_reason_is_given_once(tmp_path, program, opstrobe, environment):
    """The program did import torch, which is where recording fails."""
    program("import torch\n")
    environment |= {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("CXX", None)
    process = opstrobe("run", "program.py")
    assert process.returncode == 1
    assert "no compiler was found" in process.stderr
    assert "no trace was written" not in process.stderr


def test_files_in_the_current_directory_do_not_get_in_our_way(tmp_path, program, opstrobe):
    for name in ("queue.py", "argparse.py", "opstrobe.py", "torch.py"):
        program("raise RuntimeError('the wrong one')\n", name)
    program("print('ran')\n", "sub/program.py")
    process = opstrobe("run", "sub/program.py")
    assert (process.stdout, process.returncode) == ("ran\n", 0)


def test_what_the_program_sets_before_it_imports_torch_counts(tmp_path, program, opstrobe):
    program("import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())\n")
    assert opstrobe("run", "program.py").stdout == "1\n"


# --- processes and threads ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_run_unrecorded_and_write_nothing(tmp_path, program, opstrobe, method):
    name = program(
        f"""
        import multiprocessing, os, sys, time
        import torch

        def child(number):
            torch.ones(2) * number
            return os.getpid()

        def wait():
            time.sleep(60)

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            with context.Pool(2) as pool:
                print(len(set(pool.map(child, range(8), chunksize=4)) - {{os.getpid()}}) > 0)
            waiting = context.Process(target=wait)
            waiting.start()
            waiting.terminate()
            waiting.join()
            print(waiting.exitcode)
            torch.ones(2) + 1
        """
    )
    process = opstrobe("run", "--one-process", "--with-stack=none", "-o", "trace.json", name)
    assert process.stdout == "True\n-15\n"
    assert process.stderr.count("opstrobe: wrote ") == process.stderr.count(" not recorded") == 1
    assert process.stderr.count("opstrobe:") == 3
    assert names(tmp_path / "trace.json").count("aten::add") == 1
    assert "aten::mul" not in names(tmp_path / "trace.json")
    assert sorted(file.name for file in tmp_path.glob("*.json*")) == ["trace.json"]


def test_a_forked_child_that_exits_by_itself_leaves_the_trace_to_its_parent(tmp_path, program, opstrobe):
    name = program(
        WORK + "import os, sys\npid = os.fork()\nif not pid: sys.exit(3)\nprint(os.waitpid(pid, 0)[1] >> 8)\n"
    )
    process = opstrobe("run", "--with-stack=none", "-o", "trace.json", name)
    assert process.stdout == "3\n"
    assert process.stderr.count("opstrobe: wrote ") == process.stderr.count("1 child process ran") == 1
    assert process.stderr.count("opstrobe:") == 3
    assert "aten::add" in names(tmp_path / "trace.json")


def test_all_threads_are_recorded_to_their_end(tmp_path, program, opstrobe):
    name = program(
        """
        import threading, time
        import torch

        def work():
            time.sleep(0.3)
            torch.ones(2) * 3

        threading.Thread(target=work, name="late").start()
        torch.ones(2) + 1
        """
    )
    assert opstrobe("run", "-o", "trace.json", name).returncode == 0
    threads = {row["name"]: row["tid"] for row in events(tmp_path / "trace.json") if row.get("cat") == "cpu_op"}
    assert threads["aten::mul"] != threads["aten::add"]


# --- what is recorded ---------------------------------------------------------------------------------------------------

TRAINING = """
import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters())
other = torch.optim.Adam(torch.nn.Linear(2, 2).parameters())
for i in range(6):
    optimizer.zero_grad()
    model(torch.ones(1, 4)).sum().backward()
    if i == 3:
        torch.ones(1).exp()
    optimizer.step()
    other.step()
    print(i, flush=True)
"""


def test_steps_are_those_of_the_optimizer_that_steps_first(tmp_path, program, opstrobe):
    process = opstrobe("run", "--steps", "2:4", "-o", "trace.json", program(TRAINING))
    assert process.returncode == 0, process.stderr
    annotations = names(tmp_path / "trace.json", "user_annotation")
    assert [name for name in annotations if name.startswith("ProfilerStep")] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert annotations.count("Optimizer.step#SGD.step") == 2
    assert names(tmp_path / "trace.json").count("aten::exp") == 1


def test_the_trace_of_steps_is_written_when_they_are_over(tmp_path, program, opstrobe):
    name = program(TRAINING + "import os\nprint(os.path.getsize('trace.json') > 0, flush=True)\nos._exit(4)\n")
    process = opstrobe("run", "--steps", "3", "-o", "trace.json", name)
    assert (process.stdout.splitlines()[-1], process.returncode) == ("True", 4)
    assert "aten::exp" not in names(tmp_path / "trace.json")


def test_steps_of_a_derived_optimizer_count_once(tmp_path, program, opstrobe):
    name = program(
        """
        import torch

        class Mine(torch.optim.SGD):
            def step(self, closure=None):
                return super().step(closure)

        torch.optim.SGD([torch.ones(1)])
        optimizer = Mine([torch.nn.Parameter(torch.ones(1))])
        for _ in range(4):
            optimizer.step()
        """
    )
    assert opstrobe("run", "--steps", "2:9", "-o", "trace.json", name).returncode == 0
    annotations = names(tmp_path / "trace.json", "user_annotation")
    assert [name for name in annotations if name.startswith("ProfilerStep")] == [f"ProfilerStep#{i}" for i in (2, 3, 4)]


def step_ranges(path):
    """(number, start, end) of all steps of a trace, which may overlap nobody."""
    rows = [row for row in events(path) if row["name"].startswith("ProfilerStep#")]
    steps = sorted((int(row["name"].partition("#")[2]), row["ts"], row["ts"] + row["dur"]) for row in rows)
    assert all(before[2] <= after[1] + 2 * NANOSECOND for before, after in zip(steps, steps[1:], strict=False))
    return steps


def inside(path, name):
    """How many operators of the name lie in each step."""
    starts = [row["ts"] for row in events(path) if row["name"] == name]
    return [sum(begin <= start < end for start in starts) for _, begin, end in step_ranges(path)]


def test_steps_are_marked_without_options(tmp_path, program, opstrobe):
    assert opstrobe("run", "-o", "trace.json", program(TRAINING)).returncode == 0
    assert [number for number, _, _ in step_ranges(tmp_path / "trace.json")] == [0, 1, 2, 3, 4, 5]
    assert inside(tmp_path / "trace.json", "aten::exp") == [0, 0, 0, 1, 0, 0]
    assert inside(tmp_path / "trace.json", "aten::uniform_") == [0] * 6  # what builds the models is in no step
    steps, ranges = (
        {row["tid"] for row in events(tmp_path / "trace.json") if row["name"].startswith(start)}
        for start in ("ProfilerStep#", "Optimizer.step#")
    )
    assert len(steps) == 1 and ranges == steps  # the optimizer's range ends within the step


LOADER = """
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 4)
data = DataLoader(torch.ones(12, 4), batch_size=2)
"""

LOOPS = {
    "accumulated gradients": (
        """
        optimizer = torch.optim.SGD(model.parameters())
        for i, batch in enumerate(data):
            model(batch).sum().backward()
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
        """,
        [2, 2, 2],
    ),
    "two optimizers of a class": (
        """
        first = torch.optim.Adam(model.parameters())
        second = torch.optim.Adam(torch.nn.Linear(2, 2).parameters())
        for batch in data:
            model(batch).sum().backward()
            first.step()
            second.step()
        """,
        [1] * 6,
    ),
    "no optimizer": ("for _ in range(2):\n    for batch in data:\n        model(batch)\n    torch.ones(1)\n", [1] * 12),
    "an evaluation before the training": (
        """
        optimizer = torch.optim.SGD(model.parameters())
        for batch in DataLoader(torch.ones(3, 4)):
            model(batch)
        for batch in data:
            model(batch).sum().backward()
            optimizer.step()
        """,
        [1] * 6,
    ),
    "a closure": (
        """
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)
        def closure():
            loss = model(torch.ones(1, 4)).square().sum()
            loss.backward()
            return loss
        for _ in range(3):
            optimizer.step(closure)
        """,
        [1] * 3,
    ),
    "a scaler that skips": (
        """
        optimizer = torch.optim.SGD(model.parameters())
        scaler = torch.amp.GradScaler("cpu")
        for i, batch in enumerate(data):
            optimizer.zero_grad()
            loss = model(batch).sum() * (float("inf") if i % 2 else 1)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
        [1] * 6,
    ),
    "a schedule of torch's profiler": (
        """
        optimizer = torch.optim.SGD(model.parameters())
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1)) as profiler:
            for i, batch in enumerate(data):
                model(batch).sum().backward()
                optimizer.step()
                if i % 3 == 2:
                    profiler.step()
        """,
        [3, 3, 0],
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_steps_of_loops(tmp_path, program, opstrobe, loop):
    text, calls = LOOPS[loop]
    process = opstrobe("run", "-o", "trace.json", program(LOADER + textwrap.dedent(text)))
    assert process.returncode == 0, process.stderr
    assert inside(tmp_path / "trace.json", "aten::addmm") == calls


def test_steps_begin_and_end_between_calls(tmp_path, program, opstrobe):
    """Optimizers step, and batches are fetched, inside functions. A step that cut these would take their time from them."""
    name = program(
        """
        import sys
        import torch

        weight = torch.nn.Parameter(torch.ones(4))
        loader = torch.utils.data.DataLoader(torch.arange(12.0), batch_size=2)

        def update(optimizer):
            optimizer.step()

        def batches():
            for batch in loader:
                yield batch

        def advance(batch, optimizer):
            (weight * batch[0]).sum().backward()
            if optimizer:
                update(optimizer)
                optimizer.zero_grad()

        def train(optimizer=None):
            for batch in batches():
                advance(batch, optimizer)

        train(torch.optim.SGD([weight]) if sys.argv[1:] else None)
        """
    )
    for path, arguments in (("optimizer.json", ["train"]), ("batches.json", [])):
        assert opstrobe("run", "--with-stack", "-o", path, name, *arguments).returncode == 0
        rows = events(tmp_path / path)
        assert not [row["name"] for row in rows if row["ph"] == "b"]  # nothing is cut
        host = [row for row in rows if row["ph"] == "X"]
        steps = sorted((row for row in host if row["name"].startswith("ProfilerStep")), key=lambda row: row["ts"])
        calls = sorted((row for row in host if row["name"].endswith(": advance")), key=lambda row: row["ts"])
        assert len(steps) == len(calls) == 6
        for step, call, following in zip(steps, calls, [*steps[1:], None], strict=True):
            assert step["ts"] <= call["ts"] and call["ts"] + call["dur"] <= step["ts"] + step["dur"] + NANOSECOND
            assert following is None or step["ts"] + step["dur"] == pytest.approx(following["ts"], abs=NANOSECOND)
            loads = [
                row["ts"] for row in host if row["name"].startswith("enumerate(DataLoader)") and row["ts"] < call["ts"]
            ]
            assert step["ts"] <= max(loads)  # its batch is fetched in it


def test_the_first_step_begins_in_the_function_that_has_the_loop(tmp_path, program, opstrobe):
    """It would take the time of that function from it if it began before, where the optimizer is made."""
    name = program(
        """
        import torch

        class Trainer:
            def __init__(self):
                self.weight = torch.nn.Parameter(torch.ones(4))
                self.optimizer = torch.optim.SGD([self.weight], lr=0.5)
                self.losses = []

            def fit(self):
                for _ in range(4):
                    self.weight.square().sum().backward()
                    self.optimizer.step()

        trainer = Trainer()
        trainer.fit()
        """
    )
    assert opstrobe("run", "--with-stack", "-o", "trace.json", name).returncode == 0
    host = [row for row in events(tmp_path / "trace.json") if row["ph"] == "X"]
    steps = [row for row in host if row["name"].startswith("ProfilerStep")]
    fit = next(row for row in host if row["name"].endswith((": fit", ": Trainer.fit")))
    assert len(steps) == 4
    assert all(fit["ts"] <= row["ts"] and row["ts"] + row["dur"] <= fit["ts"] + fit["dur"] for row in steps)


def test_steps_of_batches_are_counted_where_there_is_no_optimizer(tmp_path, program, opstrobe):
    name = program(LOADER + "for batch in data:\n    model(batch)\n")
    assert opstrobe("run", "--steps", "2:4", "-o", "trace.json", name).returncode == 0
    assert [number for number, _, _ in step_ranges(tmp_path / "trace.json")] == [2, 3]


def test_a_compiled_optimizer_compiles_as_without_opstrobe(tmp_path, program, opstrobe):
    name = program(
        """
        import torch

        weight = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.SGD([weight], lr=0.5)
        weight.grad = torch.ones(4)
        step = torch.compile(optimizer.step, backend="eager")
        for _ in range(3):
            step()
        print(weight.sum().item())
        """
    )
    process = opstrobe("run", "-o", "trace.json", name)
    assert (process.stdout, process.returncode) == ("-2.0\n", 0), process.stderr


def test_a_program_that_ends_before_the_first_step_is_reported(tmp_path, program, opstrobe):
    process = opstrobe("run", "--steps", "10:20", "-o", "trace.json", program(TRAINING))
    assert process.returncode == 1
    assert "no trace was written: the program ended in step 6" in process.stderr
    assert not (tmp_path / "trace.json").exists()


def test_options_reach_the_profile(tmp_path, program, opstrobe):
    name = program("import torch\ntorch.ones(3, 5) @ torch.ones(5, 7)\n")
    process = opstrobe("run", "--record-shapes", "--memory", "--flops", "--table=5", "-o", "trace.json", name)
    assert process.returncode == 0, process.stderr
    (product,) = [row for row in events(tmp_path / "trace.json") if row["name"] == "aten::mm"]
    assert product["args"]["Input Dims"] == [[3, 5], [5, 7]]
    assert any(row["name"] == "[memory]" for row in events(tmp_path / "trace.json"))
    assert "Total MFLOPs" in process.stderr or "Total FLOPs" in process.stderr or "FLOPs" in process.stderr
    assert "CPU Mem" in process.stderr and "[[3, 5], [5, 7]]" in process.stderr


def test_with_stack_the_trace_knows_lines(tmp_path, program, opstrobe):
    name = program("import torch\n\ndef work():\n    return torch.ones(300) + 1\n\nwork()\n")
    process = opstrobe("run", "--with-stack", "-o", "trace.json", name)
    assert process.returncode == 0, process.stderr
    files = json.loads(opstrobe("lines", "--format", "json", "trace.json").stdout)["files"]
    (file,) = [each for each in files if each["file"].endswith("program.py")]
    assert {line["line"] for line in file["lines"] if line["host_us"] > 0} >= {4, 6}


STACKS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(300, 300)

    def forward(self, x):
        return self.layer(x).relu()

def main():
    net = Net()
    for _ in range(3):
        net(torch.ones(300, 300)).sum().backward()

main()
"""


SLEEPS = """
import time, torch

layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)

def log():
    time.sleep(0.1)

for _ in range(6):
    layer(torch.ones(8, 64)).sum().backward()
    {step}
    log()
"""


@pytest.mark.parametrize("step", ["optimizer.step()", "pass"], ids=["optimizer", "loop"])
def test_time_outside_of_operators_has_its_line_without_recorded_calls(tmp_path, program, opstrobe, step):
    """The samples know it, whether steps are marked or not, and the last line of the command names it."""
    process = opstrobe("run", "-o", "trace.json", program(SLEEPS.format(step=step)))
    assert process.returncode == 0, process.stderr
    assert re.search(r"most time: .*program\.py:8", process.stderr)
    rest = json.loads(opstrobe("advise", "--format", "json", "trace.json").stdout)["not_explained"]
    assert rest["lines"][0]["line"] == 8 and rest["lines"][0]["waiting_percent"] > 50


def test_lines_and_modules_are_known_without_recorded_calls(tmp_path, program, opstrobe):
    """By default, the trace has the lines that call operators, modules by path, and a line for what takes most time."""
    name = program(STACKS)
    process = opstrobe("run", "-o", "trace.json", name)
    assert process.returncode == 0, process.stderr
    assert re.search(r"(finding|most time): .*program\.py:\d+", process.stderr)
    rows = events(tmp_path / "trace.json")
    calls = {row["name"] for row in rows if row.get("cat") == "python_function"}
    assert calls == {"nn.Module: Net_0", "nn.Module: Linear_0"}
    stacks = {row["name"]: row["args"]["Call stack"] for row in rows if "Call stack" in row.get("args", {})}
    outer = "program.py(15): main;program.py(17): <module>;"
    assert stacks["aten::linear"] == stacks["aten::relu"] == f"program.py(10): Net.forward;{outer}"
    assert stacks["aten::sum"] == outer
    assert "aten::addmm" not in stacks  # part of aten::linear
    (file,) = json.loads(opstrobe("lines", "--format", "json", "trace.json").stdout)["files"]
    lines = {line["line"]: line for line in file["lines"]}
    assert file["file"].endswith("program.py") and lines[10]["function"] == "Net.forward"
    assert lines[10]["self_us"] > 0 and lines[15]["host_us"] >= lines[10]["host_us"]
    assert "layer" in opstrobe("modules", "trace.json").stdout


def test_files_have_the_same_names_wherever_the_program_starts(tmp_path, program, environment):
    """The trace also says in which directory they are."""
    program(STACKS)
    (tmp_path / "empty").mkdir()
    words = [OPSTROBE, "run", "-o", "trace.json", "../program.py"]
    process = subprocess.run(words, cwd=tmp_path / "empty", env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    text = (tmp_path / "empty" / "trace.json").read_text()
    assert set(re.findall(r"[^\s\";]*program\.py(?=\(\d)", text)) == {"program.py"}
    assert list(json.loads(text)["source"]) == [str(tmp_path / "program.py")]


COMPUTING = """
import json
import time

import torch

def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        json.loads(json.dumps(list(range(100))))  # computes

torch.ones(3).neg()
compute(2)
"""


def test_lines_that_compute_in_python_are_known_without_recorded_calls(tmp_path, program, opstrobe):
    """By default stacks are sampled: the line that computes has the time, also that of the library that it calls, and its callers have
    it, too."""
    process = opstrobe("run", "-o", "trace.json", program(COMPUTING))
    assert process.returncode == 0, process.stderr
    (file,) = json.loads(opstrobe("lines", "--format", "json", "trace.json").stdout)["files"]
    lines = {line["line"]: line for line in file["lines"]}
    computes = 1 + COMPUTING.splitlines().index("        json.loads(json.dumps(list(range(100))))  # computes")
    calls = 1 + COMPUTING.splitlines().index("compute(2)")
    assert max(file["lines"], key=lambda line: line["self_us"])["line"] == computes
    assert lines[computes]["function"] == "compute" and lines[calls]["host_us"] >= lines[computes]["self_us"]
    assert opstrobe("convert", "--metric", "sampled", "trace.json", "out.folded").returncode == 0
    stacks = (tmp_path / "out.folded").read_text()
    assert "json/decoder.py" in stacks
    assert "MainThread;program.py(" in stacks and "opstrobe/" not in stacks, "what runs the program has no frames"


def test_neither_calls_nor_lines_are_recorded_if_asked(tmp_path, program, opstrobe):
    name = program(STACKS)
    assert opstrobe("run", "--with-stack=none", "-o", "trace.json", name).returncode == 0
    rows = events(tmp_path / "trace.json")
    assert not any("Call stack" in row.get("args", {}) or row.get("cat") == "python_function" for row in rows)
    assert "python_samples" not in json.loads((tmp_path / "trace.json").read_text())
    for other in ("--advise", "--with-imports"):
        refused = opstrobe("run", "--with-stack=none", other, name)
        assert refused.returncode == 2 and f"--with-stack=none does not go with {other}" in refused.stderr


IMPORTS = """
import threading
import torch

def work():
    import lazy
    try:
        import broken
    except ValueError:
        pass
    return lazy.double(torch.ones(2))

work()
thread = threading.Thread(target=lambda: __import__("other"))
thread.start()
thread.join()
work()
"""


def test_an_import_is_one_event(tmp_path, program, opstrobe):
    program("import torch\ntorch.ones(3).exp()\nimport deeper\ndef double(x):\n    return x + x\n", "lazy.py")
    program("def f():\n    return 1\nf()\n", "deeper.py")
    program("def f():\n    raise ValueError\nf()\n", "broken.py")
    program("def g():\n    return 2\ng()\n", "other.py")
    process = opstrobe("run", "--with-stack", "-o", "trace.json", program(IMPORTS))
    assert process.returncode == 0, process.stderr
    python = names(tmp_path / "trace.json", "python_function")
    imports = [name for name in python if name.startswith("import ")]
    assert [name for name in imports if name.split()[1] in ("lazy", "deeper", "broken", "other")] == [
        *("import lazy", "import broken", "import other", "import broken"),
    ]
    assert sum(name.endswith(": double") for name in python) == 2  # what runs after an import is recorded
    assert not [name for name in python if "importlib" in name or name.endswith((": f", ": g"))]
    assert "aten::exp" in names(tmp_path / "trace.json")  # operators in an import stay
    files = json.loads(opstrobe("lines", "--format", "json", "trace.json").stdout)["files"]
    (file,) = [each for each in files if each["file"].endswith("program.py")]
    assert 6 in {line["line"] for line in file["lines"] if line["host_us"] > 0}  # import lazy

    assert opstrobe("run", "--with-stack", "--with-imports", "-o", "all.json", "program.py").returncode == 0
    python = names(tmp_path / "all.json", "python_function")
    assert not [name for name in python if name.startswith("import ")]
    assert sum(name.endswith(": f") for name in python) == 3 and sum("_find_and_load" in name for name in python) > 4


def test_a_transformer_step_has_few_python_events(tmp_path, program, opstrobe):
    """Adam imports torch._dynamo: more than a million calls, if they were recorded."""
    name = program(
        """
        import torch

        model = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            model(torch.randn(4, 8, 32)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        """
    )
    assert opstrobe("run", "--with-stack", "-o", "trace.json", name).returncode == 0
    rows = [row for row in events(tmp_path / "trace.json") if row["ph"] == "X"]
    assert len(rows) < 20_000
    assert "import torch._dynamo" in {row["name"] for row in rows}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["train.py"], "train"),
        (["folder"], "folder"),
        (["-m", "sub.train"], "sub.train"),
        (["-c", WORK], "python"),
    ],
    ids=["script", "folder", "module", "code"],
)
def test_the_trace_is_named_after_the_program(tmp_path, program, opstrobe, words, name):
    for path in ("train.py", "sub/train.py", "folder/__main__.py"):
        program(WORK + "import os\nos.chdir('/')\n", path)
    process = opstrobe("run", *words)
    assert f"opstrobe: wrote {name}.pt.trace.json.gz: " in process.stderr
    assert process.stderr.endswith(f"opstrobe: to view it: opstrobe serve --open {name}.pt.trace.json.gz\n")
    assert "aten::add" in names(tmp_path / f"{name}.pt.trace.json.gz")


def test_traces_are_not_overwritten(tmp_path, program, opstrobe):
    name = program(WORK)
    for _ in range(3):
        assert opstrobe("run", "-o", "new/traces/", name).returncode == 0
    assert opstrobe("run", "-o", "new/traces", name).returncode == 0
    first = tmp_path / "new/traces/program.pt.trace.json.gz"
    before = first.read_bytes()
    assert opstrobe("run", "--force", "-o", "new/traces", name).returncode == 0
    assert first.read_bytes() != before
    assert sorted(path.name for path in (tmp_path / "new/traces").iterdir()) == [
        "program.2.pt.trace.json.gz",
        "program.3.pt.trace.json.gz",
        "program.4.pt.trace.json.gz",
        "program.pt.trace.json.gz",
    ]
    path = tmp_path / "made" / "trace.json"
    assert opstrobe("run", "-o", "made/trace.json", name).returncode == 0
    before = path.read_bytes()
    process = opstrobe("run", "-o", "made/trace.json", name)
    assert (process.returncode, process.stdout) == (2, "")
    assert f"cannot write '{path}': the file exists; --force overwrites it" in process.stderr
    assert path.read_bytes() == before
    assert opstrobe("run", "--force", "-o", "made/trace.json", name).returncode == 0
    assert path.read_bytes() != before
    assert opstrobe("run", "-o", "/dev/null", name).returncode == 0
    # A link to a device stays if nothing can be written there.
    full = tmp_path / "full.json"
    full.symlink_to("/dev/full")
    assert "no space left on device" in opstrobe("run", "-o", full.name, name).stderr
    assert full.is_symlink()


def test_the_first_finding_is_named(tmp_path, program, opstrobe):
    name = program(
        """
        import torch

        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(4):
            output = model(torch.ones(64, 64))
            total = torch.zeros(())
            for i in range(64):
                total = total + output[i].sum()
            total.backward()
            optimizer.step()
        """
    )
    process = opstrobe("run", "--with-stack", "-o", "trace.json", name)
    (line,) = [line for line in process.stderr.splitlines() if line.startswith("opstrobe: first finding: ")]
    assert re.search(r", program\.py:10 \(saves .* % of a step(; waited for a CPU: \d+\.\d %)?\)$", line)


def test_most_time_names_the_first_line_of_the_program():
    from opstrobe.launcher.recorder import _most_time

    lines = [
        {"file": None, "line": None, "text": "60.0 % of a step: idle device."},
        {"file": "train.py", "line": 7, "text": "30.0 % of a step: operators."},
    ]
    assert _most_time({"lines": lines}) == "train.py:7, 30.0 % of a step: operators."
    assert _most_time({"lines": lines[:1]}) == _most_time(None) == ""


def test_open_shows_the_trace_until_it_is_stopped(tmp_path, program, environment):
    name = program(WORK + "import sys\nsys.exit(5)\n")
    words = [OPSTROBE, "run", "--open", "-o", "trace.json", name]
    with subprocess.Popen(
        words, cwd=tmp_path, env={**environment, "BROWSER": "true"}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            lines = iter(process.stderr.readline, "")
            serving = next(line for line in lines if "serving http://127.0.0.1:" in line)
            address = serving.split()[2]
            with urllib.request.urlopen(address, timeout=60) as reply:
                assert reply.status == 200
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 5


def test_info_shows_what_made_the_trace(program, opstrobe):
    name = program(WORK)
    assert opstrobe("run", "--memory", "-o", "trace.json", name, "--password", "hunter2").returncode == 0
    shown = opstrobe("info", "trace.json").stdout.splitlines()
    facts = dict(re.split(" {2,}", line.strip(), maxsplit=1) for line in shown if "  " in line.strip())
    assert facts["Command"] == "opstrobe run --memory -o trace.json program.py --password ***"
    assert facts["Options"] == "profile_memory, with_stack (calls=False), with_modules"
    assert {"Opstrobe", "Python", "PyTorch", "CPU", "Intra-op threads"} <= set(facts)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGUSR1"])
def test_a_signal_that_kills_at_once_is_reported(tmp_path, program, opstrobe, name):
    process = opstrobe("run", program(WORK + f"import os, signal\nos.kill(os.getpid(), signal.{name})\n"))
    assert process.returncode == -signal.Signals[name]
    assert process.stderr == f"opstrobe: no trace was written: the program was killed by {name}{SPILL_HINT}\n"
    assert not list(tmp_path.glob("*.gz"))


SPILL_HINT = "; --spill DIR keeps the recording of such a program"
KILLED = (
    "opstrobe: no trace was written: the program was killed by SIGKILL, which the system also sends when memory runs out, "
    "or ended by _exit() in C; "
)


def test_sigkill_is_reported(tmp_path, program, opstrobe):
    """Of the program, not of its forked children; and by a process that the program cannot wait for."""
    name = program(
        WORK + "import os, signal\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.waitpid(-1, 0)\n"
        "try:\n"
        "    os.waitpid(-1, 0)\n"
        "except ChildProcessError:\n"
        "    print('alone', 'OPSTROBE_WATCHER' in os.environ, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = opstrobe("run", name)
    assert process.returncode == -signal.SIGKILL
    assert process.stdout.splitlines()[-1] == "alone False"
    assert process.stderr == KILLED.removesuffix("; ") + SPILL_HINT + "\n"
    assert not list(tmp_path.glob("*.gz"))


def test_sigkill_is_reported_with_how_to_recover(tmp_path, program, opstrobe):
    name = program(WORK + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    (line,) = opstrobe("run", "--spill", "spill", name).stderr.splitlines()
    path = line.removeprefix(f"{KILLED}to recover the recording: opstrobe recover ")
    assert opstrobe("recover", path, "-o", "trace.json").returncode == 0
    assert (tmp_path / "trace.json").exists()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_a_signal_after_the_trace_is_written_is_not_reported(program, opstrobe, name):
    killed = program(TRAINING + f"import os, signal\nos.kill(os.getpid(), signal.{name})\n")
    process = opstrobe("run", "--steps", "1", "-o", "trace.json", killed)
    assert process.returncode == -signal.Signals[name]
    assert "wrote trace.json" in process.stderr and "no trace was written" not in process.stderr


def test_advice_without_steps_says_that_its_time_leaves_out_the_overhead(program, opstrobe):
    rows = (
        "import torch\nx = torch.ones(400, 8)\ntotal = torch.zeros(8)\n"
        "for i in range(400):\n    total = total + x[i].tanh() * 2\n"
    )
    done = opstrobe("run", "--advise", "-o", "trace.json", program(rows))
    assert done.returncode == 0, done.stderr
    base = json.loads(opstrobe("advise", "--format", "json", "trace.json").stdout)["base"]
    assert base["steps"] == 0 and base["ms"] < 0.98 * base["average_step_ms"]
    assert base["text"].startswith("The trace has no steps. Percentages are shares of its total time, ")
    assert re.search(r" ms, which excludes .* of overhead of recording\.", base["text"])
    assert base["excluded_ms"]["recording"] > 0 and base["excluded_ms"]["imports"] == 0


def test_an_exit_without_a_trace_is_reported(tmp_path, program, opstrobe):
    """By the program, not by its forked children, which end in the same way."""
    name = program(WORK + "import os\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\nos._exit(4)\n")
    process = opstrobe("run", name)
    assert process.returncode == 4
    assert process.stderr == f"opstrobe: no trace was written: the program ended by os._exit(){SPILL_HINT}\n"


def test_a_trace_that_cannot_be_written_is_reported_and_the_status_kept(tmp_path, program, opstrobe):
    name = program(WORK + "import os, sys\nos.rmdir('gone')\nsys.exit(6)\n")
    (tmp_path / "gone").mkdir()
    process = opstrobe("run", "-o", "gone/trace.json", name)
    assert process.returncode == 6
    assert "opstrobe: no trace was written: " in process.stderr


def test_steps_that_cannot_be_written_do_not_hurt_the_program(tmp_path, program, opstrobe):
    (tmp_path / "gone").mkdir()
    name = program("import os\nos.rmdir('gone')\n" + TRAINING)
    process = opstrobe("run", "--steps", "2", "-o", "gone/trace.json", name)
    assert (process.stdout, process.returncode) == ("0\n1\n2\n3\n4\n5\n", 1)
    assert process.stderr.count("opstrobe: no trace was written: ") == 1


@pytest.mark.parametrize(
    "end",
    [
        "os.rmdir('gone')",
        "os.rmdir('gone'); sys.exit()",
        "os.rmdir('gone'); sys.exit(0)",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))",  # as on a full disk
    ],
)
def test_a_program_that_succeeds_without_a_trace_fails(tmp_path, program, opstrobe, end):
    """Its last thread and its own functions at exit have run by then."""
    late = (
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\natexit.register(print, 'exit')\n"
    )
    name = program(WORK + "import atexit, os, resource, sys, threading, time\n" + late + end + "\n")
    (tmp_path / "gone").mkdir()
    process = opstrobe("run", "-o", "gone/trace.json", name)
    assert (process.stdout, process.returncode) == ("thread\nexit\n", 1)
    assert process.stderr.count("opstrobe: no trace was written: ") == 1 and "Traceback" not in process.stderr


def test_a_forked_child_without_a_trace_succeeds(program, opstrobe):
    """Its parent records, and gets its status."""
    name = program(WORK + "import os\nif os.fork():\n    print(os.wait()[1])\n")
    process = opstrobe("run", name)
    assert (process.stdout, process.returncode) == ("0\n", 0), process.stderr


def test_a_closed_standard_error_does_not_matter(tmp_path, program, opstrobe):
    name = program(WORK + "import sys\nsys.stderr.close()\nsys.exit(4)\n")
    assert opstrobe("run", "--table", "-o", "trace.json", name).returncode == 4
    assert "aten::add" in names(tmp_path / "trace.json")


# --- signals from outside -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_work(tmp_path, program, environment, number):
    name = program(WORK + "print('ready', flush=True)\nwhile True:\n    torch.ones(2) + 1\n")
    words = [OPSTROBE, "run", "-o", "trace.json", name]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(number)
            process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == -number
    assert "aten::add" in names(tmp_path / "trace.json")


def test_an_ignored_signal_stays_ignored(tmp_path, program, environment):
    name = program(WORK + "import os, signal\nos.kill(os.getpid(), signal.SIGHUP)\nprint('alive')\n")
    process = subprocess.run(
        ["nohup", OPSTROBE, "run", "-o", "trace.json", name], cwd=tmp_path, env=environment, capture_output=True
    )
    assert (process.stdout, process.returncode) == (b"alive\n", 0)


def test_run_as_a_module(tmp_path, program, environment):
    program(SHOW, "sub/show.py")
    program("", "sub/helper.py")
    words = ["sub/show.py", "a"]
    python = subprocess.run([PYTHON, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    ours = subprocess.run(
        [PYTHON, "-m", "opstrobe.run", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ours.stdout == python.stdout


def test_patch_lets_the_programs_own_profiles_be_ours(tmp_path, program, opstrobe):
    name = program(
        """
        import subprocess, sys, torch
        with torch.profiler.profile() as prof:
            torch.ones(2)
        prof.export_chrome_trace("own.json")
        print(type(prof).__module__, sys.argv[1:], flush=True)
        if sys.argv[1:] == ["-o"]:
            subprocess.run([sys.executable, __file__])
            sys.exit(7)
        """
    )
    result = opstrobe("run", "--patch", name, "-o")
    assert result.stdout.splitlines() == ["opstrobe.profiler ['-o']", "opstrobe.profiler []"]
    assert (result.returncode, result.stderr) == (7, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.json", name]
    assert "aten::ones" in names(tmp_path / "own.json")


def test_patch_goes_alone(tmp_path, program, opstrobe):
    result = opstrobe("run", "--patch", "--memory", program("pass"))
    assert result.returncode == 2
    assert "--patch goes with no other option" in result.stderr


# --- modules ------------------------------------------------------------------------------------------------------------

MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    def forward(self, x):
        return self.body(x)
def main():
    net = Net()  # gone when the program ends
    net(torch.ones(2)).sum().backward()
main()
"""


def test_modules(program, opstrobe):
    program(MODEL)
    done = opstrobe("run", "--with-modules", "-o", "all.json", "program.py")
    assert [line.split()[:3] for line in done.stderr.splitlines()[1:5]] == [
        ["Net", "Net", "1"],
        ["body", "Sequential", "1"],
        ["0", "Linear", "1"],
        ["1", "ReLU", "1"],
    ]
    done = opstrobe("run", "--with-modules=1", "-o", "one.json", "program.py")
    assert [line.split()[0] for line in done.stderr.splitlines()[:2]] == ["Module", "Net"]
    table = [line for line in done.stderr.splitlines() if not line.startswith("opstrobe: ")]
    assert "body" not in " ".join(table)
    assert opstrobe("run", "--with-modules=x", "program.py").returncode == 2


def test_installed_commands_are_programs(opstrobe, tmp_path):
    result = opstrobe("run", "pip", "--version")
    assert result.returncode == 0 and result.stdout.startswith("pip ")
    for words, message in (
        (("python3", "train.py"), "name the program alone, without 'python3'"),
        (("sh",), "sh' is not a Python program"),
        (("./pip",), "cannot open './pip': no such file"),
        (("no_such_command",), "cannot open 'no_such_command': no such file"),
    ):
        result = opstrobe("run", *words)
        assert result.returncode == 2
        assert message in result.stderr


# --- several processes --------------------------------------------------------------------------------------------------


def ranks(environment, tmp_path, *words):
    """`opstrobe run` as torchrun calls it for two ranks, one after the other; what each says."""
    said = []
    for rank in "01":
        process = subprocess.run(
            [OPSTROBE, "run", *words],
            cwd=tmp_path,
            env={**environment, "RANK": rank, "WORLD_SIZE": "2"},
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, process.stderr
        said.append(process.stderr.splitlines())
    return said


def info_of(path, opstrobe):
    return json.loads(opstrobe("info", "--format", "json", path).stdout)["value"]


def rank_of(path, opstrobe):
    return info_of(path, opstrobe)["rank"]


def test_ranks_write_files_of_their_own_and_say_who_they_are(program, environment, tmp_path, opstrobe):
    """Not the process id; a directory that does not exist is made, and one file for all becomes one for each."""
    name = program(WORK)
    said = ranks(environment, tmp_path, "--with-stack=none", "-o", "new/", name)
    for rank, lines in enumerate(said):
        assert lines[0].startswith(f"opstrobe: rank {rank}: wrote new/program.rank{rank}.pt.trace.json.gz: ")
        assert all(line.startswith(f"opstrobe: rank {rank}: ") for line in lines)
    assert said[0][-1].endswith("opstrobe serve --open new/") and len(said[1]) == 1
    assert {info_of(path, opstrobe)["world_size"] for path in (tmp_path / "new").iterdir()} == {2}
    assert sorted(rank_of(path, opstrobe) for path in (tmp_path / "new").iterdir()) == [0, 1]
    assert (tmp_path / "new" / "program.rank1.pt.trace.json.gz").exists()
    ranks(environment, tmp_path, "-o", "one.pt.trace.json", name)
    assert not (tmp_path / "one.pt.trace.json").exists()
    for rank in (0, 1):
        assert rank_of(tmp_path / f"one.rank{rank}.pt.trace.json", opstrobe) == rank


def test_a_number_in_the_name_is_not_a_rank(program, tmp_path, opstrobe):
    assert opstrobe("run", program(WORK)).returncode == 0
    (path,) = tmp_path.glob("*.pt.trace.json.gz")
    assert rank_of(path, opstrobe) is None
    path = path.rename(tmp_path / "trace_3.json.gz")
    assert rank_of(path, opstrobe) == 3


def test_children_that_are_not_recorded_are_counted(program, opstrobe):
    name = program(
        """
        import os, subprocess, sys, torch
        subprocess.run([sys.executable, "-c", "pass"], preexec_fn=lambda: None)
        subprocess.run([sys.executable, "-c", "pass"])
        if not (child := os.fork()):
            os._exit(0)
        os.waitpid(child, 0)
        from multiprocessing import resource_tracker
        resource_tracker.ensure_running()  # of multiprocessing, not of the program
        """
    )
    assert "opstrobe: 3 child processes ran and were not recorded" in opstrobe("run", "-o", "t.json", name).stderr
    assert "child process" not in opstrobe("run", "-o", "u.json", program(WORK)).stderr


# --- advice -------------------------------------------------------------------------------------------------------------

READS = """
import gc
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    loss = model(torch.ones(256, 64)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()
print("the end")
"""


def test_advise_records_what_rules_use_and_prints_findings(tmp_path, program, opstrobe):
    process = opstrobe("run", "--advise", "-o", "trace.json", program(READS))
    assert process.returncode == 0, process.stderr
    printed = opstrobe("advise", "trace.json")
    assert printed.returncode == 0 and "rules applied" in printed.stdout
    assert "[gc-pauses]" in process.stderr and "program.py:12" in process.stderr
    # Nothing that the program can record is missing, but perhaps the roof, which these tests do not measure.
    assert "opstrobe run --advise" not in printed.stdout
    assert "first finding" not in process.stderr
    trace = json.loads((tmp_path / "trace.json").read_text())
    for option in ("record_shapes", "profile_memory", "with_stack", "with_modules"):
        assert option in trace["recording"]["options"]
    assert any(row["name"].startswith("nn.Module: ") for row in trace["traceEvents"])


def test_advice_names_the_option_that_more_rules_need(tmp_path, program, opstrobe):
    name = program(READS)
    applied = []
    for path, options in (("less.json", []), ("more.json", ["--advise"])):
        assert opstrobe("run", *options, "-o", path, name).returncode == 0
        applied.append(len(json.loads(opstrobe("advise", "--format", "json", path).stdout)["checked"]))
    # The roof is not measured on a busy machine.
    rules = opstrobe("advise", "--list-rules", "--format", "markdown").stdout.splitlines()
    roofless = 0
    if "roof" not in json.loads((tmp_path / "more.json").read_text()):
        roofless = sum("the roof of the machine" in line for line in rules if line.startswith("| ["))
    hint = " ".join(opstrobe("advise", "less.json").stdout.partition("To apply")[2].split())
    assert hint.startswith(f"{applied[1] - applied[0] + roofless} more rules, record with `opstrobe run --advise`"), (
        hint
    )


def test_a_recording_for_advice_ends_when_it_is_long_enough(tmp_path, program, environment):
    name = program(READS)
    code = (
        "import sys; from opstrobe import run; from opstrobe.launcher import recorder; "
        "recorder._ADVISE_STEPS, recorder._ADVISE_S = 3, 0; "
        f"sys.argv[1:] = ['--advise', '-o', 'trace.json', {name!r}]; run.main()"
    )
    done = subprocess.run(
        [PYTHON, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "the end\n"), done.stderr
    assert done.stderr.count("rules applied") == 1
    steps = [row for row in events(tmp_path / "trace.json") if row["name"].startswith("ProfilerStep")]
    assert len(steps) == 3


# --- as a module of Python --------------------------------------------------------------------------------------------------


def test_module_is_the_command(environment, tmp_path, program):
    """`python -m opstrobe` runs any command, with that Python, without the directory of commands in the PATH."""
    program(WORK)
    bare = {**environment, "PATH": "/usr/bin:/bin", "OPSTROBE_PYTHON": "/no/such/python"}

    def call(*words):
        return subprocess.run(
            [PYTHON, "-m", "opstrobe", *words], cwd=tmp_path, env=bare, capture_output=True, text=True
        )

    ran = call("run", "-o", "out.pt.trace.json", "program.py")
    assert ran.returncode == 0, ran.stderr
    assert "aten::ones" in names(tmp_path / "out.pt.trace.json")
    shown = call("info", "out.pt.trace.json")
    assert shown.returncode == 0 and "program.py" in shown.stdout
    assert call("no-such-command").returncode == 2

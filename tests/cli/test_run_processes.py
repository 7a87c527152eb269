# SPDX-License-Identifier: Apache-2.0
"""`opstrobe run` also records the processes that the program starts: workers of a data loader become part of its trace, ranks of a
job have their own."""

import gzip
import json
import os
import re
import signal
import subprocess
import textwrap
import time

import pytest
from installed import OPSTROBE

DATA = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        x = torch.full((64, 64), float(i))
        for row in range(64):
            x[row] = x[row].sin()  # the loader's work
        return x.flatten(), i % 3

def train(loader, epochs=2):
    model = nn.Linear(64 * 64, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
"""
WORK_LINE = next(i for i, line in enumerate(DATA.splitlines(), 1) if "the loader's work" in line)


@pytest.fixture
def program(tmp_path):
    def write(text):
        (tmp_path / "program.py").write_text(DATA + textwrap.dedent(text))
        return "program.py"

    return write


def read(path):
    with gzip.open(path, "rt") as file:
        return json.load(file)


def process_names(trace):
    return {row["pid"]: row["args"]["name"] for row in trace["traceEvents"] if row.get("name") == "process_name"}


def operators(trace, pid):
    return [row["name"] for row in trace["traceEvents"] if row.get("cat") == "cpu_op" and row["pid"] == pid]


def assert_nothing_left(environment):
    directory = f"/dev/shm/opstrobe-{os.getuid()}"
    left = [name for name in os.listdir(directory) if name.startswith("processes.")] if os.path.isdir(directory) else []
    assert [name for name in left if not os.path.exists(f"/proc/{name.partition('.')[2]}")] == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_loader_are_part_of_the_trace(tmp_path, program, opstrobe, environment, method):
    name = program(f"""
    if __name__ == "__main__":
        train(DataLoader(Rows(), 8, num_workers=2, multiprocessing_context="{method}"), epochs=1)
    """)
    process = opstrobe("run", "--with-stack", "--record-shapes", "--memory", name)
    assert process.returncode == 0 and " none lost" in process.stderr and "not recorded" not in process.stderr
    trace = read(tmp_path / "program.pt.trace.json.gz")
    workers = {name: pid for pid, name in process_names(trace).items() if name.startswith("loader worker")}
    assert set(workers) == {"loader worker 0", "loader worker 1"}
    for pid in workers.values():
        assert operators(trace, pid).count("aten::sin") == 32 * 64
        assert any(
            "__getitem__" in row["name"] for row in trace["traceEvents"] if row["pid"] == pid and row.get("ph") == "X"
        )
        assert not [row for row in trace["traceEvents"] if row["pid"] == pid and row["name"] == "[memory]"]
    own = (set(process_names(trace)) - set(workers.values())).pop()
    assert "aten::sin" not in operators(trace, own) and operators(trace, own).count("aten::addmm") == 8
    assert (
        len([row for row in trace["traceEvents"] if row["name"].startswith("ProfilerStep#") and row["pid"] == own]) == 8
    )
    assert_nothing_left(environment)


def test_advice_names_the_line_in_the_worker_that_the_loader_waits_for(tmp_path, program, opstrobe):
    name = program("""
    torch.set_num_threads(1)
    train(DataLoader(Rows(), 8, num_workers=1))
    """)
    for _ in range(8):  # on a busy machine, waits for a processor may explain the wait for a batch or the worker's time
        assert opstrobe("run", "--advise", "--force", "-o", "trace.json.gz", name).returncode == 0
        advice = json.loads(opstrobe("advise", "--format", "json", "trace.json.gz").stdout)
        finding = next((finding for finding in advice["findings"] if finding["id"] == "loader-bound"), None)
        if (finding and finding["where"][0]["line"] == WORK_LINE) or not advice["base"]["waited_for_cpu_ratio"]:
            break
    assert finding is not None
    assert finding["where"][0]["line"] == WORK_LINE
    assert finding["advice"].startswith("A Python loop iterates over the rows of a tensor: that takes ")
    assert all(
        other["where"][0]["line"] != WORK_LINE
        for other in advice["findings"]
        if other is not finding and other["where"]
    )
    assert sum(finding["predicted_gain_percent"] or 0 for finding in advice["findings"]) <= 100


def test_default_recordings_name_the_line_in_the_worker(tmp_path, program, opstrobe):
    """Without recorded calls, by sampled stacks of the worker."""
    name = program("""
    torch.set_num_threads(1)
    train(DataLoader(Rows(), 8, num_workers=1), epochs=6)
    """)
    for _ in range(8):  # as above
        assert opstrobe("run", "--force", "-o", "trace.json.gz", name).returncode == 0
        advice = json.loads(opstrobe("advise", "--format", "json", "trace.json.gz").stdout)
        finding = next((finding for finding in advice["findings"] if finding["id"] == "loader-bound"), None)
        if finding and finding["where"][0]["line"] == WORK_LINE:
            break
    assert finding is not None
    assert finding["where"][0]["line"] == WORK_LINE
    assert re.match(r"Workers spend [\d.]+ % of their time in the line named first\. ", finding["advice"])
    tracks = opstrobe("convert", "--metric", "sampled", "trace.json.gz", "stacks.folded")
    assert tracks.returncode == 0
    folded = (tmp_path / "stacks.folded").read_text()
    assert "Rows.__getitem__" in folded
    working = [line for line in folded.splitlines() if "_worker_loop" in line]
    assert any(line.startswith("loader_worker_0,_MainThread;") for line in working)  # other than that of the program
    assert "Queue.get" not in "".join(working)


def test_steps_are_of_the_program_alone(tmp_path, program, opstrobe):
    name = program("""
    train(DataLoader(Rows(), 8, num_workers=2))
    """)
    assert opstrobe("run", "--advise", name).returncode == 0
    advice = json.loads(opstrobe("advise", "--format", "json", "program.pt.trace.json.gz").stdout)
    rest = advice["not_explained"]
    assert rest is None or WORK_LINE not in [line["line"] for line in rest["lines"]]
    phases = opstrobe("program.pt.trace.json.gz").stdout
    assert "16 steps" in phases


def test_each_rank_has_a_trace_with_its_workers(tmp_path, program, opstrobe, environment):
    name = program("""
    import os
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def rank_main(rank, port):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("gloo", rank=rank, world_size=2)
        train(DataLoader(Rows(), 8, num_workers=1))
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()

    if __name__ == "__main__":
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        torch.ones(8).sum()
        mp.spawn(rank_main, (port,), 2)
    """)
    process = opstrobe("run", "--with-stack", "-o", "out/", name)
    assert process.returncode == 0, process.stderr
    for rank in (0, 1):
        trace = read(tmp_path / f"out/program.rank{rank}.pt.trace.json.gz")
        assert trace["distributedInfo"]["rank"] == rank and trace["distributedInfo"]["world_size"] == 2
        named = process_names(trace)
        assert "loader worker 0" in named.values()
        assert len([row for row in trace["traceEvents"] if row["name"].startswith("ProfilerStep#")]) == 16
    assert "opstrobe serve --open out/" in process.stderr
    assert len(list((tmp_path / "out").iterdir())) == 3
    parent = json.loads(opstrobe("advise", "--format", "json", "out/program.pt.trace.json.gz").stdout)
    assert "work-in-children" not in [finding["id"] for finding in parent["findings"]]
    assert len({read(path)["job"] for path in (tmp_path / "out").glob("*rank*")}) == 1
    assert_nothing_left(environment)


@pytest.mark.parametrize(
    ("options", "launcher"),
    [((), ("torchrun",)), (("--advise",), ("-m", "torch.distributed.run"))],
    ids=["default", "advise"],
)
def test_a_launcher_that_runs_no_operators_has_no_trace(tmp_path, program, opstrobe, options, launcher):
    """The traces of a job are those of its ranks, named after the program that the launcher runs."""
    program("""
    import torch.distributed as dist
    dist.init_process_group("gloo")
    train(DataLoader(Rows(), 8))
    dist.destroy_process_group()
    """)
    words = (*launcher, "--nproc-per-node", "2", "program.py")
    process = opstrobe("run", *options, "-o", "out/", *words)
    assert process.returncode == 0, process.stderr
    expected = [f"program.rank{rank}.pt.trace.json.gz" for rank in (0, 1)]
    assert sorted(os.listdir(tmp_path / "out")) == expected
    assert all(f"wrote out/{name}: " in process.stderr for name in expected)
    assert "Traceback" not in process.stderr and "opstrobe serve --open out/" in process.stderr
    process = opstrobe("run", *options, "-o", "job.json", *words)
    assert process.returncode == 0, process.stderr
    assert sorted(path.name for path in tmp_path.glob("job*")) == ["job.rank0.json", "job.rank1.json"]


def test_the_late_rank_is_found_at_its_line_without_options(tmp_path, program, opstrobe):
    """Samples of the stacks have the time that it sleeps, in which no operator runs."""
    program("""
    import time
    import torch.distributed as dist
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(8):
        if dist.get_rank() == 1:
            time.sleep(0.2)  # late
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()
    """)
    process = opstrobe("run", "-o", "out/", "torchrun", "--nproc-per-node", "2", "program.py")
    assert process.returncode == 0, process.stderr
    findings = json.loads(opstrobe("advise", "--format", "json", "out").stdout)["findings"]
    (late,) = [finding for finding in findings if finding["id"] == "uneven-ranks"]
    (line,) = [i for i, text in enumerate((tmp_path / "program.py").read_text().splitlines(), 1) if "# late" in text]
    assert "Rank 1 is the last of 2" in late["evidence"]
    assert (late["where"][0]["file"], late["where"][0]["line"]) == ("program.py", line)
    assert late["predicted_gain_percent"] > 50
    assert f"opstrobe: first finding: {findings[0]['title']}, program.py:" in process.stderr  # of all ranks


def test_a_program_that_is_started_and_has_steps_has_a_trace(tmp_path, program, opstrobe):
    name = program("""
    import subprocess, sys
    if sys.argv[1:]:
        train(DataLoader(Rows(), 8))
    else:
        subprocess.run([sys.executable, __file__, "child"], check=True)
        torch.ones(3).sum()
    """)
    process = opstrobe("run", name)
    assert process.returncode == 0
    assert "not recorded" not in process.stderr
    child = read(tmp_path / "program.program.py.pt.trace.json.gz")
    assert len([row for row in child["traceEvents"] if row["name"].startswith("ProfilerStep#")]) == 16
    assert not [
        row for row in read(tmp_path / "program.pt.trace.json.gz")["traceEvents"] if row["name"] == "aten::addmm"
    ]


def test_a_profile_of_the_program_has_precedence_in_a_process(program, opstrobe):
    name = program("""
    import multiprocessing, opstrobe
    def child():
        with opstrobe.profile() as profile:
            torch.ones(3).sin()
        print([event.name for event in profile.events()].count("aten::sin"))
    torch.ones(3)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    print(process.exitcode)
    """)
    assert opstrobe("run", name).stdout == "1\n0\n"


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(5)", "sys.exit(6)", "raise ValueError"]
)
def test_what_a_process_recorded_before_its_end_is_kept(tmp_path, program, opstrobe, environment, end):
    name = program(f"""
    import multiprocessing, os, signal, sys
    def child():
        for _ in range(10):
            torch.ones(3).sin()
        {end}
    torch.ones(3)
    process = multiprocessing.get_context("fork").Process(target=child, name="some child")
    process.start()
    process.join()
    print(process.exitcode)
    """)
    process = opstrobe("run", name)
    assert process.stdout == {"os.k": "-9\n", "os._": "5\n", "sys.": "6\n", "rais": "1\n"}[end[:4]]
    trace = read(tmp_path / "program.pt.trace.json.gz")
    (pid,) = [pid for pid, name in process_names(trace).items() if name == "some child"]
    assert operators(trace, pid).count("aten::sin") == 10
    assert_nothing_left(environment)


def test_one_process_records_only_the_program(tmp_path, program, opstrobe):
    name = program("""
    train(DataLoader(Rows(), 8, num_workers=1), epochs=1)
    """)
    process = opstrobe("run", "--one-process", name)
    assert "opstrobe: 1 child process ran and was not recorded" in process.stderr
    assert "aten::sin" not in {row["name"] for row in read(tmp_path / "program.pt.trace.json.gz")["traceEvents"]}


def test_workers_stop_recording_with_the_program(tmp_path, program, opstrobe, environment):
    name = program("""
    import os
    class Asked(Rows):
        def __getitem__(self, i):
            item = super().__getitem__(i)
            from opstrobe.recording.window import is_recording
            return item[0], int(is_recording())
    if __name__ == "__main__":
        loader = DataLoader(Asked(), 8, num_workers=1, persistent_workers=True)
        train(loader, epochs=1)
        import time
        time.sleep(1)
        print(sorted({y for _, labels in loader for y in labels.tolist()}))
    """)
    process = opstrobe("run", "--steps", "1:3", "--with-stack", name)
    assert process.stdout == "[0]\n", process.stderr
    trace = read(tmp_path / "program.pt.trace.json.gz")
    (pid,) = [pid for pid, name in process_names(trace).items() if name == "loader worker 0"]
    assert "aten::sin" in operators(trace, pid)
    assert_nothing_left(environment)


def test_files_of_a_killed_program_are_removed_by_the_next_one(tmp_path, program, opstrobe, environment):
    name = program("""
    import multiprocessing, os, signal, sys, time
    def child():
        torch.ones(3).sin()
        print("started", flush=True)
        time.sleep(60)
    if sys.argv[1:]:
        process = multiprocessing.get_context("fork").Process(target=child, daemon=True)
        process.start()
        time.sleep(60)
    """)
    environment["OPSTROBE_BLACK_BOX_DIR"] = str(tmp_path / "box")
    running = subprocess.Popen(
        [OPSTROBE, "run", name, "child"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout.readline() == "started\n"
    assert len(list((tmp_path / "box").glob("processes.*/*.oprec"))) == 1
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{running.pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert opstrobe("run", name).returncode == 0
    assert list((tmp_path / "box").iterdir()) == []

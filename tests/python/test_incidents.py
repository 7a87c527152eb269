# SPDX-License-Identifier: Apache-2.0
"""Incidents: real processes in which something goes wrong, and their reports.

INCIDENT_ROUNDS=11 python -m pytest tests/python/test_incidents.py     # each kind so often, as `make soak` does
"""

from __future__ import annotations

import contextlib
import ctypes.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

PLANTED = Path(__file__).parent.parent / "incidents" / "planted.py"
COMMAND = os.path.join(sysconfig.get_path("scripts"), "opstrobe")
ROUNDS = int(os.environ.get("INCIDENT_ROUNDS", "1"))
repeated = pytest.mark.parametrize("round_number", range(ROUNDS))

# How each kind ends (None: it hangs, and is killed), its trigger, and causes that are right.
KINDS: dict[str, tuple[int | None, str, set[str]]] = {
    "sleep": (0, "slow_step", {"sleep"}),
    "gc": (0, "slow_step", {"garbage_collection", "waited_for_cpu"}),
    "lock": (0, "slow_step", {"lock"}),
    # other processes may have the processors while it computes, or would read
    "compute": (0, "slow_step", {"computing", "waited_for_cpu"}),
    "page_cache": (0, "slow_step", {"page_faults", "disk", "waited_for_cpu"}),
    "loader": (0, "slow_step", {"data_loading"}),
    "exception": (1, "exception", {"exception"}),
    "memory": (1, "oom", {"out_of_memory"}),
    "tensors": (1, "oom", {"out_of_memory"}),
    "control_group": (-signal.SIGKILL, "killed", {"oom_kill"}),
    "segv": (-signal.SIGSEGV, "signal", {"signal"}),
    "abort": (-signal.SIGABRT, "signal", {"signal"}),
    "terminate": (-signal.SIGTERM, "signal", {"signal"}),
    "exit": (3, "exit", {"exit"}),
    "kill": (-signal.SIGKILL, "killed", {"killed"}),
    "gil": (None, "hang", {"gil"}),
    "spin": (None, "hang", {"gil", "computing"}),
    "deadlock": (None, "hang", {"lock"}),
}


def line_of(kind: str) -> int:
    (line,) = (i for i, text in enumerate(PLANTED.read_text().splitlines(), 1) if text.endswith(f"# plant: {kind}"))
    return line


def incidents(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    places = ["--box", str(tmp_path / "box"), "--directory", str(tmp_path / "incidents")]
    return subprocess.run([COMMAND, "incidents", *places, *words], capture_output=True, text=True)


def reports(tmp_path: Path) -> list[dict]:
    """Of all incidents, newest first."""
    listed = json.loads(incidents(tmp_path, "--format", "json").stdout)["table"]
    at = listed["columns"].index("id")
    return [json.loads(incidents(tmp_path, "show", "--json", row[at]).stdout) for row in listed["rows"]]


def wait_for_report(tmp_path: Path, trigger: str) -> None:
    while not any(report["trigger"] == trigger for report in reports(tmp_path)):
        time.sleep(0.2)


@contextlib.contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """A control group with a limit of memory."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = {controllers: path.lstrip("/") for _, controllers, path in lines}
    file = "memory.limit_in_bytes" if "memory" in own else "memory.max"
    root = Path("/sys/fs/cgroup/memory", own["memory"]) if "memory" in own else Path("/sys/fs/cgroup", own.get("", ""))
    group = root / f"opstrobe-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if not (group / file).exists():
            pytest.skip("new control groups have no memory controller here")
        (group / file).write_text(str(limit))
        yield group
    finally:
        group.rmdir()


def run_planted(tmp_path: Path, kind: str, in_group: Path | None = None) -> int | None:
    (tmp_path / "box").mkdir(exist_ok=True)
    (tmp_path / "incidents").mkdir()
    arguments = [sys.executable, str(PLANTED), kind, str(tmp_path / "box"), str(tmp_path / "incidents")]
    if in_group is not None:
        enter = f"echo $$ > '{in_group}/cgroup.procs' && exec \"$@\""
        arguments = ["sh", "-c", enter, "sh", *arguments]
    status, trigger, _ = KINDS[kind]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            if status is None:
                wait_for_report(tmp_path, trigger)
            else:
                process.wait()
        finally:
            process.kill()
        assert process.stderr is not None
        (tmp_path / "stderr").write_text(process.stderr.read())
    return process.returncode if status is not None else None


@repeated
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("control_group", "spin")])
def test_planted(kind: str, round_number: int, tmp_path: Path) -> None:
    status, trigger, causes = KINDS[kind]
    assert run_planted(tmp_path, kind) == status, (tmp_path / "stderr").read_text()
    report = next(report for report in reports(tmp_path) if report["trigger"] == trigger)
    assert report["cause_kind"] in causes, report["cause"]
    assert Path(report["where"]["file"]).name == PLANTED.name
    assert report["where"]["line"] == line_of(kind)
    assert f"{PLANTED.name}:{line_of(kind)}" in report["cause"]
    assert report["step"]["number"] == 50
    assert report["has_trace"]
    directory = next((tmp_path / "incidents").iterdir())
    assert (directory.stat().st_mode & 0o777) == 0o700
    shown = subprocess.run([COMMAND, "info", str(directory / "trace.json.gz")], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr


def test_healthy_steps_in_noise(tmp_path: Path) -> None:
    """Steps that other processes disturb cause no incident, whether they are marked one by one or in groups."""
    for budget in ("0", "1%"):
        box, kept = tmp_path / f"box{budget}", tmp_path / "incidents"
        steps = os.environ.get("HEALTHY_STEPS", "3000")
        subprocess.run([sys.executable, str(PLANTED.with_name("healthy.py")), steps, box, kept, budget], check=True)
        assert "no incidents in" in incidents(tmp_path).stdout


def test_healthy(tmp_path: Path) -> None:
    """A program that ends well leaves nothing behind."""
    (tmp_path / "box").mkdir()
    arguments = [sys.executable, str(PLANTED), "none", str(tmp_path / "box"), str(tmp_path / "incidents")]
    assert subprocess.run(arguments).returncode == 0
    assert "no incidents in" in incidents(tmp_path).stdout
    assert [path.name for path in (tmp_path / "box").iterdir() if path.suffix == ".opwatch"] == []


def test_out_of_memory_note(tmp_path: Path) -> None:
    """The error that nobody handles says what holds memory."""
    run_planted(tmp_path, "tensors")
    text = (tmp_path / "stderr").read_text()
    assert "DefaultCPUAllocator" in text
    assert "Peak memory of CPU" in text
    assert "aten::empty" in text
    name = re.search(r"opstrobe incidents show (\S+)", text)
    assert name is not None
    page = incidents(tmp_path, "show", name[1]).stdout
    assert "aten::empty" in page


@repeated
def test_planted_control_group(round_number: int, tmp_path: Path) -> None:
    """The kernel kills a process at the limit of its control group, and the report knows that."""
    with memory_group(limit=700 << 20) as group:
        assert run_planted(tmp_path, "control_group", group) == -signal.SIGKILL, (tmp_path / "stderr").read_text()
        (report,) = [report for report in reports(tmp_path) if report["trigger"] == "killed"]
    assert report["cause_kind"] == "oom_kill"
    assert "Out of memory: killed by the kernel" in report["cause"]
    assert f"{PLANTED.name}:{line_of('control_group')}" in report["cause"]
    assert report["step"]["number"] == 50
    assert report["has_trace"]


@repeated
def test_planted_collective(round_number: int, tmp_path: Path) -> None:
    """A rank that waits for another one says so, and the other one is found at its line."""
    (tmp_path / "box").mkdir()
    (tmp_path / "incidents").mkdir()
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), "WORLD_SIZE": "2"}
    arguments = [sys.executable, str(PLANTED), "collective", str(tmp_path / "box"), str(tmp_path / "incidents")]
    ranks = [subprocess.Popen(arguments, env=environment | {"RANK": str(rank)}) for rank in range(2)]
    try:
        while len({report["rank"] for report in reports(tmp_path)}) < 2:
            assert all(rank.poll() is None for rank in ranks)
            time.sleep(0.2)
        by_rank = {report["rank"]: report for report in reports(tmp_path)}
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert by_rank[0]["cause_kind"] == "collective"
    assert by_rank[0]["where"]["line"] == line_of("collective")
    assert "all_reduce on rank 0 of 2" in by_rank[0]["cause"]
    assert by_rank[1]["cause_kind"] == "sleep"


def _free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_gil_held_elsewhere(tmp_path: Path) -> None:
    """All threads are listed, also while C code holds the GIL."""
    run_planted(tmp_path, "gil")
    report = reports(tmp_path)[-1]
    main = next(thread for thread in report["threads"] if thread["is_main"])
    assert main["python"][0]["function"] == "hold_gil"
    page = incidents(tmp_path, "show", "latest").stdout
    assert f"planted.py:{line_of('gil')}" in page


@repeated
def test_planted_native_stacks(round_number: int, tmp_path: Path) -> None:
    """The report names the C function and line at which an extension hangs with the GIL."""
    if ctypes.util.find_library("dw") is None or shutil.which("cc") is None:
        pytest.skip("needs libdw and a compiler")
    source = PLANTED.with_name("spin.c")
    (tmp_path / "box").mkdir()
    library = tmp_path / "box" / "libspin.so"
    subprocess.run(["cc", "-g", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    run_planted(tmp_path, "spin")
    report = reports(tmp_path)[-1]
    lines = [i for i, text in enumerate(source.read_text().splitlines(), 1) if "plant: native" in text]
    main = next(thread["tid"] for thread in report["threads"] if thread["is_main"])
    stacks = {thread["tid"]: thread["frames"] for thread in report["native"]}
    inner, outer = stacks[main][:2]
    assert (inner["function"], outer["function"]) == ("spin_inner", "spin_forever")
    assert Path(inner["file"]).name == "spin.c"
    assert inner["line"] in (lines[0] - 1, lines[0])
    assert inner["library"] == "libspin.so"
    assert len(stacks) >= len(report["threads"])
    assert re.search(r"C function spin_inner of .*spin\.c:\d+", report["cause"])
    listed = json.loads(incidents(tmp_path, "--format", "json").stdout)["table"]
    page = incidents(tmp_path, "show", listed["rows"][-1][listed["columns"].index("id")]).stdout
    assert re.search(r"C: .*spin\.c:\d+ in spin_inner\n *C: .* in spin_forever\n", page)
    assert f"planted.py:{line_of('spin')}" in page
    assert "_PyEval_EvalFrameDefault" not in page


def test_request(tmp_path: Path) -> None:
    """SIGUSR2 keeps what there is; a bucket of three bounds it, and the rest is counted."""
    code = (
        "import os, signal, sys, time\n"
        "from opstrobe.blackbox import triggers\n"
        "triggers.start(sys.argv[1])\n"
        "kept = 0\n"
        "while kept < 3:\n"
        "    os.kill(os.getpid(), signal.SIGUSR2)\n"
        "    while len([name for name in os.listdir(sys.argv[1]) if name[0] != '.']) == kept: time.sleep(0.01)\n"
        "    kept += 1\n"
        "for _ in range(2): assert triggers._core.watch_trigger('exception') is None\n"
        "triggers.stop()\n"
    )
    (tmp_path / "incidents").mkdir()
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "incidents")], check=True)
    found = reports(tmp_path)
    assert [report["trigger"] for report in found] == ["request"] * 3


def test_commands(tmp_path: Path) -> None:
    """The list and the page in their formats, and errors."""
    run_planted(tmp_path, "exception")
    (name,) = os.listdir(tmp_path / "incidents")
    listed = incidents(tmp_path).stdout
    assert name in listed
    assert "ValueError in step 50" in listed
    assert f"planted.py:{line_of('exception')}" in listed
    assert incidents(tmp_path, "--format", "csv").stdout.startswith(
        "id,when,process,pid,what,cause,where,overhead,has_trace\n"
    )
    assert incidents(tmp_path, "show", name[:15]).stdout == incidents(tmp_path, "show", "latest").stdout
    markdown = incidents(tmp_path, "show", "--format", "markdown", name).stdout
    assert incidents(tmp_path, "show", "--markdown", name).stdout == markdown  # a former name
    assert json.loads(incidents(tmp_path, "show", "--format", "json", name).stdout)["title"] == "ValueError in step 50"
    no_table = incidents(tmp_path, "show", "--format", "csv", name)
    assert no_table.returncode == 2 and "a report has no format 'csv'" in no_table.stderr
    assert markdown.startswith("## ValueError in step 50\n")
    assert "**Cause:**" in markdown
    missing = incidents(tmp_path, "show", "1999")
    assert missing.returncode == 1
    assert "no incident '1999'" in missing.stderr
    wrong = incidents(tmp_path, "list")
    assert wrong.returncode == 2
    assert "expected 'show ID'" in wrong.stderr


def test_previous_hooks(tmp_path: Path) -> None:
    """Hooks and handlers that were there before still run."""
    code = (
        "import signal, sys, threading\n"
        "sys.excepthook = lambda *given: print('hook', given[0].__name__)\n"
        "threading.excepthook = lambda given: print('thread hook', given.exc_type.__name__)\n"
        "signal.signal(signal.SIGUSR2, lambda *given: print('handler'))\n"
        "from opstrobe.blackbox import triggers\n"
        "triggers.start(sys.argv[1], per_hour=10)\n"
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()\n"
        "signal.raise_signal(signal.SIGUSR2)\n"
        "raise KeyError('x')\n"
    )
    (tmp_path / "incidents").mkdir()
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "incidents")], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["thread hook ZeroDivisionError", "handler", "hook KeyError"]
    kinds = [report["exception"]["type"] for report in reports(tmp_path) if report["trigger"] == "exception"]
    assert sorted(kinds) == ["KeyError", "ZeroDivisionError"]
    files = [
        frame["file"] for report in reports(tmp_path) for thread in report["threads"] for frame in thread["python"]
    ]
    assert not any("/opstrobe/" in file for file in files), files  # only the program's frames


def test_a_hook_of_the_program_that_runs_meanwhile(tmp_path: Path) -> None:
    """Opstrobe's hook called it: its frames are left out between those of the program, too."""
    code = (
        "import sys, threading\n"
        "runs, ends = threading.Event(), threading.Event()\n"
        "threading.excepthook = lambda given: (runs.set(), ends.wait())\n"
        "from opstrobe.blackbox import triggers\n"
        "triggers.start(sys.argv[1], per_hour=10)\n"
        "threading.Thread(target=lambda: 1 / 0, daemon=True).start()\n"
        "runs.wait()\n"
        "raise KeyError('x')\n"
    )
    (tmp_path / "incidents").mkdir()
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "incidents")], capture_output=True, text=True)
    (report,) = (each for each in reports(tmp_path) if each["exception"]["type"] == "KeyError")
    stacks = [[frame["file"] for frame in thread["python"]] for thread in report["threads"]]
    assert any("<string>" in files and any(file.endswith("threading.py") for file in files) for files in stacks), stacks
    assert not any("/opstrobe/" in file for files in stacks for file in files), stacks


BLACK_BOX = """
import os, signal, sys, time
import torch, opstrobe

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps):
    for _ in range(steps):
        model(torch.ones(8)).sum().backward()
        optimizer.step()
        time.sleep(0.02)

def fail():
    raise ValueError("no")

how = sys.argv[1]
if how == "with":
    try:
        with opstrobe.black_box(seconds=20):
            train(3)
            fail()
    except ValueError:
        pass
elif how == "slow":
    for _ in range(2):  # another step may be slow by chance, and then the next ones are not
        train(30)
        time.sleep(1 + 1.5 * min(20, opstrobe._core.watch_limit()))  # slow
    train(2)
else:
    train(3)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("how", "what", "where"), [("with", "ValueError", 15), ("slow", "took", 28), ("kill", "killed", None)]
)
def test_black_box(how: str, what: str, where: int | None, tmp_path: Path) -> None:
    """The public ways to watch a program, which knows nothing of it."""
    (tmp_path / "program.py").write_text(BLACK_BOX)
    environment = os.environ | {
        "OPSTROBE_BLACK_BOX_DIR": str(tmp_path / "box"),
        "OPSTROBE_INCIDENTS": str(tmp_path / "incidents"),
    }
    words = [sys.executable] if how == "with" else [COMMAND, "run", "--black-box"]
    subprocess.run([*words, str(tmp_path / "program.py"), how], env=environment)
    found = [report for report in reports(tmp_path) if what in report["title"]]
    assert found
    assert all(report["has_trace"] for report in found)
    if where is not None:
        assert where in [report["where"] and report["where"]["line"] for report in found]
    assert [path.name for path in (tmp_path / "box").iterdir() if path.suffix == ".opwatch"] == []


def test_unknown_trigger(tmp_path: Path) -> None:
    from opstrobe.blackbox import triggers

    with pytest.raises(ValueError, match="unknown trigger 'slow' .choose from slow_step, hang"):
        triggers.start(str(tmp_path), on=("slow",))


def test_damaged_watch_files(tmp_path: Path) -> None:
    """Other files stay; a watch file that was written over becomes an incident or stays, and removes no file elsewhere."""
    (tmp_path / "box").mkdir()
    kept = tmp_path / "kept.oprec"
    kept.write_text("mine")
    code = (
        "import os, shutil, sys\n"
        "from opstrobe.blackbox import triggers\n"
        "triggers.start(sys.argv[1], page=sys.argv[2], recording=sys.argv[3])\n"
        "shutil.copy(sys.argv[2], sys.argv[2] + '.copy')\n"
        "triggers.stop()\n"
    )
    page = tmp_path / "page"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "incidents"), str(page), str(kept)], check=True)
    whole = Path(f"{page}.copy").read_bytes()
    assert not page.exists()
    (tmp_path / "box" / "short.opwatch").write_bytes(whole[:1000])
    (tmp_path / "box" / "other.opwatch").write_bytes(b"x" * len(whole))
    (tmp_path / "box" / "whole.opwatch").write_bytes(whole)
    (tmp_path / "box" / "over.opwatch").write_bytes(whole[:3600] + b"\xff" * (len(whole) - 3600))
    assert len(reports(tmp_path)) == 2
    assert kept.read_text() == "mine"
    assert {path.name for path in (tmp_path / "box").iterdir()} == {"short.opwatch", "other.opwatch"}


def test_full_directory(tmp_path: Path) -> None:
    """The oldest incidents make room for new ones; the newest always stays."""
    code = (
        "import sys\n"
        "from opstrobe.blackbox import triggers\n"
        "triggers.start(sys.argv[1], per_hour=10, max_bytes=1)\n"
        "for _ in range(3): print(triggers._core.watch_trigger('exception'))\n"
        "triggers.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "incidents")], capture_output=True, text=True, check=True
    )
    names = [Path(line).name for line in done.stdout.splitlines()]
    assert len(names) == 3
    assert [path.name for path in (tmp_path / "incidents").iterdir()] == names[-1:]

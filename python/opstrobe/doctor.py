# SPDX-License-Identifier: Apache-2.0
"""`opstrobe doctor`: checks whether recording works on this machine, and suggests what to do if it does not."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from typing import Any

import opstrobe
from opstrobe import _core
from opstrobe._command_parser import command_parser
from opstrobe.recording import bridge

# Works; worth knowing; prevents recording until it is fixed.
OK, NOTE, PROBLEM = "ok", "note", "problem"

# Runs in a separate process, so that a crash is a finding too. The last line of output is the result.
_TRIAL = """
import json, warnings
warnings.simplefilter("ignore")
try:
    import torch, opstrobe
    with opstrobe.profile(record_shapes=True, profile_memory=True) as prof:
        torch.ones(2) + torch.ones(2)
    count = sum(event.name == "aten::add" for event in prof.events())
    gpu = [*opstrobe._core.cuda(), opstrobe._core.cupti()]
    result = {"recorded": count, "bridge": opstrobe._core.bridge_info(), "gpu": gpu}
except Exception as error:
    result = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(result))
"""


@dataclasses.dataclass(frozen=True)
class Finding:
    subject: str
    status: str
    text: str
    advice: str = ""


def _examine() -> list[Finding]:
    trial = _trial()
    return [
        Finding("opstrobe", OK, f"{opstrobe.__version__} in {os.path.dirname(opstrobe.__file__)}"),
        Finding("python", OK, f"{platform.python_version()}, {sys.executable}"),
        *_torch_and_recording(trial),
        _compiler(),
        _cache(),
        _clock(),
        _gpu(*(trial.get("gpu") or (*_core.cuda(), _core.cupti()))),
        _perf_events(),
    ]


def _torch_and_recording(trial: dict[str, Any]) -> list[Finding]:
    if importlib.util.find_spec("torch") is None:
        return [Finding("torch", PROBLEM, "not installed for this Python", "pip install torch")]
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "of unknown version"
    return [Finding("torch", OK, version), *_recording(trial)]


def _trial() -> dict[str, Any]:
    """Returns the contents of a trial recording by a process with torch, which has its own libcupti; or how it
    failed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    process = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, text=True, cwd="/")
    if process.returncode != 0:
        end = f"was killed by signal {-process.returncode}" if process.returncode < 0 else process.stderr.strip()
        return {"end": end}
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def _recording(trial: dict[str, Any]) -> list[Finding]:
    if "end" in trial:
        advice = f"remove {bridge.cache_directory()} and try again; report it if that does not help"
        return [Finding("recording", PROBLEM, f"a trial recording {trial['end']}", advice)]
    if "error" in trial:
        return [Finding("recording", PROBLEM, f"a trial recording failed: {trial['error']}")]
    loaded = trial["bridge"]
    found = [Finding("bridge", OK, f"for torch {loaded['torch_version']}: {loaded['path']}")]
    if trial["recorded"] == 1:
        return [*found, Finding("recording", OK, "a trial recording has every operator in it")]
    text = f"a trial recording has {trial['recorded']} operators of 1"
    return [*found, Finding("recording", PROBLEM, text, "please report it, with the output of this command")]


def _compiler() -> Finding:
    try:
        command = bridge._compiler()
    except bridge.BridgeError as error:
        return Finding("compiler", NOTE, str(error))
    version = subprocess.run([*command, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]
    return Finding("compiler", OK, f"{shutil.which(command[0])}: {version}")


def _cache() -> Finding:
    directory = bridge.cache_directory()
    problem = bridge.cache_problem()
    if problem is not None:
        advice = "remove it, or set XDG_CACHE_HOME to a directory that only you can write to"
        return Finding("cache", NOTE, f"{problem}: bridges are compiled again for each process", advice)
    if os.access(bridge._existing(directory), os.W_OK | os.X_OK):
        return Finding("cache", OK, f"{directory}, writable")
    advice = "make it writable, or set XDG_CACHE_HOME to a directory that is"
    return Finding("cache", NOTE, f"{directory} is not writable: each process compiles its own bridge", advice)


def _clock() -> Finding:
    name, _, reason = _core.clock().partition(": ")
    if not reason:
        return Finding("clock", OK, "the CPU's time stamp counter")
    return Finding("clock", NOTE, f"{name}, some 20 ns more for each operator, because {reason}")


def _gpu(devices: int, problem: str | None, cupti: str) -> Finding:
    if problem is None:
        return Finding("gpu", OK, f"{devices} CUDA device{'s' * (devices > 1)}, recorded with {cupti}")
    if devices:
        return Finding("gpu", PROBLEM, f"{devices} CUDA devices that cannot be recorded: {problem}")
    return Finding("gpu", NOTE, f"no CUDA device: {problem}; the CPU is recorded")


def _perf_events() -> Finding:
    try:
        with open("/proc/sys/kernel/perf_event_paranoid") as file:
            level = int(file.read())
    except (OSError, ValueError):
        return Finding("perf events", NOTE, "this kernel has none; this version of Opstrobe needs none")
    allowed = "processes may count their own events" if level <= 2 else "they are closed to users"
    return Finding("perf events", OK, f"perf_event_paranoid is {level}: {allowed}; this version of Opstrobe needs none")


def _print_findings(found: list[Finding]) -> None:
    colours = {OK: "\x1b[32m", NOTE: "\x1b[33m", PROBLEM: "\x1b[31m"} if sys.stdout.isatty() else {}
    for finding in found:
        begin, end = (colours[finding.status], "\x1b[0m") if colours else ("", "")
        print(f"{begin}{finding.status:<8}{end} {finding.subject:<12} {finding.text}")
        if finding.advice:
            print(f"{'':21} to do: {finding.advice}")
    works = not any(finding.status == PROBLEM for finding in found)
    print("\nrecording works" if works else "\nrecording does not work")


def main() -> None:
    parser = command_parser(
        "doctor",
        "Says whether recording works on this machine, and what to do if it does not. "
        "Ends with status 0 if it works, else 1.",
        ("doctor", "doctor --format json"),
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", metavar="FORMAT", help="text (the default) or json"
    )
    parser.add_argument("--json", action="store_const", dest="format", const="json", help=argparse.SUPPRESS)
    options = parser.parse_args()
    found = _examine()
    if options.format == "json":
        print(json.dumps([dataclasses.asdict(finding) for finding in found], indent=2))
    else:
        _print_findings(found)
    raise SystemExit(any(finding.status == PROBLEM for finding in found))


if __name__ == "__main__":
    main()

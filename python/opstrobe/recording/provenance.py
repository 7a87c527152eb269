# SPDX-License-Identifier: Apache-2.0
"""How a recording was made: versions, command line, revision of the program, processors. Contains no environment
variables."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import shlex
import sys

from opstrobe.recording.forks import first_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_COMMAND_MAX = 2000
_HIDDEN = "***"
# Parts of names of options and variables with secret values, and patterns of secrets themselves.
_SECRET_PARTS = frozenset(
    "auth authorization cred credential credentials key pass passphrase passwd password pat pw pwd secret secrets token".split()
)
_SECRET_ENDINGS = ("apikey", "accesskey", "password", "passwd", "secret", "token")
_SECRET = re.compile(
    r"\b(?:hf_|ghp_|gho_|ghs_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ASIA|AIza|eyJ)[\w.=-]{10,}"
    r"|(?<![\w/.-])(?=[\w+-]*[a-z])(?=[\w+-]*[A-Z])(?=[\w+-]*\d)[\w+-]{32,}={0,2}(?![\w/.-])"
)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")

_command: list[str] | None = None  # what the user typed, if that differs from sys.orig_argv


def set_command(words: Sequence[str]) -> None:
    global _command
    _command = list(words)


def _is_secret_name(name: str) -> bool:
    parts = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower())
    return not _SECRET_PARTS.isdisjoint(parts) or any(part.endswith(_SECRET_ENDINGS) for part in parts)


def masked(words: Sequence[str]) -> str:
    """The command line as text, without anything that looks like a secret, and without the program text after -c."""
    shown: list[str] = []
    hides_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hides_next and not word.startswith("--"):
            word = _HIDDEN
        elif equals and _is_secret_name(name):
            word = f"{name}={_HIDDEN}"
        else:
            word = _SECRET.sub(_HIDDEN, _USER_IN_URL.sub(_HIDDEN, word))
        hides_next = word == "-c" or (word.startswith("-") and not equals and _is_secret_name(word))
        shown.append(word if re.fullmatch(r"[\w@%+=:,./*-]+", word) else shlex.quote(word))
    text = " ".join(shown).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _COMMAND_MAX else text[:_COMMAND_MAX] + " …"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""


def _of_cpuinfo(*names: str) -> str:
    """The first value in /proc/cpuinfo that has one of these names; "" if there is none."""
    for line in _read("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value.strip()
    return ""


@functools.cache
def cpu() -> str:
    """The model of the processor."""
    return _of_cpuinfo("model name", "Model", "cpu model") or platform.machine()


# By type: flags of /proc/cpuinfo, of which a processor that multiplies matrices of the type has one.
_INSTRUCTIONS = {
    "bfloat16": {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"},
    "float16": {"avx512_fp16", "amx_fp16", "avx_ne_convert", "asimdhp"},
}


@functools.cache
def emulated_types() -> list[str]:
    """Types that torch computes with but the processor has no instructions for. Empty if unknown."""
    found = set(_of_cpuinfo("flags", "Features").split())
    return [type_ for type_, flags in _INSTRUCTIONS.items() if found and not flags & found]


def revision(directory: str) -> str | None:
    """The commit that git has checked out there, read from git's files, since git itself would run what the repository
    configures."""
    while not os.path.exists(os.path.join(directory, ".git")):
        if directory == os.path.dirname(directory):
            return None
        directory = os.path.dirname(directory)
    git = os.path.join(directory, ".git")
    if os.path.isfile(git):  # a worktree or submodule
        git = os.path.join(directory, _read(git).removeprefix("gitdir:").strip())
    head = _read(os.path.join(git, "HEAD")).strip()
    if not head.startswith("ref:"):
        return head or None
    name = head.removeprefix("ref:").strip()
    common = os.path.join(git, _read(os.path.join(git, "commondir")).strip())
    for folder in (git, common):
        commit = _read(os.path.join(folder, name)).strip()
        if commit:
            return commit
    packed = (line.split() for line in _read(os.path.join(common, "packed-refs")).splitlines())
    return next((words[0] for words in packed if len(words) == 2 and words[1] == name), None)


@functools.cache
def _revision_of_program() -> str | None:
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    commit = revision(os.path.dirname(os.path.abspath(script)) if script else os.getcwd())
    return commit if commit and re.fullmatch(r"[0-9a-f]{7,64}", commit) else None


def _gpus(torch: Any) -> list[str]:
    """Only for a program that uses them, since the query takes time and memory."""
    try:
        if not torch.cuda.is_initialized():
            return []
        return [torch.cuda.get_device_name(device) for device in range(torch.cuda.device_count())]
    except Exception:  # a device may be lost
        return []


def _option_text(name: str, value: Any) -> str:
    """Formats an option: "record_shapes", "max_bytes=1024", "with_stack (imports=False)" for an object with options."""
    if value is True:
        return name
    parts = re.fullmatch(r"[A-Z]\w+\((.*)\)", str(value))
    return f"{name} ({parts[1]})" if parts else f"{name}={value}"


def _slow_settings() -> list[str]:
    """What makes all code of the process slower. The advice `slow-settings` knows these names."""
    with first_use:
        import _tracemalloc  # built in; -X tracemalloc starts it without the module around it

    torch: Any = sys.modules.get("torch")
    allocator = os.environ.get("PYTHONMALLOC", "") if not sys.flags.ignore_environment else ""
    capability = torch.backends.cpu.get_cpu_capability() if torch is not None and hasattr(torch, "backends") else ""
    found = {
        "tracemalloc": _tracemalloc.is_tracing(),
        "trace_function": sys.gettrace() is not None,
        "debug_allocator": allocator.endswith("debug") or (sys.flags.dev_mode and not allocator),
        "no_vector_instructions": capability in ("DEFAULT", "NO AVX") and platform.machine() == "x86_64",
    }
    return [name for name, is_set in found.items() if is_set]


def make_json(options: dict[str, Any]) -> str:
    """The metadata `recording` of a trace, as JSON. Unknown values are omitted."""
    import opstrobe

    torch: Any = sys.modules.get("torch")
    found: dict[str, Any] = {
        "command": masked(_command if _command is not None else sys.orig_argv),
        "git_revision": _revision_of_program(),
        "opstrobe": opstrobe.__version__,
        "python": platform.python_version(),
        "cpu": cpu(),
        "emulated_types": emulated_types(),
        "settings": _slow_settings(),
        "options": ", ".join(_option_text(name, value) for name, value in options.items() if value),
    }
    if torch is not None and hasattr(torch, "get_num_threads"):
        found |= {
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "hip": torch.version.hip,
            "gpus": _gpus(torch),
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
        }
    return json.dumps({key: value for key, value in found.items() if value}, ensure_ascii=False, separators=(",", ":"))

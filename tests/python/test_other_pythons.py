# SPDX-License-Identifier: Apache-2.0
"""The extension compiles for the other versions of Python that this machine has, and reads their structures."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "python" / "ext"
COMPILER = shlex.split(os.environ.get("CC", "cc"))
SUPPORTED = [f"3.{minor}" for minor in range(10, 15)]
# The files that depend on the version, or contain the module. To compile all of them takes four times as long.
VERSIONED = ("PY_VERSION_HEX", "frames.h", "PyInit_", "PyThreadState", "vectorcall")


def interpreters() -> list[str]:
    """One for each version, with headers: those of pyenv and those in PATH."""
    found: dict[str, str] = {}
    installed = Path(sys.base_prefix).parent
    for version in SUPPORTED:
        candidates = [
            *sorted(map(str, installed.glob(f"{version}.*/bin/python{version}"))),
            shutil.which(f"python{version}"),
        ]
        for path in candidates:
            if path is not None and version != f"{sys.version_info[0]}.{sys.version_info[1]}":
                found.setdefault(version, path)
    return list(found.values())


def headers(python: str) -> str:
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"]
    folder = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(folder, "Python.h").exists():
        pytest.skip(f"{python} has no headers")
    return folder


def flags(python: str) -> list[str]:
    folders = [headers(python), str(ROOT / "include"), str(ROOT / "src"), str(SOURCES)]
    return ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *[f"-I{folder}" for folder in folders]]


needs_compiler = pytest.mark.skipif(shutil.which(COMPILER[0]) is None, reason="no C compiler")


@needs_compiler
@pytest.mark.parametrize("python", interpreters(), ids=os.path.basename)
def test_the_extension_compiles(python: str, tmp_path: Path) -> None:
    generated = tmp_path / "opstrobe"
    generated.mkdir()
    text = (ROOT / "include" / "opstrobe" / "version.h.in").read_text()
    (generated / "version.h").write_text(re.sub("@[A-Z]+@", "0", text))
    sources = [path for path in sorted(SOURCES.glob("*.c")) if any(word in path.read_text() for word in VERSIONED)]
    assert {"module.c", "python_monitoring.c", "python_profile.c", "stack_reader.c"} <= {path.name for path in sources}
    command = [*COMPILER, "-fsyntax-only", *flags(python), f"-I{tmp_path}", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


@needs_compiler
@pytest.mark.parametrize("python", [sys.executable, *interpreters()], ids=os.path.basename)
def test_the_holder_of_the_gil(python: str, tmp_path: Path) -> None:
    source = Path(__file__).parent / "gil_holder.c"
    library = tmp_path / "gil_holder.so"
    subprocess.run([*COMPILER, "-shared", "-fPIC", *flags(python), str(source), "-o", str(library)], check=True)
    program = "import sys; sys.path.insert(0, sys.argv[1]); import gil_holder; print(gil_holder.is_right())"
    done = subprocess.run([python, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "(1, 1)\n", done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Builds examples/c and the program of the C API guide against the installed library, as a user would, runs them, and reads the
traces that they write.

    check_c_program.py SOURCE_ROOT BUILD_ROOT MESON…

Every compiler that is there takes part: C with gcc and clang, C++ with g++ and clang++.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-O1"]
COMPILERS = {
    "gcc": ["-std=c11", "-D_GNU_SOURCE", "-x", "c"],
    "clang": ["-std=c11", "-D_GNU_SOURCE", "-x", "c"],
    "g++": ["-std=c++17", "-x", "c++"],
    "clang++": ["-std=c++17", "-x", "c++"],
}
FRAMES = 200


def run(*command, **kwargs):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **kwargs).stdout


def install(build_root, meson, where):
    run(*meson, "install", "-C", build_root, "--no-rebuild", "--quiet", "--tags=devel,runtime", "--destdir", where)
    (pc,) = where.rglob("opstrobe.pc")
    return {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(where)}


def check_trace(path):
    events = json.loads(path.read_text())["traceEvents"]
    # "X" is a whole span, "b" the beginning of one that overlaps others of its thread.
    spans = [event for event in events if event.get("cat") == "user_annotation" and event["ph"] in "Xb"]
    count = collections.Counter(event["name"] for event in spans)
    assert count["load"] == count["blur"] == count["store"] == count["frame"] == FRAMES, count
    assert count["wait"] == 2 * FRAMES + 3, count
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    for name in "source", "sink", "worker 1", "worker 2", "worker 3":
        assert any(f"({name})" in there for there in names), names
    depths = [event["args"] for event in events if event["ph"] == "C" and event["name"] == "queue: raw"]
    assert len(depths) == 2 * (FRAMES + 3), len(depths)
    assert sum(event["name"] == "half of the frames" for event in events) == 1
    rounds = collections.Counter(event["args"]["Args"] for event in spans if event["name"] == "blur")
    assert rounds == collections.Counter(f'{{"rounds": {1 + frame // 20}}}' for frame in range(FRAMES)), rounds


def check_guide(compiler, options, flags, source_root, environment, where):
    """The program of the guide prints a table and writes a trace."""
    guide = (pathlib.Path(source_root) / "docs" / "reference" / "c-api.md").read_text()
    (text,) = re.findall(r"^```c\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    source, program = where / "loop.c", where / "loop"
    source.write_text(text)
    run(compiler, *WARNINGS, *options, source, "-x", "none", *flags, "-o", program)
    printed = run(program, env=environment, cwd=where)
    assert re.search(r"^sum +10 ", printed, re.MULTILINE), printed
    events = json.loads((where / "loop.json").read_text())["traceEvents"]
    assert sum(event["name"] == "sum" for event in events) == 10


def main(source_root, build_root, *meson):
    compilers = [name for name in COMPILERS if shutil.which(name)]
    assert compilers, "no compiler found"
    with tempfile.TemporaryDirectory() as name:
        where = pathlib.Path(name)
        environment = install(build_root, meson, where)
        flags = run("pkg-config", "--cflags", "--libs", "opstrobe", env=environment).split()
        (library,) = where.rglob("libopstrobe.so")
        environment["LD_LIBRARY_PATH"] = str(library.parent)
        for compiler in compilers:
            options = COMPILERS[compiler]
            program, analyze, trace = where / "pipeline", where / "analyze", where / "pipeline.pt.trace.json"
            for built in program, analyze:
                source = pathlib.Path(source_root) / "examples" / "c" / f"{built.name}.c"
                run(compiler, *WARNINGS, *options, source, "-x", "none", *flags, "-pthread", "-o", built)
            print(compiler, run(program, trace, env=environment), end="")
            check_trace(trace)
            answers = run(analyze, trace, trace, env=environment)
            assert all(text in answers for text in ("Idle  Compute", "== kernels", "No rule applies to this trace")), (
                answers
            )
            trace.unlink()
            if options[-1] == "c":
                check_guide(compiler, options, flags, source_root, environment, where)


if __name__ == "__main__":
    main(*sys.argv[1:])

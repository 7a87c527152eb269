# SPDX-License-Identifier: Apache-2.0
"""Checks the C interface as `meson install` installs it: each header compiles alone, without warnings, as C11 and C++17; the
libraries export what the headers declare and nothing else; and a program that refers to every function links and runs.

    check_public_headers.py BUILD_ROOT MESON…
"""

import pathlib
import re
import shutil
import sys
import tempfile

from check_c_program import install, run

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = {
    "gcc": ["-std=c11", "-x", "c"],
    "clang": ["-std=c11", "-x", "c"],
    "g++": ["-std=c++17", "-x", "c++"],
    "clang++": ["-std=c++17", "-x", "c++"],
}
LIBRARIES = {"opstrobe": "opstrobe.h", "opstrobe-serve": "serve.h"}
FUNCTIONS_MAX = 120  # a larger interface needs a reason
PROGRAM = """
#include <stdio.h>
#include <opstrobe/opstrobe.h>
#include <opstrobe/serve.h>

static void (*const functions[])(void) = {{
{rows}
}};

int main(void)
{{
	size_t count = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		count += functions[i] != NULL;
	printf("%zu %s %s %d.%d.%d\\n", count, ops_version(), OPS_VERSION, OPS_VERSION_MAJOR, OPS_VERSION_MINOR, OPS_VERSION_PATCH);
	return 0;
}}
"""


def functions_of(header):
    """The functions that a header declares; inline functions are not part of a library."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.MULTILINE).replace('extern "C" {', "")
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    declarations = (part for part in text.split(";") if not re.match(r"\s*static\b", part))
    return [found[1] for part in declarations if (found := re.search(r"\b(ops_\w+)\s*\(", part))]


def exported_by(library):
    return {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}


def check_headers(compiler, headers, flags, where):
    source = where / "alone.c"
    for header in headers:
        source.write_text(f"#include <opstrobe/{header.name}>\nint alone;\n")
        run(compiler, *WARNINGS, *COMPILERS[compiler], "-fsyntax-only", *flags, source)


def check_program(compiler, functions, flags, environment, where):
    source, program = where / "everything.c", where / "everything"
    source.write_text(PROGRAM.format(rows="\n".join(f"\t(void (*)(void)){name}," for name in functions)))
    run(compiler, "-Werror", *COMPILERS[compiler], source, "-x", "none", *flags, "-o", program)
    count, *versions = run(program, env=environment).split()
    version = run("pkg-config", "--modversion", "opstrobe", env=environment).strip()
    assert int(count) == len(functions) and versions == [version] * 3, (count, versions, version)
    return version


def main(build_root, *meson):
    compilers = [name for name in COMPILERS if shutil.which(name)]
    assert compilers, "no compiler found"
    with tempfile.TemporaryDirectory() as name:
        where = pathlib.Path(name)
        environment = install(build_root, meson, where)
        flags = run("pkg-config", "--cflags", "--libs", *LIBRARIES, env=environment).split()
        (folder,) = (path for path in where.rglob("include/opstrobe") if path.is_dir())
        assert not [path for path in folder.iterdir() if path.is_dir()], (
            "headers that are not for programs are installed"
        )
        headers = sorted(folder.glob("*.h"))
        declared = {header.name: functions_of(header) for header in headers}
        functions = sorted(sum(declared.values(), []))
        assert 50 < len(functions) == len(set(functions)) <= FUNCTIONS_MAX, len(functions)

        umbrella = re.findall(r"#include <opstrobe/(.*)>", (folder / "opstrobe.h").read_text())
        assert sorted([*umbrella, "opstrobe.h", "serve.h"]) == [header.name for header in headers]
        for library, header in LIBRARIES.items():
            (path,) = (path for path in where.rglob(f"lib{library}.so") if path.exists())
            environment["LD_LIBRARY_PATH"] = f"{path.parent}"
            expected = declared["serve.h"] if header == "serve.h" else set(functions) - set(declared["serve.h"])
            assert exported_by(path) == set(expected), exported_by(path) ^ set(expected)

        for compiler in compilers:
            check_headers(compiler, headers, [flag for flag in flags if flag.startswith("-I")], where)
            version = check_program(compiler, functions, flags, environment, where)
            print(f"{compiler}: {len(headers)} headers, {len(functions)} functions, version {version}")


if __name__ == "__main__":
    main(*sys.argv[1:])

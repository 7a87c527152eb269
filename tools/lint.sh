#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make lint`: style, format and types of the Python code, defects that clang-tidy finds in the C code, syntax of the scripts, order
# of the C code's layers, unique names of its static functions, links of the manual. The compilers' warnings are errors in `make test`.
. "$(dirname "$0")/common.sh"

tools/build.sh
python_packages lint tools/requirements-lint.txt
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/python - build/package/compile_commands.json <<-'EOF' | xargs -0 -P "$JOBS" -n 8 .venv/bin/clang-tidy --quiet -p build/package 2>/dev/null
	# Sources of the library, the command and the extension, as the build compiles them.
	import json, pathlib, sys
	for entry in json.load(open(sys.argv[1])):
	    source = pathlib.Path(entry["directory"], entry["file"]).resolve()
	    if source.suffix == ".c" and source.is_file():
	        print(source, end="\0")
	EOF
bash -n tools/*.sh tests/gpu/*.sh .ci/run
tools/check_layers.py
tools/check_names.py
tools/docs.sh

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make lint`: style, format and types of the Python code, syntax of the scripts, order of the C code's layers. The C code
# has no formatter: its look is described in CONTRIBUTING.md, and the compilers' warnings are errors in `make test`.
. "$(dirname "$0")/common.sh"

[ -e .venv ] || tools/build.sh
python_packages lint tools/requirements-lint.txt
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
bash -n tools/*.sh tests/gpu/*.sh .ci/run
tools/check_layers.py

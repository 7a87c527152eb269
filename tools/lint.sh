#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make lint`: style and types of the Python code, formatting of the C code. Warnings of the compilers are errors in
# `make test`.
. "$(dirname "$0")/common.sh"

[ -e .venv ] || tools/build.sh
python_packages lint tools/requirements-lint.txt
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
bash -n tools/*.sh .ci/run

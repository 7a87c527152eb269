#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make bench`: what Opstrobe costs, side by side with torch's own profiler, and reading traces beside those who read them
# before. BENCH_ARGS go to the first script, TRACE_ARGS (--large) to the second.
. "$(dirname "$0")/common.sh"

tools/build.sh
python_packages bench tools/requirements-bench.txt
# shellcheck disable=SC2086
.venv/bin/python bench/bench.py ${BENCH_ARGS:-}
# shellcheck disable=SC2086
exec .venv/bin/python bench/traces.py --growth ${TRACE_ARGS:-}

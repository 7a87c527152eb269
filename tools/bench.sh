#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make bench`: what Opstrobe costs, side by side with torch's own profiler, and reading traces beside those who read them
# before, and what a frame of the timeline costs. BENCH_ARGS go to the first script, TRACE_ARGS (--large) to the others.
. "$(dirname "$0")/common.sh"

tools/build.sh
python_packages bench tools/requirements-bench.txt
# shellcheck disable=SC2086
.venv/bin/python bench/bench.py ${BENCH_ARGS:-}
# shellcheck disable=SC2086
.venv/bin/python bench/traces.py --growth ${TRACE_ARGS:-}
system_packages chromium nodejs npm
node_packages web
# shellcheck disable=SC2086
exec node bench/timeline_frames.mjs ${TRACE_ARGS:-}

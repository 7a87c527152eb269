#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make bench`: what Opstrobe costs, side by side with torch's own profiler. BENCH_ARGS go to the script.
. "$(dirname "$0")/common.sh"

tools/build.sh
# shellcheck disable=SC2086
exec .venv/bin/python bench/bench.py ${BENCH_ARGS:-}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make bench`: what Opstrobe costs, side by side with torch's own profiler, and reading traces beside those who read them
# before, what records of a GPU cost, and what a frame of the timeline costs. BENCH_ARGS go to the first script, TRACE_ARGS
# (--large) to those about traces.
. "$(dirname "$0")/common.sh"

tools/build.sh
# Not in .venv: a TensorBoard plugin among them would be found there by the tests.
if changed bench tools/requirements-bench.txt || [ ! -e build/peers ]; then
	say "installing the profilers to compare with into build/peers"
	rm -rf build/peers
	.venv/bin/python -m pip install -qq --require-hashes --no-deps --target build/peers -r tools/requirements-bench.txt
	stamp bench tools/requirements-bench.txt
fi
# shellcheck disable=SC2086
.venv/bin/python bench/bench.py ${BENCH_ARGS:-}
# shellcheck disable=SC2086
.venv/bin/python bench/traces.py --growth ${TRACE_ARGS:-}
[ -e build/bench/build.ninja ] ||
	meson setup build/bench -Dbuildtype=release -Dextension=disabled -Dtests=enabled >/dev/null
ninja -C build/bench tests/gpu/device_records >/dev/null
build/bench/tests/gpu/device_records
system_packages chromium nodejs npm
node_packages web
# shellcheck disable=SC2086
exec node bench/timeline_frames.mjs ${TRACE_ARGS:-}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make bench`: the overhead of Opstrobe compared with torch's own profiler, the speed of reading traces compared with other
# tools, and the costs of GPU records and of a frame of the timeline. BENCH_ARGS are for the first script, TRACE_ARGS (--large)
# for those about traces.
. "$(dirname "$0")/common.sh"

tools/build.sh
# Not in .venv, where the tests would find a TensorBoard plugin among them.
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
.venv/bin/python bench/memory_snapshot.py
[ -e build/bench/build.ninja ] ||
	meson setup build/bench -Dbuildtype=release -Dextension=disabled -Dtests=enabled >/dev/null
ninja -C build/bench tests/gpu/device_records >/dev/null
build/bench/tests/gpu/device_records
system_packages chromium nodejs npm
node_packages web
# shellcheck disable=SC2086
exec node bench/timeline_frames.mjs ${TRACE_ARGS:-}

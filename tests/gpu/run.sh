#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that wants a GPU, in one command, on a machine with one and a torch with CUDA: builds, runs the tests of the GPU, compares
# with torch.profiler, and keeps raw records. PYTHON is a Python with that torch, pytest, meson and ninja. What is kept goes to
# OUT (default: build/gpu-records).
#
#     run.sh                 on a machine that can build
#     run.sh --kit FOLDER    with what kit.sh made elsewhere: nothing is built or fetched, and the tests, which need no GPU, are left out
#     run.sh --dry-run       what needs no GPU
set -euo pipefail
cd "$(dirname "$0")/../.."

dry=false
kit=
case ${1:-} in
--dry-run) dry=true ;;
--kit) kit=$(cd "$2" && pwd) ;;
esac
python=${PYTHON:-python3}
build=${BUILD:-build/gpu}
out=${OUT:-build/gpu-records}
export BUILD=$build PYTHON=$python

if ! $dry; then
	"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || {
		echo "this Python's torch sees no GPU; --dry-run runs what needs none" >&2
		exit 1
	}
fi
if [ "$kit" ]; then
	packages=$(mktemp -d)
	trap 'rm -rf "$packages"' EXIT
	"$python" -m pip install -q --no-index --no-deps --no-compile --target "$packages" "$kit"/opstrobe-*.whl
	export PYTHONPATH=$packages${PYTHONPATH:+:$PYTHONPATH} RECORDER=$kit/librecord-cupti.so
else
	if ! $dry; then
		"$python" -m pip install --no-build-isolation --no-deps -q .
	fi
	if [ ! -e "$build/build.ninja" ]; then
		"$python" -m mesonbuild.mesonmain setup "$build" -Dcuda=enabled -Dextension=disabled -Dtests=enabled
	fi
	ninja -C "$build"
	"$python" -m mesonbuild.mesonmain test -C "$build" --no-rebuild --print-errorlogs --suite gpu
	ninja -C "$build" tests/gpu/device_records
fi
if $dry; then
	exec tests/gpu/record.sh --dry-run "$build/records"
fi

# Each prints what it found; if one fails, the others still run.
failed=0
try() {
	echo "== $*"
	"$@" || failed=1
}
try "$python" -m opstrobe.doctor
if [ ! "$kit" ]; then
	try "$python" -m pytest -q tests/python/test_cuda.py
fi
try "$python" tests/gpu/compare.py --run
if [ "$("$python" -c 'import torch; print(torch.cuda.device_count())')" -gt 1 ]; then
	try "$python" tests/gpu/compare.py --run nccl
fi
try "$python" tests/gpu/sampling.py
try "${kit:-$build/tests/gpu}/device_records"
try tests/gpu/record.sh "$out"
exit $failed

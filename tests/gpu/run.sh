#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that wants a GPU, in one command, on a machine with one and a torch with CUDA: builds, runs the tests of the GPU, compares
# with torch.profiler, and keeps raw records. PYTHON is a Python with that torch, pytest, meson and ninja. --dry-run leaves out
# what a GPU is needed for.
set -euo pipefail
cd "$(dirname "$0")/../.."

dry=false
if [ "${1:-}" = --dry-run ]; then
	dry=true
fi
python=${PYTHON:-python3}
build=${BUILD:-build/gpu}
export BUILD=$build PYTHON=$python

if ! $dry; then
	"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || {
		echo "this Python's torch sees no GPU; --dry-run runs what needs none" >&2
		exit 1
	}
	"$python" -m pip install --no-build-isolation --no-deps -q .
fi
if [ ! -e "$build/build.ninja" ]; then
	"$python" -m mesonbuild.mesonmain setup "$build" -Dcuda=enabled -Dextension=disabled -Dtests=enabled
fi
ninja -C "$build"
"$python" -m mesonbuild.mesonmain test -C "$build" --no-rebuild --print-errorlogs --suite gpu
if $dry; then
	exec tests/gpu/record.sh --dry-run "$build/records"
fi
"$python" -m opstrobe doctor
"$python" -m pytest -q tests/python/test_cuda.py
"$python" tests/gpu/compare.py --run
if [ "$("$python" -c 'import torch; print(torch.cuda.device_count())')" -gt 1 ]; then
	"$python" tests/gpu/compare.py --run nccl
fi
ninja -C "$build" tests/gpu/device_records
"$build/tests/gpu/device_records"
tests/gpu/record.sh build/gpu-records

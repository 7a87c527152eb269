#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Keeps what CUPTI records of each of programs.py as a file for replay, in FOLDER (default: build/gpu-records), compressed. On a
# machine with a GPU, a torch with CUDA, and Opstrobe in its Python. RECORDER is librecord-cupti.so if it is built already.
# --dry-run does it with the fake CUPTI library.
set -euo pipefail
cd "$(dirname "$0")/../.."

dry=false
if [ "${1:-}" = --dry-run ]; then
	dry=true
	shift
fi
folder=${1:-build/gpu-records}
build=${BUILD:-build/gpu}
python=${PYTHON:-python3}
libraries=$PWD/$build/tests/gpu
mkdir -p "$folder"
if $dry || [ ! "${RECORDER:-}" ]; then
	if [ ! -e "$build/build.ninja" ]; then
		"$python" -m mesonbuild.mesonmain setup "$build" -Dcuda=enabled -Dextension=disabled -Dtests=enabled
	fi
	ninja -C "$build" tests/gpu/librecord-cupti.so tests/gpu/libfake-cupti.so tests/gpu/libcuda.so.1 tests/gpu/test_gpu_record
	RECORDER=$libraries/librecord-cupti.so
fi
export OPSTROBE_CUPTI=$RECORDER

if $dry; then
	RECORD_CUPTI_FILE=$folder/dry-run.cupti RECORD_CUPTI_LIBRARY=$libraries/libfake-cupti.so LD_LIBRARY_PATH=$libraries \
		OPSTROBE_CLOCK=monotonic "$libraries/test_gpu_record"
	test -s "$folder/dry-run.cupti"
	echo "$folder/dry-run.cupti"
	exit
fi
RECORD_CUPTI_LIBRARY=$(env -u OPSTROBE_CUPTI "$python" -c 'import torch
from opstrobe import _core
print(_core.cupti().rsplit(", version", 1)[0])')
export RECORD_CUPTI_LIBRARY
for program in resnet transformer graph compiled copies; do
	RECORD_CUPTI_FILE=$folder/$program.cupti "$python" tests/gpu/programs.py "$program" opstrobe "$folder/$program.json"
	gzip -f "$folder/$program.cupti"
	rm "$folder/$program.json"
	echo "$folder/$program.cupti.gz"
done

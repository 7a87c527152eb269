#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that run.sh needs and that is not part of a machine with a GPU, in FOLDER (default: build/gpu-kit): the package for Pythons
# of PYTHON's version, the library that keeps CUPTI's records, and the bench of decoding. For machines that reach nothing outside and have no tools
# but a C++ compiler, which the bridge to their torch is compiled with.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=${1:-build/gpu-kit}
python=${PYTHON:-python3}
build=build/gpu-kit-build
rm -rf "$folder" "$build"
mkdir -p "$folder" "$build"
"$python" -m venv "$build/venv"
# Nothing is linked that the other machine may not have.
plain=(-Dserver=disabled -Dviewer=disabled -Dzstd=disabled -Dcuda=enabled)
"$build/venv/bin/pip" wheel -q --no-deps -w "$folder" "${plain[@]/#/-Csetup-args=}" .
"$build/venv/bin/pip" install -q -r tools/requirements-build.txt
# shellcheck disable=SC1091
. "$build/venv/bin/activate"
meson setup "$build/c" "${plain[@]}" -Dbuildtype=release -Dextension=disabled -Dtests=enabled >"$build/log"
ninja -C "$build/c" tests/gpu/librecord-cupti.so tests/gpu/device_records >>"$build/log"
cp "$build/c/tests/gpu/librecord-cupti.so" "$build/c/tests/gpu/device_records" "$folder"
rm -rf "$build"
ls -l "$folder"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make build`: leaves the package importable in .venv and the command in .venv/bin/opstrobe.
. "$(dirname "$0")/common.sh"

command -v "$PYTHON" >/dev/null || die "there is no $PYTHON; set PYTHON to a Python from 3.10 on"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "$PYTHON is older than 3.10; set PYTHON"
system_packages gcc g++ libc6-dev pkg-config zlib1g-dev libzstd-dev libmicrohttpd-dev nodejs npm python3-venv python3-dev

version=$("$PYTHON" -c 'import sys; print(sys.version)')
if [ -e .venv ] && changed python "$version"; then
	say "the Python has changed: starting over"
	rm -rf .venv build/package
fi
if [ ! -e .venv ]; then
	"$PYTHON" -m venv .venv
	stamp python "$version"
fi
python_packages build tools/requirements-build.txt
torch_packages
python_packages demo tools/requirements-demo.txt
node_packages web

inputs=(meson.build meson.options pyproject.toml README.md LICENSE include src python tools/build_backend.py tools/build_man.py
	web/src web/build.mjs web/package-lock.json tools/build_viewer.sh)
if changed package "$version" "${inputs[@]}" || [ ! -x .venv/bin/opstrobe ]; then
	say "building opstrobe"
	.venv/bin/python -m pip install -qq --no-build-isolation --no-deps --no-index --force-reinstall \
		--config-settings=build-dir=build/package --config-settings=compile-args="-j$JOBS" .
	stamp package "$version" "${inputs[@]}"
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make test-matrix`: the Python and command tests on other Pythons and torches. MATRIX="3.10/2.4.1 3.13/2.15.0" picks some.
# Tests that compare with features that the torch.profiler of this torch lacks are left out (marker torch_like).
# torch comes with everything for GPUs, so each pair takes gigabytes; an environment is removed after its tests, unless KEEP=1.
. "$(dirname "$0")/common.sh"

pairs=${MATRIX:-3.10/2.4.1 3.10/2.13.0 3.11/2.13.0 3.12/2.4.1 3.12/2.13.0 3.12/2.15.0 3.13/2.5.1 3.13/2.15.0 3.14/2.15.0}
system_packages gcc g++ libc6-dev pkg-config zlib1g-dev libzstd-dev
logs=build/matrix
mkdir -p "$logs"

find_python() {
	command -v "python$1" && return
	ls -d "$HOME"/.pyenv/versions/"$1".*/bin/python 2>/dev/null | tail -n 1 | grep . ||
		ls /opt/python/"$1"*/bin/python 2>/dev/null | grep .
}

run_pair() {
	local python=$1 torch=$2 home=$3
	[ -e "$home" ] || "$python" -m venv "$home"
	"$home/bin/python" -m pip install -qq "torch==$torch"
	"$home/bin/python" -m pip install -qq --require-hashes --no-deps -r tools/requirements-build.txt \
		-r tools/requirements-demo.txt -r tools/requirements-test.txt
	PATH=$PWD/$home/bin:$PATH "$home/bin/python" -m pip install -qq --no-build-isolation --no-deps --no-index \
		--force-reinstall --config-settings=build-dir="$home/opstrobe" --config-settings=compile-args="-j$JOBS" .
	"$home/bin/opstrobe" doctor
	PATH=$PWD/$home/bin:$PATH "$home/bin/python" -m pytest -q -ra tests/python tests/cli --ignore=tests/python/integration
}

failed=0
rows=()
for pair in $pairs; do
	version=${pair%/*} torch=${pair#*/}
	name=python$version-torch$torch
	if ! python=$(find_python "$version"); then
		rows+=("| $version | $torch | this Python was not found |")
		continue
	fi
	say "$name"
	if bash -c "$(declare -f); set -euo pipefail; run_pair $python $torch $logs/$name" >"$logs/$name.log" 2>&1; then
		result=passed
	else
		result=FAILED
		failed=1
	fi
	counts=$(grep -E '[0-9]+ (passed|failed).* in ' "$logs/$name.log" | tail -n 1 | sed 's/ in .*//' || true)
	rows+=("| $version | $torch | $result: ${counts:-see the log} |")
	echo "${rows[-1]}"
	[ "${KEEP:-0}" = 1 ] || rm -rf "${logs:?}/$name"
done

printf '\n| Python | torch | tests |\n|---|---|---|\n'
printf '%s\n' "${rows[@]}"
echo "full output: $logs/*.log"
exit $failed

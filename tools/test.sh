#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make test`: all tests. The full output of each step is kept in build/test-logs/.
. "$(dirname "$0")/common.sh"

tools/build.sh
system_packages clang libclang-rt-14-dev libcmocka-dev libdevel-nytprof-perl nodejs npm chromium openjdk-17-jre-headless
python_packages test tools/requirements-test.txt
python_packages programs tools/requirements-programs.txt
node_packages web
node_packages editors/vscode
logs=build/test-logs
rm -rf "$logs"
mkdir -p "$logs"

# meson_build FOLDER OPTION…: configures once for these options, then builds what has changed.
meson_build() {
	local folder=$1
	shift
	if [ ! -e "$folder/build.ninja" ] || changed "${folder//\//-}" "$@" "${CC:-}"; then
		rm -rf "$folder"
		meson setup "$folder" "$@"
		stamp "${folder//\//-}" "$@" "${CC:-}"
	fi
	ninja -C "$folder" -j "$JOBS"
}
meson_test() {
	meson test -C "$1" --no-rebuild --print-errorlogs --timeout-multiplier 10 --num-processes "$JOBS" "${@:2}"
}

# gcc has false warnings in code instrumented by a sanitizer, so warnings are errors only in the other builds.
c_address_sanitizer() {
	meson_build build/asan -Db_sanitize=address,undefined -Dextension=disabled -Dtests=enabled
	meson_test build/asan
}
c_thread_sanitizer() {
	meson_build build/tsan -Db_sanitize=thread -Dextension=disabled -Dtests=enabled
	meson_test build/tsan --suite record --suite gpu --suite serve
}
c_clang() {
	CC=clang meson_build build/clang -Dwerror=true -Dextension=enabled -Dtests=enabled
	meson_test build/clang
}
c_gcc_release() {
	meson_build build/gcc -Dwerror=true -Dbuildtype=release -Dextension=enabled -Dtests=enabled
	meson_test build/gcc
}
# Runs complete files in parallel, because the shared fixtures of a file's tests are created once.
side_by_side() { python -m pytest -q -ra --numprocesses "$JOBS" --dist loadfile "$@"; }
python_tests() { side_by_side tests/python --ignore=tests/python/integration; }
programs() { python -m pytest -q -ra tests/python/integration; }
command_tests() { side_by_side tests/cli; }
# One at a time: the programs are recorded, and measured with and without their fixes.
diagnosis() { python -m pytest -q -ra tests/diagnosis; }
server_tests() { OPSTROBE_SERVER=build/asan/src/cli/opstrobe python -m pytest -q -ra tests/serve; }
notebook_tests() { python -m pytest -q -ra tests/notebook; }
wheel() {
	tools/wheel.sh
	python -m pytest -q -ra tests/wheel
}
web() {
	cd web
	npm run -s types
	npm run -s lint
	npm run -s test
}
editors() {
	cd editors/vscode
	npm run -s types
	npm run -s lint
	npm run -s test
	npm run -s package
}
browser() { cd web && npm run -s browser; }
demo() { python examples/resnet18.py --output build/test-demo; }
lint() { tools/lint.sh; }

passed=0
failed=0
summary=()
failures=
for step in c_address_sanitizer c_thread_sanitizer c_clang c_gcc_release python_tests programs command_tests diagnosis server_tests notebook_tests web editors browser wheel demo lint; do
	say "$step"
	begin=$SECONDS
	# In a separate shell, because -e has no effect in the command of a condition.
	if bash -c "$(declare -f); set -euo pipefail; $step" >"$logs/$step.log" 2>&1 </dev/null; then
		result=${green}passed${plain}
		passed=$((passed + 1))
	else
		result=${red}FAILED${plain}
		failed=$((failed + 1))
		tail -n 60 "$logs/$step.log"
		# Repeated at the end, after the long log.
		failures+=$(sed 's/\x1b\[[0-9;]*m//g' "$logs/$step.log" | grep -E '^ *(FAIL|FAILED|ERROR) |^ *×|^ *[0-9]+/[0-9]+ .*(FAIL|TIMEOUT)' | sort -u | head -n 20 || true)$'\n'
	fi
	counts=$(grep -E '^(Ok|Fail|Timeout|Skipped): +[1-9]|^=* ?[0-9].*(passed|failed|skipped|error).* in ' "$logs/$step.log" |
		tr -s ' =\n' ' ' || true)
	grep -E '^(SKIPPED|XFAIL) ' "$logs/$step.log" || true
	summary+=("$(printf '  %s  %-20s %4d s  %s' "$result" "$step" $((SECONDS - begin)) "$counts")")
done

echo
printf '%s\n' "${summary[@]}"
printf '%s' "$failures"
echo "full output: $logs/"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make test`: all tests. The full output of each step is kept in build/test-logs/.
. "$(dirname "$0")/common.sh"

# Several steps compile the same files with the same options. ccache, which Meson uses if it is installed, compiles them once.
system_packages ccache
tools/build.sh
system_packages clang libclang-rt-14-dev libcmocka-dev libdw1 libdevel-nytprof-perl nodejs npm chromium openjdk-17-jre-headless
python_packages test tools/requirements-test.txt
python_packages programs tools/requirements-programs.txt
# Here, so that nothing is installed while tests run.
python_packages lint tools/requirements-lint.txt
python_packages docs tools/requirements-docs.txt
node_packages web
node_packages editors/vscode
logs=build/test-logs
rm -rf "$logs"
mkdir -p "$logs"

# meson_configure FOLDER OPTION…: configures once for these options.
meson_configure() {
	local folder=$1
	shift
	if [ ! -e "$folder/build.ninja" ] || changed "${folder//\//-}" "$@" "${CC:-}"; then
		rm -rf "$folder"
		meson setup "$folder" "$@"
		stamp "${folder//\//-}" "$@" "${CC:-}"
	fi
}
meson_build() {
	meson_configure "$@"
	ninja -C "$1" -j "$JOBS"
}
# Builds what the tests require, unless --no-rebuild is among the options.
meson_test() {
	meson test -C "$1" --print-errorlogs --timeout-multiplier 4 --num-processes "$JOBS" "${@:2}"
}

# clang's warnings, and its sanitizers, which find more than those of gcc: an addition to NULL, for example. clang links sanitizers
# only into programs, so modules use names that are undefined when they are linked.
c_clang_sanitizers() {
	CC=clang meson_build build/asan -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=true -Dextension=enabled -Dtests=enabled
	meson_test build/asan --no-rebuild
}
# gcc's thread sanitizer has false warnings, so warnings are not errors here.
c_thread_sanitizer() {
	meson_configure build/tsan -Db_sanitize=thread -Dextension=disabled -Dtests=enabled
	meson_test build/tsan --suite record --suite gpu --suite serve
}
# The options of the package, so that most files are compiled already. Warnings, which ccache repeats, are found in the output:
# -Werror would be another option.
c_gcc_release() {
	meson_build build/gcc -Dbuildtype=release -Dextension=enabled -Dtests=enabled | tee build/gcc.log
	if grep -q 'warning:' build/gcc.log; then
		return 1
	fi
	meson_test build/gcc --no-rebuild
}
# Runs complete files in parallel, because the shared fixtures of a file's tests are created once.
side_by_side() { python -m pytest -q -ra --durations 25 --numprocesses "$JOBS" --dist loadfile "$@"; }
python_tests() { side_by_side tests/python --ignore=tests/python/integration; }
programs() { python -m pytest -q -ra tests/python/integration; }
command_tests() { side_by_side tests/cli; }
# One at a time: the programs are recorded, and measured with and without their fixes.
diagnosis() { python -m pytest -q -ra tests/diagnosis; }
# Under Meson, undefined behavior ends a program. The server is started without it, once it is built.
server_tests() {
	until [ -e "$logs/c_clang_sanitizers.result" ]; do
		sleep 1
	done
	OPSTROBE_SERVER=build/asan/src/cli/opstrobe UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 python -m pytest -q -ra tests/serve
}
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

# run STEP: its output, and its result with the seconds and the CPU seconds that it took, go to $logs. In a separate shell,
# because -e has no effect in the command of a condition.
run() {
	local step=$1 begin=$SECONDS result=passed cpu TIMEFORMAT='%U %S'
	say "$step"
	cpu=$({ time bash -c "$(declare -f); logs=$logs; set -euo pipefail; $step" >"$logs/$step.log" 2>&1 </dev/null; } 2>&1) || result=FAILED
	awk -v result="$result" -v seconds=$((SECONDS - begin)) '{ printf "%s %d %.0f\n", result, seconds, $1 + $2 }' \
		<<<"$cpu" >"$logs/$step.result"
}
# lane STEP…: one after another.
lane() {
	for step in "$@"; do
		run "$step"
	done
}
# Steps that keep all processors busy, and next to them steps that mostly wait for a browser, a server or one thread of torch.
parallel=(c_clang_sanitizers c_thread_sanitizer c_gcc_release python_tests command_tests)
single=(browser programs lint server_tests notebook_tests web wheel editors demo)
# At the end, because it measures.
alone=(diagnosis)

lane "${parallel[@]}" &
lane "${single[@]}" &
wait
lane "${alone[@]}"

passed=0
failed=0
summary=()
failures=
for step in "${parallel[@]}" "${single[@]}" "${alone[@]}"; do
	read -r result seconds cpu <"$logs/$step.result"
	if [ "$result" = passed ]; then
		result=${green}passed${plain}
		passed=$((passed + 1))
	else
		result=${red}FAILED${plain}
		failed=$((failed + 1))
		say "the end of the output of $step"
		tail -n 60 "$logs/$step.log"
		# Repeated at the end, after the long log.
		failures+=$(sed 's/\x1b\[[0-9;]*m//g' "$logs/$step.log" | grep -E '^ *(FAIL|FAILED|ERROR) |^ *×|^ *[0-9]+/[0-9]+ .*(FAIL|TIMEOUT)' | sort -u | head -n 20 || true)$'\n'
	fi
	counts=$(grep -E '^(Ok|Fail|Timeout|Skipped): +[1-9]|^=* ?[0-9].*(passed|failed|skipped|error).* in ' "$logs/$step.log" |
		tr -s ' =\n' ' ' || true)
	grep -E '^(SKIPPED|XFAIL) ' "$logs/$step.log" || true
	summary+=("$(printf '  %s  %-20s %4d s %5d s CPU  %s' "$result" "$step" "$seconds" "$cpu" "$counts")")
done

echo
printf '%s\n' "${summary[@]}"
printf '%s' "$failures"
echo "full output: $logs/"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

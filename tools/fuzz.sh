#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tools/fuzz.sh TARGET [SECONDS] [OPTION…]`: runs libFuzzer on tests/fuzz/fuzz_TARGET.c, with ASan and UBSan. Inputs that
# reach new code are collected in build/fuzz/TARGET/, those that fail in build/fuzz/TARGET-*; OPTIONs are libFuzzer's. The
# targets: advise, analyze, query, read, recover, watch and, if CUPTI's headers are installed, replay. `read:kineto` gives one reader
# all of the time; the table in src/read/read.c has their names. `read:all` runs one reader after another, SECONDS each, except
# for recordings, which are larger than its inputs: these are the target recover.
# `totals` prints the CPU time of all runs so far, which build/fuzz/runs.tsv lists.
. "$(dirname "$0")/common.sh"

target=${1:?which target: read, recover, watch, analyze, advise, query, replay or totals}
seconds=${2:-600}
folder=build/fuzz
runs=$folder/runs.tsv # date, target, CPU seconds, inputs, exit status
reader=
case $target in
totals)
	[ -e $runs ] || die "$runs does not exist: nothing was run"
	awk -F '\t' '{ cpu[$2] += $3; inputs[$2] += $4; failed[$2] += $5 != 0 }
		END { for (name in cpu) printf "%-24s %7.0f s of CPU time %11.0f inputs %2d failed runs\n", name, cpu[name], inputs[name],
			failed[name] }' $runs | sort
	exit
	;;
read:all)
	status=0
	"$0" read 0
	export FUZZ_BUILT=1
	for reader in $(sed -n 's/^\t{"\([a-z_]*\)", .*ops_read_.*/\1/p' src/read/read.c | grep -v '^recording$'); do
		"$0" "read:$reader" "$seconds" "${@:3}" || status=$?
	done
	exit $status
	;;
read:*)
	reader=${target#read:}
	target=read
	;;
esac
is_built() { [ "${FUZZ_BUILT:-}" ]; }
is_built || system_packages clang libclang-rt-14-dev
[ -e "tests/fuzz/fuzz_$target.c" ] || die "tests/fuzz/fuzz_$target.c does not exist"

if [ ! -e $folder/build.ninja ]; then
	CC=clang meson setup $folder -Db_sanitize=address,undefined -Db_lundef=false -Dextension=disabled -Dtests=disabled \
		-Dviewer=disabled -Dc_args=-fsanitize=fuzzer-no-link
fi
is_built || ninja -C $folder -j "$JOBS" libopstrobe-core.a

sources=("tests/fuzz/fuzz_$target.c")
seeds=(tests/fuzz/read tests/fuzz/analyze)
libraries=("$folder/libopstrobe-core.a" -lz -lm -lpthread -ldl)
options=(-dict=tests/fuzz/trace.dict)
if grep -q libzstd $folder/build.ninja; then
	libraries+=(-lzstd)
fi
case $target in
query)
	is_built || ninja -C $folder -j "$JOBS" src/serve/libopstrobe-serve.a
	libraries=("$folder/src/serve/libopstrobe-serve.a" "${libraries[@]}" -lmicrohttpd)
	seeds=(tests/fuzz/query)
	options=()
	;;
recover | watch)
	seeds=("tests/fuzz/$target")
	options=()
	;;
replay)
	sources+=(tests/gpu/replay/records.c tests/gpu/replay/replayer.c)
	seeds=(tests/gpu/replay)
	options=()
	;;
esac
headers=$(grep -o -m 1 -- '-isystem *[^ ]*' $folder/build.ninja | head -n 1 || true) # CUPTI's
is_built || clang -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -DOPS_FUZZER -D_GNU_SOURCE -Iinclude \
	-Isrc -Itests ${headers:+"$headers"} "${sources[@]}" "${libraries[@]}" -o "$folder/fuzz_$target"
[ "$seconds" != 0 ] || exit 0 # only builds

corpus=$folder/$target${reader:+-$reader}
mkdir -p "$corpus"
if [ "$reader" ]; then
	grep -q "{\"$reader\"," src/read/read.c || die "src/read/read.c has no reader '$reader'"
	export FUZZ_READER=$reader
	seeds=("tests/fuzz/read/$reader")
	if [ "$reader" = kineto ]; then
		seeds+=(tests/fuzz/analyze)
	fi
fi
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
log=$corpus.log
TIMEFORMAT='%U %S'
status=0
cpu=$({ time "$folder/fuzz_$target" -max_total_time="$seconds" -max_len=65536 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
	-artifact_prefix="$corpus-" "${options[@]}" "${@:3}" "$corpus" "${seeds[@]}" >"$log" 2>&1; } 2>&1) || status=$?
[ $status != 72 ] || status=0 # libFuzzer's for Ctrl-C
awk -v OFS='\t' -v date="$(date -u +%FT%TZ)" -v target="$target${reader:+:$reader}" -v cpu="$cpu" -v status=$status '
	/^stat::number_of_executed_units:/ { inputs = $2 }
	/^#[0-9]/ { last = substr($1, 2) }
	END { split(cpu, parts, " "); print date, target, parts[1] + parts[2], inputs ? inputs : last + 0, status }' "$log" >>$runs
tail -n 6 "$log"
exit $status

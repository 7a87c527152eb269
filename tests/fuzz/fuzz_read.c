/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace file: an error or a trace that keeps its promises, has stacks, and written and read again is the same
 * size.
 *
 * With clang's -fsanitize=fuzzer this is a fuzzer; alone, as the test runs it, it takes the files it is given:
 *
 *     clang -fsanitize=fuzzer,address,undefined -DOPS_FUZZER -D_GNU_SOURCE -DOPS_VERSION='"0"' -Iinclude -Isrc \
 *         tests/fuzz/fuzz_read.c src/{base,record,trace,read,analyze,write}/[a-z]*.c -lz -lm -o fuzz_read
 *     ./fuzz_read -max_len=65536 NEW_FOLDER tests/fuzz/read
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <opstrobe/analyze.h>
#include <opstrobe/merge.h>
#include <opstrobe/read.h>

static void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

struct listed {
	const struct ops_trace *trace;
	struct ops_event_costs costs;
	uint32_t *refs;
};

static void get_row(const void *context, size_t i, struct ops_average *ret_row)
{
	const struct listed *listed = context;

	ops_average_of_event(listed->trace, &listed->costs, listed->refs[i], ret_row);
}

/* Stacks, averages by them, and a flame graph. */
static void analyze(const struct ops_trace *trace)
{
	struct ops_averages_options options = {.by_stack_frames = 3};
	struct listed listed = {.trace = trace};
	struct ops_rows rows = {.get = get_row, .context = &listed};
	struct ops_average *averages;
	struct ops_stacks *stacks;
	struct ops_flame *flame;
	struct ops_error error;
	size_t count;

	expect(ops_function_events(trace, &listed.refs, &rows.count, &error) == OPS_OK, error.text);
	expect(ops_stacks_new(trace, &stacks, &error) == OPS_OK, error.text);
	options.stacks = stacks;
	expect(ops_averages(trace, &listed.costs, listed.refs, rows.count, &options, &averages, &count, &error) == OPS_OK,
	       error.text);
	expect(ops_flame_new(trace, stacks, &rows, OPS_STACKS_SELF_CPU, &flame, &error) == OPS_OK, error.text);
	ops_flame_free(flame);
	ops_free_averages(averages);
	ops_stacks_free(stacks);
	ops_free_refs(listed.refs);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct ops_trace *trace = NULL, *again = NULL;
	struct ops_error error;
	char *packed;
	size_t packed_size;

	if (ops_trace_read_memory((const char *)bytes, size, NULL, &trace, &error)) {
		expect(error.code == OPS_CORRUPT || error.code == OPS_UNSUPPORTED, error.text);
		return 0;
	}
	expect(ops_trace_check(trace, &error) == OPS_OK, error.text);
	analyze(trace);
	expect(ops_trace_pack(trace, &packed, &packed_size, &error) == OPS_OK, error.text);
	expect(ops_trace_unpack(packed, packed_size, &again, &error) == OPS_OK, error.text);
	expect(ops_trace_events(trace)->count == ops_trace_events(again)->count, "events lost in a pack");
	ops_free_packed(packed);
	ops_trace_unref(again);
	ops_trace_unref(trace);
	return 0;
}

#ifndef OPS_FUZZER
int main(int count, char **paths)
{
	for (int i = 1; i < count; i++) {
		FILE *file = fopen(paths[i], "rb");
		uint8_t *bytes;
		size_t size;

		expect(file && fseek(file, 0, SEEK_END) == 0, paths[i]);
		size = (size_t)ftell(file);
		rewind(file);
		bytes = malloc(size + 1);
		expect(bytes && fread(bytes, 1, size, file) == size, paths[i]);
		fclose(file);
		LLVMFuzzerTestOneInput(bytes, size);
		free(bytes);
	}
	printf("%d files\n", count - 1);
	return count > 1 ? 0 : 1;
}
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace file: the result is an error, or a valid trace, which has stacks, and has the same size after writing and
 * reading it. fuzzing.h describes how to run it. With FUZZ_READER in the environment, inputs of other readers are skipped.
 */
#include <stdbool.h>

#include <opstrobe/internal/analyze.h>
#include <opstrobe/internal/pack.h>
#include <opstrobe/merge.h>

#include "fuzzing.h"
#include "read/reading.h"

/* Returns whether FUZZ_READER names another reader. */
static bool is_skipped(const uint8_t *bytes, size_t size)
{
	static const char *reader;
	static bool is_known;

	if (!is_known)
		reader = getenv("FUZZ_READER");
	is_known = true;
	return reader && strcmp(reader, ops_format_name((const char *)bytes, size)) != 0;
}

#ifdef OPS_FUZZER
#define MUTATED_BYTES_MAX (1 << 20)
#define MUTATIONS_MAX 20

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned int seed);

/* Most changes of the first bytes make an input of another reader, so others are tried. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned int seed)
{
	static uint8_t before[MUTATED_BYTES_MAX];

	(void)seed;
	if (size > sizeof(before))
		return LLVMFuzzerMutate(bytes, size, size_max);
	memcpy(before, bytes, size);
	for (int i = 0; i < MUTATIONS_MAX; i++) {
		size_t mutated = LLVMFuzzerMutate(bytes, size, size_max);

		if (!is_skipped(bytes, mutated))
			return mutated;
		memcpy(bytes, before, size);
	}
	return size;
}
#endif

/* Stacks, averages by them, and a flame graph. */
static void analyze(const struct ops_trace *trace)
{
	struct ops_averages_options options = {.by_stack_frames = 3};
	struct ops_event_list events;
	struct ops_rows rows;
	struct ops_average *averages;
	struct ops_stacks *stacks;
	struct ops_flame *flame;
	struct ops_error error;
	size_t count;

	expect(ops_event_list_init(&events, trace, true, &error) == OPS_OK, error.text);
	rows = ops_rows_of_events(&events);
	expect(ops_stacks_new(trace, &stacks, &error) == OPS_OK, error.text);
	options.stacks = stacks;
	expect(ops_averages(trace, &events.costs, events.refs, events.count, &options, &averages, &count, &error) == OPS_OK,
	       error.text);
	expect(ops_flame_new(trace, stacks, &rows, &(struct ops_flame_choices){0}, &flame, &error) == OPS_OK, error.text);
	ops_flame_free(flame);
	ops_free(averages);
	ops_stacks_free(stacks);
	ops_event_list_release(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct ops_trace *trace, *again = NULL;
	struct ops_error error;
	char *packed;
	size_t packed_size;

	if (is_skipped(bytes, size))
		return 0;
	trace = read_bytes(bytes, size);
	if (!trace)
		return 0;
	expect(ops_trace_check(trace, &error) == OPS_OK, error.text);
	analyze(trace);
	expect(ops_trace_pack(trace, &packed, &packed_size, &error) == OPS_OK, error.text);
	expect(ops_trace_unpack(packed, packed_size, &again, &error) == OPS_OK, error.text);
	expect(ops_trace_events(trace)->count == ops_trace_events(again)->count, "events lost in a pack");
	ops_free(packed);
	ops_trace_unref(again);
	ops_trace_unref(trace);
	return 0;
}

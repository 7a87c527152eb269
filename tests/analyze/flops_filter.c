/* SPDX-License-Identifier: Apache-2.0
 *
 * A filter for flops_against_torch.py: reads events of one thread (their number; for each start, end, name, inputs) and writes
 * the FLOPs of each in the same order, until the input ends.
 */
#include <opstrobe/internal/analyze.h>

#include "trace/builder.h"
#include "words.h"

static void read_event(struct ops_builder *builder, uint32_t track, uint64_t id)
{
	struct ops_new_event event = {OPS_NEW_EVENT, .track = track, .id = id, .kind = OPS_EVENT_CPU_OP};
	char *text;
	size_t size = 0;

	event.start_ns = read_int();
	event.end_ns = read_int();
	text = read_text(&size);
	event.name = ops_builder_string(builder, text, size);
	free(text);
	text = read_text(&size);
	if (text)
		event.inputs = ops_builder_inputs(builder, text, size);
	require(!text || event.inputs != OPS_NONE, "malformed inputs");
	free(text);
	require(ops_builder_event(builder, &event) != OPS_NONE, "out of memory");
}

static void answer(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	char *text = malloc(events->count * 24 + 1);
	int64_t *flops = calloc(events->count + 1, sizeof(*flops));
	size_t size = 0;

	require(text && flops, "out of memory");
	for (uint32_t row = 0; row < events->count; row++)
		flops[events->id[row] - 1] = ops_event_flops(trace, row);
	for (size_t i = 0; i < events->count; i++)
		size += (size_t)sprintf(text + size, "%" PRId64 " ", flops[i]);
	printf("OK %zu\n%s", size, text);
	fflush(stdout);
	free(text);
	free(flops);
}

int main(void)
{
	int64_t count;

	while (scanf("%" SCNd64, &count) == 1) {
		struct ops_builder *builder = ops_builder_new();
		struct ops_trace *trace;
		uint32_t track;

		require(builder != NULL, "out of memory");
		track = ops_builder_track(builder, &(struct ops_track){.pid = 1, .tid = 1, .number = 1});
		for (int64_t i = 0; i < count; i++)
			read_event(builder, track, (uint64_t)i + 1);
		require(ops_builder_finish(builder, &trace, NULL) == OPS_OK, "no trace");
		answer(trace);
		ops_trace_unref(trace);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The extent of a trace; see extent.h.
 */
#include "derive/extent.h"

#include <string.h>

static const char window_end[] = "Record Window End";

struct ops_interval ops_extent_of(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t memory_count, counter_count;
	const struct ops_memory_record *memory = ops_trace_memory(trace, &memory_count);
	const struct ops_counter_record *counters = ops_trace_counters(trace, &counter_count);
	uint32_t end_name = ops_trace_find_string(trace, window_end, strlen(window_end));
	struct ops_interval extent = {ops_trace_origin(trace), ops_trace_origin(trace)};

	for (size_t row = 0; row < events->count; row++)
		if (events->end_ns[row] > extent.end_ns && events->name[row] != end_name)
			extent.end_ns = events->end_ns[row];
	for (size_t i = 0; i < memory_count; i++)
		extent.end_ns = memory[i].time_ns > extent.end_ns ? memory[i].time_ns : extent.end_ns;
	for (size_t i = 0; i < counter_count; i++)
		extent.end_ns = counters[i].time_ns > extent.end_ns ? counters[i].time_ns : extent.end_ns;
	return extent;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The extent of a trace, and its threads; see extent.h.
 */
#include "derive/extent.h"

#include <string.h>

#include "base/alloc.h"

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

/* Marks the tracks that have events of the program. Returns NULL if out of memory. */
static uint8_t *extent_find_used(const struct ops_trace *trace, size_t track_count)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint8_t *used = ops_alloc_zeroed(track_count + 1, 1);

	for (size_t row = 0; used && row < events->count; row++)
		if (events->kind[row] != OPS_EVENT_TRACE && events->kind[row] != OPS_EVENT_MARK)
			used[events->track[row]] = 1;
	return used;
}

size_t ops_thread_count(const struct ops_trace *trace)
{
	size_t count, threads = 0;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	uint8_t *used = NULL;

	for (size_t i = 0; i < count; i++) {
		if (tracks[i].kind != OPS_TRACK_THREAD || tracks[i].flags & OPS_TRACK_COROUTINE)
			continue;
		if (tracks[i].flags & OPS_TRACK_PID_TEXT && !used)
			used = extent_find_used(trace, count);
		threads += !(tracks[i].flags & OPS_TRACK_PID_TEXT) || !used || used[i];
	}
	ops_free(used);
	return threads;
}

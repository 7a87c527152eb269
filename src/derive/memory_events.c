/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of memory records; see memory_events.h. Both are in order of time, so one pass suffices.
 */
#include "derive/memory_events.h"

#include "base/alloc.h"
#include "trace/nests.h"

uint32_t *ops_memory_events(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count, tracks;
	const struct ops_memory_record *records = ops_trace_memory(trace, &count);
	uint32_t *rows = ops_realloc_array(NULL, count + 1, sizeof(*rows)), *open, next = 0; /* by track: innermost open event */

	ops_trace_tracks(trace, &tracks);
	open = ops_alloc_none(tracks + 1);
	if (!rows || !open) {
		ops_free(rows);
		ops_free(open);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t *row = &open[records[i].track];

		for (; next < events->count && events->start_ns[next] <= records[i].time_ns; next++)
			if (ops_event_nests(events, next))
				open[events->track[next]] = next;
		while (*row != OPS_NONE && events->end_ns[*row] < records[i].time_ns)
			*row = events->parent[*row];
		rows[i] = *row;
	}
	ops_free(open);
	return rows;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the row that contains each memory record. Both are in order of time, so one pass suffices.
 */
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

uint32_t *advice_memory_rows(const struct advice *advice)
{
	size_t count, tracks;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	uint32_t *rows = ops_realloc_array(NULL, count + 1, sizeof(*rows)), *current, next = 0;

	ops_trace_tracks(advice->trace, &tracks);
	current = ops_alloc_none(tracks + 1);
	if (!rows || !current) {
		ops_free(rows);
		ops_free(current);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t *row = &current[records[i].track];

		for (; next < advice->events->count && advice->events->start_ns[next] <= records[i].time_ns; next++)
			if (!(advice->events->flags[next] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)))
				current[advice->events->track[next]] = next;
		while (*row != OPS_NONE && advice->events->end_ns[*row] < records[i].time_ns)
			*row = advice->events->parent[*row];
		rows[i] = *row;
	}
	ops_free(current);
	return rows;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Releases of large tensors between calls. Their time looks like self time of a function, but belongs to the allocator.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "trace/nests.h"

/* Limit on the search for the next row of a thread among rows of other threads. */
#define REACH 64

static int64_t next_start(const struct advice *advice, uint32_t row, uint32_t next)
{
	const struct ops_events *events = advice->events;

	for (uint32_t i = next; i < events->count && i < next + REACH; i++)
		if (events->track[i] == events->track[row] && ops_event_nests(events, i))
			return events->start_ns[i] < events->end_ns[row] ? events->start_ns[i] : events->end_ns[row];
	return events->end_ns[row];
}

/* A gap may contain a wait for the processor, which is subtracted from the self time of the function. */
static bool advice_frees_add(const struct advice *advice, struct advice_frees *frees, uint32_t row, int64_t start_ns,
                             int64_t end_ns)
{
	int64_t ns = end_ns > start_ns ? end_ns - start_ns : 0;

	/* Several releases in one gap. */
	if (frees->count && frees->items[frees->count - 1].row == row && frees->items[frees->count - 1].start_ns == start_ns)
		return true;
	return OPS_ARRAY_APPEND(frees, (struct advice_free){row, start_ns, ns < advice->self_ns[row] ? ns : advice->self_ns[row]});
}

bool advice_find_frees(const struct advice *advice, int64_t bytes_min, struct advice_frees *ret_frees)
{
	const struct ops_events *events = advice->events;
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	uint32_t *rows = advice_memory_rows(advice), next = 0;
	int64_t *last_ns = ops_alloc_zeroed(events->count + 1, sizeof(*last_ns)); /* by row: end of the last child so far */
	bool done = rows && last_ns;

	for (size_t i = 0; done && i < count; i++) {
		uint32_t row = rows[i];

		for (; next < events->count && events->start_ns[next] <= records[i].time_ns; next++)
			if (events->parent[next] != OPS_NONE)
				last_ns[events->parent[next]] = events->end_ns[next];
		if (row != OPS_NONE && records[i].device_type == 0 && records[i].bytes <= -bytes_min &&
		    !advice_is_operator(advice, row))
			done = advice_frees_add(advice, ret_frees, row,
			                        last_ns[row] > events->start_ns[row] ? last_ns[row] : events->start_ns[row],
			                        next_start(advice, row, next));
	}
	ops_free(rows);
	ops_free(last_ns);
	return done;
}

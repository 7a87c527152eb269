/* SPDX-License-Identifier: Apache-2.0
 *
 * The function events of a trace: its visible rows, and the memory records outside of events, in order of time.
 */
#include <opstrobe/internal/analyze.h>
#include <opstrobe/internal/clock.h>

#include "analyze/visible.h"
#include "base/alloc.h"
#include "base/fault.h"

/* Position of the merge. Rows and memory records are both in order of time, so one pass over both suffices. */
struct merge {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_memory_record *memory;
	size_t memory_count;
	int64_t *covered_until_ns; /* by track: the latest end of the rows passed so far */
	uint32_t *refs;
	size_t count;
	int64_t deadline_ns;
};

/* Rows between two checks of the time limit. */
#define ROWS_A_LOOK 4096

static bool function_events_is_over(int64_t deadline_ns)
{
	if (deadline_ns == INT64_MAX)
		return false;
	return ops_clock_read_ns(CLOCK_MONOTONIC) >= deadline_ns;
}

/* A record belongs to every event of the same thread whose closed interval contains it. So it has no event if all rows
 * that started by then have ended. */
static bool stands_alone(const struct merge *merge, const struct ops_memory_record *record)
{
	return record->out_of_memory || merge->covered_until_ns[record->track] < record->time_ns;
}

static void function_events_read_memory(struct merge *merge, size_t i)
{
	if (stands_alone(merge, &merge->memory[i]))
		merge->refs[merge->count++] = (uint32_t)i | OPS_MEMORY_REF;
}

/* Returns false if the time limit was reached. */
static bool function_events_read_all(struct merge *merge)
{
	const struct ops_events *events = merge->events;
	size_t at = 0;

	for (size_t row = 0; row < events->count; row++) {
		int64_t *covered_until_ns = &merge->covered_until_ns[events->track[row]];

		if (row % ROWS_A_LOOK == 0 && function_events_is_over(merge->deadline_ns))
			return false;
		if (!ops_event_visible(events, row))
			continue;
		while (at < merge->memory_count && merge->memory[at].time_ns < events->start_ns[row])
			function_events_read_memory(merge, at++);
		merge->refs[merge->count++] = (uint32_t)row;
		if (events->end_ns[row] > *covered_until_ns)
			*covered_until_ns = events->end_ns[row];
	}
	if (function_events_is_over(merge->deadline_ns))
		return false;
	while (at < merge->memory_count)
		function_events_read_memory(merge, at++);
	return true;
}

enum ops_code ops_function_events(const struct ops_trace *trace, uint32_t **ret_refs, size_t *ret_count,
				  struct ops_error *error)
{
	bool complete;

	return ops_function_events_until(trace, INT64_MAX, ret_refs, ret_count, &complete, error);
}

enum ops_code ops_function_events_until(const struct ops_trace *trace, int64_t deadline_ns, uint32_t **ret_refs,
					size_t *ret_count, bool *ret_complete, struct ops_error *error)
{
	struct merge merge = {.trace = trace, .events = ops_trace_events(trace), .deadline_ns = deadline_ns};
	size_t track_count;
	uint32_t *fitted;

	merge.memory = ops_trace_memory(trace, &merge.memory_count);
	ops_trace_tracks(trace, &track_count);
	merge.covered_until_ns = ops_realloc_array(NULL, track_count + 1, sizeof(*merge.covered_until_ns));
	merge.refs = ops_realloc_array(NULL, merge.events->count + merge.memory_count + 1, sizeof(*merge.refs));
	if (!merge.covered_until_ns || !merge.refs) {
		ops_free(merge.covered_until_ns);
		ops_free(merge.refs);
		return ops_fault_memory(error);
	}
	for (size_t track = 0; track < track_count; track++)
		merge.covered_until_ns[track] = INT64_MIN;
	*ret_complete = function_events_read_all(&merge);
	ops_free(merge.covered_until_ns);
	/* Most memory records lie in some event. If the list cannot be shrunk, it is kept as it is. */
	fitted = ops_realloc_array(merge.refs, merge.count + 1, sizeof(*merge.refs));
	*ret_refs = fitted ? fitted : merge.refs;
	*ret_count = merge.count;
	return OPS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans that do not nest; see overlap.h. One sweep over the rows, which are sorted by start, with a stack of open rows for each
 * lane.
 */
#include "write/overlap.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/bits.h"

/* Open rows, outermost first: none ends after the one before it. */
struct lane {
	uint32_t *items;
	size_t count;
	size_t capacity;
};

/* Decides which of two partly overlapping spans keeps its place: the one with the higher rank or, if equal, the earlier one. A
 * frame ranks below ranges that open or close in it, such as a step that ends in the method that calls the profiler's step(). */
static int overlap_rank(const struct ops_events *events, uint32_t row)
{
	if (events->flags[row] & OPS_EVENT_ASYNC)
		return 0;
	return events->kind[row] == OPS_EVENT_PYTHON_FUNCTION ? 1 : 2;
}

/* Adds the row to its lane. If it partly overlaps another row, marks one of the two. Returns false if out of memory. */
static bool overlap_place(const struct ops_events *events, struct lane *lane, uint32_t row, uint8_t *marks)
{
	uint32_t *top;
	size_t cut;

	while (lane->count && events->end_ns[lane->items[lane->count - 1]] <= events->start_ns[row])
		lane->count--;
	for (cut = lane->count; cut && events->end_ns[lane->items[cut - 1]] < events->end_ns[row]; cut--) {
		if (overlap_rank(events, lane->items[cut - 1]) >= overlap_rank(events, row)) {
			ops_bit_set(marks, row);
			return true;
		}
	}
	while (lane->count > cut)
		ops_bit_set(marks, lane->items[--lane->count]);
	top = OPS_ARRAY_PUSH(lane);
	if (top)
		*top = row;
	return top;
}

uint8_t *ops_overlap_marks(const struct ops_trace *trace, const uint32_t *lanes, size_t lane_count)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct lane *open = ops_alloc_zeroed(lane_count, sizeof(*open));
	uint8_t *marks = ops_alloc_zeroed(events->count / 8 + 1, 1);
	bool whole = open && marks;

	for (size_t row = 0; row < events->count && whole; row++)
		if (events->kind[row] != OPS_EVENT_CPU_INSTANT)
			whole = overlap_place(events, &open[lanes[events->track[row]]], (uint32_t)row, marks);
	for (size_t i = 0; open && i < lane_count; i++)
		OPS_ARRAY_RELEASE(&open[i]);
	ops_free(open);
	if (whole)
		return marks;
	ops_free(marks);
	return NULL;
}

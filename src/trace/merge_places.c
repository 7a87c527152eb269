/* SPDX-License-Identifier: Apache-2.0
 *
 * See merge_places.h.
 */
#include "trace/merge_places.h"

#include "base/alloc.h"
#include "base/order.h"

/* The builder sorts stably by start and end, so sorting the numbers in the same way gives the position of each row. */
struct merged_rows {
	const int64_t *start_ns;
	const int64_t *end_ns;
};

static bool row_before(const void *context, uint32_t a, uint32_t b)
{
	const struct merged_rows *rows = context;

	return rows->start_ns[a] < rows->start_ns[b] ||
	       (rows->start_ns[a] == rows->start_ns[b] && rows->end_ns[a] > rows->end_ns[b]);
}

/* Returns the position after sorting for each number in order of adding; NULL if out of memory. */
static uint32_t *places_after(const struct merged_rows *rows, size_t count)
{
	uint32_t *order = ops_realloc_array(NULL, count + 1, sizeof(*order));
	uint32_t *after = ops_realloc_array(NULL, count + 1, sizeof(*after));

	for (size_t i = 0; order && i < count; i++)
		order[i] = (uint32_t)i;
	if (!order || !after || !ops_sort_rows(order, count, row_before, rows)) {
		ops_free(order);
		ops_free(after);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		after[order[i]] = (uint32_t)i;
	ops_free(order);
	return after;
}

/* Collects start and end of all events or, with `memory`, all records, in order of adding. */
static uint32_t *merge_places_find_places(const struct ops_trace_part *parts, size_t part_count, size_t count, bool memory)
{
	int64_t *times = ops_realloc_array(NULL, count + 1, 2 * sizeof(*times));
	int64_t *starts = times, *ends = times ? times + count : NULL;
	struct merged_rows rows = {starts, ends};
	uint32_t *after;
	size_t n = 0;

	if (!times)
		return NULL;
	for (size_t p = 0; p < part_count; p++) {
		const struct ops_events *e = ops_trace_events(parts[p].trace);
		size_t memory_count;
		const struct ops_memory_record *records = ops_trace_memory(parts[p].trace, &memory_count);
		size_t all = memory ? memory_count : e->count;

		for (size_t i = 0; i < (parts[p].whole ? all : parts[p].ref_count); i++) {
			uint32_t ref = parts[p].whole ? (uint32_t)i | (memory ? OPS_MEMORY_REF : 0) : parts[p].refs[i];
			if (!(ref & OPS_MEMORY_REF) == memory)
				continue;
			starts[n] = memory ? records[ref & ~OPS_MEMORY_REF].time_ns : e->start_ns[ref];
			ends[n] = memory ? starts[n] : e->end_ns[ref];
			n++;
		}
	}
	after = places_after(&rows, count);
	ops_free(times);
	return after;
}

bool ops_merge_move_refs(const struct ops_trace_part *parts, size_t part_count, size_t event_count, size_t memory_count,
                         uint32_t *refs, size_t ref_count)
{
	uint32_t *events = merge_places_find_places(parts, part_count, event_count, false);
	uint32_t *memory = merge_places_find_places(parts, part_count, memory_count, true);

	for (size_t i = 0; events && memory && i < ref_count; i++)
		refs[i] = refs[i] & OPS_MEMORY_REF ? OPS_MEMORY_REF | memory[refs[i] & ~OPS_MEMORY_REF] : events[refs[i]];
	ops_free(events);
	ops_free(memory);
	return events && memory;
}

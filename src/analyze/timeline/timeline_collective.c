/* SPDX-License-Identifier: Apache-2.0
 *
 * One collective operation on the timelines of several ranks: its position on the host and on the devices of each.
 */
#include <string.h>

#include "analyze/timeline/timeline.h"
#include "analyze/views/view_communication.h"
#include "base/alloc.h"
#include "base/fault.h"

struct rank {
	const struct ops_views *views; /* kept with the trace; NULL: see `own` */
	struct ops_views own;
	uint32_t *operations; /* by collective */
};

struct ranks {
	struct rank *items;
	size_t count;
	struct ops_operations operations;
};

static bool timeline_collective_open(struct ranks *ranks, struct rank *rank, const struct ops_timeline *timeline)
{
	struct ops_intern texts = {0};
	uint32_t *keys = NULL;
	size_t count;
	bool done;

	rank->views = ops_views_open(&rank->own, timeline->trace, OPS_RULES_OPSTROBE, true);
	if (!rank->views)
		return false;
	count = rank->views->collectives.count;
	keys = ops_realloc_array(NULL, count + 1, sizeof(*keys));
	rank->operations = ops_realloc_array(NULL, count + 1, sizeof(*rank->operations));
	done = keys && rank->operations && view_collectives_find_kinds(rank->views, &texts, keys) &&
	       view_collectives_number(&ranks->operations, &texts, keys, count, rank->operations);
	ops_intern_release(&texts);
	ops_free(keys);
	return done;
}

static bool ranks_init(struct ranks *ranks, const struct ops_timeline *const *timelines, size_t count)
{
	bool done;

	*ranks = (struct ranks){.items = ops_alloc_zeroed(count, sizeof(*ranks->items)), .count = count};
	done = ranks->items != NULL;
	for (size_t i = 0; done && i < count; i++)
		done = timeline_collective_open(ranks, &ranks->items[i], timelines[i]);
	return done;
}

static void ranks_release(struct ranks *ranks)
{
	for (size_t i = 0; ranks->items && i < ranks->count; i++) {
		ops_views_release(&ranks->items[i].own);
		ops_free(ranks->items[i].operations);
	}
	ops_free(ranks->items);
	ops_operations_release(&ranks->operations);
}

/* --- selection -------------------------------------------------------------------------------------------------------- */

/* Returns the collective that a row belongs to: its host event, an event inside that, or one of its kernels. Returns
 * OPS_NONE if there is none. */
static uint32_t collective_of(const struct ops_views *views, uint32_t row)
{
	if (views->node_of[row] != OPS_NONE)
		return views->nodes.items[views->node_of[row]].collective;
	for (size_t i = 0; i < views->device_events.count; i++)
		if (views->device_events.items[i].row == row)
			return views->device_events.items[i].collective;
	return OPS_NONE;
}

static uint32_t timeline_collective_find(const struct rank *rank, uint32_t operation)
{
	for (uint32_t i = 0; i < rank->views->collectives.count; i++)
		if (rank->operations[i] == operation)
			return i;
	return OPS_NONE;
}

/* Finds the first operation of the first rank that all ranks have; OPS_NONE if there is none. Returns false if out of
 * memory. */
static bool find_common(const struct ranks *ranks, uint32_t *ret_operation)
{
	size_t operations = ranks->operations.numbers.count;
	uint32_t *met = ops_alloc_zeroed(operations + 1, sizeof(*met)); /* by operation: number of ranks that have it */
	const struct rank *first = &ranks->items[0];

	if (!met)
		return false;
	for (size_t i = 0; i < ranks->count; i++)
		for (size_t k = 0; k < ranks->items[i].views->collectives.count; k++)
			met[ranks->items[i].operations[k]]++;
	*ret_operation = OPS_NONE;
	for (size_t i = 0; *ret_operation == OPS_NONE && i < first->views->collectives.count; i++)
		if (met[first->operations[i]] == ranks->count)
			*ret_operation = first->operations[i];
	ops_free(met);
	return true;
}

/* --- result ----------------------------------------------------------------------------------------------------------- */

static void timeline_collective_write_calls(const struct ops_timeline *timeline, const struct rank *rank, uint32_t operation,
                                            struct ops_json_writer *json)
{
	uint32_t collective = operation == OPS_NONE ? OPS_NONE : timeline_collective_find(rank, operation);

	ops_json_open(json, '[');
	if (collective != OPS_NONE)
		timeline_write_place(timeline, json, NULL, rank->views->collectives.items[collective].row);
	for (size_t i = 0; collective != OPS_NONE && i < rank->views->device_events.count; i++)
		if (rank->views->device_events.items[i].collective == collective)
			timeline_write_place(timeline, json, NULL, rank->views->device_events.items[i].row);
	ops_json_close(json, ']');
}

static void timeline_collective_write(const struct ops_timeline *const *timelines, const struct ranks *ranks, uint32_t operation,
                                      struct ops_json_writer *json)
{
	const struct rank *first = &ranks->items[0];
	uint32_t collective = operation == OPS_NONE ? OPS_NONE : timeline_collective_find(first, operation);

	ops_json_open(json, '{');
	if (collective != OPS_NONE) {
		ops_json_member_string(json, "name", view_row_name(first->views, first->views->collectives.items[collective].row));
	} else {
		ops_json_member_null(json, "name");
	}
	OPS_JSON_LIST(json, "calls", i, ranks->count,
	              timeline_collective_write_calls(timelines[i], &ranks->items[i], operation, json));
	ops_json_close(json, '}');
}

enum ops_code ops_timelines_collective(const struct ops_timeline *const *timelines, size_t count, uint32_t row,
                                       char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	struct ranks ranks;
	uint32_t operation = OPS_NONE, collective;
	bool done;

	if (row != OPS_NONE && row >= timelines[0]->events->count)
		return ops_fault(error, OPS_INVALID, "row %u does not exist", row);
	done = ranks_init(&ranks, timelines, count);
	if (done && row == OPS_NONE)
		done = find_common(&ranks, &operation);
	if (done && row != OPS_NONE && (collective = collective_of(ranks.items[0].views, row)) != OPS_NONE)
		operation = ranks.items[0].operations[collective];
	if (done)
		timeline_collective_write(timelines, &ranks, operation, &json);
	out.failed |= !done;
	ranks_release(&ranks);
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

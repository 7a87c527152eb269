/* SPDX-License-Identifier: Apache-2.0
 *
 * Collective operations: the host part is found by name, the device parts by external id or by their launch. A kernel
 * with one of NCCL's names communicates even if its host part is unknown.
 */
#include <string.h>

#include "analyze/views/view_communication.h"
#include "base/alloc.h"
#include "base/map.h"
#include "derive/around.h"
#include "derive/messages.h"
#include "trace/inputs.h"

/* Sums over all tensors, including those in lists. */
static int64_t inputs_bytes(struct ops_input_cursor cursor)
{
	struct ops_input item;
	int64_t bytes = 0;

	while (ops_inputs_next(&cursor, &item)) {
		int64_t more = 0;

		if (ops_input_is_tensor(item.tag)) {
			more = ops_tensor_bytes(&item);
		} else if (item.tag == OPS_INPUT_TENSOR_LIST) {
			struct ops_input_cursor inner = ops_input_items(&item);
			struct ops_input tensor;

			while (ops_inputs_next(&inner, &tensor))
				if (__builtin_add_overflow(more, ops_tensor_bytes(&tensor), &more))
					more = 0;
		}
		if (__builtin_add_overflow(bytes, more, &bytes))
			return 0;
	}
	return bytes;
}

static int64_t row_bytes(const struct ops_views *views, uint32_t row)
{
	uint32_t inputs = views->events->inputs[row];
	struct ops_string list;

	if (inputs == OPS_NONE)
		return 0;
	list = ops_trace_inputs(views->trace, inputs);
	return inputs_bytes(ops_inputs_open(list.bytes, list.size));
}

/* A later event with the same external id replaces the earlier one. */
static bool view_collectives_add_collective(struct ops_views *views, struct ops_map *by_id, uint32_t row)
{
	uint64_t id = views->events->id ? views->events->id[row] : 0;
	uint32_t at = (uint32_t)views->collectives.count;
	struct view_collective *collective;

	if (id) {
		uint32_t *known = ops_map_slot(by_id, id, at);

		if (!known)
			return false;
		at = *known;
	}
	collective = at < views->collectives.count ? &views->collectives.items[at] : OPS_ARRAY_PUSH(&views->collectives);
	if (!collective)
		return false;
	*collective = (struct view_collective){.row = row, .step = OPS_NONE, .id = id, .bytes = row_bytes(views, row)};
	collective->has_inputs = collective->bytes > 0;
	views->nodes.items[views->node_of[row]].collective = at;
	return true;
}

/* A node inside a collective is part of it. */
static void propagate_collectives(struct ops_views *views)
{
	for (size_t i = 0; i < views->nodes.count; i++) {
		struct view_node *node = &views->nodes.items[i];

		if (node->collective == OPS_NONE && node->parent != OPS_NONE)
			node->collective = views->nodes.items[node->parent].collective;
	}
}

static bool is_in_collective(const void *context, uint32_t row)
{
	const struct ops_views *views = context;

	return views->node_of[row] != OPS_NONE && views->nodes.items[views->node_of[row]].collective != OPS_NONE;
}

/* Returns the innermost collective around the call that launched a kernel. `around` has the innermost rows in collectives. */
static uint32_t collective_around(const struct ops_views *views, const uint32_t *around, const struct view_device_event *event)
{
	uint32_t row = event->launch == OPS_NONE ? OPS_NONE : around[views->launches.items[event->launch].row];

	return row == OPS_NONE ? OPS_NONE : views->nodes.items[views->node_of[row]].collective;
}

/* Labels of collectives often have no inputs; their kernels have the message sizes. */
static void view_collectives_add_bytes(struct ops_views *views, const struct view_device_event *event)
{
	struct view_collective *collective = &views->collectives.items[event->collective];

	if (!collective->has_inputs)
		view_add(&collective->bytes, ops_message_bytes(views->trace, event->row));
}

/* Returns false if out of memory. */
static bool assign_kernels(struct ops_views *views, const struct ops_map *by_id)
{
	uint32_t *around = ops_rows_around(views->trace, is_in_collective, views);

	for (size_t i = 0; around && i < views->device_events.count; i++) {
		struct view_device_event *event = &views->device_events.items[i];
		uint64_t id = views->events->id ? views->events->id[event->row] : 0;
		uint32_t collective = id ? ops_map_find(by_id, id) : OPS_NONE;

		if (event->part != VIEW_KERNEL)
			continue;
		if (collective == OPS_NONE && event->node != OPS_NONE && views->policy->classes != OPS_CLASS_BY_COLLECTIVE)
			collective = views->nodes.items[event->node].collective;
		/* The call's operator may be around the collective, as record_param_comms is. */
		if (collective == OPS_NONE && (views->names[views->events->name[event->row]] & VIEW_NAME_COMMUNICATES))
			collective = collective_around(views, around, event);
		/* Gloo's work runs on the host. */
		if (collective != OPS_NONE &&
		    (views->names[views->events->name[views->collectives.items[collective].row]] & VIEW_NAME_GLOO))
			collective = OPS_NONE;
		event->collective = collective;
		if (collective != OPS_NONE)
			view_collectives_add_bytes(views, event);
		event->communicates = (collective != OPS_NONE && views->policy->classes != OPS_CLASS_BY_PREFIX) ||
		                      (views->names[views->events->name[event->row]] & VIEW_NAME_COMMUNICATES);
	}
	ops_free(around);
	return around != NULL;
}

/* Makes the ranges of each collective: its host event, then its kernels in order of time. */
static bool make_ranges(struct ops_views *views)
{
	uint32_t at = 0;

	for (size_t i = 0; i < views->collectives.count; i++)
		views->collectives.items[i].count = 1;
	for (size_t i = 0; i < views->device_events.count; i++)
		if (views->device_events.items[i].collective != OPS_NONE)
			views->collectives.items[views->device_events.items[i].collective].count++;
	for (size_t i = 0; i < views->collectives.count; i++) {
		struct view_collective *collective = &views->collectives.items[i];

		collective->first = at;
		at += collective->count;
		collective->count = 1;
		for (uint32_t k = collective->first; k < at; k++)
			if (!ops_intervals_push(&views->ranges, view_start(views, collective->row), view_end(views, collective->row)))
				return false;
	}
	for (size_t i = 0; i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];
		struct view_collective *collective;

		if (event->collective == OPS_NONE)
			continue;
		collective = &views->collectives.items[event->collective];
		views->ranges.items[collective->first + collective->count++] =
			(struct ops_interval){view_start(views, event->row), view_end(views, event->row)};
	}
	return true;
}

bool view_collectives_find(struct ops_views *views)
{
	struct ops_map by_id = {0};
	bool done = true;

	for (uint32_t row = 0; done && views->has_collectives && row < views->events->count; row++)
		if ((views->parts[row] == VIEW_OPERATOR || views->parts[row] == VIEW_LABEL) &&
		    (views->names[views->events->name[row]] & VIEW_NAME_COLLECTIVE))
			done = view_collectives_add_collective(views, &by_id, row);
	if (done) {
		propagate_collectives(views);
		done = assign_kernels(views, &by_id) && make_ranges(views);
	}
	ops_map_release(&by_id);
	return done;
}

/* --- ranks -------------------------------------------------------------------------------------------------------------- */

/* Returns the id of the text that identifies the operation; OPS_INTERN_NONE if out of memory. `kernel` is a row of the collective,
 * or OPS_NONE. */
static uint32_t kind_of_collective(const struct ops_views *views, struct ops_intern *texts, uint32_t collective, uint32_t kernel)
{
	uint32_t row = views->collectives.items[collective].row, parent = views->nodes.items[views->node_of[row]].parent;
	struct ops_string name = view_row_name(views, row);
	struct ops_buffer text = {0};
	uint32_t kind;

	ops_buffer_append(&text, name.bytes, name.size);
	ops_buffer_append(&text, "\n", 1);
	if (!ops_operation_append_group(views->trace, row, &text) &&
	    (parent == OPS_NONE || !ops_operation_append_group(views->trace, views->nodes.items[parent].row, &text)) && kernel != OPS_NONE)
		ops_operation_append_group(views->trace, kernel, &text);
	kind = text.failed ? OPS_INTERN_NONE : ops_intern_add(texts, text.bytes, text.size);
	ops_buffer_release(&text);
	return kind;
}

bool view_collectives_find_kinds(const struct ops_views *views, struct ops_intern *texts, uint32_t *ret_kinds)
{
	uint32_t *kernels = ops_alloc_none(views->collectives.count + 1); /* one row of each collective */
	bool done = kernels != NULL;

	for (size_t i = 0; done && i < views->device_events.count; i++)
		if (views->device_events.items[i].collective != OPS_NONE)
			kernels[views->device_events.items[i].collective] = views->device_events.items[i].row;
	for (uint32_t i = 0; done && i < views->collectives.count; i++) {
		ret_kinds[i] = kind_of_collective(views, texts, i, kernels[i]);
		done = ret_kinds[i] != OPS_INTERN_NONE;
	}
	ops_free(kernels);
	return done;
}

bool view_collectives_number(struct ops_operations *operations, const struct ops_intern *texts, const uint32_t *kinds, size_t count,
                             uint32_t *ret_operations)
{
	struct ops_map seen = {0};
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		ret_operations[i] = ops_operations_number(operations, &seen, texts->entries[kinds[i]].bytes, texts->entries[kinds[i]].size);
		done = ret_operations[i] != OPS_NONE;
	}
	ops_map_release(&seen);
	return done;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication of one worker: how much of it computation hides in each step, and how long each operation took. The
 * time of an operation is that of its kernels; the host event counts only if there are none, as with Gloo.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/views/view_communication.h"
#include "analyze/views/view_names.h"
#include "base/alloc.h"
#include "base/text.h"

bool view_overlaps_init(struct view_overlaps *overlaps, const struct ops_views *views)
{
	/* Without a device the host computes. */
	*overlaps = (struct view_overlaps){
		.computing = &views->times[views->has_kernels ? VIEW_TIME_KERNEL : VIEW_TIME_CPU],
		.talking = &views->times[VIEW_TIME_COMMUNICATION],
	};
	return ops_intervals_intersect(overlaps->computing, overlaps->talking, &overlaps->both);
}

void view_overlaps_release(struct view_overlaps *overlaps)
{
	ops_intervals_release(&overlaps->both);
}

struct view_overlap view_overlaps_next(struct view_overlaps *overlaps, const struct view_step *step)
{
	int64_t start_ns = step->start_ns, end_ns = step->end_ns;
	int64_t computing_ns = ops_intervals_within(overlaps->computing, start_ns, end_ns, &overlaps->cursors[0]);
	int64_t talking_ns = ops_intervals_within(overlaps->talking, start_ns, end_ns, &overlaps->cursors[1]);
	int64_t both_ns = ops_intervals_within(&overlaps->both, start_ns, end_ns, &overlaps->cursors[2]);

	return (struct view_overlap){computing_ns - both_ns, both_ns, talking_ns - both_ns,
	                             end_ns - start_ns + both_ns - computing_ns - talking_ns};
}

void view_write_overlap(struct ops_json_writer *json, const struct view_overlap *overlap)
{
	ops_json_member_us(json, "computation_only", overlap->computation_only_ns);
	ops_json_member_us(json, "overlap", overlap->overlap_ns);
	ops_json_member_us(json, "communication_only", overlap->communication_only_ns);
	ops_json_member_us(json, "other", overlap->other_ns);
}

static bool write_overlaps(const struct ops_views *views, struct ops_json_writer *json)
{
	struct view_overlaps overlaps;
	bool done = view_overlaps_init(&overlaps, views);

	ops_json_member_open(json, "overlap_per_step", '[');
	for (size_t i = 0; done && i < views->steps.count; i++) {
		const struct view_step *step = &views->steps.items[i];
		struct view_overlap overlap = view_overlaps_next(&overlaps, step);

		ops_json_open(json, '{');
		ops_json_member_string(json, "step", step->name);
		view_write_overlap(json, &overlap);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	view_overlaps_release(&overlaps);
	return done;
}

/* --- operations ----------------------------------------------------------------------------------------------------- */

/* Adds the size of a collective to that of others. In a recording without shapes it is unknown; the plugin shows 0. */
static void view_communication_add_bytes(const struct ops_views *views, const struct view_collective *collective, int64_t *bytes)
{
	if (!collective->bytes && views->policy == ops_policy_of(OPS_RULES_OPSTROBE))
		return;
	if (*bytes == RESULT_NULL)
		*bytes = 0;
	view_add(bytes, collective->bytes);
}

int64_t view_collectives_bytes(const struct ops_views *views, const uint32_t *order, size_t count)
{
	int64_t bytes = RESULT_NULL;

	for (size_t i = 0; i < count; i++)
		view_communication_add_bytes(views, &views->collectives.items[order[i]], &bytes);
	return bytes;
}

OPS_ORDER(view_communication_compare, struct view_operation, OPS_BY_TEXT(name))

bool view_operations_find(const struct ops_views *views, view_operation_list *list)
{
	struct ops_map names = {0};
	bool done = true;

	*list = (view_operation_list){0};
	for (size_t i = 0; done && i < views->collectives.count; i++) {
		const struct view_collective *collective = &views->collectives.items[i];
		struct view_operation *operation = OPS_ARRAY_AT(list, ops_map_number(&names, views->events->name[collective->row]));

		done = operation != NULL;
		if (!done)
			break;
		operation->name = view_row_name(views, collective->row);
		if (!operation->calls++)
			operation->bytes = RESULT_NULL;
		view_communication_add_bytes(views, collective, &operation->bytes);
		for (uint32_t k = collective->count > 1 && !views->policy->host_calls_count; done && k < collective->count; k++) {
			const struct ops_interval *range = &views->ranges.items[collective->first + k];

			done = ops_intervals_push(&operation->ranges, range->start_ns, range->end_ns);
		}
	}
	for (size_t i = 0; i < list->count; i++)
		ops_intervals_sort(&list->items[i].ranges);
	OPS_ARRAY_SORT(list, view_communication_compare);
	ops_map_release(&names);
	return done;
}

void view_operations_release(view_operation_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		ops_intervals_release(&list->items[i].ranges);
	OPS_ARRAY_RELEASE(list);
}

static void view_communication_write_operation(struct ops_json_writer *json, const struct view_operation *operation)
{
	ops_json_open(json, '{');
	ops_json_member_string(json, "name", operation->name);
	ops_json_member(json, "calls", (int64_t)operation->calls);
	ops_json_member_if(json, "total_bytes", operation->bytes != RESULT_NULL, operation->bytes);
	ops_json_member_us(json, "total_latency", ops_intervals_length(&operation->ranges));
	ops_json_close(json, '}');
}

static bool write_ops(const struct ops_views *views, struct ops_json_writer *json)
{
	view_operation_list list;
	bool done = view_operations_find(views, &list);

	OPS_JSON_LIST(json, "ops", i, done ? list.count : 0, view_communication_write_operation(json, &list.items[i]));
	view_operations_release(&list);
	return done;
}

/* --- by step -------------------------------------------------------------------------------------------------------- */

static int view_communication_compare_steps(const void *a, const void *b, void *context)
{
	const struct ops_views *views = context;
	uint32_t left = views->collectives.items[*(const uint32_t *)a].step;
	uint32_t right = views->collectives.items[*(const uint32_t *)b].step;

	return (left > right) - (left < right);
}

void view_collectives_by_step(const struct ops_views *views, uint32_t *order)
{
	size_t count = views->collectives.count;

	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	if (count)
		qsort_r(order, count, sizeof(*order), view_communication_compare_steps, (void *)views);
}

size_t view_collectives_step_end(const struct ops_views *views, const uint32_t *order, size_t first)
{
	size_t end = first + 1;

	while (end < views->collectives.count &&
	       views->collectives.items[order[end]].step == views->collectives.items[order[first]].step)
		end++;
	return end;
}

bool view_collectives_cover(const struct ops_views *views, const struct ops_intervals *ranges, const uint32_t *order,
                            size_t count, int64_t *ret_ns)
{
	struct ops_intervals all = {0};
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		const struct view_collective *collective = &views->collectives.items[order[i]];

		for (uint32_t k = 0; done && k < collective->count; k++) {
			const struct ops_interval *range = &ranges->items[collective->first + k];

			done = ops_intervals_push(&all, range->start_ns, range->end_ns);
		}
	}
	ops_intervals_sort(&all);
	*ret_ns = ops_intervals_length(&all);
	ops_intervals_release(&all);
	return done;
}

/* Names the steps, and last the collectives outside of steps. */
static bool name_steps(const struct ops_views *views, struct view_names *names)
{
	bool done = true;

	for (size_t i = 0; done && i < views->steps.count; i++)
		done = view_names_add(names, views->steps.items[i].name);
	return done && view_names_add(names, (struct ops_string){"None", 4});
}

/* Includes host parts, because they determine the wait time. */
static bool write_latencies(const struct ops_views *views, struct ops_json_writer *json)
{
	size_t count = views->collectives.count;
	uint32_t *order = ops_realloc_array(NULL, count, sizeof(*order));
	struct view_names names = {0};
	bool done = order && name_steps(views, &names);

	ops_json_member_open(json, "latency_per_step", '{');
	if (done)
		view_collectives_by_step(views, order);
	for (size_t i = 0, next; done && i < count; i = next) {
		uint32_t step = views->collectives.items[order[i]].step;
		struct ops_string name = view_names_at(&names, step == OPS_NONE ? views->steps.count : step);
		int64_t ns;

		next = view_collectives_step_end(views, order, i);
		done = view_collectives_cover(views, &views->ranges, order + i, next - i, &ns);
		ops_json_key_of(json, name.bytes, name.size);
		ops_json_us(json, ns);
	}
	ops_json_close(json, '}');
	view_names_release(&names);
	ops_free(order);
	return done;
}

bool view_write_communication(const struct ops_views *views, struct ops_json_writer *json)
{
	bool done;

	ops_json_key(json, "communication");
	if (!views->collectives.count) {
		ops_json_null(json);
		return true;
	}
	ops_json_open(json, '{');
	ops_json_member(json, "nodes", (int64_t)views->collectives.count);
	done = write_overlaps(views, json) && write_ops(views, json) && write_latencies(views, json);
	ops_json_close(json, '}');
	return done;
}

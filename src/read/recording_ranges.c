/* SPDX-License-Identifier: Apache-2.0
 *
 * See recording_ranges.h.
 */
#include "read/recording_ranges.h"

#include <opstrobe/trace.h>

#include "base/alloc.h"

bool recording_running_parse(struct ops_payload payload, struct recording_running *ret_running)
{
	struct recording_running running = {0};

	if (!ops_payload_text(&payload, &running.name) || !ops_payload_read(&payload, &running.greenlet, sizeof(running.greenlet)))
		return false;
	running.contexts = payload;
	ops_payload_read(&payload, &running.context, sizeof(running.context));
	*ret_running = running;
	return true;
}

bool recording_running_calls(const struct recording_running *running, uint64_t greenlet, uint64_t context)
{
	struct ops_payload contexts = running->contexts;
	uint64_t entered;

	if (greenlet && greenlet != running->greenlet)
		return false;
	if (!context)
		return true;
	while (ops_payload_read(&contexts, &entered, sizeof(entered)))
		if (entered == context)
			return true;
	return false;
}

void recording_ranges_release(struct recording_ranges *ranges)
{
	OPS_ARRAY_RELEASE(&ranges->open);
	OPS_ARRAY_RELEASE(&ranges->waiting);
	OPS_ARRAY_RELEASE(&ranges->first_waiting);
	ops_intern_release(&ranges->coroutines);
}

/* --- open ranges ---------------------------------------------------------------------------------------------------- */

/* Sets what depends on the ranges around one. `annotations` must have room for one. */
static void recording_ranges_inherit(struct recording_range *range, const struct recording_range *around,
                                     struct recording_annotations *annotations)
{
	uint32_t outer = around ? around->annotation : OPS_NONE, added = (uint32_t)annotations->count;

	range->until_ns = around && around->until_ns < range->end_ns ? around->until_ns : range->end_ns;
	if (range->is_operator) {
		range->operator_id = range->id;
		range->operator_name = range->name;
		range->collective = range->own_collective;
		range->annotation = outer;
		return;
	}
	range->operator_id = around ? around->operator_id : 0;
	range->operator_name = around ? around->operator_name : 0;
	range->collective = around ? around->collective : OPS_NONE;
	if (range->first_annotation == OPS_NONE)
		range->first_annotation = added;
	range->annotation = added;
	annotations->items[annotations->count++] =
		(struct recording_annotation){.id = range->id, .name = range->name, .outer = outer, .first = range->first_annotation};
}

static bool recording_ranges_is_before(const struct recording_range *a, const struct recording_range *b)
{
	return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->id < b->id;
}

/* Removes ranges that have ended, and computes again what the others have around them. */
static bool recording_ranges_renew(struct recording_ranges *ranges, struct recording_annotations *annotations, int64_t time_ns)
{
	struct recording_range *open = ranges->open.items;
	size_t count = 0;

	if (!OPS_ARRAY_RESERVE(annotations, ranges->open.count))
		return false;
	for (size_t i = 0; i < ranges->open.count; i++) {
		struct recording_range range = open[i];
		size_t at = count;

		if (range.end_ns <= time_ns)
			continue;
		for (; at && recording_ranges_is_before(&range, &open[at - 1]); at--)
			open[at] = open[at - 1];
		open[at] = range;
		count++;
	}
	ranges->open.count = count;
	for (size_t i = 0; i < count; i++)
		recording_ranges_inherit(&open[i], i ? &open[i - 1] : NULL, annotations);
	ranges->is_changed = false;
	return true;
}

bool recording_ranges_find(struct recording_ranges *ranges, struct recording_annotations *annotations, int64_t time_ns,
                           const struct recording_range **ret_range)
{
	while (ranges->open.count && ranges->open.items[ranges->open.count - 1].end_ns <= time_ns)
		ranges->open.count--;
	if (ranges->open.count && ranges->open.items[ranges->open.count - 1].until_ns <= time_ns &&
	    !recording_ranges_renew(ranges, annotations, time_ns))
		return false;
	*ret_range = ranges->open.count ? &ranges->open.items[ranges->open.count - 1] : NULL;
	return true;
}

bool recording_ranges_reserve(struct recording_ranges *ranges, struct recording_annotations *annotations, int64_t time_ns)
{
	const struct recording_range *around;

	return OPS_ARRAY_RESERVE(&ranges->open, 1) && recording_ranges_find(ranges, annotations, time_ns, &around) &&
	       OPS_ARRAY_RESERVE(annotations, 1);
}

void recording_ranges_add(struct recording_ranges *ranges, struct recording_annotations *annotations,
                          const struct recording_range *range)
{
	struct recording_range *added = &ranges->open.items[ranges->open.count];

	*added = *range;
	added->greenlet = ranges->greenlet;
	added->context = ranges->context;
	added->first_annotation = OPS_NONE;
	recording_ranges_inherit(added, ranges->open.count ? added - 1 : NULL, annotations);
	ranges->open.count++;
}

/* --- coroutines ----------------------------------------------------------------------------------------------------- */

/* Returns the list of a coroutine's ranges; NULL if out of memory. */
static uint32_t *recording_ranges_list(struct recording_ranges *ranges, uint64_t greenlet, uint64_t context)
{
	const uint64_t key[2] = {greenlet, context};
	uint32_t id = ops_intern_add(&ranges->coroutines, key, sizeof(key));

	return id == OPS_INTERN_NONE ? NULL : OPS_ARRAY_AT(&ranges->first_waiting, id);
}

/* Moves the last open range, or the one at `at`, to the list of its coroutine. */
static bool recording_ranges_interrupt(struct recording_ranges *ranges, struct recording_annotations *annotations, size_t at)
{
	struct recording_range *range = &ranges->open.items[at];
	uint32_t *list = recording_ranges_list(ranges, range->greenlet, range->context), item = ranges->first_free;

	if (!list || (!item && !OPS_ARRAY_RESERVE(&ranges->waiting, 1)))
		return false;
	if (item)
		ranges->first_free = ranges->waiting.items[item - 1].next;
	else
		item = (uint32_t)++ranges->waiting.count;
	ranges->waiting.items[item - 1] = (struct recording_waiting){*range, *list};
	*list = item;
	if (range->first_annotation != OPS_NONE)
		annotations->items[range->first_annotation].was_interrupted = true;
	for (; at + 1 < ranges->open.count; at++)
		ranges->open.items[at] = ranges->open.items[at + 1];
	ranges->open.count--;
	ranges->is_changed = true;
	return true;
}

/* Opens the ranges of a coroutine again. */
static bool recording_ranges_continue(struct recording_ranges *ranges, uint64_t greenlet, uint64_t context)
{
	const uint64_t key[2] = {greenlet, context};
	uint32_t id = ops_intern_find(&ranges->coroutines, key, sizeof(key));
	uint32_t *list = id < ranges->first_waiting.count ? &ranges->first_waiting.items[id] : NULL;

	while (list && *list) {
		struct recording_waiting *waiting = &ranges->waiting.items[*list - 1];
		uint32_t item = *list;

		if (!OPS_ARRAY_APPEND(&ranges->open, waiting->range))
			return false;
		*list = waiting->next;
		waiting->next = ranges->first_free;
		ranges->first_free = item;
		ranges->is_changed = true;
	}
	return true;
}

/* A range of a calling greenlet or context runs as well. */
static bool recording_ranges_continue_all(struct recording_ranges *ranges, const struct recording_running *running)
{
	struct ops_payload contexts = running->contexts;
	uint64_t context;

	if (!recording_ranges_continue(ranges, 0, 0) || (running->greenlet && !recording_ranges_continue(ranges, running->greenlet, 0)))
		return false;
	while (ops_payload_read(&contexts, &context, sizeof(context)))
		if (!recording_ranges_continue(ranges, 0, context) ||
		    (running->greenlet && !recording_ranges_continue(ranges, running->greenlet, context)))
			return false;
	return true;
}

bool recording_ranges_switch(struct recording_ranges *ranges, struct recording_annotations *annotations,
                             const struct recording_running *running, int64_t time_ns)
{
	for (size_t i = ranges->open.count; i-- > 0;) {
		const struct recording_range *range = &ranges->open.items[i];

		if (range->end_ns > time_ns && !recording_running_calls(running, range->greenlet, range->context) &&
		    !recording_ranges_interrupt(ranges, annotations, i))
			return false;
	}
	if (ranges->waiting.count && !recording_ranges_continue_all(ranges, running))
		return false;
	ranges->greenlet = running->greenlet;
	ranges->context = running->context;
	return !ranges->is_changed || recording_ranges_renew(ranges, annotations, time_ns);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows from forward operators to the backward nodes that autograd made for them (spec 3.7). Both carry the same
 * sequence number; the backward node also names the forward operator's thread. In end order, a forward operator is
 * kept under (its thread, sequence number), the later-starting one where several are; a backward node takes it.
 *
 * Rows with one key never meet those of another, and few rows share one. So rows are collected by key in a hash table,
 * and only the handful under one key is put in end order.
 */
#include <string.h>

#include "base/alloc.h"
#include "trace/order.h"
#include "trace/table.h"

/* The rows of one (thread, sequence number), as a chain through struct links.next. */
struct group {
	int64_t sequence_nr;
	uint32_t thread;
	uint32_t last;  /* chain entry added last; its `next` is the first */
	uint32_t count;
	bool backward;  /* whether a backward node is among them: without one there is no arrow */
};

struct entry {
	uint32_t row;
	uint32_t next;
};

struct links {
	const struct ops_trace *trace;
	OPS_ARRAY(struct entry) entries;
	OPS_ARRAY(struct group) groups;
	uint32_t *slots; /* open addressing, index in `groups` + 1 */
	size_t slot_count; /* a power of two */
	OPS_ARRAY(uint32_t) rows; /* scratch: those of one group */
};

static uint64_t hash_key(uint32_t thread, int64_t sequence_nr)
{
	uint64_t hash = ((uint64_t)sequence_nr + ((uint64_t)thread << 40)) * 0x9e3779b97f4a7c15u;

	return hash ^ hash >> 32;
}

static uint32_t *find_slot(struct links *links, uint32_t thread, int64_t sequence_nr)
{
	size_t i = hash_key(thread, sequence_nr) & (links->slot_count - 1);

	for (;; i = (i + 1) & (links->slot_count - 1)) {
		const struct group *group;

		if (links->slots[i] == 0)
			return &links->slots[i];
		group = &links->groups.items[links->slots[i] - 1];
		if (group->thread == thread && group->sequence_nr == sequence_nr)
			return &links->slots[i];
	}
}

/* Keeps the table at most half full. */
static bool grow_slots(struct links *links)
{
	uint32_t *old = links->slots;
	size_t slot_count = links->slot_count ? links->slot_count * 2 : 256;

	if (links->groups.count * 2 < links->slot_count)
		return true;
	links->slots = ops_alloc_zeroed(slot_count, sizeof(*links->slots));
	if (!links->slots) {
		links->slots = old;
		return false;
	}
	links->slot_count = slot_count;
	for (size_t i = 0; i < links->groups.count; i++)
		*find_slot(links, links->groups.items[i].thread, links->groups.items[i].sequence_nr) = (uint32_t)i + 1;
	ops_free(old);
	return true;
}

static struct group *group_of(struct links *links, uint32_t thread, int64_t sequence_nr)
{
	struct group *group;
	uint32_t *slot;

	if (!grow_slots(links))
		return NULL;
	slot = find_slot(links, thread, sequence_nr);
	if (*slot)
		return &links->groups.items[*slot - 1];
	group = OPS_ARRAY_PUSH(&links->groups);
	if (!group)
		return NULL;
	*group = (struct group){.sequence_nr = sequence_nr, .thread = thread};
	*slot = (uint32_t)links->groups.count;
	return group;
}

/* Appends a row to the chain of its key. */
static bool collect(struct links *links, uint32_t row)
{
	const struct ops_columns *c = &links->trace->columns;
	uint32_t forward_thread = c->forward_thread[row];
	uint32_t thread = forward_thread ? forward_thread : links->trace->tracks.items[c->track[row]].number;
	struct group *group = group_of(links, thread, c->sequence_nr[row]);
	struct entry *entry = group ? OPS_ARRAY_PUSH(&links->entries) : NULL;
	uint32_t index;

	if (!entry)
		return false;
	index = (uint32_t)(entry - links->entries.items);
	*entry = (struct entry){row, index};
	if (group->count) {
		entry->next = links->entries.items[group->last].next;
		links->entries.items[group->last].next = index;
	}
	group->last = index;
	group->count++;
	group->backward |= forward_thread != 0;
	return true;
}

static bool collect_all(struct links *links)
{
	const struct ops_columns *c = &links->trace->columns;

	for (size_t row = 0; row < c->count; row++)
		if (c->sequence_nr[row] >= 0 && c->kind[row] == OPS_EVENT_CPU_OP && !collect(links, (uint32_t)row))
			return false;
	return true;
}

static bool ends_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_columns *c = context;

	return c->end_ns[a] < c->end_ns[b];
}

/* Draws the arrows of one group. None points backwards in time. */
static bool link_group(struct links *links, struct ops_trace *trace, const struct group *group)
{
	const struct ops_columns *c = &trace->columns;
	uint32_t forward = OPS_NONE;
	uint32_t at = group->last;

	links->rows.count = 0;
	if (!OPS_ARRAY_RESERVE(&links->rows, group->count))
		return false;
	for (uint32_t i = 0; i < group->count; i++) {
		at = links->entries.items[at].next;
		links->rows.items[links->rows.count++] = links->entries.items[at].row;
	}
	if (!ops_sort_rows(links->rows.items, links->rows.count, ends_before, c))
		return false;
	for (size_t i = 0; i < links->rows.count; i++) {
		uint32_t row = links->rows.items[i];

		if (c->forward_thread[row] == 0) {
			if (forward == OPS_NONE || row > forward)
				forward = row;
		} else if (forward != OPS_NONE && forward < row) {
			struct ops_link *link = OPS_ARRAY_PUSH(&trace->links);
			if (!link)
				return false;
			*link = (struct ops_link){forward, row, OPS_LINK_FORWARD_BACKWARD};
			forward = OPS_NONE;
		}
	}
	return true;
}

static bool starts_at_earlier_row(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_link *links = context;

	return links[a].from < links[b].from;
}

/* Puts the arrows in order of `from`; they come nearly so. */
static bool sort_links(struct ops_trace *trace)
{
	size_t count = trace->links.count;
	uint32_t *order = ops_realloc_array(NULL, count + 1, sizeof(*order));
	struct ops_link *sorted = ops_realloc_array(NULL, count + 1, sizeof(*sorted));
	bool ok = order && sorted;

	for (size_t i = 0; ok && i < count; i++)
		order[i] = (uint32_t)i;
	ok = ok && ops_sort_rows(order, count, starts_at_earlier_row, trace->links.items);
	for (size_t i = 0; ok && i < count; i++)
		sorted[i] = trace->links.items[order[i]];
	ops_free(order);
	if (!ok) {
		ops_free(sorted);
		return false;
	}
	ops_free(trace->links.items);
	trace->links.items = sorted;
	trace->links.capacity = count + 1;
	return true;
}

bool ops_links_build(struct ops_trace *trace)
{
	struct links links = {.trace = trace};
	bool ok = collect_all(&links);

	for (size_t i = 0; ok && i < links.groups.count; i++)
		if (links.groups.items[i].backward)
			ok = link_group(&links, trace, &links.groups.items[i]);
	ok = ok && (trace->links.count == 0 || sort_links(trace));
	OPS_ARRAY_RELEASE(&links.entries);
	OPS_ARRAY_RELEASE(&links.groups);
	OPS_ARRAY_RELEASE(&links.rows);
	ops_free(links.slots);
	return ok;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Links from forward operators to the backward nodes that autograd created for them. Both have the same sequence number; the
 * backward node also has the forward operator's thread. In order of ends, a forward operator is stored under its thread and
 * sequence number (the one that starts last, if there are several), and a backward node takes it.
 *
 * Rows with different keys do not affect each other, and few rows share a key. So rows are chained by key in a hash table, and
 * only the few rows of one chain are sorted by their ends.
 */
#include "base/alloc.h"

#include <opstrobe/internal/trace.h>
#include "base/order.h"
#include "trace/table.h"

#define SLOTS_MIN 1024u

/* Flag in `next`: the row is not the first of its chain. Rows are 31-bit numbers (trace/builder.c). */
#define NOT_FIRST 0x80000000u
#define LAST 0x7fffffffu

struct links {
	const struct ops_trace *trace;
	uint32_t *next;    /* by row: the next row of its chain, or LAST; ascending */
	uint32_t *slots;   /* open addressing: first row of a chain + 1; 0: none */
	size_t slot_count; /* a power of two */
	size_t chain_count;
	OPS_ARRAY(uint32_t) rows; /* scratch: the rows of one chain */
};

static bool links_has_key(const struct ops_columns *c, size_t row)
{
	return c->sequence_nr[row] >= 0 && c->kind[row] == OPS_EVENT_CPU_OP;
}

/* Returns the logical thread of the forward operator that a row is or belongs to. */
static uint32_t key_thread(const struct ops_trace *trace, uint32_t row)
{
	uint32_t forward_thread = trace->columns.forward_thread[row];

	return forward_thread ? forward_thread : trace->tracks.items[trace->columns.track[row]].number;
}

/* Returns the preferred slot of a key: sixteen consecutive sequence numbers share a cache line. */
static size_t home_slot(uint32_t thread, int64_t sequence_nr)
{
	uint64_t line = ((uint64_t)sequence_nr >> 4 ^ (uint64_t)thread << 40) * 0x9e3779b97f4a7c15u;

	return (size_t)((line ^ line >> 32) << 4 | (sequence_nr & 15));
}

/* Returns the slot of the chain with the row's key, or an empty slot. */
static uint32_t *links_find_slot(const struct links *links, uint32_t row)
{
	const int64_t *sequence_nr = links->trace->columns.sequence_nr;
	uint32_t thread = key_thread(links->trace, row);
	size_t i = home_slot(thread, sequence_nr[row]);

	for (;; i++) {
		uint32_t *slot = &links->slots[i & (links->slot_count - 1)];

		if (*slot == 0 ||
		    (sequence_nr[*slot - 1] == sequence_nr[row] && key_thread(links->trace, *slot - 1) == thread))
			return slot;
	}
}

/* Keeps the table at most half full. */
static bool links_grow_slots(struct links *links)
{
	uint32_t *old = links->slots;
	size_t old_count = links->slot_count;

	if (links->chain_count * 2 < old_count)
		return true;
	links->slot_count = old_count ? old_count * 2 : SLOTS_MIN;
	links->slots = ops_alloc_zeroed(links->slot_count, sizeof(*links->slots));
	for (size_t i = 0; links->slots && i < old_count; i++)
		if (old[i])
			*links_find_slot(links, old[i] - 1) = old[i];
	ops_free(old);
	return links->slots != NULL;
}

/* Chains the rows from the last to the first, so that each chain is in ascending order. */
static bool chain_rows(struct links *links)
{
	const struct ops_columns *c = &links->trace->columns;

	for (size_t row = c->count; row-- > 0;) {
		uint32_t *slot;

		if (!links_has_key(c, row))
			continue;
		if (!links_grow_slots(links))
			return false;
		slot = links_find_slot(links, (uint32_t)row);
		links->next[row] = LAST;
		if (*slot) {
			links->next[row] = *slot - 1;
			links->next[*slot - 1] |= NOT_FIRST;
		} else {
			links->chain_count++;
		}
		*slot = (uint32_t)row + 1;
	}
	return true;
}

static bool ends_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_columns *c = context;

	return c->end_ns[a] < c->end_ns[b];
}

/* Collects the rows of a chain in order of ends; no rows if none is a backward node. */
static bool collect_chain(struct links *links, uint32_t first)
{
	const struct ops_columns *c = &links->trace->columns;
	bool backward = false;

	links->rows.count = 0;
	for (uint32_t row = first; row != LAST; row = links->next[row] & ~NOT_FIRST) {
		uint32_t *place = OPS_ARRAY_PUSH(&links->rows);

		if (!place)
			return false;
		*place = row;
		backward |= c->forward_thread[row] != 0;
	}
	if (!backward)
		links->rows.count = 0;
	return ops_sort_rows(links->rows.items, links->rows.count, ends_before, c);
}

/* Adds the links of one chain. None points backwards in time. */
static bool link_chain(struct links *links, struct ops_trace *trace, uint32_t first)
{
	uint32_t forward = OPS_NONE;

	if (!collect_chain(links, first))
		return false;
	for (size_t i = 0; i < links->rows.count; i++) {
		uint32_t row = links->rows.items[i];

		if (trace->columns.forward_thread[row] == 0) {
			if (forward == OPS_NONE || row > forward)
				forward = row;
		} else if (forward != OPS_NONE && forward < row) {
			struct ops_link *link = OPS_ARRAY_PUSH(&trace->links);

			if (!link)
				return false;
			*link = (struct ops_link){forward, row, OPS_LINK_FORWARD_BACKWARD, OPS_NONE};
			forward = OPS_NONE;
		}
	}
	return true;
}

static bool links_link_chains(struct links *links, struct ops_trace *trace)
{
	for (size_t row = 0; row < trace->columns.count; row++)
		if (links_has_key(&trace->columns, row) && !(links->next[row] & NOT_FIRST) &&
		    !link_chain(links, trace, (uint32_t)row))
			return false;
	return true;
}

static bool links_has_backward(const struct ops_columns *c)
{
	for (size_t row = 0; row < c->count; row++)
		if (c->forward_thread[row] && links_has_key(c, row))
			return true;
	return false;
}

static bool leaves_earlier_row(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_link *links = context;

	return links[a].from < links[b].from || (links[a].from == links[b].from && links[a].to < links[b].to);
}

/* They are nearly sorted. */
bool ops_links_sort(struct ops_trace *trace)
{
	return OPS_ARRAY_SORT_STABLE(&trace->links, leaves_earlier_row);
}

struct arrows {
	const struct ops_link *links;
	const int64_t *end_ns;
};

static bool arrives_earlier(const void *context, uint32_t a, uint32_t b)
{
	const struct arrows *arrows = context;
	const struct ops_link *left = &arrows->links[a], *right = &arrows->links[b];

	if (arrows->end_ns[left->to] != arrows->end_ns[right->to])
		return arrows->end_ns[left->to] < arrows->end_ns[right->to];
	return left->to < right->to;
}

bool ops_trace_number_links(const struct ops_trace *trace, uint32_t *ret_numbers)
{
	struct arrows arrows = {trace->links.items, trace->columns.end_ns};
	uint32_t *order;

	if (!ops_find_order(trace->links.count, arrives_earlier, &arrows, &order))
		return false;
	for (size_t i = 0; i < trace->links.count; i++)
		ret_numbers[order ? order[i] : i] = (uint32_t)i + 1;
	ops_free(order);
	return true;
}

bool ops_links_build(struct ops_trace *trace)
{
	struct links links = {.trace = trace};
	bool ok;

	if (!links_has_backward(&trace->columns))
		return true;
	links.next = ops_realloc_array(NULL, trace->columns.count, sizeof(*links.next));
	ok = links.next && chain_rows(&links) && links_link_chains(&links, trace);
	OPS_ARRAY_RELEASE(&links.rows);
	ops_free(links.next);
	ops_free(links.slots);
	return ok;
}

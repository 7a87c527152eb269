/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of kernels. A kernel belongs to the operator that its launch is below. An operator's kernels in order of
 * time are its pattern. All operators are at one depth, so none is below another.
 */
#include "analyze/graph/kernel_sequences.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/graph/call_graph.h"
#include "base/alloc.h"
#include "base/sum.h"
#include "base/text.h"

struct finder {
	struct kernel_sequences *sequences;
	struct call_graph graph;
	struct ops_string part;
	uint64_t min_kernels;
	uint32_t *op_of; /* by row: the operator that the row is or lies below */
	OPS_ARRAY(struct call_graph_part) works;
	OPS_ARRAY(uint32_t) key;
};

static bool kernel_sequences_is_named(struct finder *f, uint32_t row)
{
	const struct event_table *table = f->sequences->table;
	struct ops_string name = event_name(table, &table->rows[row]);

	return !f->part.size || ops_string_has_part(name, f->part);
}

/* Each name is examined once: 1 contains the part, 2 does not. */
static uint8_t *match_sequence_names(struct finder *f)
{
	const struct event_table *table = f->sequences->table;
	uint8_t *matches = ops_alloc_zeroed(ops_trace_string_count(table->trace) + 1, 1);

	for (size_t i = 0; matches && i < f->graph.order_count; i++) {
		uint32_t at = f->graph.order[i];
		uint8_t *name = &matches[table->rows[at].name];

		if (!*name)
			*name = kernel_sequences_is_named(f, at) ? 1 : 2;
	}
	return matches;
}

static bool kernel_sequences_find_operators(struct finder *f)
{
	const struct event_table *table = f->sequences->table;
	const struct call_graph *graph = &f->graph;
	uint8_t *matches = match_sequence_names(f);
	int32_t depth = INT32_MAX;

	if (!matches)
		return false;
	for (size_t i = 0; i < graph->order_count; i++)
		if (matches[table->rows[graph->order[i]].name] == 1 && graph->nodes[graph->order[i]].depth < depth)
			depth = graph->nodes[graph->order[i]].depth;
	for (size_t i = 0; i < graph->order_count; i++) {
		uint32_t at = graph->order[i];
		const struct call_node *node = &graph->nodes[at];
		bool is_operator = node->depth == depth && matches[table->rows[at].name] == 1 && node->kernels >= f->min_kernels;

		f->op_of[at] = is_operator ? at : node->parent == OPS_NONE ? OPS_NONE : f->op_of[node->parent];
	}
	ops_free(matches);
	return true;
}

static bool find_works(struct finder *f)
{
	const struct event_table *table = f->sequences->table;

	for (size_t i = 0; i < table->kept_count; i++) {
		uint32_t at = table->kept[i], parent = f->graph.nodes[at].parent;

		if (table->rows[at].stream == -1 || parent == OPS_NONE || f->op_of[parent] == OPS_NONE)
			continue;
		if (!OPS_ARRAY_APPEND(&f->works, (struct call_graph_part){f->op_of[parent], table->rows[at].ts_ns, at}))
			return false;
	}
	OPS_ARRAY_SORT(&f->works, call_graph_compare_parts);
	return true;
}

/* Adds one operator with its device work. */
static bool kernel_sequences_add_operator(struct finder *f, const struct call_graph_part *works, size_t count)
{
	struct kernel_sequences *s = f->sequences;
	const struct event_row *rows = s->table->rows;
	uint32_t op = works[0].op, id;
	struct kernel_pattern *pattern;

	f->key.count = 0;
	if (!OPS_ARRAY_RESERVE(&f->key, count + 1))
		return false;
	f->key.items[f->key.count++] = rows[op].name;
	for (size_t i = 0; i < count; i++)
		f->key.items[f->key.count++] = rows[works[i].row].name;
	id = ops_intern_add(&s->keys, f->key.items, f->key.count * sizeof(*f->key.items));
	pattern = OPS_ARRAY_AT(&s->patterns, id);
	if (!pattern)
		return false;
	pattern->names = (const uint32_t *)(const void *)s->keys.entries[id].bytes;
	pattern->length = f->key.count;
	pattern->count++;
	pattern->kernels_ns = ops_sum(pattern->kernels_ns, f->graph.nodes[op].kernels_ns);
	pattern->operators_ns = ops_sum(pattern->operators_ns, rows[op].dur_ns);
	if (!OPS_ARRAY_RESERVE(&s->members, count + 1))
		return false;
	s->members.items[s->members.count++] = (struct kernel_member){op, id};
	for (size_t i = 0; i < count; i++)
		s->members.items[s->members.count++] = (struct kernel_member){works[i].row, id};
	return true;
}

/* --- order ----------------------------------------------------------------------------------------------------------- */

void kernel_pattern_text(const struct kernel_sequences *sequences, const struct kernel_pattern *pattern,
                         struct ops_buffer *out)
{
	for (size_t i = 0; i < pattern->length; i++) {
		struct ops_string name = ops_trace_string(sequences->table->trace, pattern->names[i]);

		ops_buffer_append(out, "|", i > 0);
		ops_buffer_append(out, name.bytes, name.size);
	}
}

struct ranked {
	struct kernel_pattern pattern;
	uint32_t id;
};

/* Compares the texts of patterns without building them. */
static int compare_patterns(const struct ops_trace *trace, const struct kernel_pattern *a, const struct kernel_pattern *b)
{
	size_t count = a->length < b->length ? a->length : b->length;

	for (size_t i = 0; i < count; i++) {
		struct ops_string left, right;
		size_t common;
		int order;

		if (a->names[i] == b->names[i])
			continue;
		left = ops_trace_string(trace, a->names[i]);
		right = ops_trace_string(trace, b->names[i]);
		common = left.size < right.size ? left.size : right.size;
		order = memcmp(left.bytes, right.bytes, common);
		if (order)
			return order;
		/* The shorter name is followed by '|' or the end. */
		if (left.size < right.size)
			return i + 1 < a->length && (uint8_t)right.bytes[common] < '|' ? 1 : -1;
		return i + 1 < b->length && (uint8_t)left.bytes[common] < '|' ? -1 : 1;
	}
	return (a->length > b->length) - (a->length < b->length);
}

static int compare_ranked(const void *a, const void *b, void *trace)
{
	const struct ranked *left = a, *right = b;

	if (left->pattern.count != right->pattern.count)
		return left->pattern.count > right->pattern.count ? -1 : 1;
	return compare_patterns(trace, &left->pattern, &right->pattern);
}

/* Sorts the patterns, and updates the index of the pattern in each member. */
static bool kernel_sequences_rank(struct kernel_sequences *s)
{
	size_t count = s->patterns.count;
	struct ranked *ranked = ops_realloc_array(NULL, count + 1, sizeof(*ranked));
	uint32_t *place_of = ops_realloc_array(NULL, count + 1, sizeof(*place_of));
	bool done = ranked && place_of;

	for (uint32_t i = 0; done && i < count; i++)
		ranked[i] = (struct ranked){s->patterns.items[i], i};
	if (done && count)
		qsort_r(ranked, count, sizeof(*ranked), compare_ranked, (void *)(uintptr_t)s->table->trace);
	for (uint32_t i = 0; done && i < count; i++) {
		s->patterns.items[i] = ranked[i].pattern;
		place_of[ranked[i].id] = i;
	}
	for (size_t i = 0; done && i < s->members.count; i++)
		s->members.items[i].pattern = place_of[s->members.items[i].pattern];
	ops_free(ranked);
	ops_free(place_of);
	return done;
}

/* --- analysis -------------------------------------------------------------------------------------------------------- */

bool kernel_sequences_init(struct kernel_sequences *sequences, const struct event_table *table, struct ops_string part,
                           uint64_t min_kernels)
{
	struct finder f = {.sequences = sequences, .part = part, .min_kernels = min_kernels};
	bool done;

	*sequences = (struct kernel_sequences){.table = table};
	f.op_of = ops_alloc_none(table->count + 1);
	done = call_graph_init(&f.graph, table) && f.op_of;
	done = done && kernel_sequences_find_operators(&f) && find_works(&f);
	for (size_t i = 0, end; done && i < f.works.count; i = end) {
		for (end = i + 1; end < f.works.count && f.works.items[end].op == f.works.items[i].op; end++)
			;
		done = kernel_sequences_add_operator(&f, &f.works.items[i], end - i);
	}
	call_graph_release(&f.graph);
	ops_free(f.op_of);
	OPS_ARRAY_RELEASE(&f.works);
	OPS_ARRAY_RELEASE(&f.key);
	return done && kernel_sequences_rank(sequences);
}

void kernel_sequences_release(struct kernel_sequences *sequences)
{
	OPS_ARRAY_RELEASE(&sequences->patterns);
	OPS_ARRAY_RELEASE(&sequences->members);
	ops_intern_release(&sequences->keys);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `aten_op_kernels_and_delay`: which kernels each ATen operator launches, how long after its start it launches the
 * first one, and how long after that the kernel starts. A launch belongs to the innermost operator of the same thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/graph/call_graph.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/text.h"
#include "derive/calls.h"

struct group_row {
	struct ops_string operator, kernels;
	uint64_t times;
	double op_delay_us, runtime_delay_us;
};

static const struct result_column columns[] = {
	{.name = "aten_op_name", .type = RESULT_TEXT, .title = "Operator", .about = "Name of the operator",
	 RESULT_FIELD(struct group_row, operator)},
	{.name = "kernel_sequence", .type = RESULT_TEXT, .title = "Kernels", .about = "The kernels that a call launches, in order",
	 RESULT_FIELD(struct group_row, kernels)},
	{.name = "occurrence_count", .type = RESULT_COUNT, .title = "Calls", .about = "Number of calls with these kernels",
	 RESULT_FIELD(struct group_row, times)},
	{.name = "avg_aten_op_launch_delay", .type = RESULT_NUMBER, .title = "Mean time to launch", .unit = "us",
	 .about = "From the start of the call to that of its first launch call", RESULT_FIELD(struct group_row, op_delay_us)},
	{.name = "avg_runtime_delay", .type = RESULT_NUMBER, .title = "Mean launch delay", .unit = "us",
	 .about = "From the start of the first launch call to that of its kernel", RESULT_FIELD(struct group_row, runtime_delay_us)},
};
const struct result_declaration table_operator_launches =
	RESULT_DECLARATION("aten_op_kernels_and_delay", "The calls of an operator that launch the same kernels", columns);
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Operators of one name with the same kernels. */
struct group {
	const uint32_t *names; /* string ids: of the operator, then of its kernels */
	size_t count;
	uint64_t times;
	double op_delay_ns; /* sums, then means */
	double runtime_delay_ns;
};

struct sequences {
	const struct event_table *table;
	OPS_ARRAY(struct call_graph_part) launches;
	OPS_ARRAY(struct group) groups;
	OPS_ARRAY(uint32_t) key;
	struct ops_intern keys;
	struct ops_buffer text;
	struct result_table out;
	const char *const *order; /* names of the columns, COLUMNS of them and a final NULL */
};

static void sequences_release(struct sequences *s)
{
	OPS_ARRAY_RELEASE(&s->launches);
	OPS_ARRAY_RELEASE(&s->groups);
	OPS_ARRAY_RELEASE(&s->key);
	ops_intern_release(&s->keys);
	ops_buffer_release(&s->text);
	result_table_release(&s->out);
}

/* Walks down the graph with the innermost operator so far. Skips launches without a kernel. */
static bool operator_launches_find_launches(struct sequences *s)
{
	const struct event_table *table = s->table;
	struct call_graph graph;
	uint32_t *op_of = ops_realloc_array(NULL, table->count + 1, sizeof(*op_of));
	bool done = call_graph_init(&graph, table) && op_of;

	for (size_t i = 0; done && i < graph.order_count; i++) {
		uint32_t at = graph.order[i], parent = graph.nodes[at].parent;
		const struct event_row *row = &table->rows[at];
		struct ops_string name = event_name(table, row);

		/* Autograd's work is a child of rows of another thread, but its launches do not belong to them. */
		op_of[at] = ops_string_starts(name, "aten::") ? at
		            : parent == OPS_NONE || table->rows[parent].track != row->track ? OPS_NONE : op_of[parent];
		if (op_of[at] == OPS_NONE || row->partner == OPS_NONE || table->rows[row->partner].stream == -1 ||
		    !(ops_call_of(name) & OPS_CALL_LAUNCH))
			continue;
		done = OPS_ARRAY_APPEND(&s->launches, (struct call_graph_part){op_of[at], row->ts_ns, at});
	}
	if (done)
		OPS_ARRAY_SORT(&s->launches, call_graph_compare_parts);
	call_graph_release(&graph);
	ops_free(op_of);
	return done;
}

/* Adds one operator with its launches. */
static bool operator_launches_add_operator(struct sequences *s, const struct call_graph_part *launches, size_t count)
{
	const struct event_row *rows = s->table->rows;
	const struct event_row *first = &rows[launches[0].row];
	uint32_t id;
	struct group *group;

	s->key.count = 0;
	if (!OPS_ARRAY_RESERVE(&s->key, count + 1))
		return false;
	s->key.items[s->key.count++] = rows[launches[0].op].name;
	for (size_t i = 0; i < count; i++)
		s->key.items[s->key.count++] = rows[rows[launches[i].row].partner].name;
	id = ops_intern_add(&s->keys, s->key.items, s->key.count * sizeof(*s->key.items));
	group = OPS_ARRAY_AT(&s->groups, id);
	if (!group)
		return false;
	group->names = (const uint32_t *)(const void *)s->keys.entries[id].bytes;
	group->count = s->key.count;
	group->times++;
	group->op_delay_ns += (double)(first->ts_ns - rows[launches[0].op].ts_ns);
	group->runtime_delay_ns += (double)(rows[first->partner].ts_ns - first->ts_ns);
	return true;
}

static bool operator_launches_add_operators(struct sequences *s)
{
	bool done = true;

	for (size_t i = 0, end; done && i < s->launches.count; i = end) {
		for (end = i + 1; end < s->launches.count && s->launches.items[end].op == s->launches.items[i].op; end++)
			;
		done = operator_launches_add_operator(s, &s->launches.items[i], end - i);
	}
	for (size_t i = 0; i < s->groups.count; i++) {
		s->groups.items[i].op_delay_ns /= (double)s->groups.items[i].times;
		s->groups.items[i].runtime_delay_ns /= (double)s->groups.items[i].times;
	}
	return done;
}

/* --- order ----------------------------------------------------------------------------------------------------------- */

static int operator_launches_compare_numbers(double left, double right)
{
	return (left > right) - (left < right);
}

static int operator_launches_compare_names(const struct ops_trace *trace, uint32_t a, uint32_t b)
{
	return ops_string_compare(ops_trace_string(trace, a), ops_trace_string(trace, b));
}

/* Compares the joined texts without joining them. The arrow sorts before every character that continues a kernel's
 * name. */
static int compare_sequences(const struct ops_trace *trace, const struct group *a, const struct group *b)
{
	size_t count = a->count < b->count ? a->count : b->count;

	for (size_t i = 1; i < count; i++)
		if (a->names[i] != b->names[i])
			return operator_launches_compare_names(trace, a->names[i], b->names[i]);
	return (a->count > b->count) - (a->count < b->count);
}

static int compare_column(const struct ops_trace *trace, const char *column, const struct group *a, const struct group *b)
{
	if (!strcmp(column, columns[0].name))
		return operator_launches_compare_names(trace, a->names[0], b->names[0]);
	if (!strcmp(column, columns[1].name))
		return compare_sequences(trace, a, b);
	if (!strcmp(column, columns[2].name))
		return (a->times > b->times) - (a->times < b->times);
	if (!strcmp(column, columns[3].name))
		return operator_launches_compare_numbers(a->op_delay_ns, b->op_delay_ns);
	return operator_launches_compare_numbers(a->runtime_delay_ns, b->runtime_delay_ns);
}

static int operator_launches_compare_groups(const void *a, const void *b, void *context)
{
	const struct sequences *s = context;
	int order = 0;

	for (size_t i = 0; i < COLUMNS && s->order[i] && !order; i++)
		order = compare_column(s->table->trace, s->order[i], b, a);
	if (!order)
		order = operator_launches_compare_names(s->table->trace, ((const struct group *)a)->names[0],
		                                        ((const struct group *)b)->names[0]);
	return order ? order : compare_sequences(s->table->trace, a, b);
}

/* --- answer ---------------------------------------------------------------------------------------------------------- */

static void operator_launches_add_row(struct sequences *s, const struct group *group)
{
	s->text.size = 0;
	for (size_t i = 1; i < group->count; i++) {
		struct ops_string name = ops_trace_string(s->table->trace, group->names[i]);

		ops_buffer_append_text(&s->text, i > 1 ? " -> " : "");
		ops_buffer_append(&s->text, name.bytes, name.size);
	}
	result_add(&s->out, &(struct group_row){ops_trace_string(s->table->trace, group->names[0]),
	                                        {ops_buffer_text(&s->text), s->text.size},
	                                        group->times,
	                                        result_round(group->op_delay_ns / 1e3, 3),
	                                        result_round(group->runtime_delay_ns / 1e3, 3)});
}

struct launch_order {
	const char *columns[COLUMNS];
	int64_t limit; /* -1: no limit */
};

static bool operator_launches_write_rank(struct analysis_run *run, const struct event_table *table, const void *context)
{
	const struct launch_order *order = context;
	struct sequences s = {.table = table, .order = order->columns};
	bool done = operator_launches_find_launches(&s) && operator_launches_add_operators(&s);

	if (done) {
		OPS_ARRAY_SORT_BY(&s.groups, operator_launches_compare_groups, &s);
		s.out.copies = true;
		s.out.rounded = run->result.table.rounded;
		result_declare(&s.out, &table_operator_launches, 0);
		for (size_t i = 0; i < s.groups.count; i++)
			operator_launches_add_row(&s, &s.groups.items[i]);
		if (order->limit >= 0)
			result_table_cut(&s.out, (size_t)order->limit);
		analysis_rank_key(&run->result.json, table->rank);
		result_put_table(&run->result, &s.out);
		done = !s.text.failed;
	}
	sequences_release(&s);
	return done;
}

static enum ops_code read_order(const struct analysis_run *run, const char **ret_order)
{
	struct ops_string list = analysis_arg(run, "sort_by"), item;
	struct ops_json_walk cursor = ops_json_walk(list.bytes, list.size);
	size_t count = 0;

	while (list.bytes[0] == '[' && ops_json_next_element(&cursor, &item)) {
		const char *found = NULL;

		for (size_t i = 0; i < COLUMNS && item.size > 2; i++)
			if (ops_string_is((struct ops_string){item.bytes + 1, item.size - 2}, columns[i].name))
				found = columns[i].name;
		if (!found || count == COLUMNS)
			return ops_fault(run->error, OPS_INVALID, "option 'sort_by' has no column '%.*s'",
			                 (int)(item.size < 80 ? item.size : 80), item.bytes);
		ret_order[count++] = found;
	}
	return OPS_OK;
}

enum ops_code analysis_operator_launches(struct analysis_run *run)
{
	struct launch_order order = {.limit = analysis_limit(run)};
	enum ops_code code = run->code ? run->code : read_order(run, order.columns);

	if (code)
		return code;
	ops_json_open(&run->result.json, '{');
	code = analysis_each_rank(run, operator_launches_write_rank, &order);
	ops_json_close(&run->result.json, '}');
	return code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators: by name, by name and input shapes, and the stacks from which they were called. Covers all calls of all
 * threads, including those outside of steps. Nested calls of one name add up.
 */
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/analyze.h>

#include "analyze/views/view_tables.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/text.h"
#include "derive/flops.h"
#include "derive/operators.h"
#include "derive/shapes.h"

#define TOP_SHAPES 30
#define ROWS_MAX 10000 /* limit on rows by shape, since inputs of many different sizes would make the reply grow with
                        * the trace */

struct row {
	uint32_t name;
	uint32_t shapes; /* text, or OPS_NONE */
	uint64_t calls;
	int64_t host_total_ns;
	int64_t host_self_ns;
	int64_t host_min_ns; /* shortest call, as counted in the total */
	int64_t host_max_ns;
	int64_t device_total_ns;
	int64_t device_self_ns;
	int64_t tensor_self_ns;
	int64_t tensor_total_ns;
	int64_t cpu_memory; /* bytes allocated minus bytes freed by the calls themselves, as in tables of averages */
	int64_t device_memory;
	int64_t flops;
	int64_t longest_ns; /* self time of that call, on devices or else on the host */
	uint32_t longest;
	bool eligible;
};

/* Columns that only some traces have. */
struct extras {
	struct ops_event_costs costs;
	const uint16_t *operators;
};

struct table {
	const struct ops_views *views;
	struct ops_map keys;
	OPS_ARRAY(struct row) rows;
	bool by_shapes;
	struct ops_shapes shapes;
	const struct extras *extras; /* NULL: not requested */
};

/* --- sums ----------------------------------------------------------------------------------------------------------- */

static struct row *view_operators_row_of(struct table *table, const struct view_node *node)
{
	const struct ops_events *events = table->views->events;
	uint32_t name = events->name[node->row], shapes = OPS_NONE;
	struct row *row;

	if (table->by_shapes && (shapes = ops_shapes_number(&table->shapes, events->inputs[node->row])) == OPS_NONE)
		return NULL;
	row = OPS_ARRAY_AT(&table->rows, ops_map_number(&table->keys, (uint64_t)name << 32 | shapes));
	if (row) {
		row->name = name;
		row->shapes = shapes;
	}
	return row;
}

static void sum_extras(const struct extras *extras, const struct ops_trace *trace, uint32_t event, struct row *row)
{
	if (extras->costs.self_cpu_memory) {
		view_add(&row->cpu_memory, extras->costs.self_cpu_memory[event]);
		view_add(&row->device_memory, extras->costs.self_device_memory[event]);
	}
	view_add(&row->flops, ops_flops_of(trace, event, extras->operators));
}

static bool view_operators_sum(struct table *table)
{
	const struct ops_views *views = table->views;

	for (size_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];
		struct row *row;
		int64_t duration_ns, self_ns;

		if (node->kept != i || !view_is_operator(views, node))
			continue;
		row = view_operators_row_of(table, node);
		if (!row)
			return false;
		duration_ns = view_duration(views, node->row);
		row->host_min_ns = row->calls == 0 || duration_ns < row->host_min_ns ? duration_ns : row->host_min_ns;
		row->host_max_ns = duration_ns > row->host_max_ns ? duration_ns : row->host_max_ns;
		row->calls++;
		self_ns = node->device_self_ns ? node->device_self_ns : view_host_self_ns(views, node);
		if (row->calls == 1 || self_ns > row->longest_ns) {
			row->longest = node->row;
			row->longest_ns = self_ns;
		}
		view_add(&row->host_total_ns, duration_ns);
		view_add(&row->host_self_ns, view_host_self_ns(views, node));
		view_add(&row->device_total_ns, node->device_total_ns);
		view_add(&row->device_self_ns, node->device_self_ns);
		view_add(&row->tensor_self_ns, node->tensor_self_ns);
		view_add(&row->tensor_total_ns, node->tensor_total_ns);
		row->eligible |= node->eligible;
		if (table->extras)
			sum_extras(table->extras, views->trace, node->row, row);
	}
	return true;
}

/* --- order ---------------------------------------------------------------------------------------------------------- */

/* Orders by device self time, else host self time, the largest first; then by name and shapes. */
static int view_operators_compare_rows(const void *a, const void *b, void *context)
{
	const struct table *table = context;
	const struct ops_views *views = table->views;
	const struct row *left = a, *right = b;
	int order = (left->device_self_ns < right->device_self_ns) - (left->device_self_ns > right->device_self_ns);

	if (!order)
		order = (left->host_self_ns < right->host_self_ns) - (left->host_self_ns > right->host_self_ns);
	if (!order)
		order = ops_string_compare(ops_trace_string(views->trace, left->name),
		                           ops_trace_string(views->trace, right->name));
	if (!order && left->shapes != OPS_NONE)
		order = ops_string_compare(ops_intern_text(&table->shapes.texts, left->shapes),
		                           ops_intern_text(&table->shapes.texts, right->shapes));
	return order;
}

static void sort(struct table *table)
{
	OPS_ARRAY_SORT_BY(&table->rows, view_operators_compare_rows, table);
}

/* --- output --------------------------------------------------------------------------------------------------------- */

static double view_operators_percent(int64_t part_ns, int64_t whole_ns)
{
	return whole_ns ? 100 * (double)part_ns / (double)whole_ns : 0;
}

static void view_operators_write_row(const struct table *table, struct ops_json_writer *json, const struct row *row)
{
	const struct ops_views *views = table->views;
	struct ops_string name = ops_trace_string(views->trace, row->name);

	ops_json_open(json, '{');
	ops_json_member_string(json, "name", name);
	if (row->shapes != OPS_NONE)
		ops_json_member_string(json, "input_shape", ops_intern_text(&table->shapes.texts, row->shapes));
	ops_json_member(json, "calls", (int64_t)row->calls);
	ops_json_member_us(json, "host_total", row->host_total_ns);
	ops_json_member_us(json, "host_self", row->host_self_ns);
	ops_json_member_us(json, "host_min", row->host_min_ns);
	ops_json_member_us(json, "host_max", row->host_max_ns);
	ops_json_member_us(json, "device_total", row->device_total_ns);
	ops_json_member_us(json, "device_self", row->device_self_ns);
	ops_json_member_bool(json, "tc_eligible", row->eligible);
	ops_json_member_number(json, "tc_self_pct", view_operators_percent(row->tensor_self_ns, row->device_self_ns));
	ops_json_member_number(json, "tc_total_pct", view_operators_percent(row->tensor_total_ns, row->device_total_ns));
	ops_json_member(json, "self_cpu_memory_bytes", row->cpu_memory);
	ops_json_member(json, "self_device_memory_bytes", row->device_memory);
	ops_json_member(json, "flops", row->flops);
	ops_json_close(json, '}');
}

static void view_operators_write_rows(const struct table *table, const char *key, size_t most, struct ops_json_writer *json)
{
	ops_json_member_open(json, key, '[');
	for (size_t i = 0; i < table->rows.count && i < most; i++)
		view_operators_write_row(table, json, &table->rows.items[i]);
	ops_json_close(json, ']');
}

static void view_operators_write_by_name(const struct table *table, struct ops_json_writer *json)
{
	const struct ops_views *views = table->views;
	struct row all = {0};

	for (size_t i = 0; i < table->rows.count; i++) {
		all.calls += table->rows.items[i].calls;
		view_add(&all.host_self_ns, table->rows.items[i].host_self_ns);
		view_add(&all.device_self_ns, table->rows.items[i].device_self_ns);
	}
	ops_json_member_open(json, "operators", '{');
	ops_json_member(json, "distinct", (int64_t)table->rows.count);
	ops_json_member(json, "calls", (int64_t)all.calls);
	ops_json_key(json, "sort");
	ops_json_text(json, views->has_kernels || views->has_copies ? "device_self" : "host_self",
	              views->has_kernels || views->has_copies ? 11 : 9);
	ops_json_member_us(json, "sum_host_self", all.host_self_ns);
	ops_json_member_us(json, "sum_device_self", all.device_self_ns);
	view_operators_write_rows(table, "rows", SIZE_MAX, json);
	ops_json_close(json, '}');
}

static void write_by_shapes(const struct table *table, struct ops_json_writer *json)
{
	ops_json_member_open(json, "operators_by_input_shape", '{');
	ops_json_member(json, "distinct", (int64_t)table->rows.count);
	view_operators_write_rows(table, "rows", ROWS_MAX, json);
	view_operators_write_rows(table, "top", TOP_SHAPES, json);
	ops_json_close(json, '}');
}

static void view_operators_release(struct table *table)
{
	ops_map_release(&table->keys);
	OPS_ARRAY_RELEASE(&table->rows);
	ops_shapes_release(&table->shapes);
}

bool view_each_operator(const struct ops_views *views, size_t most,
                        void (*visit)(void *context, const struct view_operator_row *row), void *context)
{
	struct extras extras = {.operators = ops_operators_of(views->trace)};
	struct table by_name = {.views = views, .extras = &extras};
	bool done = extras.operators && view_operators_sum(&by_name);

	if (done)
		sort(&by_name);
	for (size_t i = 0; done && i < by_name.rows.count && i < most; i++) {
		const struct row *row = &by_name.rows.items[i];

		visit(context, &(struct view_operator_row){ops_trace_string(views->trace, row->name), row->calls, row->host_total_ns,
		                                          row->host_self_ns, row->device_total_ns, row->device_self_ns, row->flops,
		                                          row->longest});
	}
	view_operators_release(&by_name);
	return done;
}

bool view_write_operators(const struct ops_views *views, struct ops_json_writer *json)
{
	struct extras extras = {.operators = ops_operators_of(views->trace)};
	struct table by_name = {.views = views, .extras = &extras}, by_shapes = {.views = views, .extras = &extras, .by_shapes = true};
	bool done = extras.operators && !ops_event_costs_init(&extras.costs, views->trace, true, NULL) &&
	            view_operators_sum(&by_name);

	if (done) {
		sort(&by_name);
		view_operators_write_by_name(&by_name, json);
		done = ops_shapes_init(&by_shapes.shapes, views->trace) && view_operators_sum(&by_shapes);
	}
	if (done) {
		sort(&by_shapes);
		write_by_shapes(&by_shapes, json);
	}
	view_operators_release(&by_name);
	view_operators_release(&by_shapes);
	ops_event_costs_release(&extras.costs);
	return done;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: by name, and by name, operator and launch properties. The second table contains every kernel whose origin is
 * known: kernels outside of operators count for the label around their launch, or for the root of the thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/short_name.h"
#include "analyze/views/view_tables.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"

#define TOP_KERNELS 30
#define ROWS_MAX 10000 /* limit on rows by operator, since launches with many different grids would make the reply grow
                        * with the trace */

struct row {
	uint32_t name;
	uint32_t operator; /* text; OPS_NONE in the table by name */
	uint32_t kernel;   /* index into views->kernels of the kernel with these properties */
	bool eligible;
	uint64_t calls;
	int64_t total_ns;
	int64_t max_ns;
	int64_t min_ns;
	double blocks;    /* weighted by duration, like the next member */
	double occupancy;
};

struct table {
	const struct ops_views *views;
	struct ops_intern keys;
	OPS_ARRAY(struct row) rows;
	bool by_operator;
	bool has_blocks, has_occupancy;
};

/* Identifies a row. Has no padding, because it is hashed. */
struct key {
	uint32_t name;
	uint32_t operator;
	uint32_t grid;
	uint32_t block;
	int64_t registers;
	int64_t shared_memory;
};

/* Returns the string id of what launched it; OPS_NONE if unknown. */
static uint32_t view_kernels_operator_of(const struct ops_views *views, const struct view_device_event *event)
{
	return event->node == OPS_NONE ? event->label : views->events->name[views->nodes.items[event->node].row];
}

static struct ops_string operator_name(const struct ops_views *views, uint32_t operator)
{
	return operator == OPS_NONE ? (struct ops_string){"CallTreeRoot", strlen("CallTreeRoot")}
	                            : ops_trace_string(views->trace, operator);
}

static struct row *view_kernels_row_of(struct table *table, const struct view_device_event *event)
{
	const struct ops_views *views = table->views;
	const struct view_kernel *kernel = &views->kernels.items[event->arguments];
	struct key key = {.name = views->events->name[event->row], .operator = OPS_NONE};
	struct row *row;

	if (table->by_operator) {
		key = (struct key){key.name,          view_kernels_operator_of(views, event),
		                   kernel->grid,      kernel->block,
		                   kernel->registers, kernel->shared_memory};
	}
	row = OPS_ARRAY_AT(&table->rows, ops_intern_add(&table->keys, &key, sizeof(key)));
	if (row && !row->calls)
		*row = (struct row){.name = key.name, .operator = key.operator, .kernel = event->arguments,
		                    .min_ns = INT64_MAX};
	return row;
}

/* Only the name of the node itself counts, since operators in it launched other kernels. */
static bool view_kernels_is_eligible(const struct ops_views *views, uint32_t node)
{
	return views->names[views->events->name[views->nodes.items[node].row]] & (VIEW_NAME_ELIGIBLE | VIEW_NAME_ELIGIBLE_SINCE);
}

static bool view_kernels_sum(struct table *table)
{
	const struct ops_views *views = table->views;

	for (size_t i = 0; i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];
		const struct view_kernel *kernel = &views->kernels.items[event->arguments];
		int64_t duration_ns = view_duration(views, event->row);
		struct row *row;

		if (event->part != VIEW_KERNEL)
			continue;
		table->has_blocks |= !isnan(kernel->blocks_per_sm);
		table->has_occupancy |= !isnan(kernel->occupancy_pct);
		if (table->by_operator && !event->in_tree)
			continue;
		row = view_kernels_row_of(table, event);
		if (!row)
			return false;
		row->calls++;
		view_add(&row->total_ns, duration_ns);
		row->max_ns = duration_ns > row->max_ns ? duration_ns : row->max_ns;
		row->min_ns = duration_ns < row->min_ns ? duration_ns : row->min_ns;
		row->blocks += isnan(kernel->blocks_per_sm) ? 0 : kernel->blocks_per_sm * (double)duration_ns;
		row->occupancy += isnan(kernel->occupancy_pct) ? 0 : kernel->occupancy_pct * (double)duration_ns;
		row->eligible |= event->node != OPS_NONE && view_kernels_is_eligible(views, event->node);
	}
	return true;
}

static struct ops_string text_or_none(const struct ops_views *views, uint32_t text)
{
	if (text == OPS_NONE)
		return (struct ops_string){"None", 4};
	return ops_intern_text(&views->texts, text);
}

/* Orders by total, the largest first, then by name, operator, grid and block. */
static int view_kernels_compare_rows(const void *a, const void *b, void *context)
{
	const struct table *table = context;
	const struct ops_views *views = table->views;
	const struct row *left = a, *right = b;
	const struct view_kernel *left_kernel = &views->kernels.items[left->kernel];
	const struct view_kernel *right_kernel = &views->kernels.items[right->kernel];
	int order = (left->total_ns < right->total_ns) - (left->total_ns > right->total_ns);

	if (!order)
		order = ops_string_compare(ops_trace_string(views->trace, left->name),
		                           ops_trace_string(views->trace, right->name));
	if (order || !table->by_operator)
		return order;
	order = ops_string_compare(operator_name(views, left->operator), operator_name(views, right->operator));
	if (!order)
		order = ops_string_compare(text_or_none(views, left_kernel->grid), text_or_none(views, right_kernel->grid));
	if (!order)
		order = ops_string_compare(text_or_none(views, left_kernel->block), text_or_none(views, right_kernel->block));
	if (!order)
		order = (left->kernel > right->kernel) - (left->kernel < right->kernel);
	return order;
}

static void write_properties(const struct table *table, struct ops_json_writer *json, const struct row *row)
{
	const struct ops_views *views = table->views;
	const struct view_kernel *kernel = &views->kernels.items[row->kernel];
	struct ops_string operator = operator_name(views, row->operator);
	struct ops_string grid = text_or_none(views, kernel->grid), block = text_or_none(views, kernel->block);

	ops_json_member_string(json, "operator", operator);
	ops_json_member_string(json, "grid", grid);
	ops_json_member_string(json, "block", block);
	ops_json_member_or_null(json, "registers_per_thread", kernel->registers);
	ops_json_member_or_null(json, "shared_memory", kernel->shared_memory);
	ops_json_member_bool(json, "op_tc_eligible", row->eligible);
}

static void view_kernels_write_row(const struct table *table, struct ops_json_writer *json, const struct row *row)
{
	const struct ops_views *views = table->views;
	struct ops_string name = ops_trace_string(views->trace, row->name);
	double total_ns = (double)row->total_ns;
	struct ops_buffer shortened = {0};

	ops_json_open(json, '{');
	ops_json_member_string(json, "name", name);
	readable_name(name, &shortened);
	ops_json_member_string(json, "short_name", (struct ops_string){shortened.bytes, shortened.size});
	json->out->failed |= shortened.failed;
	ops_buffer_release(&shortened);
	if (table->by_operator)
		write_properties(table, json, row);
	ops_json_member_bool(json, "tensor_cores", views->names[row->name] & VIEW_NAME_TENSOR_CORES);
	ops_json_member(json, "calls", (int64_t)row->calls);
	ops_json_member_us(json, "total", row->total_ns);
	ops_json_member_number(json, "mean", total_ns / (double)row->calls / 1000);
	ops_json_member_us(json, "max", row->max_ns);
	ops_json_member_us(json, "min", row->min_ns);
	ops_json_member_number(json, "mean_blocks_per_sm",
	                       !table->has_blocks ? (double)NAN
	                       : total_ns > 0     ? row->blocks / total_ns
	                                          : 0);
	ops_json_member_number(json, "mean_est_occupancy_pct",
	                       !table->has_occupancy ? (double)NAN
	                       : total_ns > 0        ? row->occupancy / total_ns
	                                             : 0);
	ops_json_close(json, '}');
}

static void view_kernels_write_rows(const struct table *table, const char *key, size_t most, struct ops_json_writer *json)
{
	ops_json_member_open(json, key, '[');
	for (size_t i = 0; i < table->rows.count && i < most; i++)
		view_kernels_write_row(table, json, &table->rows.items[i]);
	ops_json_close(json, ']');
}

static void view_kernels_write_table(const struct table *table, struct ops_json_writer *json)
{
	uint64_t calls = 0;
	int64_t total_ns = 0;

	for (size_t i = 0; i < table->rows.count; i++) {
		calls += table->rows.items[i].calls;
		view_add(&total_ns, table->rows.items[i].total_ns);
	}
	ops_json_open(json, '{');
	ops_json_member(json, "distinct", (int64_t)table->rows.count);
	ops_json_member(json, "calls", (int64_t)calls);
	if (!table->by_operator) {
		ops_json_member_us(json, "total", total_ns);
	}
	view_kernels_write_rows(table, "rows", table->by_operator ? ROWS_MAX : SIZE_MAX, json);
	if (table->by_operator)
		view_kernels_write_rows(table, "top", TOP_KERNELS, json);
	ops_json_close(json, '}');
}

/* Sums, longest first. The caller must release the table in any case. */
static bool view_kernels_table_init(struct table *table)
{
	if (!table->views->has_kernels)
		return true;
	if (!view_kernels_sum(table))
		return false;
	OPS_ARRAY_SORT_BY(&table->rows, view_kernels_compare_rows, table);
	return true;
}

static void view_kernels_table_release(struct table *table)
{
	ops_intern_release(&table->keys);
	OPS_ARRAY_RELEASE(&table->rows);
}

static bool view_kernels_write_kernels(const struct ops_views *views, struct ops_json_writer *json, bool by_operator)
{
	struct table table = {.views = views, .by_operator = by_operator};
	bool done = view_kernels_table_init(&table);

	ops_json_key(json, by_operator ? "kernels_by_op" : "kernels");
	if (!views->has_kernels)
		ops_json_null(json);
	else if (done)
		view_kernels_write_table(&table, json);
	view_kernels_table_release(&table);
	return done;
}

bool view_write_kernels(const struct ops_views *views, struct ops_json_writer *json)
{
	return view_kernels_write_kernels(views, json, false) && view_kernels_write_kernels(views, json, true);
}

static void view_kernels_pass_row(const struct table *table, const struct row *row, double all_ns,
                                  void (*visit)(void *context, const struct view_kernel_row *row), void *context)
{
	const struct ops_views *views = table->views;
	const struct view_kernel *kernel = &views->kernels.items[row->kernel];
	double total_ns = (double)row->total_ns, steps = view_step_divisor(views);
	struct view_kernel_row out = {
		.name = ops_trace_string(views->trace, row->name), .by_operator = table->by_operator, .calls = row->calls,
		.total_ns = row->total_ns, .min_ns = row->min_ns, .max_ns = row->max_ns,
		.share = all_ns > 0 ? total_ns / all_ns : 0, .step_ns = total_ns / steps, .step_calls = (double)row->calls / steps,
		.blocks_per_sm = table->has_blocks && total_ns > 0 ? row->blocks / total_ns : (double)NAN,
		.occupancy_pct = table->has_occupancy && total_ns > 0 ? row->occupancy / total_ns : (double)NAN,
		.tensor_cores = views->names[row->name] & VIEW_NAME_TENSOR_CORES,
	};

	if (table->by_operator) {
		out.operator = operator_name(views, row->operator);
		out.grid = text_or_none(views, kernel->grid);
		out.block = text_or_none(views, kernel->block);
	}
	visit(context, &out);
}

bool view_each_kernel(const struct ops_views *views, bool by_operator, size_t most,
                      void (*visit)(void *context, const struct view_kernel_row *row), void *context)
{
	struct table table = {.views = views, .by_operator = by_operator};
	bool done = view_kernels_table_init(&table);
	double all_ns = 0;

	for (size_t i = 0; i < table.rows.count; i++)
		all_ns += (double)table.rows.items[i].total_ns;
	for (size_t i = 0; done && i < table.rows.count && i < most; i++)
		view_kernels_pass_row(&table, &table.rows.items[i], all_ns, visit, context);
	view_kernels_table_release(&table);
	return done;
}

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
#include "base/order.h"
#include "base/text.h"

#define TOP_KERNELS 30
#define ROWS_MAX 10000 /* limit on rows by operator, since launches with many different grids would make the reply grow
                        * with the trace */

struct table {
	const struct ops_views *views;
	struct ops_intern keys;
	view_kernel_list *rows;
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

static struct ops_string text_or_none(const struct ops_views *views, uint32_t text)
{
	return text == OPS_NONE ? ops_string_of("None") : ops_intern_text(&views->texts, text);
}

static struct view_kernel_row *view_kernels_row_of(struct table *table, const struct view_device_event *event)
{
	const struct ops_views *views = table->views;
	const struct view_kernel *kernel = &views->kernels.items[event->arguments];
	struct key key = {.name = views->events->name[event->row], .operator = OPS_NONE};
	struct view_kernel_row *row;

	if (table->by_operator) {
		key = (struct key){key.name,          view_kernels_operator_of(views, event),
		                   kernel->grid,      kernel->block,
		                   kernel->registers, kernel->shared_memory};
	}
	row = OPS_ARRAY_AT(table->rows, ops_intern_add(&table->keys, &key, sizeof(key)));
	if (!row || row->calls)
		return row;
	*row = (struct view_kernel_row){.name = ops_trace_string(views->trace, key.name), .kernel = event->arguments, .min_ns = INT64_MAX,
	                                .tensor_cores = views->names[key.name] & VIEW_NAME_TENSOR_CORES};
	if (table->by_operator) {
		row->operator = key.operator != OPS_NONE ? ops_trace_string(views->trace, key.operator)
		                                         : ops_string_of(views->policy->plugin_names ? "CallTreeRoot" : "(no operator)");
		row->grid = text_or_none(views, kernel->grid);
		row->block = text_or_none(views, kernel->block);
	}
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
		struct view_kernel_row *row;

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
		if (view_averages_event(views, event)) {
			row->step_calls++;
			row->step_ns += (double)duration_ns;
		}
		row->max_ns = duration_ns > row->max_ns ? duration_ns : row->max_ns;
		row->min_ns = duration_ns < row->min_ns ? duration_ns : row->min_ns;
		row->blocks_per_sm += isnan(kernel->blocks_per_sm) ? 0 : kernel->blocks_per_sm * (double)duration_ns;
		row->occupancy_pct += isnan(kernel->occupancy_pct) ? 0 : kernel->occupancy_pct * (double)duration_ns;
		row->eligible |= event->node != OPS_NONE && view_kernels_is_eligible(views, event->node);
	}
	return true;
}

OPS_ORDER(view_kernels_compare_rows, struct view_kernel_row,
          OPS_DOWN(total_ns) OPS_BY_TEXT(name) OPS_BY_TEXT(operator) OPS_BY_TEXT(grid) OPS_BY_TEXT(block) OPS_UP(kernel))

static double weighted_mean(double sum, int64_t total_ns, bool is_known)
{
	return !is_known ? (double)NAN : total_ns > 0 ? sum / (double)total_ns : 0;
}

static void view_kernels_finish(const struct table *table)
{
	double all_ns = 0, steps = view_step_divisor(table->views);

	OPS_ARRAY_SORT(table->rows, view_kernels_compare_rows);
	for (size_t i = 0; i < table->rows->count; i++)
		all_ns += (double)table->rows->items[i].total_ns;
	for (size_t i = 0; i < table->rows->count; i++) {
		struct view_kernel_row *row = &table->rows->items[i];

		row->share = all_ns > 0 ? (double)row->total_ns / all_ns : 0;
		row->step_ns /= steps;
		row->step_calls /= steps;
		row->blocks_per_sm = weighted_mean(row->blocks_per_sm, row->total_ns, table->has_blocks);
		row->occupancy_pct = weighted_mean(row->occupancy_pct, row->total_ns, table->has_occupancy);
	}
}

bool view_kernels_find(const struct ops_views *views, bool by_operator, view_kernel_list *list)
{
	struct table table = {.views = views, .by_operator = by_operator, .rows = list};
	bool done;

	*list = (view_kernel_list){0};
	done = !views->has_kernels || view_kernels_sum(&table);
	if (done)
		view_kernels_finish(&table);
	ops_intern_release(&table.keys);
	return done;
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void view_kernels_write_row(const struct ops_views *views, bool by_operator, struct ops_json_writer *json,
                                   const struct view_kernel_row *row)
{
	const struct view_kernel *kernel = &views->kernels.items[row->kernel];
	struct ops_buffer shortened = {0};

	ops_json_open(json, '{');
	ops_json_member_string(json, "name", row->name);
	readable_name(row->name, &shortened);
	ops_json_member_string(json, "short_name", (struct ops_string){shortened.bytes, shortened.size});
	json->out->failed |= shortened.failed;
	ops_buffer_release(&shortened);
	if (by_operator) {
		ops_json_member_string(json, "operator", row->operator);
		ops_json_member_string(json, "grid", row->grid);
		ops_json_member_string(json, "block", row->block);
		ops_json_member_or_null(json, "registers_per_thread", kernel->registers);
		ops_json_member_or_null(json, "shared_memory", kernel->shared_memory);
		ops_json_member_bool(json, "op_tc_eligible", row->eligible);
	}
	ops_json_member_bool(json, "tensor_cores", row->tensor_cores);
	ops_json_member(json, "calls", (int64_t)row->calls);
	ops_json_member_us(json, "total", row->total_ns);
	ops_json_member_number(json, "step_total", row->step_ns / 1000);
	ops_json_member_number(json, "step_calls", row->step_calls);
	ops_json_member_number(json, "mean", (double)row->total_ns / (double)row->calls / 1000);
	ops_json_member_us(json, "max", row->max_ns);
	ops_json_member_us(json, "min", row->min_ns);
	ops_json_member_number(json, "mean_blocks_per_sm", row->blocks_per_sm);
	ops_json_member_number(json, "mean_est_occupancy_pct", row->occupancy_pct);
	ops_json_close(json, '}');
}

static void view_kernels_write_table(const struct ops_views *views, bool by_operator, const view_kernel_list *list,
                                     struct ops_json_writer *json)
{
	uint64_t calls = 0;
	int64_t total_ns = 0;

	for (size_t i = 0; i < list->count; i++) {
		calls += list->items[i].calls;
		view_add(&total_ns, list->items[i].total_ns);
	}
	ops_json_open(json, '{');
	ops_json_member(json, "distinct", (int64_t)list->count);
	ops_json_member(json, "calls", (int64_t)calls);
	if (!by_operator)
		ops_json_member_us(json, "total", total_ns);
	OPS_JSON_LIST(json, "rows", i, by_operator && list->count > ROWS_MAX ? ROWS_MAX : list->count,
	              view_kernels_write_row(views, by_operator, json, &list->items[i]));
	if (by_operator)
		OPS_JSON_LIST(json, "top", i, list->count > TOP_KERNELS ? TOP_KERNELS : list->count,
		              view_kernels_write_row(views, true, json, &list->items[i]));
	ops_json_close(json, '}');
}

bool view_write_kernels(const struct ops_views *views, struct ops_json_writer *json)
{
	bool done = true;

	for (int by_operator = 0; done && by_operator < 2; by_operator++) {
		view_kernel_list list;

		done = view_kernels_find(views, by_operator, &list);
		ops_json_key(json, by_operator ? "kernels_by_op" : "kernels");
		if (!views->has_kernels)
			ops_json_null(json);
		else if (done)
			view_kernels_write_table(views, by_operator, &list, json);
		OPS_ARRAY_RELEASE(&list);
	}
	return done;
}

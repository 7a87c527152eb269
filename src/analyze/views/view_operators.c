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
#include "base/intern.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/flops.h"
#include "derive/operators.h"
#include "derive/shapes.h"

#define TOP_SHAPES 30
#define ROWS_MAX 10000 /* limit on rows by shape, since inputs of many different sizes would make the reply grow with
                        * the trace */

/* Columns that only some traces have. */
struct extras {
	struct ops_event_costs costs;
	const uint16_t *operators;
};

/* The calls of an operator at one line of the program. */
struct operator_line {
	uint32_t operator_number; /* of a row of the table */
	uint32_t call;            /* the first: a row of the trace */
	int64_t self_ns;
};

struct table {
	const struct ops_views *views;
	struct ops_map keys;
	view_operator_list rows;
	bool by_shapes;
	struct ops_shapes shapes;
	const struct extras *extras;
	struct ops_buffer place; /* scratch */
	struct ops_intern places; /* file and line */
	struct ops_map line_keys; /* number of a row << 32 | place → its place in `lines` */
	OPS_ARRAY(struct operator_line) lines;
};

/* --- sums ----------------------------------------------------------------------------------------------------------- */

static struct view_operator_row *view_operators_row_of(struct table *table, const struct view_node *node)
{
	const struct ops_events *events = table->views->events;
	uint32_t name = events->name[node->row], shapes = OPS_NONE;
	struct view_operator_row *row;

	if (table->by_shapes && (shapes = ops_shapes_number(&table->shapes, events->inputs[node->row])) == OPS_NONE)
		return NULL;
	row = OPS_ARRAY_AT(&table->rows, ops_map_number(&table->keys, (uint64_t)name << 32 | shapes));
	if (row && !row->calls) {
		row->name = ops_trace_string(table->views->trace, name);
		row->shapes = table->by_shapes ? ops_intern_text(&table->shapes.texts, shapes) : (struct ops_string){"", 0};
		row->line_call = OPS_NONE;
	}
	return row;
}

static void sum_extras(const struct extras *extras, const struct ops_trace *trace, uint32_t event, struct view_operator_row *row)
{
	if (extras->costs.self_cpu_memory) {
		view_add(&row->cpu_memory, extras->costs.self_cpu_memory[event]);
		view_add(&row->device_memory, extras->costs.self_device_memory[event]);
	}
	view_add(&row->flops, ops_flops_of(trace, event, extras->operators));
}

OPS_ORDER(view_operators_compare_rows, struct view_operator_row,
          OPS_DOWN(device_self_ns) OPS_DOWN(host_self_ns) OPS_BY_TEXT(name) OPS_BY_TEXT(shapes))

static void add_node_to_steps(const struct ops_views *views, const struct view_node *node, struct view_operator_row *row)
{
	if (!view_averages(views, view_start(views, node->row)))
		return;
	row->step_calls++;
	row->step_self_ns += (double)(view_has_device_times(views) ? node->device_self_ns : view_host_self_ns(views, node));
}

/* Adds a call to the sum of its line, if it is known. Returns false if out of memory. */
static bool add_to_line(struct table *table, const struct view_operator_row *row, uint32_t call, int64_t self_ns)
{
	uint32_t number, place;
	struct ops_string file = ops_event_line(table->views->trace, call, &number);
	struct operator_line *line;
	size_t count = table->lines.count;

	if (!file.size)
		return true;
	table->place.size = 0;
	ops_buffer_append(&table->place, file.bytes, file.size);
	ops_buffer_append(&table->place, (const char *)&number, sizeof(number));
	place = table->place.failed ? OPS_INTERN_NONE : ops_intern_add(&table->places, table->place.bytes, table->place.size);
	if (place == OPS_INTERN_NONE)
		return false;
	line = OPS_ARRAY_AT(&table->lines, ops_map_number(&table->line_keys, (uint64_t)(row - table->rows.items) << 32 | place));
	if (line && table->lines.count > count)
		*line = (struct operator_line){.operator_number = (uint32_t)(row - table->rows.items), .call = call};
	if (line)
		view_add(&line->self_ns, self_ns);
	return line != NULL;
}

/* Chooses for each operator the line with most of its self time, and counts its lines. */
static void choose_lines(struct table *table)
{
	for (size_t i = 0; i < table->lines.count; i++) {
		const struct operator_line *line = &table->lines.items[i];
		struct view_operator_row *row = &table->rows.items[line->operator_number];

		if (row->lines++ && line->self_ns <= row->line_self_ns)
			continue;
		row->line_call = line->call;
		row->line_self_ns = line->self_ns;
	}
}

static bool view_operators_sum(struct table *table)
{
	const struct ops_views *views = table->views;
	const double steps = view_step_divisor(views);

	for (size_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];
		struct view_operator_row *row;
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
		if (!add_to_line(table, row, node->row, self_ns))
			return false;
		view_add(&row->host_total_ns, duration_ns);
		view_add(&row->host_self_ns, view_host_self_ns(views, node));
		view_add(&row->device_total_ns, node->device_total_ns);
		view_add(&row->device_self_ns, node->device_self_ns);
		view_add(&row->tensor_self_ns, node->tensor_self_ns);
		view_add(&row->tensor_total_ns, node->tensor_total_ns);
		row->eligible |= node->eligible;
		add_node_to_steps(views, node, row);
		sum_extras(table->extras, views->trace, node->row, row);
	}
	choose_lines(table);
	for (size_t i = 0; i < table->rows.count; i++) {
		table->rows.items[i].step_calls /= steps;
		table->rows.items[i].step_self_ns /= steps;
	}
	OPS_ARRAY_SORT(&table->rows, view_operators_compare_rows);
	return true;
}

/* --- output --------------------------------------------------------------------------------------------------------- */

static double view_operators_percent(int64_t part_ns, int64_t whole_ns)
{
	return whole_ns ? 100 * (double)part_ns / (double)whole_ns : 0;
}

static void view_operators_write_row(const struct ops_views *views, struct ops_json_writer *json, const struct view_operator_row *row, bool by_shapes)
{
	struct ops_buffer line = {0};

	ops_json_open(json, '{');
	ops_json_member_string(json, "name", row->name);
	if (by_shapes)
		ops_json_member_string(json, "input_shape", row->shapes);
	ops_json_member(json, "calls", (int64_t)row->calls);
	ops_json_member_us(json, "host_total", row->host_total_ns);
	ops_json_member_us(json, "host_self", row->host_self_ns);
	ops_json_member_us(json, "host_min", row->host_min_ns);
	ops_json_member_us(json, "host_max", row->host_max_ns);
	ops_json_member_us(json, "device_total", row->device_total_ns);
	ops_json_member_us(json, "device_self", row->device_self_ns);
	ops_json_member_number(json, "step_self", row->step_self_ns / 1000);
	ops_json_member_number(json, "step_calls", row->step_calls);
	ops_json_member_bool(json, "tc_eligible", row->eligible);
	ops_json_member_number(json, "tc_self_pct", view_operators_percent(row->tensor_self_ns, row->device_self_ns));
	ops_json_member_number(json, "tc_total_pct", view_operators_percent(row->tensor_total_ns, row->device_total_ns));
	ops_json_member(json, "self_cpu_memory_bytes", row->cpu_memory);
	ops_json_member(json, "self_device_memory_bytes", row->device_memory);
	ops_json_member(json, "flops", row->flops);
	view_append_line(views, row->line_call, &line);
	ops_json_member_string_or_null(json, "line", (struct ops_string){ops_buffer_text(&line), line.size});
	ops_json_member(json, "lines", row->lines);
	json->out->failed |= line.failed;
	ops_buffer_release(&line);
	ops_json_close(json, '}');
}

static void view_operators_write_by_name(const struct ops_views *views, const view_operator_list *rows, struct ops_json_writer *json)
{
	const char *sort = view_has_device_times(views) ? "device_self" : "host_self";
	struct view_operator_row all = {.calls = 0};

	for (size_t i = 0; i < rows->count; i++) {
		all.calls += rows->items[i].calls;
		view_add(&all.host_self_ns, rows->items[i].host_self_ns);
		view_add(&all.device_self_ns, rows->items[i].device_self_ns);
	}
	ops_json_member_open(json, "operators", '{');
	ops_json_member(json, "distinct", (int64_t)rows->count);
	ops_json_member(json, "calls", (int64_t)all.calls);
	ops_json_member_text(json, "sort", sort);
	ops_json_member_us(json, "sum_host_self", all.host_self_ns);
	ops_json_member_us(json, "sum_device_self", all.device_self_ns);
	OPS_JSON_LIST(json, "rows", i, rows->count, view_operators_write_row(views, json, &rows->items[i], false));
	ops_json_close(json, '}');
}

static void write_by_shapes(const struct ops_views *views, const view_operator_list *rows, struct ops_json_writer *json)
{
	ops_json_member_open(json, "operators_by_input_shape", '{');
	ops_json_member(json, "distinct", (int64_t)rows->count);
	OPS_JSON_LIST(json, "rows", i, rows->count > ROWS_MAX ? ROWS_MAX : rows->count, view_operators_write_row(views, json, &rows->items[i], true));
	OPS_JSON_LIST(json, "top", i, rows->count > TOP_SHAPES ? TOP_SHAPES : rows->count, view_operators_write_row(views, json, &rows->items[i], true));
	ops_json_close(json, '}');
}

static void view_operators_release(struct table *table)
{
	ops_map_release(&table->keys);
	OPS_ARRAY_RELEASE(&table->rows);
	ops_shapes_release(&table->shapes);
	ops_buffer_release(&table->place);
	ops_intern_release(&table->places);
	ops_map_release(&table->line_keys);
	OPS_ARRAY_RELEASE(&table->lines);
}

bool view_operators_find(const struct ops_views *views, view_operator_list *list)
{
	struct extras extras = {.operators = ops_operators_of(views->trace)};
	struct table by_name = {.views = views, .extras = &extras};
	bool done = extras.operators && view_operators_sum(&by_name);

	*list = by_name.rows;
	by_name.rows = (view_operator_list){0};
	view_operators_release(&by_name);
	return done;
}

bool view_write_operators(const struct ops_views *views, struct ops_json_writer *json)
{
	struct extras extras = {.operators = ops_operators_of(views->trace)};
	struct table by_name = {.views = views, .extras = &extras}, by_shapes = {.views = views, .extras = &extras, .by_shapes = true};
	bool done = extras.operators && !ops_event_costs_init(&extras.costs, views->trace, true, NULL) && view_operators_sum(&by_name);

	if (done) {
		view_operators_write_by_name(views, &by_name.rows, json);
		done = ops_shapes_init(&by_shapes.shapes, views->trace) && view_operators_sum(&by_shapes);
	}
	if (done)
		write_by_shapes(views, &by_shapes.rows, json);
	view_operators_release(&by_name);
	view_operators_release(&by_shapes);
	ops_event_costs_release(&extras.costs);
	return done;
}

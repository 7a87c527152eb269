/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines with what they cost, as JSON by file, and as a table.
 */
#include <opstrobe/lines.h>

#include <stdlib.h>

#include "analyze/events/event_table.h"
#include "analyze/lines/line_costs.h"
#include "analyze/result.h"
#include "analyze/sum.h"
#include "base/alloc.h"

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Files with most time first, the lines of each in order. */
static int compare_places(const void *left, const void *right, void *context)
{
	const struct line_costs *costs = context;
	const struct line_cost *a = &costs->lines.items[*(const uint32_t *)left];
	const struct line_cost *b = &costs->lines.items[*(const uint32_t *)right];
	int order = compare_numbers(costs->files.items[b->file].host_ns, costs->files.items[a->file].host_ns);

	if (!order)
		order = compare_numbers(a->file, b->file);
	return order ? order : compare_numbers(a->line, b->line);
}

static int compare_own_times(const void *left, const void *right, void *context)
{
	const struct line_costs *costs = context;
	const struct line_cost *a = &costs->lines.items[*(const uint32_t *)left];
	const struct line_cost *b = &costs->lines.items[*(const uint32_t *)right];
	int order = compare_numbers(ops_sum(b->self_ns, b->device_ns), ops_sum(a->self_ns, a->device_ns));

	return order ? order : compare_places(left, right, context);
}

static uint32_t *sort_lines(struct line_costs *costs, int (*compare)(const void *, const void *, void *))
{
	uint32_t *order = ops_realloc_array(NULL, costs->lines.count + 1, sizeof(*order));

	for (size_t i = 0; order && i < costs->lines.count; i++)
		order[i] = (uint32_t)i;
	if (order)
		qsort_r(order, costs->lines.count, sizeof(*order), compare, costs);
	return order;
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void write_text(struct ops_json_writer *json, const char *key, struct ops_string text)
{
	ops_json_key(json, key);
	if (text.size)
		ops_json_text(json, text.bytes, text.size);
	else
		ops_json_null(json);
}

static void write_costs(struct ops_json_writer *json, int64_t host_ns, int64_t self_ns, int64_t device_ns, int64_t bytes)
{
	ops_json_member_us(json, "host_us", host_ns);
	ops_json_member_us(json, "self_us", self_ns);
	ops_json_member_us(json, "device_us", device_ns);
	ops_json_member(json, "allocated_bytes", bytes);
}

static void write_line(struct ops_json_writer *json, const struct line_costs *costs, const struct line_cost *line)
{
	ops_json_open(json, '{');
	ops_json_member(json, "line", line->line);
	write_text(json, "function", costs->functions.items[line->function].name);
	ops_json_member(json, "calls", line->calls);
	write_costs(json, line->host_ns, line->self_ns, line->device_ns, line->allocated_bytes);
	ops_json_member_or_null(json, "row", line->longest == OPS_NONE ? -1 : (int64_t)line->longest);
	ops_json_close(json, '}');
}

static void write_files(struct ops_json_writer *json, const struct line_costs *costs, const uint32_t *order)
{
	ops_json_key(json, "files");
	ops_json_open(json, '[');
	for (size_t i = 0; i < costs->lines.count; i++) {
		const struct line_cost *line = &costs->lines.items[order[i]];
		const struct line_file *file = &costs->files.items[line->file];
		bool last = i + 1 == costs->lines.count || costs->lines.items[order[i + 1]].file != line->file;

		if (!i || costs->lines.items[order[i - 1]].file != line->file) {
			ops_json_open(json, '{');
			write_text(json, "file", file->name);
			write_costs(json, file->host_ns, file->self_ns, file->device_ns, file->allocated_bytes);
			ops_json_key(json, "lines");
			ops_json_open(json, '[');
		}
		write_line(json, costs, line);
		if (last) {
			ops_json_close(json, ']');
			ops_json_close(json, '}');
		}
	}
	ops_json_close(json, ']');
}

/* How many steps there are, and from the first event's start to the last one's end. */
static void write_extent(struct ops_json_writer *json, const struct line_costs *costs)
{
	const struct ops_events *e = costs->events;
	int64_t first_ns = e->count ? e->start_ns[0] : 0, last_ns = first_ns;
	const struct ops_steps *steps = ops_steps_of(costs->trace);

	for (size_t row = 0; row < e->count; row++)
		last_ns = e->end_ns[row] > last_ns ? e->end_ns[row] : last_ns;
	json->out->failed |= !steps;
	ops_json_member(json, "steps", steps ? (int64_t)steps->list.count : 0);
	ops_json_member_us(json, "duration_us", ops_difference(last_ns, first_ns));
}

static bool write_json(struct line_costs *costs, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};
	uint32_t *order = sort_lines(costs, compare_places);

	if (!order)
		return false;
	ops_json_open(&json, '{');
	write_extent(&json, costs);
	write_files(&json, costs, order);
	ops_json_close(&json, '}');
	ops_free(order);
	return true;
}

/* --- a table -------------------------------------------------------------------------------------------------------- */

struct listed_line {
	const struct line_cost *costs;
	struct ops_string function, file;
};

RESULT_GETTER(get_self, struct listed_line, integer, row->costs->self_ns)
RESULT_GETTER(get_with_calls, struct listed_line, integer, row->costs->host_ns)
RESULT_GETTER(get_device, struct listed_line, integer, row->costs->device_ns)
RESULT_GETTER(get_allocated, struct listed_line, integer, row->costs->allocated_bytes)
RESULT_GETTER(get_calls, struct listed_line, integer, row->costs->calls)
RESULT_GETTER(get_line, struct listed_line, integer, row->costs->line)
RESULT_GETTER(get_function, struct listed_line, text, row->function)
RESULT_GETTER(get_file, struct listed_line, text, row->file)

static const struct result_column line_columns[] = {
	{.name = "self", .type = RESULT_TIME, .get = get_self},
	{.name = "with_calls", .type = RESULT_TIME, .get = get_with_calls},
	{.name = "device", .type = RESULT_TIME, .priority = RESULT_MINOR, .get = get_device},
	{.name = "allocated", .type = RESULT_BYTES, .priority = RESULT_MINOR, .get = get_allocated},
	{.name = "calls", .type = RESULT_COUNT, .get = get_calls},
	{.name = "line", .type = RESULT_INTEGER, .priority = RESULT_MAJOR, .get = get_line},
	{.name = "function", .type = RESULT_TEXT, .get = get_function},
	{.name = "file", .type = RESULT_TEXT, .priority = RESULT_MAJOR, .get = get_file},
};

static bool write_table(struct line_costs *costs, enum ops_format format, size_t rows_max, size_t columns,
                        struct ops_buffer *out)
{
	uint32_t *order = sort_lines(costs, compare_own_times);
	struct result result;
	bool done;

	result_init(&result);
	RESULT_DECLARED(&result.table, line_columns);
	for (size_t i = 0; order && i < costs->lines.count && (!rows_max || i < rows_max); i++) {
		const struct line_cost *line = &costs->lines.items[order[i]];

		result_add(&result.table, &(struct listed_line){line, costs->functions.items[line->function].name,
		                                                costs->files.items[line->file].name});
	}
	result.room = columns;
	done = order && result_write(&result, format, out);
	result_release(&result);
	ops_free(order);
	return done;
}

enum ops_code ops_lines(const struct ops_trace *trace, enum ops_format format, size_t rows_max, size_t columns,
                        char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct line_costs costs;
	struct ops_buffer out = {0};
	bool done = line_costs_init(&costs, trace);

	if (done && format == OPS_FORMAT_JSON)
		done = write_json(&costs, &out);
	else if (done)
		done = write_table(&costs, format, rows_max, columns, &out);
	line_costs_release(&costs);
	out.failed |= !done;
	return ops_buffer_give(&out, OPS_OK, ret_text, ret_size, error);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and their costs, as JSON by file, and as a table.
 */
#include <opstrobe/internal/lines.h>

#include <stdlib.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/internal/trace.h>

#include "analyze/events/event_table.h"
#include "analyze/lines/line_costs.h"
#include "analyze/tables.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/sum.h"
#include "derive/extent.h"

static int line_answers_compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Orders files of the program before those of libraries. */
static int line_answers_compare_owners(const struct line_costs *costs, uint32_t a, uint32_t b)
{
	return (int)costs->files.items[a].is_library - (int)costs->files.items[b].is_library;
}

/* Orders files of the program first, files with most time first, and the lines of each file by number. */
static int line_answers_compare_places(const void *left, const void *right, void *context)
{
	const struct line_costs *costs = context;
	const struct line_cost *a = &costs->lines.items[*(const uint32_t *)left];
	const struct line_cost *b = &costs->lines.items[*(const uint32_t *)right];
	int order = line_answers_compare_owners(costs, a->file, b->file);

	if (!order)
		order = line_answers_compare_numbers(costs->files.items[b->file].host_ns, costs->files.items[a->file].host_ns);
	if (!order)
		order = line_answers_compare_numbers(a->file, b->file);
	return order ? order : line_answers_compare_numbers(a->line, b->line);
}

static int compare_own_times(const void *left, const void *right, void *context)
{
	const struct line_costs *costs = context;
	const struct line_cost *a = &costs->lines.items[*(const uint32_t *)left];
	const struct line_cost *b = &costs->lines.items[*(const uint32_t *)right];
	int order = line_answers_compare_owners(costs, a->file, b->file);

	if (!order)
		order = line_answers_compare_numbers(ops_sum(b->self_ns, b->device_ns), ops_sum(a->self_ns, a->device_ns));
	return order ? order : line_answers_compare_places(left, right, context);
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

/* A line, or a file with the sums of its lines. */
struct place_row {
	struct ops_string file, function;
	int64_t line, calls, host_ns, self_ns, device_ns, bytes, longest, is_library;
};

/* The common columns of the table and members of the JSON objects. */
#define FIELD(member) RESULT_FIELD(struct place_row, member)
#define SELF .type = RESULT_TIME, .title = "Self", .about = "Time without what the lines of the program below it account for, and without waits of helper threads", FIELD(self_ns)
#define TOTAL .type = RESULT_TIME, .title = "Total", .about = "Time including all calls that the line made, on any thread", FIELD(host_ns)
#define DEVICE                                                                                                          \
	.type = RESULT_TIME, .priority = RESULT_MINOR, .title = "Device", .about = "Device work that the line launched directly", \
	FIELD(device_ns)
#define ALLOCATED                                                                                                       \
	.type = RESULT_BYTES, .priority = RESULT_MINOR, .title = "Allocated", .about = "Memory that the line allocated itself", \
	FIELD(bytes)
#define CALLS .type = RESULT_COUNT, .title = "Calls", .about = "Number of recorded calls that the line made", FIELD(calls)
#define LINE .type = RESULT_INTEGER, .priority = RESULT_MAJOR, .title = "Line", .about = "Number of the line", FIELD(line)
#define FUNCTION .type = RESULT_TEXT, .title = "Function", .about = "Function of the line", FIELD(function)
#define IS_LIBRARY                                                                                                      \
	.type = RESULT_FLAG, .title = "Library", .about = "In a file of Python or of an installed package, not of the program", \
	FIELD(is_library)
#define FILE_NAME .type = RESULT_TEXT, .priority = RESULT_MAJOR, .title = "File", .about = "Path of the file", FIELD(file)

static const struct result_column line_columns[] = {
	{.name = "self", SELF}, {.name = "with_calls", TOTAL}, {.name = "device", DEVICE}, {.name = "allocated", ALLOCATED},
	{.name = "calls", CALLS}, {.name = "line", LINE}, {.name = "function", FUNCTION}, {.name = "file", FILE_NAME},
	{.name = "is_library", IS_LIBRARY, .when = "not in text", .option = LINES_WITH_LIBRARY},
};
const struct result_declaration table_lines = RESULT_DECLARATION("lines", "A line of the program", line_columns);

static const struct result_column source_line_columns[] = {
	{.name = "line", LINE}, {.name = "function", .nullable = true, FUNCTION}, {.name = "calls", CALLS},
	{.name = "host_us", TOTAL}, {.name = "self_us", SELF}, {.name = "device_us", DEVICE},
	{.name = "allocated_bytes", ALLOCATED},
	{.name = "row", .type = RESULT_INTEGER, .nullable = true, .about = "Longest event of the line", FIELD(longest)},
};
const struct result_declaration table_source_line =
	RESULT_DECLARATION("SourceLine", "A line of a source file", source_line_columns);

static const struct result_column source_file_columns[] = {
	{.name = "file", FILE_NAME}, {.name = "host_us", TOTAL}, {.name = "self_us", SELF},
	{.name = "device_us", DEVICE}, {.name = "allocated_bytes", ALLOCATED},
	{.name = "is_library", IS_LIBRARY},
	{.name = "lines", .type = RESULT_LIST, .about = "Lines in order of their numbers", .object = &table_source_line},
};
const struct result_declaration table_source_file =
	RESULT_DECLARATION("SourceFile", "A source file; its times are those while any of its lines runs", source_file_columns);

static struct place_row line_answers_row_of(const struct line_costs *costs, const struct line_cost *line)
{
	return (struct place_row){
		.file = costs->files.items[line->file].name,
		.function = costs->functions.items[line->function].name,
		.line = line->line,
		.calls = line->calls,
		.host_ns = line->host_ns,
		.self_ns = line->self_ns,
		.device_ns = line->device_ns,
		.bytes = line->allocated_bytes,
		.longest = line->longest == OPS_NONE ? RESULT_NULL : (int64_t)ops_trace_whole_row(costs->trace, line->longest),
		.is_library = costs->files.items[line->file].is_library,
	};
}

static void line_answers_write_line(struct ops_json_writer *json, const struct line_costs *costs, const struct line_cost *line)
{
	struct place_row row = line_answers_row_of(costs, line);

	row.function = result_text_or_null(row.function);
	result_object_json(&table_source_line, 0, &row, json);
}

static void write_files(struct ops_json_writer *json, const struct line_costs *costs, const uint32_t *order)
{
	ops_json_member_open(json, "files", '[');
	for (size_t i = 0; i < costs->lines.count; i++) {
		const struct line_cost *line = &costs->lines.items[order[i]];
		const struct line_file *file = &costs->files.items[line->file];
		bool last = i + 1 == costs->lines.count || costs->lines.items[order[i + 1]].file != line->file;

		if (!i || costs->lines.items[order[i - 1]].file != line->file) {
			ops_json_open(json, '{');
			result_members_json(&table_source_file, 0, &(struct place_row){
				.file = file->name,
				.host_ns = file->host_ns,
				.self_ns = file->self_ns,
				.device_ns = file->device_ns,
				.bytes = file->allocated_bytes,
				.is_library = file->is_library,
			}, json);
			ops_json_open(json, '[');
		}
		line_answers_write_line(json, costs, line);
		if (last) {
			ops_json_close(json, ']');
			ops_json_close(json, '}');
		}
	}
	ops_json_close(json, ']');
}

/* Writes the number of steps, and the duration of the trace. */
static void line_answers_write_extent(struct ops_json_writer *json, const struct line_costs *costs)
{
	struct ops_interval extent = ops_extent_of(costs->trace);
	const struct ops_steps *steps = ops_steps_of(costs->trace);

	json->out->failed |= !steps;
	ops_json_member(json, "steps", steps ? (int64_t)steps->list.count : 0);
	ops_json_member_us(json, "duration_us", ops_difference(extent.end_ns, extent.start_ns));
	ops_json_member_us(json, "waits_us", costs->waits_ns);
}

static bool line_answers_write_json(struct line_costs *costs, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};
	uint32_t *order = sort_lines(costs, line_answers_compare_places);

	if (!order)
		return false;
	ops_json_open(&json, '{');
	line_answers_write_extent(&json, costs);
	write_files(&json, costs, order);
	if (!costs->lines.count)
		ops_json_member_text(&json, "empty", LINES_EMPTY);
	ops_json_close(&json, '}');
	ops_free(order);
	return true;
}

/* --- table ---------------------------------------------------------------------------------------------------------- */

static bool line_answers_add(const struct run_rows *rows, const struct ops_trace *trace, int64_t *ret_waits_ns)
{
	struct line_costs costs;
	bool done = line_costs_init(&costs, trace);
	uint32_t *order = done ? sort_lines(&costs, compare_own_times) : NULL;

	for (size_t i = 0; order && i < costs.lines.count && i < rows->limit; i++) {
		struct place_row row = line_answers_row_of(&costs, &costs.lines.items[order[i]]);

		run_rows_add(rows, &row);
	}
	*ret_waits_ns = costs.waits_ns;
	line_costs_release(&costs);
	ops_free(order);
	return order != NULL;
}

enum ops_code lines_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                         struct ops_error *error)
{
	int64_t waits_ns;

	(void)context;
	return line_answers_add(rows, trace, &waits_ns) ? OPS_OK : ops_fault_memory(error);
}

static bool line_answers_write_table(const struct ops_trace *trace, enum ops_format format, size_t rows_max, size_t columns,
                                     struct ops_buffer *out)
{
	struct result result;
	int64_t waits_ns = 0;
	bool done;

	result_init(&result);
	result.table.copies = true;
	result.table.empty = LINES_EMPTY;
	result.room = columns;
	result_declare(&result.table, &table_lines, format == OPS_FORMAT_TEXT ? 0 : LINES_WITH_LIBRARY);
	done = line_answers_add(&(struct run_rows){.table = &result.table, .limit = rows_max ? rows_max : SIZE_MAX}, trace, &waits_ns) &&
	       result_write(&result, format, out);
	if (done && format == OPS_FORMAT_TEXT && waits_ns > 0) {
		char waits[OPS_FORMAT_ROOM];

		ops_format_duration(waits, (double)waits_ns);
		ops_buffer_printf(out, "Self time does not include %s in which helper threads wait.\n", waits);
	}
	result_release(&result);
	return done;
}

enum ops_code ops_lines(const struct ops_trace *trace, enum ops_format format, size_t rows_max, size_t columns,
                        char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct line_costs costs;
	struct ops_buffer out = {0};
	bool done;

	if (format == OPS_FORMAT_JSON) {
		done = line_costs_init(&costs, trace) && line_answers_write_json(&costs, &out);
		line_costs_release(&costs);
	} else {
		done = line_answers_write_table(trace, format, rows_max, columns, &out);
	}
	out.failed |= !done;
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

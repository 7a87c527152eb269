/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator table in torch's layout. One pass over all rows determines the columns, their widths and the sums; a
 * second prints the requested rows. Intended differences from torch: a share of a zero total is "NaN" even where torch
 * raises an error, and memory rows count as rows without FLOPs.
 */
#include <opstrobe/internal/analyze.h>

#include <stdio.h>
#include <string.h>

#include "analyze/table.h"
#include "analyze/table_sort.h"
#include "base/alloc.h"
#include "base/escape.h"
#include "base/fault.h"

#define COLUMN_WIDTH 12
#define GAP "  "

static size_t column_width(const struct ops_table *t, enum ops_table_column column)
{
	if (t->options->columns)
		return t->fit[column].width;
	if (column == OPS_COLUMN_NAME || column == OPS_COLUMN_OVERLOAD)
		return t->name_width;
	if (column == OPS_COLUMN_SOURCE)
		return t->source_width;
	return column == OPS_COLUMN_SHAPES ? t->shapes_width : COLUMN_WIDTH;
}

/* --- terminal ----------------------------------------------------------------------------------------------------- */

/* The column with the highest rank is omitted first; the sort column never is. */
static unsigned table_rank_of(const struct ops_table *t, enum ops_table_column column)
{
	static const struct {
		unsigned rank;
		const char *key;
	} columns[OPS_COLUMN_END] = {
		[OPS_COLUMN_NAME] = {0, NULL},
		[OPS_COLUMN_OVERLOAD] = {9, NULL},
		[OPS_COLUMN_SELF_CPU_SHARE] = {6, NULL},
		[OPS_COLUMN_SELF_CPU] = {1, "self_cpu_time_total"},
		[OPS_COLUMN_CPU_SHARE] = {8, NULL},
		[OPS_COLUMN_CPU] = {3, "cpu_time_total"},
		[OPS_COLUMN_CPU_MEAN] = {5, "cpu_time"},
		[OPS_COLUMN_SELF_DEVICE] = {2, "self_device_time_total"},
		[OPS_COLUMN_SELF_DEVICE_SHARE] = {6, NULL},
		[OPS_COLUMN_DEVICE] = {3, "device_time_total"},
		[OPS_COLUMN_DEVICE_MEAN] = {5, "device_time"},
		[OPS_COLUMN_CPU_MEMORY] = {7, "cpu_memory_usage"},
		[OPS_COLUMN_SELF_CPU_MEMORY] = {4, "self_cpu_memory_usage"},
		[OPS_COLUMN_DEVICE_MEMORY] = {7, "device_memory_usage"},
		[OPS_COLUMN_SELF_DEVICE_MEMORY] = {4, "self_device_memory_usage"},
		[OPS_COLUMN_COUNT] = {2, "count"},
		[OPS_COLUMN_SHAPES] = {1, NULL},
		[OPS_COLUMN_SOURCE] = {9, NULL},
		[OPS_COLUMN_FLOPS] = {1, "flops"},
	};
	const char *key = columns[column].key;

	return key && t->options->sort_by && !strcmp(key, t->options->sort_by) ? 0 : columns[column].rank;
}

static struct fit_column natural_width(const struct ops_table *t, enum ops_table_column column)
{
	unsigned rank = table_rank_of(t, column);
	size_t width;

	if (!ops_table_has_column(t, column))
		return (struct fit_column){0};
	if (column == OPS_COLUMN_NAME || column == OPS_COLUMN_SHAPES) {
		width = column == OPS_COLUMN_NAME ? t->name_length_max : t->shapes_length_max;
		return fit_texts(width < COLUMN_WIDTH ? COLUMN_WIDTH : width, rank);
	}
	width = column == OPS_COLUMN_OVERLOAD ? t->name_width : column == OPS_COLUMN_SOURCE ? t->source_width : COLUMN_WIDTH;
	return (struct fit_column){width, width, rank};
}

/* To be called before the first line is written. */
static void fit(struct ops_table *t, struct ops_buffer *note)
{
	size_t room = t->options->columns;

	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++)
		t->fit[column] = natural_width(t, column);
	/* Each cell is followed by a gap, including the last one. */
	fit_columns(t->fit, OPS_COLUMN_END, strlen(GAP), room > strlen(GAP) ? room - strlen(GAP) : 1);
	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++) {
		if (!ops_table_has_column(t, column) || t->fit[column].width)
			continue;
		ops_table_title(t, column);
		fit_note_title(note, (struct ops_string){t->scratch.bytes, t->scratch.size});
		t->left_out |= 1u << column;
	}
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static void append_repeated(struct ops_buffer *out, char c, size_t count)
{
	char *room = ops_buffer_room(out, count);

	if (!room)
		return;
	memset(room, c, count);
	out->size += count;
}

/* Appends a cell of `length` code points, aligned to the right. */
static void table_append_cell(struct ops_table *t, struct ops_string text, size_t length, size_t width)
{
	if (length < width)
		append_repeated(&t->out, ' ', width - length);
	ops_plain_append(&t->out, text.bytes, text.size);
	ops_buffer_append_text(&t->out, GAP);
}

/* The same, to the left. */
static void append_left_cell(struct ops_table *t, struct ops_string text, size_t length, size_t width)
{
	ops_plain_append(&t->out, text.bytes, text.size);
	if (length < width)
		append_repeated(&t->out, ' ', width - length);
	ops_buffer_append_text(&t->out, GAP);
}

static void append_fitting_cell(struct ops_table *t, struct ops_string text, size_t width)
{
	text = fit_name(&t->names, text, width);
	table_append_cell(t, text, ops_text_length(text), width);
}

/* Python's text[:end] with an end that may be negative. */
static struct ops_string slice(struct ops_string text, size_t length, int64_t end)
{
	if (end < 0)
		end = (uint64_t)-end < length ? (int64_t)length + end : 0;
	return ops_text_prefix(text, (size_t)end);
}

static void append_name_cell(struct ops_table *t, enum ops_table_column column, struct ops_string name, size_t length)
{
	int64_t keep = t->options->max_name_column_width - 3;
	struct ops_string cell;

	if (t->options->columns) {
		append_fitting_cell(t, name, t->fit[column].width);
		return;
	}
	if ((int64_t)length < keep) {
		table_append_cell(t, name, length, t->name_width);
		return;
	}
	cell = slice(name, length, keep);
	t->scratch.size = 0;
	ops_buffer_append(&t->scratch, cell.bytes, cell.size);
	ops_buffer_append_text(&t->scratch, "...");
	cell = (struct ops_string){t->scratch.bytes, t->scratch.size};
	table_append_cell(t, cell, ops_text_length(cell), t->name_width);
}

static void append_shapes_cell(struct ops_table *t, uint32_t inputs)
{
	struct ops_string text = ops_table_shapes_text(t, inputs);

	if (t->options->columns) {
		append_fitting_cell(t, text, t->fit[OPS_COLUMN_SHAPES].width);
		return;
	}
	if (text.size > (uint64_t)t->options->max_shapes_column_width)
		text.size = (size_t)t->options->max_shapes_column_width;
	table_append_cell(t, text, text.size, t->shapes_width);
}

/* Appends a frame, truncated at its start; chain 0 is an empty cell. */
static void append_source_cell(struct ops_table *t, uint32_t chain)
{
	struct ops_string text = {"", 0}, cut;
	size_t length = 0, width = column_width(t, OPS_COLUMN_SOURCE);

	if (chain != 0) {
		text = ops_stack_text(t->options->stacks, t->frames[chain].name);
		length = ops_table_frame_length(t, t->frames[chain].name);
	}
	if (length > width) {
		cut = ops_text_prefix(text, length - width + (width > 3 ? 3 : 0));
		t->scratch.size = 0;
		ops_buffer_append_text(&t->scratch, width > 3 ? "..." : "");
		ops_buffer_append(&t->scratch, text.bytes + cut.size, text.size - cut.size);
		text = (struct ops_string){t->scratch.bytes, t->scratch.size};
		length = width;
	}
	append_left_cell(t, text, length, width);
}

static void append_row(struct ops_table *t, const struct ops_average *row)
{
	char cell[OPS_FORMAT_ROOM];
	struct ops_string text = {cell, 0};

	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++) {
		if (!ops_table_has_column(t, column))
			continue;
		if (column == OPS_COLUMN_NAME) {
			append_name_cell(t, column, ops_average_name(t->trace, row), ops_table_name_length(t, row));
		} else if (column == OPS_COLUMN_OVERLOAD) {
			struct ops_string name = {"", 0};

			if (row->overload != OPS_NONE)
				name = ops_trace_string(t->trace, row->overload);
			append_name_cell(t, column, name, ops_text_length(name));
		} else if (column == OPS_COLUMN_SHAPES) {
			append_shapes_cell(t, row->inputs);
		} else if (column == OPS_COLUMN_SOURCE) {
			append_source_cell(t, ops_table_stack(t, row));
		} else {
			ops_table_number(t, column, row, cell);
			text.size = strlen(cell);
			table_append_cell(t, text, text.size, COLUMN_WIDTH);
		}
	}
	ops_buffer_append_text(&t->out, "\n");
}

/* Appends a line with nothing but a frame; for chain 0 without the frame. */
static void append_source_line(struct ops_table *t, uint32_t chain)
{
	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++) {
		if (!ops_table_has_column(t, column))
			continue;
		if (column == OPS_COLUMN_SOURCE)
			append_source_cell(t, chain);
		else
			table_append_cell(t, (struct ops_string){"", 0}, 0, column_width(t, column));
	}
	ops_buffer_append_text(&t->out, "\n");
}

/* Appends the frames after the first, one per line, and an empty line. */
static void table_append_stack(struct ops_table *t, const struct ops_average *row)
{
	uint32_t chain = ops_table_stack(t, row);

	for (uint32_t i = 1; chain != 0 && i < row->stack_frames; i++) {
		chain = t->frames[chain].caller;
		if (chain != 0)
			append_source_line(t, chain);
	}
	append_source_line(t, 0);
}

/* --- table -------------------------------------------------------------------------------------------------------- */

static void append_separator(struct ops_table *t)
{
	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++) {
		if (!ops_table_has_column(t, column))
			continue;
		append_repeated(&t->out, '-', column_width(t, column));
		ops_buffer_append_text(&t->out, GAP);
	}
	ops_buffer_append_text(&t->out, "\n");
}

static void append_titles(struct ops_table *t)
{
	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++) {
		struct ops_string title;

		if (!ops_table_has_column(t, column))
			continue;
		ops_table_title(t, column);
		title = (struct ops_string){t->scratch.bytes, t->scratch.size};
		if (column == OPS_COLUMN_SOURCE)
			append_left_cell(t, title, title.size, column_width(t, column));
		else
			table_append_cell(t, title, title.size, column_width(t, column));
	}
	ops_buffer_append_text(&t->out, "\n");
}

/* Appends a line of '=' as long as the separator without its last gap, then the text. */
static void append_heading(struct ops_table *t, const char *text, size_t size)
{
	size_t length = 0;

	for (enum ops_table_column column = 0; column < OPS_COLUMN_END; column++)
		if (ops_table_has_column(t, column))
			length += column_width(t, column) + strlen(GAP);
	append_repeated(&t->out, '=', length - strlen(GAP));
	ops_buffer_append_text(&t->out, "\n");
	ops_buffer_append(&t->out, text, size);
	ops_buffer_append_text(&t->out, "\n");
}

static void table_append_head(struct ops_table *t)
{
	static const char top_level[] = "This report only display top-level ops statistics";

	if (t->options->header)
		append_heading(t, t->options->header, t->options->header_size);
	if (t->options->top_level_events_only)
		append_heading(t, top_level, strlen(top_level));
	append_separator(t);
	append_titles(t);
	append_separator(t);
}

/* Writes the rows, or with `write` unset only announces the names that will be truncated. */
static void table_append_rows(struct ops_table *t, const uint32_t *order, bool write)
{
	const struct ops_rows *rows = t->rows;
	int64_t left = t->options->row_limit;
	struct ops_average row;

	for (size_t n = 0; n < rows->count && left != 0 && !t->out.failed; n++) {
		size_t i = order ? order[n] : n;

		if (t->options->top_level_events_only && rows->has_parent && rows->has_parent(rows->context, i))
			continue;
		rows->get(rows->context, i, &row);
		if (write)
			append_row(t, &row);
		else
			fit_names_expect(&t->names, ops_average_name(t->trace, &row), t->fit[OPS_COLUMN_NAME].width);
		if (write && t->has_stacks)
			table_append_stack(t, &row);
		left -= left > 0;
	}
}

static void table_append_foot(struct ops_table *t)
{
	char time[OPS_FORMAT_ROOM];

	append_separator(t);
	ops_format_time(time, t->self_cpu_us, t->unit);
	ops_buffer_printf(&t->out, "Self CPU time total: %s\n", time);
	if (t->has_device_time) {
		ops_format_time(time, t->self_device_us, t->unit);
		ops_buffer_printf(&t->out, "Self %s time total: %s\n", t->device, time);
	}
}

static void table_write_text(struct ops_table *t, const uint32_t *order)
{
	struct ops_buffer note = {0};

	if (t->options->columns)
		fit(t, &note);
	table_append_head(t);
	if (t->options->columns)
		table_append_rows(t, order, false);
	table_append_rows(t, order, true);
	table_append_foot(t);
	fit_note_end(&note, &t->out, t->options->columns);
}

static enum ops_code table_make(struct ops_table *t, void (*write)(struct ops_table *, const uint32_t *),
                                struct ops_error *error)
{
	uint32_t *order = NULL;
	enum ops_code code = OPS_OK;

	if (t->options->max_name_column_width < 0 || t->options->max_shapes_column_width < 0 ||
	    t->options->max_src_column_width < 0)
		return ops_fault(error, OPS_INVALID, "the width of a column is negative");
	if (t->options->sort_by)
		code = ops_table_sort(t->trace, t->options->stacks, t->rows, t->options->sort_by, &order, error);
	if (code == OPS_OK)
		code = ops_table_survey(t, error);
	if (code == OPS_OK) {
		write(t, order);
		if (t->scratch.failed || t->names.failed)
			code = ops_fault_memory(error);
	}
	ops_free(order);
	return code;
}

enum ops_code ops_table_make(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options,
                             void (*write)(struct ops_table *, const uint32_t *), char **ret_text, size_t *ret_size,
                             struct ops_error *error)
{
	struct ops_table t = {.trace = trace, .rows = rows, .options = options};
	enum ops_code code = OPS_OK;

	t.unit = ops_time_unit_of(options->time_unit);
	if (rows->count > 0) /* a table without rows is the empty text */
		code = table_make(&t, write, error);
	ops_free(t.name_lengths);
	ops_free(t.shapes_lengths);
	ops_free(t.frame_lengths);
	ops_buffer_release(&t.scratch);
	fit_names_release(&t.names);
	return ops_buffer_detach(&t.out, code, ret_text, ret_size, error);
}

enum ops_code ops_table_text(const struct ops_trace *trace, const struct ops_rows *rows,
                             const struct ops_table_options *options, char **ret_text, size_t *ret_size,
                             struct ops_error *error)
{
	return ops_table_make(trace, rows, options, table_write_text, ret_text, ret_size, error);
}

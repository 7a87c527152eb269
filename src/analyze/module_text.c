/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of modules as text: names to the left, indented by what holds them, figures to the right. A column where no module
 * shown has a figure is left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/fit.h"
#include "analyze/format.h"
#include "analyze/module_tree.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/escape.h"
#include "base/fault.h"

#define INDENT 2
#define GAP 2
#define TEXT_COLUMNS 2

/* --- figures -------------------------------------------------------------------------------------------------------- */

enum unit { COUNT, TIME, BYTES, AMOUNT };

static void format_amount(char *out, int64_t amount)
{
	static const char *const names[] = {"", "K", "M", "G", "T", "P"};
	double scaled = (double)amount;
	size_t i = 0;

	while (scaled >= 1000 && i + 1 < sizeof(names) / sizeof(names[0])) {
		scaled /= 1000;
		i++;
	}
	if (i)
		snprintf(out, OPS_FORMAT_ROOM, "%.2f %s", scaled, names[i]);
	else
		snprintf(out, OPS_FORMAT_ROOM, "%lld", (long long)amount);
}

static void format_figure(char *out, enum unit unit, int64_t value)
{
	if (unit == TIME)
		ops_format_time(out, (double)value / 1000, OPS_TIME_BY_SIZE);
	else if (unit == BYTES)
		ops_format_bytes(out, value);
	else if (unit == AMOUNT)
		format_amount(out, value);
	else
		snprintf(out, OPS_FORMAT_ROOM, "%lld", (long long)value);
}

/* What can be shown and sorted by. */
struct figure {
	const char *key;
	size_t offset; /* in struct ops_module_row, of 64 bits */
};

static const struct figure figures[] = {
#define FIGURE(field) offsetof(struct ops_module_row, field)
	{"calls", FIGURE(calls)},
	{"parameters", FIGURE(parameter_count)},
	{"cpu_peak_bytes", FIGURE(cpu_peak_bytes)},
	{"device_peak_bytes", FIGURE(device_peak_bytes)},
#define METRIC(name, text) {text, FIGURE(total[OPS_MODULE_##name])}, {"self_" text, FIGURE(self[OPS_MODULE_##name])},
	OPS_MODULE_METRICS(METRIC)
#undef METRIC
};

static int64_t figure_of(const struct ops_module_row *row, size_t offset)
{
	int64_t value;

	memcpy(&value, (const char *)row + offset, sizeof(value));
	return value;
}

static const struct column {
	const char *title;
	size_t offset;
	enum unit unit;
	bool of_calls; /* says nothing of a module that is not called */
} columns[] = {
	{"Calls", FIGURE(calls), COUNT, true},
	{"Forward", FIGURE(total[OPS_MODULE_HOST]), TIME, false},
	{"Self forward", FIGURE(self[OPS_MODULE_HOST]), TIME, true},
	{"Backward", FIGURE(total[OPS_MODULE_BACKWARD]), TIME, false},
	{"Device", FIGURE(total[OPS_MODULE_DEVICE]), TIME, false},
	{"Device backward", FIGURE(total[OPS_MODULE_BACKWARD_DEVICE]), TIME, false},
	{"FLOPs", FIGURE(total[OPS_MODULE_FLOPS]), AMOUNT, false},
	{"Allocated", FIGURE(total[OPS_MODULE_CPU_ALLOCATED]), BYTES, false},
	{"Peak", FIGURE(cpu_peak_bytes), BYTES, false},
	{"Device allocated", FIGURE(total[OPS_MODULE_DEVICE_ALLOCATED]), BYTES, false},
	{"Device peak", FIGURE(device_peak_bytes), BYTES, false},
	{"Parameters", FIGURE(parameter_count), AMOUNT, false},
};
#undef FIGURE
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

/* --- which rows, in which order ------------------------------------------------------------------------------------- */

struct sheet {
	const struct ops_module_row *rows;
	size_t row_count;
	bool by_class;
	size_t sort_offset;
	bool sorted;
	uint32_t *lines; /* rows in order of the text */
	size_t line_count;
	size_t left_out; /* lines beyond those that are wanted */
	size_t widths[TEXT_COLUMNS + COLUMN_COUNT]; /* 0: the column is left out */
	size_t room; /* characters of a line; 0: as many as there are */
	struct ops_buffer note; /* what there was no room for */
	struct fit_names names;
	struct ops_buffer out;
};

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct sheet *sheet = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint32_t left_parent = sheet->rows[left].parent + 1, right_parent = sheet->rows[right].parent + 1;
	int64_t left_value, right_value;

	if (left_parent != right_parent)
		return left_parent < right_parent ? -1 : 1;
	if (sheet->sorted) {
		left_value = figure_of(&sheet->rows[left], sheet->sort_offset);
		right_value = figure_of(&sheet->rows[right], sheet->sort_offset);
		if (left_value != right_value)
			return left_value > right_value ? -1 : 1;
	}
	return left < right ? -1 : 1;
}

/* Walks down the tree and notes the rows that are called or hold such. Roots are the children of row `count`. */
static void walk(struct sheet *sheet, const uint32_t *first, const uint32_t *next, const uint8_t *called, uint32_t max_depth)
{
	uint32_t at = first[sheet->row_count];

	while (at != OPS_NONE) {
		const struct ops_module_row *row = &sheet->rows[at];
		bool shown = called[at] && (!max_depth || row->depth < max_depth);

		if (shown)
			sheet->lines[sheet->line_count++] = at;
		if (shown && first[at] != OPS_NONE) {
			at = first[at];
			continue;
		}
		while (next[at] == OPS_NONE && sheet->rows[at].parent != OPS_NONE)
			at = sheet->rows[at].parent;
		at = next[at];
	}
}

/* False when memory is out. */
static bool find_lines(struct sheet *sheet, uint32_t max_depth)
{
	size_t count = sheet->row_count;
	uint32_t *order = ops_realloc_array(NULL, count + 1, sizeof(*order));
	uint32_t *first = ops_realloc_array(NULL, count + 1, sizeof(*first));
	uint32_t *next = ops_realloc_array(NULL, count + 1, sizeof(*next));
	uint8_t *called = ops_alloc_zeroed(count + 1, 1);
	bool ok = order && first && next && called;

	sheet->lines = ops_realloc_array(NULL, count + 1, sizeof(*sheet->lines));
	ok = ok && sheet->lines;
	for (uint32_t i = 0; ok && i <= count; i++) {
		order[i] = i;
		first[i] = next[i] = OPS_NONE;
	}
	for (size_t i = count; ok && i-- > 0;) {
		called[i] |= sheet->rows[i].calls > 0;
		if (called[i] && sheet->rows[i].parent != OPS_NONE)
			called[sheet->rows[i].parent] = 1;
	}
	if (ok) {
		qsort_r(order, count, sizeof(*order), compare_rows, sheet);
		for (size_t i = count; i-- > 0;) {
			uint32_t parent = sheet->rows[order[i]].parent;

			next[order[i]] = first[parent == OPS_NONE ? count : parent];
			first[parent == OPS_NONE ? count : parent] = order[i];
		}
		walk(sheet, first, next, called, max_depth);
	}
	ops_free(order);
	ops_free(first);
	ops_free(next);
	ops_free(called);
	return ok;
}

/* --- cells ---------------------------------------------------------------------------------------------------------- */

/* "torch.nn.modules.linear.Linear" is shown as "Linear". */
static struct ops_string short_class(struct ops_string name)
{
	const char *dot = memrchr(name.bytes, '.', name.size);
	size_t skipped = dot ? (size_t)(dot + 1 - name.bytes) : 0;

	return (struct ops_string){name.bytes + skipped, name.size - skipped};
}

/* What a path adds to that of the row above: "1.attn" below "layers". What has the same path is wrapped by it. */
static struct ops_string label_of(const struct sheet *sheet, const struct ops_module_row *row)
{
	const struct ops_module_row *parent = row->parent == OPS_NONE ? NULL : &sheet->rows[row->parent];
	struct ops_string path = row->path;

	if (!parent || parent->path.size > path.size || memcmp(parent->path.bytes, path.bytes, parent->path.size) != 0)
		return path;
	if (parent->path.size == path.size)
		return short_class(row->class_name);
	if (path.bytes[parent->path.size] != '.')
		return path;
	return (struct ops_string){path.bytes + parent->path.size + 1, path.size - parent->path.size - 1};
}

/* One of the texts at the left. */
static struct ops_string text_cell(const struct sheet *sheet, const struct ops_module_row *row, size_t column)
{
	if (sheet->by_class)
		return column == 0 ? row->class_name : (struct ops_string){"", 0};
	return column == 0 ? label_of(sheet, row) : short_class(row->class_name);
}

static size_t indent_of(const struct ops_module_row *row, size_t column)
{
	return column == 0 ? (size_t)row->depth * INDENT : 0;
}

static void figure_cell(char *out, const struct ops_module_row *row, const struct column *column)
{
	if (column->of_calls && !row->calls)
		strcpy(out, "-");
	else
		format_figure(out, column->unit, figure_of(row, column->offset));
}

static const char *title_of(const struct sheet *sheet, size_t column)
{
	if (column >= TEXT_COLUMNS)
		return columns[column - TEXT_COLUMNS].title;
	return column == 0 && !sheet->by_class ? "Module" : "Class";
}

static void widen(size_t *width, size_t length)
{
	if (length > *width)
		*width = length;
}

/* The second text says nothing where the first says the class. */
static bool is_used(const struct sheet *sheet, size_t column)
{
	if (column < TEXT_COLUMNS)
		return column == 0 || !sheet->by_class;
	for (size_t i = 0; i < sheet->line_count; i++)
		if (figure_of(&sheet->rows[sheet->lines[i]], columns[column - TEXT_COLUMNS].offset))
			return true;
	return false;
}

static void find_widths(struct sheet *sheet)
{
	char figure[OPS_FORMAT_ROOM];

	for (size_t column = 0; column < TEXT_COLUMNS + COLUMN_COUNT; column++) {
		size_t *width = &sheet->widths[column];

		if (!is_used(sheet, column))
			continue;
		*width = strlen(title_of(sheet, column));
		for (size_t i = 0; i < sheet->line_count; i++) {
			const struct ops_module_row *row = &sheet->rows[sheet->lines[i]];

			if (column < TEXT_COLUMNS) {
				widen(width, indent_of(row, column) + ops_text_length(text_cell(sheet, row, column)));
			} else {
				figure_cell(figure, row, &columns[column - TEXT_COLUMNS]);
				widen(width, strlen(figure));
			}
		}
	}
}

static void fit_widths(struct sheet *sheet)
{
	struct fit_column fit[TEXT_COLUMNS + COLUMN_COUNT];

	for (size_t column = 0; column < TEXT_COLUMNS + COLUMN_COUNT; column++) {
		size_t width = sheet->widths[column];

		fit[column] = column < TEXT_COLUMNS ? fit_texts(width, (unsigned)column) : (struct fit_column){width, width, 1};
	}
	fit_columns(fit, TEXT_COLUMNS + COLUMN_COUNT, GAP, sheet->room);
	for (size_t column = 0; column < TEXT_COLUMNS + COLUMN_COUNT; column++) {
		const char *title = title_of(sheet, column);

		if (sheet->widths[column] && !fit[column].width)
			fit_note_title(&sheet->note, (struct ops_string){title, strlen(title)});
		sheet->widths[column] = fit[column].width;
	}
}

/* --- text ----------------------------------------------------------------------------------------------------------- */

static void add_spaces(struct sheet *sheet, size_t count)
{
	char *room = ops_buffer_room(&sheet->out, count);

	if (!room)
		return;
	memset(room, ' ', count);
	sheet->out.size += count;
}

/* A cell of a line: texts stand at the left of their column, figures at the right. */
static void add_cell(struct sheet *sheet, size_t column, size_t indent, struct ops_string text)
{
	size_t width = sheet->widths[column], length = indent + ops_text_length(text), padding;

	if (sheet->room && length > width) {
		indent = indent < width / 2 ? indent : width / 2;
		text = fit_name(&sheet->names, text, width - indent);
		length = indent + ops_text_length(text);
	}
	padding = width > length ? width - length : 0;
	if (column)
		add_spaces(sheet, GAP);
	add_spaces(sheet, indent + (column < TEXT_COLUMNS ? 0 : padding));
	ops_plain_append(&sheet->out, text.bytes, text.size);
	add_spaces(sheet, column < TEXT_COLUMNS ? padding : 0);
}

/* The titles for no row. */
static void add_line(struct sheet *sheet, const struct ops_module_row *row)
{
	char figure[OPS_FORMAT_ROOM];

	for (size_t column = 0; column < TEXT_COLUMNS + COLUMN_COUNT; column++) {
		const char *text = row ? figure : title_of(sheet, column);

		if (!sheet->widths[column])
			continue;
		if (row && column < TEXT_COLUMNS) {
			add_cell(sheet, column, indent_of(row, column), text_cell(sheet, row, column));
			continue;
		}
		if (row)
			figure_cell(figure, row, &columns[column - TEXT_COLUMNS]);
		add_cell(sheet, column, 0, (struct ops_string){text, strlen(text)});
	}
	while (sheet->out.size && sheet->out.bytes[sheet->out.size - 1] == ' ')
		sheet->out.size--;
	ops_buffer_append_text(&sheet->out, "\n");
}

static void add_all(struct sheet *sheet)
{
	if (!sheet->line_count) {
		ops_buffer_append_text(&sheet->out, "no calls of modules were recorded\n");
		return;
	}
	find_widths(sheet);
	fit_widths(sheet);
	add_line(sheet, NULL);
	for (size_t i = 0; i < sheet->line_count; i++)
		add_line(sheet, &sheet->rows[sheet->lines[i]]);
	if (sheet->left_out)
		ops_buffer_printf(&sheet->out, "and %zu more\n", sheet->left_out);
	fit_note_end(&sheet->note, &sheet->out, sheet->room);
}

/* False when it is not known. */
static bool find_sort(struct sheet *sheet, const char *key)
{
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		if (strcmp(figures[i].key, key) != 0)
			continue;
		sheet->sort_offset = figures[i].offset;
		return sheet->sorted = true;
	}
	return false;
}

enum ops_code ops_module_text(const struct ops_module_tree *tree, const struct ops_module_text_options *options,
                              char **ret_text, size_t *ret_size, struct ops_error *error)
{
	static const struct ops_module_text_options defaults = {0};
	struct sheet sheet = {0};
	bool ok;

	options = options ? options : &defaults;
	sheet.by_class = options->by_class;
	sheet.room = options->columns;
	sheet.rows = sheet.by_class ? tree->classes.items : tree->rows.items;
	sheet.row_count = sheet.by_class ? tree->classes.count : tree->rows.count;
	if (options->sort_by && !find_sort(&sheet, options->sort_by))
		return ops_fault(error, OPS_INVALID, "modules cannot be sorted by '%s'", options->sort_by);
	ok = find_lines(&sheet, options->max_depth);
	if (options->rows_max && sheet.line_count > options->rows_max) {
		sheet.left_out = sheet.line_count - options->rows_max;
		sheet.line_count = options->rows_max;
	}
	if (ok)
		add_all(&sheet);
	ops_free(sheet.lines);
	sheet.out.failed |= !ok || sheet.names.failed;
	fit_names_release(&sheet.names);
	return ops_buffer_give(&sheet.out, OPS_OK, ret_text, ret_size, error);
}

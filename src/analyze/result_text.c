/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as text for a terminal, as CSV and as Markdown. A tree of values becomes tables first (result_tree.h).
 */
#include "analyze/result_tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/fit.h"
#include "analyze/format.h"
#include "base/alloc.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/json_walk.h"

#define NUMBER_ROOM OPS_FORMAT_ROOM
#define COUNT_SCALED_FROM 1000000
#define GAP 2
#define ALIGNED_MAX 60 /* texts that are longer move what is at their right; names of kernels go on for thousands of characters */

/* --- cells -------------------------------------------------------------------------------------------------------- */

char *result_short_number(char *to, double value)
{
	bool plain = fabs(value) >= 1e-3 && fabs(value) < 1e15;

	return ops_json_double_to(to, plain ? result_round(value, 6) : value);
}

/* Digits in groups of three, in place. */
static char *group_digits(char *number, char *end)
{
	char *first = number + (*number == '-'), *last = first;

	while (last < end && *last >= '0' && *last <= '9')
		last++;
	for (char *at = last - 3; at > first; at -= 3, end++) {
		memmove(at + 1, at, (size_t)(end - at));
		*at = ',';
	}
	return end;
}

/* A figure in the unit that fits it; false for what is shown as it is. */
static bool scale(const struct result_cell *cell, enum result_type type, char room[NUMBER_ROOM])
{
	if (type == RESULT_TIME)
		ops_format_duration(room, (double)cell->integer);
	else if (type == RESULT_BYTES)
		ops_format_bytes(room, cell->integer);
	else if (type == RESULT_CHANGE)
		snprintf(room, NUMBER_ROOM, "%+.1f %%", cell->number);
	else if (type == RESULT_COUNT && (cell->integer >= COUNT_SCALED_FROM || cell->integer <= -COUNT_SCALED_FROM))
		ops_format_count(room, (double)cell->integer);
	else
		return false;
	return true;
}

/* The text of a cell; numbers are written into `room`, with all their digits for programs, with separators and signs of percent
 * on terminals. */
static struct ops_string cell_text(const struct result_cell *cell, enum result_type type, bool scaled,
                                   enum ops_format format, char room[NUMBER_ROOM])
{
	bool whole = format == OPS_FORMAT_CSV, dressed = format == OPS_FORMAT_TEXT || scaled;
	char *end = room;

	if (cell->is_null && scaled)
		return type == RESULT_CHANGE ? (struct ops_string){"new", 3} : (struct ops_string){"-", 1};
	if (cell->is_null)
		return (struct ops_string){"", 0};
	if (type >= RESULT_FIGURE)
		return cell->text;
	if (type == RESULT_FLAG)
		return cell->integer ? (struct ops_string){"yes", 3} : (struct ops_string){"no", 2};
	if (scaled && scale(cell, type, room))
		return (struct ops_string){room, strlen(room)};
	if (dressed && type == RESULT_PERCENT && fabs(cell->number) < 1e15) {
		end = room + snprintf(room, NUMBER_ROOM, "%.1f", cell->number);
	} else if (result_is_number(type)) {
		end = whole ? ops_json_double_to(room, cell->number) : result_short_number(room, cell->number);
	} else if (type == RESULT_TIME) {
		end = ops_json_us_to(room, cell->integer);
		while (end[-1] == '0')
			end--;
		end -= end[-1] == '.';
	} else {
		end = ops_json_int_to(room, cell->integer);
	}
	if (dressed && type != RESULT_INTEGER)
		end = group_digits(room, end);
	if (dressed && type == RESULT_PERCENT)
		end = stpcpy(end, " %");
	return (struct ops_string){room, (size_t)(end - room)};
}

static bool is_scaled(const struct result_table *table, enum ops_format format)
{
	return table->scaled && format != OPS_FORMAT_CSV;
}

static struct ops_string text_at(const struct result_table *table, size_t row, size_t column, enum ops_format format,
                                 char room[NUMBER_ROOM])
{
	const struct result_cell *cell = &table->cells.items[row * table->columns.count + column];

	return cell_text(cell, table->columns.items[column].type, is_scaled(table, format), format, room);
}

/* What people see above a column: the title with the unit, unless it ends in that. */
static void make_title(const struct result_table *table, size_t column, struct ops_buffer *title)
{
	const struct result_column *declared = &table->columns.items[column];
	const char *unit = declared->unit ? declared->unit : table->scaled ? "" : declared->type == RESULT_TIME ? "us"
	                   : declared->type == RESULT_BYTES ? "bytes" : "";
	const char *name = declared->title ? declared->title : declared->name;
	size_t size = strlen(unit), bare = strlen(name);

	bare -= bare && name[bare - 1] == ')';
	ops_buffer_append_text(title, name);
	if (size && (bare < size || memcmp(name + bare - size, unit, size) != 0))
		ops_buffer_printf(title, " (%s)", strcmp(unit, "us") == 0 ? OPS_MICROSECONDS : unit);
}

/* --- a terminal --------------------------------------------------------------------------------------------------- */

struct terminal {
	const struct result_table *table;
	size_t room;
	struct terminal_column {
		struct ops_buffer title;
		struct fit_column fit;
		struct fit_names names;
	} *columns;
	struct ops_buffer *out;
};

static void append_spaces(struct ops_buffer *out, size_t count)
{
	for (; count; count--)
		ops_buffer_append(out, " ", 1);
}

static void append_padded(struct ops_buffer *out, struct ops_string text, size_t width, bool right)
{
	size_t own = ops_text_length(text), padding = own < width ? width - own : 0;

	append_spaces(out, right ? padding : 0);
	ops_plain_append(out, text.bytes, text.size);
	append_spaces(out, right ? 0 : padding);
}

static bool result_text_is_text(const struct result_table *table, size_t column)
{
	return table->columns.items[column].type >= RESULT_TEXT;
}

static struct ops_string title_of(const struct terminal *terminal, size_t column)
{
	const struct ops_buffer *title = &terminal->columns[column].title;

	return (struct ops_string){title->bytes, title->size};
}

static unsigned result_text_rank_of(const struct result_table *table, size_t column)
{
	enum result_priority priority = table->columns.items[column].priority;

	return !column || priority == RESULT_MAJOR ? 0 : priority == RESULT_MINOR ? 2 : 1;
}

static struct fit_column result_text_column_of(const struct terminal *terminal, size_t column)
{
	size_t width = ops_text_length(title_of(terminal, column));
	unsigned rank = result_text_rank_of(terminal->table, column);
	char number[NUMBER_ROOM];

	for (size_t row = 0; row < result_table_rows(terminal->table); row++) {
		size_t own = ops_text_length(text_at(terminal->table, row, column, OPS_FORMAT_TEXT, number));

		width = own > width ? own : width;
	}
	if (result_text_is_text(terminal->table, column) && terminal->room)
		return fit_texts(width, rank);
	width = width < ALIGNED_MAX ? width : ALIGNED_MAX;
	return (struct fit_column){width, width, rank};
}

static bool fit_terminal(struct terminal *terminal)
{
	size_t count = terminal->table->columns.count;
	struct fit_column *fit = ops_realloc_array(NULL, count + 1, sizeof(*fit));
	char number[NUMBER_ROOM];

	if (!fit)
		return false;
	for (size_t i = 0; i < count; i++)
		fit[i] = result_text_column_of(terminal, i);
	fit_columns(fit, count, GAP, terminal->room);
	for (size_t i = 0; i < count; i++) {
		terminal->columns[i].fit = fit[i];
		for (size_t row = 0;
		     terminal->room && result_text_is_text(terminal->table, i) && row < result_table_rows(terminal->table);
		     row++)
			fit_names_expect(&terminal->columns[i].names, text_at(terminal->table, row, i, OPS_FORMAT_TEXT, number),
			                 fit[i].width);
	}
	ops_free(fit);
	return true;
}

/* Line 0 is that of the headings. */
static void append_line(struct terminal *terminal, size_t line)
{
	const struct result_table *table = terminal->table;
	char number[NUMBER_ROOM];
	size_t last = table->columns.count - 1;

	while (!terminal->columns[last].fit.width)
		last--;
	for (size_t i = 0; i <= last; i++) {
		struct ops_string text = line ? text_at(table, line - 1, i, OPS_FORMAT_TEXT, number) : title_of(terminal, i);
		size_t width = terminal->columns[i].fit.width;

		if (!width)
			continue;
		if (terminal->room)
			text = fit_name(&terminal->columns[i].names, text, width);
		append_spaces(terminal->out, i ? GAP : 0);
		append_padded(terminal->out, text, i == last && result_text_is_text(table, i) ? 0 : width,
		              !result_text_is_text(table, i));
	}
	ops_buffer_append(terminal->out, "\n", 1);
}

static void append_note(const struct terminal *terminal)
{
	struct ops_buffer note = {0};

	for (size_t i = 0; i < terminal->table->columns.count; i++)
		if (!terminal->columns[i].fit.width)
			fit_note_title(&note, title_of(terminal, i));
	fit_note_end(&note, terminal->out, terminal->room);
}

static bool write_terminal(const struct result_table *table, size_t room, struct ops_buffer *out)
{
	size_t count = table->columns.count, rows = result_table_rows(table);
	struct terminal terminal = {table, room, ops_alloc_zeroed(count + 1, sizeof(*terminal.columns)), out};
	bool done;

	if (!terminal.columns)
		return false;
	for (size_t i = 0; i < count; i++)
		make_title(table, i, &terminal.columns[i].title);
	done = fit_terminal(&terminal);
	for (size_t line = 0; done && line <= rows; line++)
		append_line(&terminal, line);
	if (!rows)
		ops_buffer_append_text(out, "(no rows)\n");
	if (done)
		append_note(&terminal);
	for (size_t i = 0; i < count; i++) {
		done = done && !terminal.columns[i].names.failed && !terminal.columns[i].title.failed;
		fit_names_release(&terminal.columns[i].names);
		ops_buffer_release(&terminal.columns[i].title);
	}
	ops_free(terminal.columns);
	return done;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Programs see the name. */
static struct ops_string heading(const struct result_table *table, size_t column, enum ops_format format,
                                 struct ops_buffer *title)
{
	const char *name = table->columns.items[column].name;

	if (format == OPS_FORMAT_CSV)
		return (struct ops_string){name, strlen(name)};
	title->size = 0;
	make_title(table, column, title);
	return (struct ops_string){ops_buffer_text(title), title->size};
}

static void result_text_write_lines(const struct result_table *table, bool markdown, struct ops_buffer *out)
{
	enum ops_format format = markdown ? OPS_FORMAT_MARKDOWN : OPS_FORMAT_CSV;
	size_t count = table->columns.count, rows = result_table_rows(table);
	struct ops_buffer title = {0};
	char room[NUMBER_ROOM];

	for (size_t line = 0; line <= rows; line++) {
		ops_buffer_append_text(out, markdown ? "| " : "");
		for (size_t i = 0; i < count; i++) {
			struct ops_string text = line ? text_at(table, line - 1, i, format, room)
			                              : heading(table, i, format, &title);

			ops_buffer_append_text(out, !i ? "" : markdown ? " | " : ",");
			if (line ? table->columns.items[i].type < RESULT_FIGURE : markdown && table->columns.items[i].title)
				ops_buffer_append(out, text.bytes, text.size);
			else
				(markdown ? ops_markdown_append : ops_csv_append)(out, text.bytes, text.size);
		}
		ops_buffer_append_text(out, markdown ? " |\n" : "\n");
		for (size_t i = 0; markdown && !line && i < count; i++)
			ops_buffer_append_text(out, table->columns.items[i].type >= RESULT_TEXT ? "|---" : "|--:");
		ops_buffer_append_text(out, markdown && !line ? "|\n" : "");
	}
	out->failed |= title.failed;
	ops_buffer_release(&title);
}

/* How many rows there are beyond those that are shown. */
static void write_rest(const struct result_table *table, bool markdown, struct ops_buffer *out)
{
	size_t rows = result_table_rows(table);

	if (table->total_rows > rows)
		ops_buffer_printf(out, "%sand %zu more\n", markdown ? "\n" : "", table->total_rows - rows);
}

bool result_table_write(const struct result_table *table, enum ops_format format, size_t columns, struct ops_buffer *out)
{
	if (table->failed) /* a cell may stand under another one's column */
		return false;
	if (format == OPS_FORMAT_TEXT && !write_terminal(table, columns, out))
		return false;
	if (format != OPS_FORMAT_TEXT)
		result_text_write_lines(table, format == OPS_FORMAT_MARKDOWN, out);
	if (format != OPS_FORMAT_CSV)
		write_rest(table, format == OPS_FORMAT_MARKDOWN, out);
	return true;
}

static void result_text_write_json(const struct result *result, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};
	bool is_table = result->table.columns.count;

	ops_json_open(&json, '{');
	ops_json_key(&json, is_table ? "table" : "value");
	if (is_table)
		result_table_json(&result->table, &json);
	else if (result->value.size)
		ops_json_raw(&json, result->value.bytes, result->value.size);
	else
		ops_json_null(&json);
	if (result->leaves_out) {
		ops_json_member(&json, "left_out_step", result->left_out_step);
	}
	ops_json_close(&json, '}');
	ops_buffer_append(out, "\n", 1);
}

/* Branches stand below, each under its path. */
static bool write_tree(const struct result *result, enum ops_format format, size_t room, struct ops_buffer *out)
{
	struct result_tree tree;
	bool done = result_tree_make(&tree, result, format == OPS_FORMAT_CSV);

	if (done && (result_table_rows(&tree.leaves) || !tree.branches.count))
		done = result_table_write(&tree.leaves, format, room, out);
	for (size_t i = 0; done && i < tree.branches.count; i++) {
		const struct result_branch *branch = &tree.branches.items[i];

		ops_buffer_append_text(out, out->size ? "\n" : "");
		(format == OPS_FORMAT_MARKDOWN ? ops_markdown_append : ops_plain_append)(out, branch->path.bytes, branch->path.size);
		ops_buffer_append_text(out, format == OPS_FORMAT_MARKDOWN ? "\n\n" : ":\n");
		done = result_table_write(branch->table, format, room, out);
	}
	result_tree_release(&tree);
	return done;
}

static void append_left_out(int64_t step, size_t room, struct ops_buffer *out)
{
	char line[128];
	int size = snprintf(line, sizeof(line), "without step %" PRId64 ", the last one; --include-last-profiler-step true keeps it",
	                    step);

	ops_buffer_append_text(out, "\n");
	fit_wrap(out, (struct ops_string){line, (size_t)size}, room);
}

bool result_write(const struct result *result, enum ops_format format, struct ops_buffer *out)
{
	bool done = !result->table.failed && !result->value.failed;

	if (!done)
		return false;
	if (format == OPS_FORMAT_JSON) {
		result_text_write_json(result, out);
	} else if (result->table.columns.count) {
		done = result_table_write(&result->table, format, result->room, out);
	} else {
		done = write_tree(result, format, result->room, out);
	}
	if (result->leaves_out && format != OPS_FORMAT_JSON && format != OPS_FORMAT_CSV)
		append_left_out(result->left_out_step, format == OPS_FORMAT_TEXT ? result->room : 0, out);
	return done && !out->failed;
}

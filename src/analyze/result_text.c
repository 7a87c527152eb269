/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as text for a terminal, as CSV and as Markdown. A tree of values is converted to tables first
 * (result_tree.h).
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
#include "base/text.h"

#define NUMBER_ROOM OPS_FORMAT_ROOM
#define COUNT_SCALED_FROM 1000000
#define GAP 2
#define BAR_LEAST 8
#define BAR_MOST 20
#define NAME_LEAST 27 /* minimum width of the first column on a page */
#define INDENT 4
#define BELOW_LEAST 18 /* minimum width of a column that could be below its rows */
#define BOLD "\033[1m"
#define FAINT "\033[2m"
#define CYAN "\033[36m"
#define PLAIN "\033[0m"
#define ALIGNED_MAX 60 /* longer texts shift the cells to their right; names of kernels can have thousands of characters */

/* --- cells -------------------------------------------------------------------------------------------------------- */

char *result_short_number(char *to, double value)
{
	bool plain = fabs(value) >= 1e-3 && fabs(value) < 1e15;

	return ops_json_double_to(to, plain ? result_round(value, 6) : value);
}

/* Groups digits by three, in place. */
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

/* Returns whether cells of a column of numbers have the unit that fits each. */
static bool fits_unit(const struct result_column *column)
{
	return column->type == RESULT_NUMBER && column->unit &&
	       (!strcmp(column->unit, "us") || !strcmp(column->unit, "ms") || !strcmp(column->unit, "bytes"));
}

/* Formats a number for people, in the unit that fits it. */
static void result_text_format_number(double number, const char *unit, char room[NUMBER_ROOM])
{
	if (unit && !strcmp(unit, "us"))
		ops_format_duration(room, number * 1e3);
	else if (unit && !strcmp(unit, "ms"))
		ops_format_duration(room, number * 1e6);
	else if (unit && !strcmp(unit, "bytes"))
		ops_format_bytes(room, (int64_t)number);
	else
		ops_format_number(room, number);
}

/* Formats a figure for people: in the unit that fits it, counts with separators and identifiers with all digits. */
static void format_figure(const struct result_cell *cell, const struct result_column *column, char room[NUMBER_ROOM])
{
	enum result_type type = column->type;

	if (type == RESULT_TIME)
		ops_format_duration(room, (double)cell->integer);
	else if (type == RESULT_MOMENT)
		ops_format_moment(room, cell->integer);
	else if (type == RESULT_BYTES)
		ops_format_bytes(room, cell->integer);
	else if (type == RESULT_CHANGE)
		ops_format_change(room, cell->number);
	else if (type == RESULT_PERCENT)
		ops_format_percent(room, cell->number);
	else if (result_is_number(type))
		result_text_format_number(cell->number, column->unit, room);
	else if (type == RESULT_COUNT && (cell->integer >= COUNT_SCALED_FROM || cell->integer <= -COUNT_SCALED_FROM))
		ops_format_count(room, (double)cell->integer);
	else
		*(type == RESULT_COUNT ? group_digits(room, ops_json_int_to(room, cell->integer)) : ops_json_int_to(room, cell->integer)) = '\0';
}

/* Formats a figure for programs, with all digits. Returns the end. */
static char *write_figure(const struct result_cell *cell, enum result_type type, char room[NUMBER_ROOM])
{
	char *end;

	if (result_is_number(type))
		return ops_json_double_to(room, cell->number);
	if (type != RESULT_TIME && type != RESULT_MOMENT)
		return ops_json_int_to(room, cell->integer);
	end = ops_json_us_to(room, cell->integer);
	while (end[-1] == '0')
		end--;
	return end[-1] == '.' ? end - 1 : end;
}

/* Returns the text of a cell. Figures are formatted into `room`. */
static struct ops_string cell_text(const struct result_cell *cell, const struct result_column *column, enum ops_format format,
                                   char room[NUMBER_ROOM])
{
	enum result_type type = column->type;

	if (cell->is_null || (format != OPS_FORMAT_CSV && type == RESULT_MOMENT && cell->integer < 0))
		return ops_string_of(format == OPS_FORMAT_CSV ? "" : type == RESULT_CHANGE ? "new" : "-");
	if (type >= RESULT_FIGURE)
		return cell->text;
	if (type == RESULT_FLAG)
		return ops_string_of(cell->integer ? "yes" : "no");
	if (format == OPS_FORMAT_CSV)
		return (struct ops_string){room, (size_t)(write_figure(cell, type, room) - room)};
	format_figure(cell, column, room);
	return ops_string_of(room);
}

struct ops_string result_cell_text(const struct result_column *column, const void *row, char *room)
{
	struct result_cell cell = result_cell_of(column, row);

	if (cell.is_null)
		return ops_string_of("");
	if (column->type == RESULT_COUNT)
		return (struct ops_string){room, (size_t)(group_digits(room, ops_json_int_to(room, cell.integer)) - room)};
	return cell_text(&cell, column, OPS_FORMAT_TEXT, room);
}

static struct ops_string text_at(const struct result_table *table, size_t row, size_t column, enum ops_format format,
                                 char room[NUMBER_ROOM])
{
	return cell_text(&table->cells.items[row * table->columns.count + column], &table->columns.items[column], format, room);
}

/* Makes the heading of a column in text: the title with the unit, unless the title ends in it or each cell has its own. */
static void make_title(const struct result_table *table, size_t column, struct ops_buffer *title)
{
	const struct result_column *declared = &table->columns.items[column];
	const char *unit = declared->unit && !fits_unit(declared) ? declared->unit : "";
	const char *name = declared->title ? declared->title : declared->name;
	size_t size = strlen(unit), bare = strlen(name);

	bare -= bare && name[bare - 1] == ')';
	ops_buffer_append_text(title, name);
	if (size && (bare < size || memcmp(name + bare - size, unit, size) != 0))
		ops_buffer_printf(title, " (%s)", unit);
}

/* Appends a bar of at most `width` characters. Returns their number. */
static size_t result_text_append_bar(struct ops_buffer *out, const struct result_cell *share, size_t width, bool ascii)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	size_t filled = share->is_null ? 0 : (size_t)lrint(fmax(0, fmin(share->number, 1)) * 8 * (double)width);
	size_t full = (ascii ? filled + 4 : filled) / 8, part = ascii ? 0 : filled % 8;

	for (size_t i = 0; i < full; i++)
		ops_buffer_append_text(out, ascii ? "#" : "█");
	ops_buffer_append_text(out, eighths[part]);
	return full + (part != 0);
}

/* --- terminal ----------------------------------------------------------------------------------------------------- */

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

static bool is_bar(const struct result_table *table, size_t column)
{
	return table->columns.items[column].type == RESULT_BAR;
}

static bool is_below(const struct result_table *table, size_t column)
{
	return table->columns.items[column].priority == RESULT_BELOW;
}

static void append_style(const struct terminal *terminal, const char *style)
{
	ops_buffer_append_text(terminal->out, terminal->table->colours ? style : "");
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

/* Returns the width of the longest text in a column, or of its title if that is longer; 0 if there is no text. */
static size_t longest_text(const struct terminal *terminal, size_t column)
{
	size_t title = ops_text_length(title_of(terminal, column)), longest = 0;
	char number[NUMBER_ROOM];

	for (size_t row = 0; row < result_table_rows(terminal->table); row++) {
		size_t own = ops_text_length(text_at(terminal->table, row, column, OPS_FORMAT_TEXT, number));

		longest = own > longest ? own : longest;
	}
	return longest && longest < title ? title : longest;
}

static struct fit_column result_text_column_of(const struct terminal *terminal, size_t column)
{
	const struct result_table *table = terminal->table;
	size_t title = ops_text_length(title_of(terminal, column)), width;
	unsigned rank = result_text_rank_of(table, column);

	if (is_bar(table, column))
		return (struct fit_column){BAR_LEAST, BAR_LEAST, rank};
	width = longest_text(terminal, column);
	if (is_below(table, column)) /* no width until all other columns fit */
		return (struct fit_column){0, width, 0};
	width = width > title ? width : title;
	if (table->on_page && !column) /* shrinks after the other columns are fitted */
		return (struct fit_column){width > NAME_LEAST ? width : NAME_LEAST, NAME_LEAST, 0};
	if (result_text_is_text(table, column) && terminal->room)
		return fit_texts(width, rank);
	width = width < ALIGNED_MAX ? width : ALIGNED_MAX;
	return (struct fit_column){width, width, rank};
}

/* Distributes the remaining width: first to columns below, then to bars. */
static void widen(const struct terminal *terminal, struct fit_column *fit, size_t count)
{
	size_t used = 0, left;

	for (size_t i = 0; i < count; i++)
		used += fit[i].width ? fit[i].width + (i ? GAP : 0) : 0;
	left = !terminal->room ? SIZE_MAX : used < terminal->room ? terminal->room - used : 0;
	for (size_t i = count; i-- > 0;) { /* the columns below follow the bars */
		size_t more = 0;

		if (is_below(terminal->table, i) && left >= GAP + (fit[i].least < BELOW_LEAST ? fit[i].least : BELOW_LEAST))
			more = fit[i].least < left - GAP ? fit[i].least : left - GAP;
		else if (is_bar(terminal->table, i) && fit[i].width)
			more = left < BAR_MOST - BAR_LEAST ? left : BAR_MOST - BAR_LEAST;
		left -= more && !fit[i].width ? more + GAP : more;
		fit[i].width += more;
	}
}

/* Returns the width of a column's cells. A column below its rows can use the complete line. */
static size_t result_text_width_of(const struct terminal *terminal, size_t column)
{
	size_t width = terminal->columns[column].fit.width;

	return width || !is_below(terminal->table, column) ? width : terminal->room - INDENT;
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
	if (terminal->table->on_page && fit[0].width > longest_text(terminal, 0))
		fit[0].width = longest_text(terminal, 0);
	widen(terminal, fit, count);
	for (size_t i = 0; i < count; i++) {
		terminal->columns[i].fit = fit[i];
		terminal->columns[i].names.ascii = terminal->table->ascii;
		for (size_t row = 0;
		     terminal->room && result_text_is_text(terminal->table, i) && row < result_table_rows(terminal->table);
		     row++)
			fit_names_expect(&terminal->columns[i].names, text_at(terminal->table, row, i, OPS_FORMAT_TEXT, number),
			                 result_text_width_of(terminal, i));
	}
	ops_free(fit);
	return true;
}

/* Line 0 is the headings. */
static void append_cell(struct terminal *terminal, size_t line, size_t column, bool is_last)
{
	const struct result_table *table = terminal->table;
	struct terminal_column *at = &terminal->columns[column];
	bool is_text = result_text_is_text(table, column);
	size_t width = at->fit.width;
	char number[NUMBER_ROOM];
	struct ops_string text;

	if (line && is_bar(table, column)) {
		append_style(terminal, CYAN);
		width -= result_text_append_bar(terminal->out, &table->cells.items[(line - 1) * table->columns.count + column], width, table->ascii);
		append_style(terminal, PLAIN);
		append_spaces(terminal->out, is_last ? 0 : width);
		return;
	}
	text = line ? text_at(table, line - 1, column, OPS_FORMAT_TEXT, number) : title_of(terminal, column);
	if (terminal->room)
		text = fit_name(&at->names, text, result_text_width_of(terminal, column));
	append_style(terminal, !line && !column ? BOLD : is_below(table, column) ? FAINT : "");
	append_padded(terminal->out, text, is_last && is_text ? 0 : width, !is_text);
	append_style(terminal, (!line && !column) || is_below(table, column) ? PLAIN : "");
}

/* Appends the cells of columns below, each on a line. */
static void append_below(struct terminal *terminal, size_t line)
{
	const struct result_table *table = terminal->table;
	char number[NUMBER_ROOM];

	for (size_t i = 0; line && i < table->columns.count; i++) {
		if (terminal->columns[i].fit.width || !is_below(table, i) ||
		    !text_at(table, line - 1, i, OPS_FORMAT_TEXT, number).size)
			continue;
		append_spaces(terminal->out, INDENT);
		append_cell(terminal, line, i, true);
		ops_buffer_append(terminal->out, "\n", 1);
	}
}

static void append_line(struct terminal *terminal, size_t line)
{
	size_t last = terminal->table->columns.count - 1;
	struct ops_buffer *out = terminal->out;

	while (!terminal->columns[last].fit.width)
		last--;
	for (size_t i = 0; i <= last; i++) {
		if (!terminal->columns[i].fit.width)
			continue;
		append_spaces(out, i ? GAP : 0);
		append_cell(terminal, line, i, i == last);
	}
	while (out->size && out->bytes[out->size - 1] == ' ')
		out->size--;
	ops_buffer_append(out, "\n", 1);
	append_below(terminal, line);
}

static void append_note(const struct terminal *terminal)
{
	struct ops_buffer note = {0};

	for (size_t i = 0; i < terminal->table->columns.count; i++)
		if (!terminal->columns[i].fit.width && !is_below(terminal->table, i))
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
		ops_buffer_printf(out, "(%s)\n", table->empty ? table->empty : "no rows");
	if (done && !table->on_page)
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

/* Files use the name as the heading. */
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
			if (markdown && line && is_bar(table, i))
				result_text_append_bar(out, &table->cells.items[(line - 1) * count + i], BAR_MOST, table->ascii);
			else if (line ? table->columns.items[i].type <= RESULT_FIGURE : markdown && table->columns.items[i].title)
				ops_buffer_append(out, text.bytes, text.size);
			else
				(markdown ? ops_markdown_append : ops_csv_append)(out, text.bytes, text.size);
		}
		ops_buffer_append_text(out, markdown ? " |\n" : "\n");
		for (size_t i = 0; markdown && !line && i < count; i++)
			ops_buffer_append_text(out, result_text_is_text(table, i) || is_bar(table, i) ? "|---" : "|--:");
		ops_buffer_append_text(out, markdown && !line ? "|\n" : "");
	}
	out->failed |= title.failed;
	ops_buffer_release(&title);
}

/* Writes how many rows there are beyond those shown. */
static void write_rest(const struct result_table *table, bool markdown, struct ops_buffer *out)
{
	size_t rows = result_table_rows(table);

	if (table->total_rows > rows)
		ops_buffer_printf(out, "%sand %zu more\n", markdown ? "\n" : "", table->total_rows - rows);
}

bool result_table_write(const struct result_table *table, enum ops_format format, size_t columns, struct ops_buffer *out)
{
	if (table->failed) /* a cell may be in another column's place */
		return false;
	if (format == OPS_FORMAT_TEXT && !write_terminal(table, columns, out))
		return false;
	if (format != OPS_FORMAT_TEXT)
		result_text_write_lines(table, format == OPS_FORMAT_MARKDOWN, out);
	if (format == OPS_FORMAT_MARKDOWN && table->empty && !result_table_rows(table))
		ops_buffer_printf(out, "\n%s\n", table->empty);
	if (format != OPS_FORMAT_CSV)
		write_rest(table, format == OPS_FORMAT_MARKDOWN, out);
	return true;
}

/* Returns whether a result has neither rows nor values. */
static bool has_nothing(const struct result *result)
{
	struct ops_string value = {ops_buffer_text(&result->value), result->value.size};

	if (result->table.columns.count)
		return !result_table_rows(&result->table);
	return !result->parts.count && (!value.size || ops_string_is(value, "[]") || ops_string_is(value, "{}"));
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
	if (result->table.empty && has_nothing(result))
		ops_json_member_text(&json, "empty", result->table.empty);
	if (result->leaves_out) {
		ops_json_member(&json, "left_out_step", result->left_out_step);
	}
	ops_json_close(&json, '}');
	ops_buffer_append(out, "\n", 1);
}

/* Writes the reason for an empty result. */
static void write_nothing(const struct result *result, enum ops_format format, struct ops_buffer *out)
{
	const char *reason = result->table.empty ? result->table.empty : "no results";

	ops_buffer_printf(out, format == OPS_FORMAT_TEXT ? "(%s)\n" : "%s\n", reason);
}

/* Branches follow, each under its path. */
static bool write_tree(const struct result *result, enum ops_format format, size_t room, struct ops_buffer *out)
{
	struct result_tree tree;
	bool done = result_tree_make(&tree, result, format == OPS_FORMAT_CSV);
	bool has_leaves = done && result_table_rows(&tree.leaves);

	tree.leaves.empty = result->table.empty;
	if (done && format == OPS_FORMAT_TEXT && !has_leaves && !tree.branches.count)
		write_nothing(result, format, out);
	else if (done && (has_leaves || !tree.branches.count))
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
	fit_wrap(out, (struct ops_string){line, (size_t)size}, room, 0);
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
	} else if (format != OPS_FORMAT_CSV && has_nothing(result)) {
		write_nothing(result, format, out);
	} else {
		done = write_tree(result, format, result->room, out);
	}
	if (result->leaves_out && format != OPS_FORMAT_JSON && format != OPS_FORMAT_CSV)
		append_left_out(result->left_out_step, format == OPS_FORMAT_TEXT ? result->room : 0, out);
	return done && !out->failed;
}

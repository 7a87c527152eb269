/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of an analysis: a table with typed columns, or a tree of values; and its text forms.
 *
 * A table is filled row by row: all columns first, then the cells of each row in order. A tree is written as JSON. If
 * memory runs out, only result_write reports it.
 */
#ifndef OPS_ANALYZE_RESULT_H
#define OPS_ANALYZE_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/analyses.h>
#include <opstrobe/trace.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/json_writer.h"

enum result_type {
	RESULT_INTEGER, /* an identifier or an index */
	RESULT_FLAG, /* the same, 0 or 1: false or true in JSON, "no" or "yes" in text */
	RESULT_COUNT, /* a count, shown with separators in text */
	RESULT_BYTES, /* the same for bytes */
	RESULT_NUMBER,
	RESULT_PERCENT, /* a percentage */
	RESULT_CHANGE,  /* a relative change in percent; text shows its sign, and "new" for null */
	RESULT_BAR,     /* a share from 0 to 1, which text shows as a bar */
	RESULT_TIME, /* nanoseconds, in files microseconds */
	RESULT_MOMENT, /* the same for a point in time since the trace began; negative: none. Text keeps the microseconds */
	RESULT_FIGURE, /* a number as text */
	RESULT_TEXT, /* this and later types are aligned to the left */
	RESULT_JSON, /* text that is JSON */
	RESULT_OBJECT, /* only in JSON objects: an object with its own declaration, */
	RESULT_LIST, /* or a list of such objects: the last member, written by the caller */
};

/* Returns true if cells of the type have a `number`. */
static inline bool result_is_number(enum result_type type)
{
	return type == RESULT_NUMBER || type == RESULT_PERCENT || type == RESULT_CHANGE || type == RESULT_BAR;
}

struct result_cell {
	bool is_null;
	union {
		int64_t integer; /* also times */
		double number;
		struct ops_string text;
	};
};

/* On a narrow terminal, minor columns are omitted first; major columns and the first column never. The cells of a column with
 * RESULT_BELOW are on separate lines below their rows if the rows have no room. */
enum result_priority { RESULT_NORMAL, RESULT_MINOR, RESULT_MAJOR, RESULT_BELOW };

/* Type of the member of a row that a cell shows. */
enum result_field {
	RESULT_NO_FIELD, RESULT_BOOL, RESULT_INT32, RESULT_UINT32, RESULT_INT64, RESULT_UINT64, RESULT_DOUBLE, RESULT_STRING,
	RESULT_NAME,
};
struct result_declaration;

/* A column is declared once, for every format. */
struct result_column {
	const char *name; /* name in JSON and CSV */
	enum result_type type;
	enum result_priority priority;
	const char *title; /* title in text; NULL: the name */
	const char *unit;  /* unit of a number, unless the type implies it. Text shows "us", "ms" and "bytes" in the unit that
	                    * fits each figure */
	const char *about; /* meaning, if the title is not sufficient */
	bool nullable;     /* for a member of a JSON object: it can be null */
	bool unbounded;    /* a percentage or time that can be negative or above 100 %: a difference, or a figure of the file */
	const char *when;  /* condition for the column; NULL: always present */
	unsigned option;   /* a bit: result_declare adds the column if its options have the bit; 0: always */
	/* Source of a cell for rows added with result_add(): a member of the row, or a function. NaN, NULL and
	 * RESULT_NULL become null. If there is neither, cells are added one by one. */
	enum result_field field;
	size_t offset;
	void (*get)(const void *row, struct result_cell *cell);
	const struct result_declaration *object; /* for RESULT_OBJECT, whose row is at the offset, and RESULT_LIST */
};
#define RESULT_NULL INT64_MIN
/* Members of a column's declaration: cells show a member of the row. */
#define RESULT_FIELD(row_type, member)                                                                                  \
	.field = _Generic(((row_type *)0)->member, bool: RESULT_BOOL, int32_t: RESULT_INT32, uint32_t: RESULT_UINT32,      \
	                  int64_t: RESULT_INT64, uint64_t: RESULT_UINT64, double: RESULT_DOUBLE,                           \
	                  struct ops_string: RESULT_STRING, const char *: RESULT_NAME),                                    \
	.offset = offsetof(row_type, member)
/* Defines a column's getter: assigns an expression in `row` to a member of the cell. */
#define RESULT_GETTER(function, row_type, member, ...)                                                   \
	static void function(const void *any_row, struct result_cell *cell)                              \
	{                                                                                                \
		const row_type *row = any_row;                                                           \
                                                                                                         \
		cell->member = (__VA_ARGS__);                                                            \
	}

/* The same for an integer that is null under a condition. */
#define RESULT_OPTIONAL(function, row_type, null, ...)                                                   \
	static void function(const void *any_row, struct result_cell *cell)                              \
	{                                                                                                \
		const row_type *row = any_row;                                                           \
                                                                                                         \
		cell->is_null = (null);                                                                  \
		cell->integer = cell->is_null ? 0 : (__VA_ARGS__);                                       \
	}

/* A table: its name, its title and its columns. */
struct result_declaration {
	const char *id;
	const char *about; /* meaning of a row */
	const struct result_column *columns;
	size_t count;
};
#define RESULT_DECLARATION(id_, about_, columns_) \
	{.id = (id_), .about = (about_), .columns = (columns_), .count = sizeof(columns_) / sizeof((columns_)[0])}

struct result_table {
	struct ops_arena arena;
	OPS_ARRAY(struct result_column) columns;
	OPS_ARRAY(struct result_cell) cells;
	size_t total_rows; /* before truncation; 0: not truncated */
	bool failed;
	bool copies; /* texts are copied, because the caller's do not live long enough */
	bool rounded; /* its times were rounded as by Holistic Trace Analysis, where an event of less than a microsecond may end before it starts */
	bool on_page; /* one of several tables on a page: no note about omitted columns */
	bool colours; /* for a terminal with colours */
	const char *empty; /* why there may be no rows, in text, Markdown and JSON; NULL: unknown */
	bool ascii;   /* for a terminal that shows only ASCII */
	const char *matters; /* the column by which text sorts the rows, largest first; NULL: the order of rows is
	                      * meaningful */
};

/* A table in a tree of values. */
struct result_part {
	size_t at; /* position of its JSON in that of the tree */
	struct result_table table;
};

struct result {
	struct result_table table;  /* has columns if this is a table */
	struct ops_buffer value;    /* else JSON text; empty: null */
	OPS_ARRAY(struct result_part) parts; /* tables in it, in order */
	bool keeps_parts;           /* needed for text; JSON does not use parts */
	struct ops_json_writer json; /* writes to `value` */
	size_t room; /* width of a line of text; 0: any */
	bool leaves_out;       /* figures exclude the last step, */
	int64_t left_out_step; /* which has this number */
};

void result_table_release(struct result_table *table);
size_t result_table_rows(const struct result_table *table);
/* Appends columns. Their names are borrowed. */
void result_columns(struct result_table *table, const struct result_column *columns, size_t count);
/* Adds the columns of a declaration that are always present, and those for one of the options (bits). */
void result_declare(struct result_table *table, const struct result_declaration *declaration, unsigned options);
/* Adds all columns of an array. */
#define RESULT_DECLARED(table, columns) result_columns(table, columns, sizeof(columns) / sizeof((columns)[0]))
/* Adds a column that is not declared. */
void result_column(struct result_table *table, const char *name, enum result_type type);
/* Returns the cell of a row in a column that has a getter or a field. */
struct result_cell result_cell_of(const struct result_column *column, const void *row);
/* Adds the cells of a row, or its remaining cells, with the getters of the columns. */
void result_add(struct result_table *table, const void *row);
/* Returns the text for a cell in which an empty text is null. */
static inline struct ops_string result_text_or_null(struct ops_string text)
{
	return text.size ? text : (struct ops_string){0};
}
/* Texts are borrowed and must live as long as the result, unless they are copied. */
void result_integer(struct result_table *table, int64_t value);
void result_number(struct result_table *table, double value); /* NaN is null */
void result_time(struct result_table *table, int64_t ns);
void result_text(struct result_table *table, struct ops_string text);
void result_text_copy(struct result_table *table, const char *bytes, size_t size);
void result_null(struct result_table *table);
/* Sorts rows by the column `matters`, if there is one; the sort is stable. */
void result_table_sort(struct result_table *table);
/* Keeps the first rows. */
void result_table_cut(struct result_table *table, size_t rows);
/* Removes columns in which all cells are 0 or null. */
void result_table_omit_empty(struct result_table *table);
/* Writes the table as text that fits `columns` characters (0: any number), CSV or Markdown. Returns false if out of
 * memory. */
bool result_table_write(const struct result_table *table, enum ops_format format, size_t columns, struct ops_buffer *out);
/* Writes {"columns": […], "rows": […]}. */
void result_table_json(const struct result_table *table, struct ops_json_writer *json);

/* Writes a row as {"column": cell, …}; the second function writes only the members. Includes the columns that are
 * always present, and those for one of the options. */
void result_members_json(const struct result_declaration *declaration, unsigned options, const void *row,
                         struct ops_json_writer *json);
void result_object_json(const struct result_declaration *declaration, unsigned options, const void *row,
                        struct ops_json_writer *json);

void result_init(struct result *result);
void result_release(struct result *result);
/* Writes a table as a value of the tree, and releases or keeps it. Its texts must be copies. */
void result_put_table(struct result *result, struct result_table *table);
/* Returns false if out of memory, now or earlier. */
bool result_write(const struct result *result, enum ops_format format, struct ops_buffer *out);

/* Returns the text of a row's cell for people: counts with all digits, times and sizes in the unit that fits, nothing for null.
 * The text is in the row or in `room`, which has OPS_FORMAT_ROOM bytes. */
struct ops_string result_cell_text(const struct result_column *column, const void *row, char *room);

/* Formats a number for text, with at most six decimals. `to` has 32 bytes. Returns the end. */
char *result_short_number(char *to, double value);
/* Rounds to `decimals` decimals; halves are rounded to even. */
double result_round(double value, int decimals);
/* Decimals of percentages as data: enough that rounding them again, to three digits, gives what the value itself gives. */
#define PERCENT_DECIMALS 6

#endif

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
	RESULT_FLAG, /* likewise 0 or 1: false or true in JSON, "no" or "yes" for people */
	RESULT_COUNT, /* an integer that says how many; people see its thousands */
	RESULT_BYTES, /* likewise, bytes */
	RESULT_NUMBER,
	RESULT_PERCENT, /* a number of 100 */
	RESULT_CHANGE,  /* a relative change in percent; people see its sign, and "new" for null */
	RESULT_TIME, /* nanoseconds, shown as microseconds */
	RESULT_FIGURE, /* a number's text */
	RESULT_TEXT, /* this and what follows are set from the left */
	RESULT_JSON, /* text that is JSON */
	RESULT_OBJECT, /* in JSON objects alone: one that is declared itself, */
	RESULT_LIST, /* or a list of them, the last member, written by the caller */
};

/* Whether cells of the type hold a `number`. */
static inline bool result_is_number(enum result_type type)
{
	return type == RESULT_NUMBER || type == RESULT_PERCENT || type == RESULT_CHANGE;
}

struct result_cell {
	bool is_null;
	union {
		int64_t integer; /* and times */
		double number;
		struct ops_string text;
	};
};

/* On a terminal that is too narrow, minor columns are left out first, major ones and the first one never. */
enum result_priority { RESULT_NORMAL, RESULT_MINOR, RESULT_MAJOR };

/* What the member of a row holds that a cell shows. */
enum result_field {
	RESULT_NO_FIELD, RESULT_BOOL, RESULT_INT32, RESULT_UINT32, RESULT_INT64, RESULT_UINT64, RESULT_DOUBLE, RESULT_STRING,
	RESULT_NAME,
};
struct result_declaration;

/* A column is declared once, for every format. */
struct result_column {
	const char *name; /* in JSON and CSV */
	enum result_type type;
	enum result_priority priority;
	const char *title; /* for people; NULL: the name */
	const char *unit;  /* of a number whose type does not say it */
	const char *about; /* what it says, where the title does not */
	bool nullable;     /* of a member of a JSON object: it can be null */
	const char *when;  /* the table has it; NULL: always */
	unsigned option;   /* a bit: result_declare adds the column if its options have the bit; 0: always */
	/* Where the cell of a row that is added with result_add comes from: a member of the row, or a function. A NaN, a NULL
	 * and RESULT_NULL become null. Neither: cells are added one by one. */
	enum result_field field;
	size_t offset;
	void (*get)(const void *row, struct result_cell *cell);
	const struct result_declaration *object; /* of RESULT_OBJECT, whose row is at the offset, and RESULT_LIST */
};
#define RESULT_NULL INT64_MIN
/* Members of a column's declaration: its cells are a member of the row. */
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

/* A table: what programs and people call it, and what it has. */
struct result_declaration {
	const char *id;
	const char *about; /* what a row is */
	const struct result_column *columns;
	size_t count;
};
#define RESULT_DECLARATION(id_, about_, columns_) \
	{.id = (id_), .about = (about_), .columns = (columns_), .count = sizeof(columns_) / sizeof((columns_)[0])}

struct result_table {
	struct ops_arena arena;
	OPS_ARRAY(struct result_column) columns;
	OPS_ARRAY(struct result_cell) cells;
	size_t total_rows; /* before it was cut; 0: it was not */
	bool failed;
	bool copies; /* texts are borrowed for a while only */
	bool scaled; /* people see times and sizes in the unit that fits each, and "-" for null */
	const char *matters; /* the column of times whose largest people want to see first; NULL: the order of rows means something */
};

/* A table in a tree of values. */
struct result_part {
	size_t at; /* of its JSON in the tree's */
	struct result_table table;
};

struct result {
	struct result_table table;  /* with columns if this is a table */
	struct ops_buffer value;    /* else JSON text; empty: null */
	OPS_ARRAY(struct result_part) parts; /* tables in it, in order */
	bool keeps_parts;           /* for text: JSON alone does not need them */
	struct ops_json_writer json; /* writes to `value` */
	size_t room; /* characters of a line of text; 0: as many as there are */
	bool leaves_out;       /* figures are without the last step, */
	int64_t left_out_step; /* which is this one */
};

void result_table_release(struct result_table *table);
size_t result_table_rows(const struct result_table *table);
/* Columns, behind those that there are. Their names are borrowed. */
void result_columns(struct result_table *table, const struct result_column *columns, size_t count);
/* Those of a declaration that are always there, and those with one of the options (bits). */
void result_declare(struct result_table *table, const struct result_declaration *declaration, unsigned options);
/* All of an array. */
#define RESULT_DECLARED(table, columns) result_columns(table, columns, sizeof(columns) / sizeof((columns)[0]))
/* One that is not declared. */
void result_column(struct result_table *table, const char *name, enum result_type type);
/* The cell of a row in a column that has a getter or a field. */
struct result_cell result_cell_of(const struct result_column *column, const void *row);
/* The cells of a row, or those that remain of it, by the getters of their columns. */
void result_add(struct result_table *table, const void *row);
/* What a cell of a text is given where an empty text is null. */
static inline struct ops_string result_text_or_null(struct ops_string text)
{
	return text.size ? text : (struct ops_string){0};
}
/* Texts are borrowed, and live as long as the result; or copied. */
void result_integer(struct result_table *table, int64_t value);
void result_number(struct result_table *table, double value); /* NaN is null */
void result_time(struct result_table *table, int64_t ns);
void result_text(struct result_table *table, struct ops_string text);
void result_text_copy(struct result_table *table, const char *bytes, size_t size);
void result_null(struct result_table *table);
/* Sorts rows by the column that matters, if there is one; equal ones stay in order. */
void result_table_sort(struct result_table *table);
/* Keeps the first rows. */
void result_table_cut(struct result_table *table, size_t rows);
/* Removes the columns whose cells are all 0 or null. */
void result_table_omit_empty(struct result_table *table);
/* As text that fits `columns` characters (0: any number), CSV or Markdown. False when memory is out. */
bool result_table_write(const struct result_table *table, enum ops_format format, size_t columns, struct ops_buffer *out);
/* {"columns": […], "rows": […]}. */
void result_table_json(const struct result_table *table, struct ops_json_writer *json);

/* A row as {"column": cell, …}, or what is between the braces: the columns that are always there, and those with one of the
 * options. */
void result_members_json(const struct result_declaration *declaration, unsigned options, const void *row,
                         struct ops_json_writer *json);
void result_object_json(const struct result_declaration *declaration, unsigned options, const void *row,
                        struct ops_json_writer *json);

void result_init(struct result *result);
void result_release(struct result *result);
/* Writes a table as a value of the tree, and releases it or keeps it: its texts must be copies. */
void result_put_table(struct result *result, struct result_table *table);
/* False when memory is out, now or before. */
bool result_write(const struct result *result, enum ops_format format, struct ops_buffer *out);

/* As people read it: six decimals at most. `to` has 32 bytes; returns the end. */
char *result_short_number(char *to, double value);
/* Rounds to `decimals` decimals; halves go to the even neighbour. */
double result_round(double value, int decimals);

#endif

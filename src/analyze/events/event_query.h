/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions over the columns of the event table, written as for a data frame:
 *
 *     dur > 100 and name.contains("gemm|conv")
 *     cat in ["kernel", "gpu_memcpy"] and not (stream == 7)
 *     ts + dur < 2500 and `Process Group Name` == "default_pg"
 *
 *     expression ::= expression ("or" | "|" | "and" | "&") expression | ("not" | "~") expression | comparison
 *     comparison ::= sum (("==" | "!=" | "<" | "<=" | ">" | ">=" | ["not"] "in") sum)*     all of a chain must hold
 *     sum        ::= sum ("+" | "-" | "*" | "/" | "//" | "%") sum | "-" sum | atom
 *     atom       ::= number | text in quotes | column | `argument` | "[" list "]" | "(" expression ")" | "true" | "false"
 *                    atom ["." "str"] "." ("contains" | "match" | "startswith" | "endswith" | "isin") "(" atom ")"
 *
 * Times are microseconds, as in the table that is printed. "contains" and "match" take regular expressions (base/pattern.h).
 * A name in backticks is an argument of the event as the file has it. What an event does not have is unequal to everything.
 *
 *     text ─▶ event_query_parse ─▶ nodes, typed ─▶ event_query_holds for each row
 */
#ifndef OPS_ANALYZE_EVENT_QUERY_H
#define OPS_ANALYZE_EVENT_QUERY_H

#include "analyze/events/event_table.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/pattern.h"

/* Work on the rows of one trace, in steps that take some nanoseconds: an expression may come from anybody who can reach a server.
 * A regular expression over an argument of ten million rows takes a tenth of that. */
#define EVENT_QUERY_STEPS_MAX UINT64_C(5000000000)

enum query_type {
	QUERY_ANY, /* of a node: known only of a row; of a value: there is none */
	QUERY_NUMBER,
	QUERY_TEXT,
	QUERY_TRUTH,
	QUERY_LIST,
};

enum query_op {
	QUERY_CONSTANT, QUERY_COLUMN, QUERY_ARGUMENT,
	QUERY_OR, QUERY_AND, QUERY_NOT,
	QUERY_EQUAL, QUERY_UNEQUAL, QUERY_LESS, QUERY_LESS_EQUAL, QUERY_MORE, QUERY_MORE_EQUAL, QUERY_IN, QUERY_NOT_IN,
	QUERY_ADD, QUERY_SUBTRACT, QUERY_MULTIPLY, QUERY_DIVIDE, QUERY_FLOOR, QUERY_REMAINDER, QUERY_NEGATE,
	QUERY_CONTAINS, QUERY_MATCH, QUERY_STARTS, QUERY_ENDS,
};

struct query_value {
	enum query_type type;
	double number; /* of a truth 0 or 1 */
	struct ops_string text;
};

struct query_column;

struct query_node {
	enum query_op op;
	enum query_type type;
	uint32_t left, right; /* nodes; of an item of a list `right` is the next item; OPS_NONE */
	uint32_t items;       /* of a list: the first item; OPS_NONE: it is empty, or no list */
	struct query_value value;          /* of a constant */
	const struct query_column *column; /* of a column */
	const char *key;                   /* of an argument */
	struct ops_buffer scratch;         /* a text that had to be decoded */
	struct ops_pattern *pattern;
	uint8_t *matches;                  /* by string id of a name: 0 not asked yet, 1 no, 2 yes */
};

struct event_query {
	struct ops_arena arena; /* constants and keys */
	OPS_ARRAY(struct query_node) nodes;
	uint32_t root, pattern_count;
	uint64_t *steps_left; /* of the work on all rows, the caller's; set after event_query_parse */
};

/* Of a column's values, or of what there is instead of a missing argument. */
struct query_column {
	const char *name;
	const char *key; /* of the argument; NULL: of every row */
	enum query_type type;
	double number; /* instead of a missing number; NAN: none */
	const char *text; /* instead of a missing text; NULL: none */
};

/* NULL when there is none of that name. */
const struct query_column *query_column_find(struct ops_string name);

/* To be released in any case. OPS_INVALID says what is wrong and where. */
enum ops_code event_query_parse(struct event_query *query, struct ops_string text, struct ops_error *error);
/* Whether a row of the table is as the expression says. Always of the same table. Subtracts its work from `*steps_left`, at 0
 * of which nothing holds. */
bool event_query_holds(struct event_query *query, const struct event_set *set, const struct event_table *table,
                       const struct event_row *row);
/* After all rows: whether memory was out for one of them. */
bool event_query_failed(const struct event_query *query);
/* After all rows: OPS_INVALID when no steps are left. */
enum ops_code event_query_check_steps(uint64_t steps_left, struct ops_error *error);
void event_query_release(struct event_query *query);

/* What a column has of a row. A text lives until `scratch` is used again. */
struct query_value query_column_value(const struct query_column *column, const struct event_set *set,
                                      const struct event_table *table, const struct event_row *row,
                                      struct ops_buffer *scratch);
/* An argument by its name in the file. */
struct query_value query_argument_value(const struct event_table *table, const struct event_row *row, const char *key,
                                        struct ops_buffer *scratch);

#endif

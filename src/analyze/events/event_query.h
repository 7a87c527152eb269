/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions over the columns of the event table, written as for a data frame:
 *
 *     dur > 100 and name.contains("gemm|conv")
 *     cat in ["kernel", "gpu_memcpy"] and not (stream == 7)
 *     ts + dur < 2500 and `Process Group Name` == "default_pg"
 *
 *     expression ::= expression ("or" | "|" | "and" | "&") expression | ("not" | "~") expression | comparison
 *     comparison ::= sum (("==" | "!=" | "<" | "<=" | ">" | ">=" | ["not"] "in") sum)*     all comparisons of a chain must hold
 *     sum        ::= sum ("+" | "-" | "*" | "/" | "//" | "%") sum | "-" sum | atom
 *     atom       ::= number | text in quotes | column | `argument` | "[" list "]" | "(" expression ")" | "true" | "false"
 *                    atom ["." "str"] "." ("contains" | "match" | "startswith" | "endswith" | "isin") "(" atom ")"
 *
 * Times are microseconds, as in the printed table. "contains" and "match" take regular expressions (base/pattern.h). A
 * name in backticks is an argument of the event as it is in the file. A missing value is unequal to everything.
 *
 *     text ─▶ event_query_parse ─▶ nodes, typed ─▶ event_query_holds for each row
 */
#ifndef OPS_ANALYZE_EVENT_QUERY_H
#define OPS_ANALYZE_EVENT_QUERY_H

#include "analyze/events/event_table.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/pattern.h"

/* Limit on the work on the rows of one trace, in steps of a few nanoseconds, since any client of a server can send
 * expressions. A regular expression over an argument of ten million rows takes a tenth of the limit. */
#define EVENT_QUERY_STEPS_MAX UINT64_C(5000000000)

enum query_type {
	QUERY_ANY, /* of a node: the type depends on the row; of a value: missing */
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
	double number; /* of a truth value: 0 or 1 */
	struct ops_string text;
};

struct query_column;

struct query_node {
	enum query_op op;
	enum query_type type;
	uint32_t left, right; /* nodes; of an item of a list `right` is the next item; OPS_NONE: none */
	uint32_t items;       /* of a list: the first item; OPS_NONE: empty, or not a list */
	struct query_value value;          /* for a constant */
	const struct query_column *column; /* for a column */
	const char *key;                   /* for an argument */
	struct ops_buffer scratch;         /* a text that had to be decoded */
	struct ops_pattern *pattern;
	uint8_t *matches;                  /* by string id of a name: 0 not tested yet, 1 no, 2 yes */
};

struct event_query {
	struct ops_arena arena; /* constants and keys */
	OPS_ARRAY(struct query_node) nodes;
	uint32_t root, pattern_count;
	uint64_t *steps_left; /* remaining work for all rows; owned by the caller and set after event_query_parse */
};

/* A column: its type, and the value that replaces a missing argument. */
struct query_column {
	const char *name;
	const char *key; /* key of the argument; NULL: every row has the column */
	enum query_type type;
	double number; /* replaces a missing number; NAN: none */
	const char *text; /* replaces a missing text; NULL: none */
};

/* Returns NULL if there is no column of that name. */
const struct query_column *query_column_find(struct ops_string name);

/* Parses an expression. The caller must release the query in any case. Returns OPS_INVALID with a message that says
 * what is wrong and where. */
enum ops_code event_query_parse(struct event_query *query, struct ops_string text, struct ops_error *error);
/* Returns true if the expression holds for a row. All calls must use the same table. Subtracts the work from
 * `*steps_left`; once that is 0, no expression holds. */
bool event_query_holds(struct event_query *query, const struct event_set *set, const struct event_table *table,
                       const struct event_row *row);
/* To be called after all rows: returns true if memory ran out for one of them. */
bool event_query_failed(const struct event_query *query);
/* To be called after all rows: returns OPS_INVALID if no steps are left. */
enum ops_code event_query_check_steps(uint64_t steps_left, struct ops_error *error);
void event_query_release(struct event_query *query);

/* Returns the value of a column for a row. A text is valid until `scratch` is used again. */
struct query_value query_column_value(const struct query_column *column, const struct event_set *set,
                                      const struct event_table *table, const struct event_row *row,
                                      struct ops_buffer *scratch);
/* Returns an argument by its name in the file. */
struct query_value query_argument_value(const struct event_table *table, const struct event_row *row, const char *key,
                                        struct ops_buffer *scratch);

#endif

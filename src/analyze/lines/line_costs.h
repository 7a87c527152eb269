/* SPDX-License-Identifier: Apache-2.0
 *
 * What lines of the user's source cost: the sums, and where each event of a trace belongs.
 */
#ifndef OPS_ANALYZE_LINE_COSTS_H
#define OPS_ANALYZE_LINE_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "analyze/result.h"
#include "base/array.h"
#include "base/intern.h"
#include "base/map.h"

struct line_cost {
	uint32_t file; /* of `files` */
	uint32_t line;
	uint32_t function; /* of `functions` */
	uint32_t longest;  /* row */
	int64_t longest_ns;
	int64_t calls;
	int64_t host_ns;
	int64_t self_ns;
	int64_t device_ns;
	int64_t allocated_bytes;
};

/* A function that rows call. */
struct line_function {
	struct ops_string name;
	uint32_t file; /* OPS_NONE: not the user's */
	uint32_t line; /* the first */
};

struct line_file {
	struct ops_string name;
	int64_t host_ns; /* while some line of it ran, on any thread, or the backward of what it called */
	int64_t self_ns;
	int64_t device_ns;
	int64_t allocated_bytes;
};

struct line_costs {
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct ops_intern names;  /* of files */
	OPS_ARRAY(struct line_file) files; /* by number in `names` */
	OPS_ARRAY(struct line_function) functions;
	OPS_ARRAY(struct line_cost) lines;
	struct ops_map function_of; /* by the table's index, or the row's name */
	struct ops_map line_of;     /* by file and line */
	struct ops_map open;        /* by line (or file) and track: where its outermost event so far is in `ends` */
	OPS_ARRAY(int64_t) ends;
	uint32_t *place;  /* by row: its line, OPS_NONE none */
	uint32_t *inside; /* by row: the user's function that it is, or in which it is a range; OPS_NONE */
};

/* False when memory is out; released in any case. */
bool line_costs_init(struct line_costs *costs, const struct ops_trace *trace);
void line_costs_release(struct line_costs *costs);

/* Adds the lines of a trace that take most time, at most `rows_max` (0: all), to a table. With a worker the first column names it.
 * The first call adds the columns. Returns false if memory is out. */
bool line_table_fill(struct result_table *table, const struct ops_trace *trace, const char *worker, size_t rows_max);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of source lines of the user: the sums, and the line that each event of a trace belongs to.
 */
#ifndef OPS_ANALYZE_LINE_COSTS_H
#define OPS_ANALYZE_LINE_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "analyze/run_trace.h"
#include "base/array.h"
#include "base/intern.h"
#include "base/map.h"
#include "derive/helper_waits.h"
#include "derive/python_samples.h"

struct line_cost {
	uint32_t file; /* index in `files` */
	uint32_t line;
	uint32_t function; /* index in `functions` */
	uint32_t longest;  /* row */
	int64_t longest_ns;
	int64_t calls;
	int64_t host_ns;
	int64_t self_ns;
	int64_t open_ns;    /* part of it that is self time of modules and ranges, in which Python code runs */
	int64_t device_ns;
	int64_t allocated_bytes;
};

/* A function that rows call. */
struct line_function {
	struct ops_string name;
	uint32_t file; /* OPS_NONE: not a function of the user */
	uint32_t line; /* first line; 0: unknown */
};

struct line_file {
	struct ops_string name;
	bool is_library; /* part of Python or of a package, not of the program */
	int64_t host_ns; /* time while a line of the file ran on any thread, or the backward pass of what it called */
	int64_t self_ns;
	int64_t device_ns;
	int64_t allocated_bytes;
};

struct line_costs {
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct ops_intern names;  /* names of files */
	OPS_ARRAY(struct line_file) files; /* by number in `names` */
	OPS_ARRAY(struct line_function) functions;
	OPS_ARRAY(struct line_cost) lines;
	struct ops_map function_of; /* by the index in the trace's table, or by the row's name */
	struct ops_map line_of;     /* by file and line */
	struct ops_map place_of_stack; /* by the call stack, a string id: its line */
	struct ops_map open;        /* by line (or file) and track: index in `ends` of its last outermost event */
	OPS_ARRAY(int64_t) ends;
	const struct ops_helper_waits *waits; /* self time in them counts for no line */
	int64_t waits_ns; /* their self time */
	struct ops_python_samples samples; /* empty if calls were recorded */
	uint32_t *place;  /* by row: its line; OPS_NONE: none */
	uint32_t *inside; /* by row: the user's function that it is, or that a range lies in; OPS_NONE: none */
};

/* Returns false if out of memory. The caller must release the costs in any case. */
bool line_costs_init(struct line_costs *costs, const struct ops_trace *trace);
void line_costs_release(struct line_costs *costs);

/* Finds the sums of the line at which a function runs, whose first line is unknown. Its texts must outlive the costs' use. Returns OPS_NONE
 * if out of memory. */
uint32_t line_costs_find(struct line_costs *costs, const struct ops_function_text *function);
/* Whether Python code of the program may run in a row without being part of another one: in a module or range. */
static inline bool line_costs_is_open(const struct ops_events *events, uint32_t row)
{
	return events->kind[row] == OPS_EVENT_PYTHON_FUNCTION || events->kind[row] == OPS_EVENT_USER_ANNOTATION;
}
/* Adds what sampled stacks show (line_samples.c); the costs of events are complete. Returns false if out of memory. */
bool line_costs_add_samples(struct line_costs *costs);

/* What text says without lines. */
#define LINES_EMPTY "no source lines: record with opstrobe run, or with with_stack=True"
/* Option of table_lines. Text needs no such column: the order and the paths show it. */
#define LINES_WITH_LIBRARY 1u
/* Adds the lines of a trace to table_lines, those of the program before those of libraries, by time. */
run_fill lines_fill;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The call graph of a rank (analysis.md 12 and 13): which host row is called by which, and what ran on the device for it.
 *
 * Rows of a thread nest by time: a row's caller is the latest to start before it that still runs at half of its time, so that
 * a row that outlasts its caller by what clocks and rounding do is below it all the same, and changes nothing for what comes
 * later (HTA loses them). Of rows that start at once, the longer comes before, then the earlier in the file.
 */
#ifndef OPS_ANALYZE_CALL_GRAPH_H
#define OPS_ANALYZE_CALL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/events/event_table.h"

/* A thread, or what a file draws like one: a stream of a device. */
struct call_thread {
	size_t first; /* its host rows in `order`; none of a stream */
	size_t count;
	uint32_t rows;
	bool is_stream;
	bool has_steps;
	bool has_autograd;
};

struct call_node {
	uint32_t parent; /* row, OPS_NONE at the top */
	int32_t depth;   /* 0 at the top, -1 outside of the graph */
	int32_t height;  /* of device work 0, else at least 1; -1 outside of the graph */
	uint32_t kernels;
	int64_t kernels_ns;
	int64_t first_kernel_ns; /* the earliest start and the latest end, if there are kernels */
	int64_t last_kernel_ns;
};

struct call_graph {
	const struct event_table *table;
	struct call_node *nodes; /* by row of the table */
	uint32_t *order;         /* host rows of the graph: a caller before what it calls */
	size_t order_count;
	struct call_thread *threads; /* by track */
	size_t thread_count;
	uint32_t linked; /* rows on streams that have a caller */
	uint32_t main;   /* tracks: the only one with steps, and the only other one with autograd; OPS_NONE */
	uint32_t autograd;
};

/* Of the rows that the step filter keeps. False when memory is out; released in any case. n log n. */
bool call_graph_init(struct call_graph *graph, const struct event_table *table);
void call_graph_release(struct call_graph *graph);

/* Which row of a thread calls which. Sorts the list of rows, a caller before what it calls, and sets the parent (a row,
 * OPS_NONE at the top) of each. False when memory is out. */
bool call_nest(const struct event_table *table, uint32_t *list, size_t count, uint32_t *parents);

/* A call or device work of an operator. */
struct call_graph_part {
	uint32_t op; /* row of the operator */
	int64_t ts_ns;
	uint32_t row;
};
/* For OPS_ARRAY_SORT: those of an operator together, in order of time. */
int call_graph_compare_parts(const void *a, const void *b);

#endif

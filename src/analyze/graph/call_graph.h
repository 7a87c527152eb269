/* SPDX-License-Identifier: Apache-2.0
 *
 * The call graph of a rank: which host row is called by which, and what ran on the device for it.
 *
 * Rows of a thread nest by time. A row's caller is the latest row that starts before it and still runs at its midpoint.
 * So a row that outlasts its caller by a clock or rounding error still belongs to it and does not affect later rows
 * (HTA drops such rows). Of rows with equal starts, the longer one is the caller, then the earlier one in the file.
 */
#ifndef OPS_ANALYZE_CALL_GRAPH_H
#define OPS_ANALYZE_CALL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/events/event_table.h"

/* A thread, or a track that a file draws like one: a stream of a device. */
struct call_thread {
	size_t first; /* start of its host rows in `order`; a stream has none */
	size_t count;
	uint32_t rows;
	bool is_stream;
	bool has_steps;
	bool has_autograd;
};

struct call_node {
	uint32_t parent; /* row; OPS_NONE at the top */
	int32_t depth;   /* 0 at the top, -1 outside of the graph */
	int32_t height;  /* 0 for device work, else at least 1; -1 outside of the graph */
	uint32_t kernels;
	int64_t kernels_ns;
	int64_t first_kernel_ns; /* earliest start and latest end, if there are kernels */
	int64_t last_kernel_ns;
};

struct call_graph {
	const struct event_table *table;
	struct call_node *nodes; /* by row of the table */
	uint32_t *order;         /* host rows of the graph: callers before their callees */
	size_t order_count;
	struct call_thread *threads; /* by track */
	size_t thread_count;
	uint32_t linked; /* rows on streams that have a caller */
	uint32_t main;   /* tracks: the only one with steps, and the only other one with autograd; OPS_NONE: none */
	uint32_t autograd;
};

/* Builds the graph from the rows that the step filter keeps. Returns false if out of memory. The caller must release it
 * in any case. Takes O(n log n). */
bool call_graph_init(struct call_graph *graph, const struct event_table *table);
void call_graph_release(struct call_graph *graph);

/* Finds the callers of the rows of one thread. Sorts the list of rows so that callers precede their callees, and sets
 * the parent of each (a row; OPS_NONE at the top). Returns false if out of memory. */
bool call_nest(const struct event_table *table, uint32_t *list, size_t count, uint32_t *parents);

/* A call or a piece of device work that belongs to an operator. */
struct call_graph_part {
	uint32_t op; /* row of the operator */
	int64_t ts_ns;
	uint32_t row;
};
/* For OPS_ARRAY_SORT: groups parts by operator, in order of time. */
int call_graph_compare_parts(const void *a, const void *b);

#endif

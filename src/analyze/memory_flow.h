/* SPDX-License-Identifier: Apache-2.0
 *
 * How data flow through memory: who writes each value, and who reads it. Made by memory_context.c and memory_blocks.c; the
 * timeline of memory and its categories, and the analyses of flow/, are made of it.
 *
 * A node is an outermost operator or backward function, with all that runs below it. A value is a block in one of its
 * versions: it gets a new one when a node writes to it in place. An edge says that a node reads or writes a value.
 *
 *     value ──read──▶ node ──write──▶ value
 */
#ifndef OPS_ANALYZE_MEMORY_FLOW_H
#define OPS_ANALYZE_MEMORY_FLOW_H

#include <opstrobe/inputs.h>
#include <opstrobe/internal/memory.h>

#include "base/array.h"
#include "base/intern.h"

/* What an event is part of. */
enum memory_context {
	MEMORY_IN_BACKWARD = 1,
	MEMORY_IN_OPTIMIZER = 2,  /* a step of one */
	MEMORY_IN_ACCUMULATE = 4, /* autograd adds a gradient to a leaf's */
};

struct memory_rows {
	uint8_t *context;
	uint32_t *node;   /* the row of the node that an event is part of, OPS_NONE */
	uint32_t *region; /* the innermost optimizer step or accumulation around an event, OPS_NONE */
};

/* A block while it is followed. */
struct memory_life {
	int64_t last_use_ns;   /* by an operator, or named by the program */
	int64_t last_named_ns; /* INT64_MIN never */
	uint32_t value;      /* its present one */
	uint32_t written_by; /* the node that made the present one */
	uint8_t role;        /* enum ops_role */
	bool reported;       /* by an allocator */
};

struct memory_value {
	int64_t time_ns;
	uint32_t block;
	uint32_t previous; /* the value before this one, OPS_NONE for the first */
	uint32_t number;   /* 0, 1, … in its block */
	uint8_t category;
	bool derived;      /* comes from parameters */
	bool from_gradient;
	bool wanted;       /* parameters are used with it, or with what comes of it */
};

struct memory_edge {
	uint32_t node;
	uint32_t value;
	uint32_t row;     /* the event that shows it: the node, or one below it; OPS_NONE unknown */
	uint32_t storage; /* position among the storages of that event; OPS_NONE: a new block */
	bool write;
};

struct memory_flow {
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct memory_rows rows;
	OPS_ARRAY(struct ops_memory_block) blocks;
	OPS_ARRAY(struct memory_life) lives; /* one a block */
	OPS_ARRAY(struct memory_value) values;
	OPS_ARRAY(struct memory_edge) edges;
	struct ops_intern *shapes; /* NULL without storages */
	bool has_roles;
};

/* The edges by node: those of node n are start[n] … start[n + 1]. */
struct memory_edges {
	struct memory_edge *items;
	uint32_t *start;
};

/* False when memory is out; released in any case. */
bool ops_memory_flow_init(struct memory_flow *flow, const struct ops_trace *trace);
void ops_memory_flow_release(struct memory_flow *flow);
bool ops_memory_edges_init(struct memory_edges *edges, const struct memory_flow *flow);
void ops_memory_edges_release(struct memory_edges *edges);
const struct memory_edge *ops_memory_edges_of(const struct memory_edges *edges, size_t node, size_t *ret_count);

bool ops_memory_categorize(struct memory_flow *flow);

/* The tensor that the `nth` storage of an input list is behind: empty tensors have none. False if there is none. */
bool ops_memory_find_tensor(struct ops_string inputs, size_t nth, struct ops_input *ret_tensor);

/* Parts of init. */
bool ops_memory_rows_init(struct memory_rows *rows, const struct ops_trace *trace);
void ops_memory_rows_release(struct memory_rows *rows);
bool ops_memory_follow(struct memory_flow *flow);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The flow of data through memory: which node writes each value, and which nodes read it. Built by memory_context.c and
 * memory_blocks.c; used by the timeline of memory, its categories, and the analyses of flow/.
 *
 * A node is an outermost operator or backward function, with everything that runs below it. A value is one version of a
 * block, which gets a new version when a node writes to it in place. An edge means that a node reads or writes a value.
 *
 *     value ──read──▶ node ──write──▶ value
 */
#ifndef OPS_ANALYZE_MEMORY_FLOW_H
#define OPS_ANALYZE_MEMORY_FLOW_H

#include <opstrobe/inputs.h>
#include <opstrobe/internal/memory.h>

#include "base/array.h"
#include "base/intern.h"

/* The regions that contain an event. */
enum memory_context {
	MEMORY_IN_BACKWARD = 1,
	MEMORY_IN_OPTIMIZER = 2,  /* step of an optimizer */
	MEMORY_IN_ACCUMULATE = 4, /* autograd adds a gradient to that of a leaf */
};

struct memory_rows {
	uint8_t *context;
	uint32_t *node;   /* the row of the node that an event is part of; OPS_NONE: none */
	uint32_t *region; /* the innermost optimizer step or accumulation around an event; OPS_NONE: none */
};

/* State of a block while it is followed. */
struct memory_life {
	int64_t last_use_ns;   /* last use by an operator, or last time that the program named it */
	int64_t last_named_ns; /* INT64_MIN: never */
	uint32_t value;      /* its current value */
	uint32_t written_by; /* the node that wrote the current value */
	uint8_t role;        /* enum ops_role */
	bool reported;       /* reported by an allocator */
};

struct memory_value {
	int64_t time_ns;
	uint32_t block;
	uint32_t previous; /* the previous value; OPS_NONE for the first */
	uint32_t number;   /* 0, 1, … within its block */
	uint8_t category;
	bool derived;      /* derived from parameters */
	bool from_gradient;
	bool wanted;       /* parameters are used together with it, or with values derived from it */
};

struct memory_edge {
	uint32_t node;
	uint32_t value;
	uint32_t row;     /* the event that shows the access: the node, or one below it; OPS_NONE: unknown */
	uint32_t storage; /* position among the storages of that event; OPS_NONE: a new block */
	bool write;
};

struct memory_flow {
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct memory_rows rows;
	OPS_ARRAY(struct ops_memory_block) blocks;
	OPS_ARRAY(struct memory_life) lives; /* one per block */
	OPS_ARRAY(struct memory_value) values;
	OPS_ARRAY(struct memory_edge) edges;
	struct ops_intern *shapes; /* NULL without storages */
	bool has_roles;
};

/* The edges by node: those of node n are at start[n] … start[n + 1]. */
struct memory_edges {
	struct memory_edge *items;
	uint32_t *start;
};

/* Returns false if out of memory. The caller must release the flow in any case. */
bool ops_memory_flow_init(struct memory_flow *flow, const struct ops_trace *trace);
void ops_memory_flow_release(struct memory_flow *flow);
bool ops_memory_edges_init(struct memory_edges *edges, const struct memory_flow *flow);
void ops_memory_edges_release(struct memory_edges *edges);
const struct memory_edge *ops_memory_edges_of(const struct memory_edges *edges, size_t node, size_t *ret_count);

bool ops_memory_categorize(struct memory_flow *flow);

/* Finds the tensor of the `nth` storage of an input list, which skips empty tensors, since they have no storage.
 * Returns false if there is none. Files omit the types of tensors in lists, and reading sets them to 0; the dtype is
 * then UINT8_MAX. */
bool ops_memory_find_tensor(struct ops_string inputs, size_t nth, struct ops_input *ret_tensor);

/* Parts of init: */
bool ops_memory_rows_init(struct memory_rows *rows, const struct ops_trace *trace);
void ops_memory_rows_release(struct memory_rows *rows);
bool ops_memory_follow(struct memory_flow *flow);

#endif

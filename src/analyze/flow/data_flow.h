/* SPDX-License-Identifier: Apache-2.0
 *
 * The data flow of a trace: which operator creates each value, which operators use it, and how much of it they read.
 * Requires shapes and memory in the recording.
 *
 *     aten::linear ──makes──▶ value of 24 MB ──┬── part of 512 kB ──▶ aten::argmax
 *                                              └── a view reads nothing
 *
 * A value is a block of memory in one of its versions, a node an outermost operator or backward function with all that
 * runs below it (memory_flow.h). Only operators are visible: reads by Python or another library through a pointer are
 * not.
 */
#ifndef OPS_ANALYZE_DATA_FLOW_H
#define OPS_ANALYZE_DATA_FLOW_H

#include "analyze/memory_flow.h"
#include "derive/operators.h"

/* How a node uses a value that another node created. Of several uses the strongest is kept. */
enum data_use_kind {
	DATA_VIEWS,      /* creates another tensor in the same memory, and reads nothing */
	DATA_NARROWS,    /* the same for a part of it */
	DATA_OVERWRITES, /* writes the next version of its block without reading this one */
	DATA_SELECTS,    /* reads as much as it writes, such as rows by their indices */
	DATA_READS,
	DATA_UPDATES,    /* reads it and writes the next version of its block */
};

struct data_use {
	uint32_t value;
	uint32_t node;
	uint32_t next;  /* next use of the same value, in order of time; OPS_NONE: none */
	uint8_t kind;   /* enum data_use_kind */
	int64_t bytes;  /* bytes that it reads, or of the view that it creates */
};

struct data_value {
	uint32_t node;      /* node that creates it; OPS_NONE: no operator */
	uint32_t first, last; /* first and last use; OPS_NONE: none */
	int64_t bytes;      /* size of its block */
	bool complete;      /* its block was allocated and freed within the recording, so that all uses are known */
};

struct data_node {
	uint32_t first, count; /* range in `uses` */
	uint32_t first_made;   /* start in `made` */
	uint32_t made_count;
};

struct data_flow {
	struct memory_flow memory;
	struct data_value *values; /* one for each value of the memory */
	struct data_node *nodes;   /* by row; empty for rows that are not nodes */
	OPS_ARRAY(struct data_use) uses; /* grouped by node */
	OPS_ARRAY(uint32_t) made;        /* values that nodes create, grouped by node */
	const uint16_t *operators; /* by string: rows of derive/operators.h */
};

/* Returns false if out of memory. The caller must release the flow in any case. */
bool data_flow_init(struct data_flow *flow, const struct ops_trace *trace);
void data_flow_release(struct data_flow *flow);

/* Summary of the uses of a value. */
struct data_uses {
	uint32_t readers;   /* number of nodes that read it */
	uint32_t updates;   /* 1: the next version is created from it */
	uint32_t reader;    /* first of these; OPS_NONE: none */
	int64_t read_bytes; /* at most the size of the value; more than was really read if parts overlap */
};
struct data_uses data_flow_uses_of(const struct data_flow *flow, uint32_t value);

/* Returns true if the program selects a part of a value. Fewer bytes than its size may also be read for other
 * reasons. */
bool data_flow_is_selected_from(const struct data_flow *flow, uint32_t value);

/* Bytes of all values that a node makes. */
int64_t data_flow_made_bytes(const struct data_flow *flow, uint32_t node);
/* Returns the bytes that a node reads and that other nodes created. */
int64_t data_flow_read_bytes(const struct data_flow *flow, uint32_t node);

/* Returns whether memory that a node creates is released before it ends, so that it is not a result. */
static inline bool data_flow_is_scratch(const struct data_flow *flow, uint32_t node, uint32_t value)
{
	const struct memory_flow *memory = &flow->memory;

	return memory->blocks.items[memory->values.items[value].block].end_ns <= memory->events->end_ns[node];
}

/* Returns the kind of the operator at a row. */
static inline enum operator_kind data_flow_kind(const struct data_flow *flow, uint32_t row)
{
	return operator_rows[flow->operators[flow->memory.events->name[row]]].kind;
}

/* Returns the number of elements in the part of its first input that a narrowing operator returns; -1 if its arguments
 * do not determine it. */
int64_t data_flow_narrowed_elements(struct ops_string name, struct ops_string inputs);

#endif

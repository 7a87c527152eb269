/* SPDX-License-Identifier: Apache-2.0
 *
 * The data flow of a trace: which operator makes each value, which operators use it, and how much of it they read. Requires
 * shapes and memory in the recording.
 *
 *     aten::linear ──makes──▶ value of 24 MB ──┬── part of 512 kB ──▶ aten::argmax
 *                                              └── a view reads nothing
 *
 * A value is a block of memory in one of its versions, a node an outermost operator or backward function with all that runs
 * below it (memory_flow.h). Only operators are seen: what Python or another library reads through a pointer is not.
 */
#ifndef OPS_ANALYZE_DATA_FLOW_H
#define OPS_ANALYZE_DATA_FLOW_H

#include "analyze/memory_flow.h"

/* How a node uses a value that another node made. The strongest of several is kept. */
enum data_use_kind {
	DATA_VIEWS,      /* makes another tensor of the same memory, and reads nothing */
	DATA_NARROWS,    /* likewise, of a part of it */
	DATA_OVERWRITES, /* writes the next version of its block without reading this one */
	DATA_SELECTS,    /* reads as much as it writes: rows by their indices */
	DATA_READS,
	DATA_UPDATES,    /* reads it and writes the next version of its block */
};

struct data_use {
	uint32_t value;
	uint32_t node;
	uint32_t next;  /* use of the same value, in order of time; OPS_NONE */
	uint8_t kind;   /* enum data_use_kind */
	int64_t bytes;  /* that it reads, or of the view that it makes */
};

struct data_value {
	uint32_t node;      /* that makes it; OPS_NONE: no operator */
	uint32_t first, last; /* uses; OPS_NONE */
	int64_t bytes;      /* of its block */
	bool complete;      /* its block was allocated and freed within the recording, so that all uses are known */
};

struct data_node {
	uint32_t first, count; /* of `uses` */
	uint32_t first_made;   /* of `made` */
	uint32_t made_count;
};

struct data_flow {
	struct memory_flow memory;
	struct data_value *values; /* one for each of the memory's */
	struct data_node *nodes;   /* by row; empty for rows that are not nodes */
	OPS_ARRAY(struct data_use) uses; /* those of a node together */
	OPS_ARRAY(uint32_t) made;        /* values that nodes make, those of a node together */
};

/* False when memory is out; released in any case. */
bool data_flow_init(struct data_flow *flow, const struct ops_trace *trace);
void data_flow_release(struct data_flow *flow);

/* How the uses of a value sum up. */
struct data_uses {
	uint32_t readers;   /* nodes that read of it */
	uint32_t updates;   /* 1: the next version is made of it */
	uint32_t reader;    /* the first of them, OPS_NONE */
	int64_t read_bytes; /* at most its size. Parts may overlap, so that it can be less than this */
};
struct data_uses data_flow_uses_of(const struct data_flow *flow, uint32_t value);

/* Bytes of all values that a node makes. */
int64_t data_flow_made_bytes(const struct data_flow *flow, uint32_t node);
/* Bytes that a node reads and that other nodes made. */
int64_t data_flow_read_bytes(const struct data_flow *flow, uint32_t node);

#endif

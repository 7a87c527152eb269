/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of execution traces (JSON of torch's ExecutionTraceObserver, Chakra) as Chrome JSON (transcode.h). Ids number the calls
 * in the order of their begins, and a node has the id of the enclosing one. If a file has no times, this order replaces them:
 *
 *     id  parent                      0    1    2    3    4 ns
 *      4     3    aten::linear   ─▶   ├───────────────┤
 *      5     4    aten::t                  ├────┤
 *      6     4    aten::addmm                   ├────┤
 *      7     3    aten::relu                         ├────┤
 *
 * so that there is a tree of operators, but durations have no meaning. A diagnostic reports this.
 */
#ifndef OPS_READ_EXECUTION_NODES_H
#define OPS_READ_EXECUTION_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"
#include "read/transcode.h"

struct execution_node {
	uint64_t id;
	uint64_t parent;
	struct ops_string text; /* the part of the file with the node */
	int64_t pid;
	int64_t tid;
	int64_t start_ns;
	int64_t duration_ns;
};

struct execution_nodes {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_reading *in;
	const char *bytes; /* the file, which contains the texts of nodes */
	OPS_ARRAY(struct execution_node) items;
	struct ops_map places; /* by id: index in `items` */
	bool has_times;
	/* Appends the members of the node's row except for process, thread and times, each preceded by a comma. */
	void (*put_members)(struct execution_nodes *nodes, const struct execution_node *node, struct ops_buffer *out);
	size_t next;
	bool has_ended;
};

/* Makes a trace of the nodes. `bytes`, `items` and `put_members` must be set; without times in the file, those of the nodes are
 * computed. */
enum ops_code execution_nodes_read(struct execution_nodes *nodes, struct ops_trace **ret_trace);

/* The inputs of an operator: JSON lists of the same length. Empty if the file does not have them. */
struct execution_inputs {
	struct ops_string shapes;
	struct ops_string types; /* "Tensor(float)", "GenericList[Int,Int]", … */
	struct ops_string values;
	struct ops_string strides;
};

/* Appends the inputs as Kineto's members of `args`, each preceded by a comma. */
void execution_put_inputs(struct ops_buffer *out, const struct execution_inputs *inputs);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA graphs in a recording: which operator was captured as which node, and which node waits for which.
 *
 *     captured   A ──▶ B ──▶ C        copies in the launched graph: a ──▶ b ──▶ c
 *     launch     call ──▶ kernel a ─────────▶ kernel c          if nothing was recorded for b
 *
 * Edges are recorded for the nodes of the instantiated graph, right after its copies; so in order of time each edge connects the
 * latest copies. The dependencies of a node are resolved once for all launches, skipping nodes that never have a row. All of this
 * takes linear time for any edges; cycles are ignored.
 */
#ifndef OPS_READ_DEVICE_GRAPHS_H
#define OPS_READ_DEVICE_GRAPHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/intern.h"
#include "record/activities.h"
#include "trace/builder.h"

/* The maximum number of links for the dependencies of a node. */
#define GRAPH_WAITS_MAX 16u

struct graph_node {
	uint64_t launch;     /* the latest launch in which it ran; 0: none */
	uint32_t row;        /* of that run, in order of adding */
	uint32_t operator_name; /* string id of the captured operator; 0: none */
	uint32_t copy;       /* the latest copy of the node, or OPS_NONE */
	uint32_t waits;      /* index in `waits` of its dependencies, or OPS_NONE */
	uint32_t wait_count;
	uint32_t original;   /* the node of which it is a copy, or OPS_NONE */
	uint32_t function;   /* index in activities->host_functions of the function that it calls, or OPS_NONE */
	bool runs;           /* it has rows */
};

struct graph_edge {
	uint32_t from; /* nodes */
	uint32_t to;
};

struct graph_wait {
	uint32_t node;
	uint32_t next; /* OPS_NONE: this is the last */
};

/* Work of the launch that is being processed. */
struct graph_work {
	uint32_t node;
	uint32_t row;
	uint32_t call; /* row, or OPS_NONE */
};

/* A zero-initialised struct is empty. */
struct device_graphs {
	struct ops_intern ids; /* uint64_t */
	OPS_ARRAY(struct graph_node) nodes; /* by id in `ids` */
	OPS_ARRAY(struct graph_edge) edges;
	OPS_ARRAY(struct graph_wait) waits;
	OPS_ARRAY(struct graph_work) launched;
	uint32_t *of_text; /* by `details` of work: its node; NULL if no work has one */
};

void device_graphs_release(struct device_graphs *graphs);

/* These functions return false if out of memory. Called in order of time, they add a node, which is a copy of `original` unless
 * that is 0, and an edge. */
bool device_graphs_add_node(struct device_graphs *graphs, uint64_t node, uint64_t original, uint32_t operator_name);
bool device_graphs_add_edge(struct device_graphs *graphs, uint64_t from, uint64_t to);
/* Called after the last of them. */
bool device_graphs_finish(struct device_graphs *graphs, const struct ops_activities *activities);

/* Returns the node of work; OPS_NONE: unknown. */
static inline uint32_t device_graphs_node_of(const struct device_graphs *graphs, const struct ops_activity *work)
{
	return graphs->of_text ? graphs->of_text[work->details] : OPS_NONE;
}

/* Returns the function that a node calls on the host, as an index in activities->host_functions; OPS_NONE: unknown. */
uint32_t device_graphs_function(const struct device_graphs *graphs, uint32_t node);

/* Called when a node has run in the launch made by `call`, a row or OPS_NONE. */
bool device_graphs_ran(struct device_graphs *graphs, uint32_t node, uint64_t launch, uint32_t row, uint32_t call);
/* Called when all work of a launch is known: adds the links between nodes, and from the call to nodes without dependencies. */
void device_graphs_launched(struct device_graphs *graphs, struct ops_builder *builder);

#endif

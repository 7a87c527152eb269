/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA graphs in a recording: which operator was captured as which node, and which node waits for which.
 *
 *     captured   A ──▶ B ──▶ C        their copies in the graph that is launched: a ──▶ b ──▶ c
 *     launch     call ──▶ kernel a ─────────▶ kernel c          where nothing was recorded of b
 *
 * Edges are recorded for the nodes of the instantiated graph, right after its copies; so in order of time each edge is
 * one of the latest copies. The dependencies of a node are resolved once for all launches: past nodes that never have a row, to
 * those that do. All of it is linear for any edges; cycles lead nowhere.
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

/* The maximum number of dependencies of a node that get links. */
#define GRAPH_WAITS_MAX 16u

struct graph_node {
	uint64_t launch;     /* the latest in which it ran, 0 none */
	uint32_t row;        /* there, in order of adding */
	uint32_t operator_name; /* that was captured: string id, 0 none */
	uint32_t copy;       /* node that is the latest copy of it; OPS_NONE */
	uint32_t waits;      /* what it waits for, in `waits`; OPS_NONE */
	uint32_t wait_count;
	uint32_t original;   /* node that it is a copy of; OPS_NONE */
	uint32_t function;   /* that it calls on the host, of activities->host_functions; OPS_NONE */
	bool runs;           /* it has rows */
};

struct graph_edge {
	uint32_t from; /* nodes */
	uint32_t to;
};

struct graph_wait {
	uint32_t node;
	uint32_t next; /* OPS_NONE: the last */
};

/* A piece of work of the launch that is looked at. */
struct graph_work {
	uint32_t node;
	uint32_t row;
	uint32_t call; /* row, OPS_NONE */
};

/* Zero-initialised is none. */
struct device_graphs {
	struct ops_intern ids; /* uint64_t */
	OPS_ARRAY(struct graph_node) nodes; /* by number in ids */
	OPS_ARRAY(struct graph_edge) edges;
	OPS_ARRAY(struct graph_wait) waits;
	OPS_ARRAY(struct graph_work) launched;
	uint32_t *of_text; /* node by `details` of work, NULL when no work is of one */
};

void device_graphs_release(struct device_graphs *graphs);

/* False, here and below, when memory is out. In order of time: a node, which is a copy of another unless `original` is 0, and
 * an edge. */
bool device_graphs_add_node(struct device_graphs *graphs, uint64_t node, uint64_t original, uint32_t operator_name);
bool device_graphs_add_edge(struct device_graphs *graphs, uint64_t from, uint64_t to);
/* Behind the last of those. */
bool device_graphs_finish(struct device_graphs *graphs, const struct ops_activities *activities);

/* The node that work is, OPS_NONE for none that is known. */
static inline uint32_t device_graphs_node_of(const struct device_graphs *graphs, const struct ops_activity *work)
{
	return graphs->of_text ? graphs->of_text[work->details] : OPS_NONE;
}

/* What a node calls on the host, OPS_NONE when that is not known: of activities->host_functions. */
uint32_t device_graphs_function(const struct device_graphs *graphs, uint32_t node);

/* A node ran, of the launch that `call`, a row or OPS_NONE, made. */
bool device_graphs_ran(struct device_graphs *graphs, uint32_t node, uint64_t launch, uint32_t row, uint32_t call);
/* All of a launch ran: draws its arrows, those between nodes and those from the call to nodes that wait for none. */
void device_graphs_launched(struct device_graphs *graphs, struct ops_builder *builder);

#endif

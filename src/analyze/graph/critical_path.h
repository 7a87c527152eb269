/* SPDX-License-Identifier: Apache-2.0
 *
 * The critical path of a rank: a graph of dependencies, and the longest path through it.
 *
 * Every operator, call and piece of device work has two nodes, its start and its end:
 *
 *     host      (op ─ launch ───────── op)──▶(op ... cudaDeviceSynchronize)
 *                       │ launch delay             ▲ synchronisation
 *     stream 7          ▼                          │
 *                    (kernel)─ kernel delay ─▶(kernel)
 *
 *     critical_path.c    the region, nodes and edges
 *     critical_host.c    edges of the host: calls that exclude each other, order in threads
 *     critical_backward.c edges between a thread and the thread of the autograd engine that works for it
 *     critical_queue.c   length of the queue of each stream at each launch and start
 *     critical_device.c  edges of devices: launches, streams, synchronisation
 *     critical_search.c  the longest path, with the original or changed weights
 */
#ifndef OPS_ANALYZE_CRITICAL_PATH_H
#define OPS_ANALYZE_CRITICAL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/events/event_table.h"
#include "base/array.h"
#include "base/intern.h"
#include "base/json_walk.h"
#include "base/map.h"

#define CRITICAL_EDGE_TYPES(X)                                                                     \
	X(OPERATOR, "critical_path_operator")                                                      \
	X(DEPENDENCY, "critical_path_dependency")                                                  \
	X(LAUNCH, "critical_path_kernel_launch_delay")                                             \
	X(KERNEL, "critical_path_kernel_kernel_delay")                                             \
	X(SYNC, "critical_path_sync_dependency")

enum critical_edge_type {
#define CRITICAL_EDGE_ENUM(name, text) CRITICAL_##name,
	CRITICAL_EDGE_TYPES(CRITICAL_EDGE_ENUM)
#undef CRITICAL_EDGE_ENUM
	CRITICAL_EDGE_TYPE_COUNT
};

/* What an edge's time is bound by. */
#define CRITICAL_BOUNDS(X)                                                                         \
	X(NOTHING, "")                                                                             \
	X(HOST, "cpu_bound")                                                                       \
	X(LOADER, "data_loading")                                                                  \
	X(COMPUTE, "gpu_compute_bound")                                                            \
	X(COMMUNICATION, "gpu_communication_bound")                                                \
	X(KERNEL_GAP, "gpu_kernel_kernel_overhead")                                                \
	X(LAUNCH_DELAY, "gpu_kernel_launch_overhead")

enum critical_bound {
#define CRITICAL_BOUND_ENUM(name, text) CRITICAL_BOUND_##name,
	CRITICAL_BOUNDS(CRITICAL_BOUND_ENUM)
#undef CRITICAL_BOUND_ENUM
	CRITICAL_BOUND_COUNT
};

/* Node 2e is the start of event e, node 2e + 1 its end. */
struct critical_edge {
	uint32_t from;
	uint32_t to;
	uint32_t event; /* event that the time belongs to; OPS_NONE: none */
	uint8_t type;
	int64_t weight_ns; /* a negative weight counts as 0 */
};

/* Properties of a row by its name. */
enum critical_name {
	CRITICAL_NAME_LOCK = 1,      /* a call that holds the process's lock */
	CRITICAL_NAME_BLOCKING = 2,  /* waits for a device */
	CRITICAL_NAME_LAUNCH = 4,
	CRITICAL_NAME_RECORD = 8,    /* cudaEventRecord */
	CRITICAL_NAME_WAIT = 16,     /* "Stream Wait Event" */
	CRITICAL_NAME_EVENT_SYNC = 32,
	CRITICAL_NAME_STREAM_SYNC = 64,
	CRITICAL_NAME_CONTEXT_SYNC = 128,
	CRITICAL_NAME_LOADER = 256,  /* contains one of the words for loading data */
	CRITICAL_NAME_KNOWN = 512,
};

/* A stream of a device, identified by the work on it. */
struct critical_stream {
	int64_t device;
	int64_t stream;
	uint32_t last; /* event of the latest kernel so far; OPS_NONE: none */
	size_t first;  /* launches onto it in `launches`, sorted by time */
	size_t count;
	int64_t queued;
};

struct critical_launch {
	int64_t ts_ns;
	uint32_t row;  /* row of the call */
	uint32_t work; /* row of the work that it launched */
	uint32_t stream;
	uint32_t track; /* track of the call */
};

struct critical_options {
	const struct ops_string *loaders; /* parts of the names of events that load data */
	size_t loader_count;
	bool zero_weight_launches; /* also draw launches that nothing waited for */
};

struct critical_path {
	const struct event_table *table;
	const struct critical_options *options;
	uint16_t *names;       /* enum critical_name by string id */
	OPS_ARRAY(uint32_t) clipped;   /* rows of the region, in order of the file */
	OPS_ARRAY(uint32_t) events;    /* rows of `clipped` that have nodes */
	uint32_t *event_of;    /* by row; OPS_NONE: none */
	uint32_t *row_of;      /* by row of the trace; NULL if no work of CUDA graphs waits for other work */
	OPS_ARRAY(struct critical_edge) edges;
	struct ops_map edge_of;       /* from (start node, end node) to edge */
	OPS_ARRAY(struct critical_stream) streams;
	struct ops_intern stream_keys;
	struct ops_map records;       /* from correlation to the row of the event record */
	OPS_ARRAY(struct critical_launch) launches; /* by stream and time */
	uint32_t *stream_of;   /* by row with a stream */
	int32_t *queue_at_launch;      /* by row: length of its stream's queue when it was launched, including the row
	                                * itself; INT32_MIN: unknown */
	int32_t *queue_at_start;       /* length of the queue behind it when it starts */

	bool acyclic;
	OPS_ARRAY(uint32_t) path;      /* edges, in order */
	uint32_t path_start, path_end; /* nodes; OPS_NONE if the path is empty */
	int64_t path_weight_ns;
};

/* Builds the graph of the rows between `start_ns` and `end_ns`. Returns false if out of memory. The caller must release
 * it in any case. Takes O(n log n). */
bool critical_path_init(struct critical_path *path, const struct event_table *table, int64_t start_ns, int64_t end_ns,
                        const struct critical_options *options);
void critical_path_release(struct critical_path *path);

/* Finds the longest path. `weights_ns` is the duration of each edge; NULL: as recorded. */
bool critical_path_search(struct critical_path *path, const int64_t *weights_ns);

enum critical_bound critical_bound_of(const struct critical_path *path, const struct critical_edge *edge);
const char *critical_edge_type_name(enum critical_edge_type type);
const char *critical_bound_name(enum critical_bound bound);

/* --- functions for the parts of the critical path -------------------------------------------------------------------- */

bool critical_host_edges(struct critical_path *path);
bool critical_queue_find(struct critical_path *path);
bool critical_device_edges(struct critical_path *path);
/* Finds a stream by device and number. Returns OPS_NONE if nothing ran there. */
uint32_t critical_find_stream(const struct critical_path *path, int64_t device, int64_t stream);

/* Adds an edge; replaces an edge between the same nodes. Returns false if out of memory. */
bool critical_add_edge(struct critical_path *path, uint32_t from, uint32_t to, enum critical_edge_type type,
                       int64_t weight_ns, uint32_t event);

static inline const struct event_row *critical_row(const struct critical_path *path, uint32_t event)
{
	return &path->table->rows[path->events.items[event]];
}

static inline int64_t critical_node_ns(const struct critical_path *path, uint32_t node)
{
	const struct event_row *row = critical_row(path, node / 2);

	return node % 2 ? event_end(row) : row->ts_ns;
}

static inline bool critical_name_is(const struct critical_path *path, const struct event_row *row, unsigned what)
{
	return path->names[row->name] & what;
}

#endif

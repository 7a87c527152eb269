/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay computes when the parts of a program would start and end if some of them took another time.
 *
 *     main thread  [ Python ][ op ][ launch ][ op ][   sync    ][ Python ]      nodes of a thread: its time between
 *                                    │ launch delay      ▲                       boundaries of events, or cuts
 *     stream 7                       ▼                   │ wait
 *                                   [ kernel ]─▶[ kernel ]
 *
 *     replay_nodes.c    the nodes of each thread and stream
 *     replay_threads.c  which thread starts, or waits for, work of another
 *     replay_device.c   launches, streams, and the host's waits for a device
 *     replay_change.c   which rows a change applies to
 *     replay_match.c    which rows a text matches
 *     replay_run.c      one replay: the end of each node, and the time of each step
 *     replay_loader.c   batches of data loaders
 *     whatif.c          the query `whatif`
 *
 * A node starts after the node before it on its thread or stream, and after all nodes that its edges lead from. Delays
 * that these do not explain stay as measured. docs/reference/definitions.md states the assumptions.
 */
#ifndef OPS_ANALYZE_REPLAY_H
#define OPS_ANALYZE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "derive/steps.h"

enum replay_kind {
	REPLAY_RUN,  /* takes its time once all its dependencies have ended */
	REPLAY_WAIT, /* a thread waits for another: ends when its dependencies have ended */
	REPLAY_SYNC, /* the same, for the host waiting for a device, plus the duration of the call without a wait */
};

struct replay_node {
	int64_t start_ns, end_ns; /* as measured */
	uint32_t row;      /* row that the time belongs to; OPS_NONE: between the events of a thread */
	uint32_t previous; /* previous node on the same thread or stream; OPS_NONE: none */
	uint32_t edges;    /* first edge in the list; OPS_NONE: none */
	uint32_t track : 29;
	uint32_t kind : 2; /* enum replay_kind */
	uint32_t batch : 1; /* last node of the fetch of a batch */
};

struct replay_edge {
	int64_t lag_ns; /* delay after the end of the source */
	uint32_t source;
	uint32_t next; /* next edge of the same node; OPS_NONE: none */
};

/* Nodes of a track are consecutive and in order of time. */
struct replay_track {
	uint32_t first, count;
	uint32_t main; /* the thread of the steps of its process; OPS_NONE: none */
};

/* Properties of a row by its name. */
enum replay_name {
	REPLAY_NAME_LAUNCHES = 1,   /* a call that launches device work */
	REPLAY_NAME_BLOCKS = 2,     /* a call that waits for a device */
	REPLAY_NAME_WAITS = 4,      /* a Python call that waits for a lock, a queue or another thread */
	REPLAY_NAME_ENGINE = 8,     /* runs the backward pass, possibly on another thread */
	REPLAY_NAME_NODE = 16,      /* a node of the backward pass */
	REPLAY_NAME_COLLECTIVE = 32, /* a collective operation on the host */
	REPLAY_NAME_BATCH = 64,     /* fetches a batch */
	REPLAY_NAME_IN_PROCESS = 128, /* the same, in the main process without workers */
	REPLAY_NAME_STEP = 256,
	REPLAY_NAME_RELEASES = 512, /* a call that may wake another thread */
	REPLAY_NAME_DISTRIBUTED = 1024, /* an operator that issues a collective */
	REPLAY_NAME_PROCESS = 2048, /* a Python call that waits for another process */
};

struct replay_step {
	int64_t number;
	int64_t start_ns, end_ns; /* time on the host */
	uint32_t start, end; /* last nodes before its start and its end; OPS_NONE: none */
	int64_t measured_ns;
};

struct replay {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const uint32_t *launchers;
	const struct ops_steps *trace_steps;
	uint16_t *names; /* enum replay_name by string */
	OPS_ARRAY(struct replay_node) nodes;
	OPS_ARRAY(struct replay_edge) edges;
	struct replay_track *tracks;
	size_t track_count;
	OPS_ARRAY(struct replay_step) steps; /* in a trace without steps: a single one for all of its time */
	OPS_ARRAY(uint32_t) work;      /* nodes on devices, in order of their end */
	uint32_t *work_step;           /* by position in `work`: the step that launched it; OPS_NONE: none */
	int64_t launch_ns;             /* delay between a call and its work on an idle device */
	OPS_ARRAY(uint32_t) batches;   /* nodes at the end of the fetch of each batch, in order of time */
	int64_t batch_ns;              /* duration of fetching a batch that is ready */
	int64_t batch_period_ns;       /* interval between batches that all workers make together; 0: the main process
	                                * makes them */
	int64_t workers;               /* workers of the loader; 0: unknown */
	double processors;             /* 0: unknown */
	double batch_cpu;              /* share of the time of making a batch that runs on a processor; 1: unknown */
};

/* --- changes --------------------------------------------------------------------------------------------------------- */

enum replay_change_kind {
	REPLAY_SCALE,              /* takes `factor` times as long */
	REPLAY_OVERLAP,            /* only the end of its step waits for it */
	REPLAY_REMOVE_SYNCS,
	REPLAY_NO_LAUNCH_OVERHEAD, /* operators that launch work take no host time */
	REPLAY_WORKERS,            /* data loaders have `workers` processes */
};

#define REPLAY_CHANGES_MAX 16

struct replay_change {
	enum replay_change_kind kind;
	double factor;
	int64_t workers;
	uint64_t events; /* number of rows that it applies to; set by replay_select */
};

struct replay_changes {
	struct replay_change items[REPLAY_CHANGES_MAX];
	size_t count;
	uint16_t *mask; /* by row: bit i is set if change i applies to it. NULL: none */
};

/* Sets a bit for the rows that a text matches: "FILE:LINE", a class of device work ("communication", "copy", …), or
 * else a regular expression that is searched in their names and in the paths of their modules. With `communication`,
 * only operations that communicate are matched, by a part of their names. Returns OPS_INVALID for an invalid
 * expression. */
enum ops_code replay_match(const struct replay *replay, struct ops_string what, bool communication, uint16_t *mask,
                           uint16_t bit, struct ops_error *error);

/* Returns false if out of memory. The caller must release it in any case. */
bool replay_init(struct replay *replay, const struct ops_trace *trace);
void replay_release(struct replay *replay);

/* Marks the rows of changes. For REPLAY_SCALE and REPLAY_OVERLAP the caller marks rows in `mask`; for the other kinds
 * the trace determines them. Then marks what depends on marked rows: their children, the work that they launched, and
 * their backward pass. Counts the events of each change. Returns false if out of memory. */
bool replay_select(const struct replay *replay, struct replay_changes *changes);
void replay_changes_release(struct replay_changes *changes);

/* Replays with the changes whose bits are in `enabled`, and computes the time of each step. Returns false if out of
 * memory. */
bool replay_run(const struct replay *replay, const struct replay_changes *changes, unsigned enabled, int64_t *ret_step_ns);

/* --- functions for the parts of a replay ----------------------------------------------------------------------------- */

/* A time at which a node of a track has to end. */
struct replay_cut {
	uint32_t track;
	int64_t time_ns;
};
/* Work of another thread: the node of `to` that begins (with `wait`: ends) at a time depends on the node of `from` that
 * ends at a time. */
struct replay_join {
	uint32_t from, to; /* tracks */
	int64_t from_ns, to_ns;
	bool wait;
};
struct replay_joins {
	OPS_ARRAY(struct replay_join) items;
};

bool replay_threads_find(const struct replay *replay, struct replay_joins *joins);
bool replay_threads_link(struct replay *replay, const struct replay_joins *joins);
bool replay_device_link(struct replay *replay);
bool replay_loader_find(struct replay *replay);
bool replay_add_edge(struct replay *replay, uint32_t to, uint32_t source, int64_t lag_ns);

/* Returns the node of a track that runs at a time, or ends at it; OPS_NONE: none. */
uint32_t replay_node_at(const struct replay *replay, uint32_t track, int64_t time_ns);
/* Returns the last node that has ended by a time; OPS_NONE: none. */
uint32_t replay_node_before(const struct replay *replay, uint32_t track, int64_t time_ns);

/* Returns the step that runs on the host at a measured time; OPS_NONE: none. */
uint32_t replay_step_at(const struct replay *replay, int64_t time_ns);

static inline bool replay_name_is(const struct replay *replay, uint32_t row, unsigned what)
{
	return replay->names[replay->events->name[row]] & what;
}

static inline bool replay_is_main(const struct replay *replay, uint32_t track)
{
	return replay->tracks[track].main == track;
}

/* Returns true if a row takes the time of its thread. Collectives may end on another thread than they began on, and are
 * then not in the tree, but those of one thread still run one after another. */
static inline bool replay_is_host_row(const struct replay *replay, uint32_t row)
{
	uint16_t flags = replay->events->flags[row];

	return !(flags & OPS_EVENT_HIDDEN) &&
	       (!(flags & OPS_EVENT_ASYNC) ||
	        (replay_name_is(replay, row, REPLAY_NAME_COLLECTIVE) && !replay_is_main(replay, replay->events->track[row])));
}

/* Time to receive a batch that workers made, which the main process takes from a queue. */
#define REPLAY_BATCH_NS 500000

/* The state of a loader with another number of workers during a replay. */
struct replay_loader {
	int64_t count;      /* number of workers */
	double crowd;       /* factor by which a batch takes longer because workers share processors */
	int64_t *free_ns;   /* by worker: when it finishes its batch */
	int64_t *delivered_ns;  /* by batch: when the step receives it */
	size_t next;
	int64_t making_ns;  /* time that the main process has spent so far on the next batch */
	int64_t first_ns;
};
bool replay_loader_init(struct replay_loader *loader, const struct replay *replay, int64_t workers);
void replay_loader_release(struct replay_loader *loader);
/* Returns the end of the fetch whose last node is reached at a time. */
int64_t replay_loader_fetch(struct replay_loader *loader, const struct replay *replay, int64_t time_ns);

#endif

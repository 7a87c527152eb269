/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers of a run, each reduced to what their comparison requires, so that its trace can be released before the
 * next is loaded.
 */
#ifndef OPS_ANALYZE_VIEW_DISTRIBUTED_H
#define OPS_ANALYZE_VIEW_DISTRIBUTED_H

#include <opstrobe/internal/views.h>

#include "analyze/views/view_communication.h"
#include "analyze/views/view_names.h"
#include "analyze/views/views.h"
#include "base/intern.h"

struct view_wait {
	int64_t transfer_ns;
	int64_t synchronizing_ns;
};

/* Where a worker was late in a step: the range of a collective for which another worker waited longest for this one. */
struct view_late {
	int64_t wait_ns; /* 0: no worker waited */
	uint32_t collective;
	struct ops_interval span; /* this worker's range of the collective */
};

struct view_worker {
	const char *name; /* borrowed */
	int64_t span;
	int64_t origin_ns; /* origin of its trace */
	struct ops_views views; /* steps, collectives and their ranges, devices; no trace */
	struct ops_intern texts; /* names of steps and collectives */
	struct view_names steps; /* by step, after "all": its name, or the key that represents it */
	uint32_t *names; /* by collective: its name among the texts */
	uint32_t *keys;  /* by collective: the key that identifies it among those of its name: its group, and its number
	                  * there */
	uint32_t *operations; /* by collective: equal for operations that workers perform together */
	struct view_overlap *overlaps; /* by step */
	struct view_wait *waits;
	struct view_late *lates;
	struct ops_intervals transfers; /* like views.ranges, each shortened to the duration of the transfer */
	uint32_t *order; /* collectives sorted by step or by name */
};

/* Takes ownership of the views, even if it fails. Returns false if out of memory. The caller must release the worker in
 * any case. */
bool view_worker_init(struct view_worker *worker, const struct ops_rank *about, struct ops_views *views);
void view_worker_release(struct view_worker *worker);
/* Returns the means of a worker's steps; the waits must have been measured. */
struct view_overlap view_worker_mean_overlap(const struct view_worker *worker);
struct view_wait view_worker_mean_wait(const struct view_worker *worker);

/* The rank that waits least, because the others wait for it. */
struct view_late_rank {
	size_t worker;  /* SIZE_MAX: none is late, all wait about equally long */
	double wait_ns; /* how much longer the others wait on average */
};
/* Finds the late rank of a step, "" for the average step, once the waits are measured. */
struct view_late_rank view_late_rank_find(const struct view_worker *const *workers, size_t count, struct ops_string step);

/* Measures how long the workers of one profiling cycle wait for one another, unless some do not communicate. Returns false if out of
 * memory. */
bool view_workers_measure(struct view_worker *const *workers, size_t count, bool *ret_communicate);
/* Measures the same, and writes the views of all workers of one profiling cycle together. */
bool view_write_distributed(struct view_worker *const *workers, size_t count, struct ops_json_writer *json);

#endif

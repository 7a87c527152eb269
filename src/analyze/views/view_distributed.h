/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers of a run together, each brought down to what that needs, so that its trace may go before the next comes.
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

/* What a worker did late in a step: the range of a collective for which another worker waited longest for this one. */
struct view_late {
	int64_t wait_ns; /* 0: none waited */
	uint32_t collective;
	struct ops_interval span; /* the range of this worker */
};

struct view_worker {
	const char *name; /* borrowed */
	int64_t span;
	int64_t origin_ns; /* of its trace */
	struct ops_views views; /* steps, collectives and their ranges, devices; no trace */
	struct ops_intern texts; /* names of the last two */
	struct view_names steps; /* by step, after "all": its name, or the key that represents it */
	uint32_t *names; /* by collective: its name among the texts */
	uint32_t *keys;  /* by collective: the key that identifies it among those of its name: group, and number within it */
	uint32_t *operations; /* by collective: equal for what workers do together */
	struct view_overlap *overlaps; /* by step */
	struct view_wait *waits;
	struct view_late *lates;
	struct ops_intervals transfers; /* as views.ranges, each cut to what the transfer took */
	uint32_t *order; /* collectives by step or by name */
};

/* Owns the views from here on, also if it fails because memory is out. Released in any case. */
bool view_worker_init(struct view_worker *worker, const struct ops_rank *about, struct ops_views *views);
void view_worker_release(struct view_worker *worker);
/* Writes what the workers of one span say together. */
bool view_write_distributed(struct view_worker *const *workers, size_t count, struct ops_json_writer *json);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps by phase of training: the host's time in each, and the work on devices that is launched there.
 */
#ifndef OPS_ANALYZE_VIEW_PHASES_H
#define OPS_ANALYZE_VIEW_PHASES_H

#include "analyze/views/views.h"
#include "derive/phases.h"

struct view_phase_times {
	int64_t host_ns[OPS_PHASE_COUNT];      /* their sum is the time of the step on the host */
	int64_t operators_ns[OPS_PHASE_COUNT]; /* of that, an operator runs on any thread */
	int64_t device_ns[OPS_PHASE_COUNT];    /* durations of the device work that is launched in it */
};

struct view_step_phases {
	struct view_phase_times *steps; /* by step */
	double host_ns[OPS_PHASE_COUNT]; /* averages */
	double operators_ns[OPS_PHASE_COUNT];
	double device_ns[OPS_PHASE_COUNT];
	double total_ns;
	bool known; /* some time is in a phase other than OPS_PHASE_OTHER */
};

/* False when memory is out. Released in any case. */
bool view_phases_find(const struct ops_views *views, struct view_step_phases *phases);
void view_phases_release(struct view_step_phases *phases);

/* The member "phases". */
void view_phases_write(const struct ops_views *views, const struct view_step_phases *phases, struct ops_json_writer *json);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps by phase of training: the host time of each phase, and the device work launched in it.
 */
#ifndef OPS_ANALYZE_VIEW_PHASES_H
#define OPS_ANALYZE_VIEW_PHASES_H

#include "analyze/views/views.h"
#include "derive/phases.h"

struct view_phase_times {
	int64_t host_ns[OPS_PHASE_COUNT];      /* the sum is the host time of the step */
	int64_t operators_ns[OPS_PHASE_COUNT]; /* part of it in which an operator runs on any thread */
	int64_t device_ns[OPS_PHASE_COUNT];    /* durations of the device work launched in it */
};

struct view_step_phases {
	struct view_phase_times *steps; /* by step */
	double host_ns[OPS_PHASE_COUNT]; /* averages */
	double operators_ns[OPS_PHASE_COUNT];
	double device_ns[OPS_PHASE_COUNT];
	double total_ns;
	bool known; /* at least some time is in a phase other than OPS_PHASE_OTHER */
};

/* Returns false if out of memory. The caller must release it in any case. */
bool view_phases_find(const struct ops_views *views, struct view_step_phases *phases);
void view_phases_release(struct view_step_phases *phases);

/* Writes the member "phases". */
void view_phases_write(const struct ops_views *views, const struct view_step_phases *phases, struct ops_json_writer *json);

#endif

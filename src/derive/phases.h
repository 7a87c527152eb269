/* SPDX-License-Identifier: Apache-2.0
 *
 * What phase of training the host is in: it loads data, computes the forward or the backward pass, or steps the optimizer.
 *
 *     main thread   ├ loader ┤  ├─ module ─┤ loss   ├───── backward() ─────┤  ├ optimizer ┤
 *     engine                                         ├ node ┤ ├── node ──┤
 *     phase         data loading ├─ forward ──────┤  ├───── backward ───┤    optimizer
 */
#ifndef OPS_DERIVE_PHASES_H
#define OPS_DERIVE_PHASES_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/intervals.h"
#include "derive/steps.h"

enum ops_phase {
	OPS_PHASE_DATA_LOADING,
	OPS_PHASE_FORWARD,
	OPS_PHASE_BACKWARD,
	OPS_PHASE_OPTIMIZER,
	OPS_PHASE_OTHER, /* none of these */
	OPS_PHASE_COUNT
};

struct ops_phase_range {
	int64_t start_ns;
	int64_t end_ns;
	enum ops_phase phase; /* never OPS_PHASE_OTHER */
};

/* Disjoint ranges in order of start. */
struct ops_phases {
	OPS_ARRAY(struct ops_phase_range) ranges;
	int64_t (*before_ns)[OPS_PHASE_OTHER]; /* by range: time of each phase in the earlier ones */
};

/* Finds the phases of the threads that have steps, or of all threads in a trace without steps. Returns false if out of
 * memory. The caller must release the phases in any case. */
bool ops_phases_find(struct ops_phases *phases, const struct ops_trace *trace, const struct ops_steps *steps);
void ops_phases_release(struct ops_phases *phases);

enum ops_phase ops_phase_at(const struct ops_phases *phases, int64_t time_ns);
/* Adds up the time of each phase within a range. The sum over all phases is the length of the range. */
void ops_phases_within(const struct ops_phases *phases, struct ops_interval range, int64_t ret_ns[OPS_PHASE_COUNT]);
/* Finds the parts of the phases that also lie in one of the merged intervals. As ops_phases_find(). */
bool ops_phases_intersect(const struct ops_phases *phases, const struct ops_intervals *merged, struct ops_phases *ret_common);

/* Returns "data_loading", "forward", …, a static string. */
const char *ops_phase_name(enum ops_phase phase);
const char *ops_phase_title(enum ops_phase phase); /* the same for texts: "data loading" */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How the kernel scheduled each step: what a recording's metadata "machine" says of the thread that ended it
 * (recording/host_info.py of the package).
 */
#ifndef OPS_DERIVE_WAITS_H
#define OPS_DERIVE_WAITS_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/array.h"

struct ops_step_wait {
	int64_t number; /* of the step: 12 of "ProfilerStep#12" */
	int64_t ran_ns;
	int64_t waited_ns;          /* ready to run, but another thread had the processor */
	int64_t children_waited_ns; /* that of the child process that waited longest */
	int64_t faults;             /* pages of memory that it touched first */
};

/* In order of steps, as recorded. Empty if the trace has none. */
struct ops_step_waits {
	OPS_ARRAY(struct ops_step_wait) items;
};

/* False when memory is out. Released in any case. */
bool ops_step_waits_read(struct ops_step_waits *waits, const struct ops_trace *trace);
void ops_step_waits_release(struct ops_step_waits *waits);

/* The next entry of that number from `*cursor` on, which begins at 0 and moves behind it; NULL if there is none. */
const struct ops_step_wait *ops_step_waits_find(const struct ops_step_waits *waits, int64_t number, size_t *cursor);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Which call launched which device work, and which operator made the call.
 *
 *     aten::mm         ├───────────────────┤   owner of both
 *     cudaLaunchKernel      ├───────┤          call of the kernel: same correlation, or an arrow
 *     stream 7                         ├─ kernel ─┤
 */
#ifndef OPS_DERIVE_LAUNCHES_H
#define OPS_DERIVE_LAUNCHES_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "trace/kinds.h"

/* Returns true if the launcher of a row is a call: device work, waits of a device, and jobs that some devices show
 * instead of kernels. */
static inline bool ops_row_is_launched(const struct ops_events *events, size_t row)
{
	uint8_t kind = events->kind[row];

	return ops_kind_is_work(kind) || ((kind == OPS_EVENT_SYNC || kind == OPS_EVENT_OTHER || kind == OPS_EVENT_GPU_USER_ANNOTATION) &&
	                                  events->correlation && events->correlation[row] >= 0);
}

/* By row: the row that launched it; OPS_NONE if nothing did or the trace does not contain the launcher. The result is
 * kept with the trace. Returns NULL if out of memory.
 *
 * - Device work: the row of its call. Several calls can have the work's correlation, such as a runtime call and the driver call
 *   inside it: the first one that starts work counts. For work without a correlation, the row that an arrow
 *   comes from.
 *   Synchronisations of a device and jobs (ops_row_is_launched): the call with their correlation.
 * - A call: the operator (OPS_EVENT_CPU_OP, also a folded one, but not a step) that made it. That is the one that the
 *   call's external id names, if the ids of the file name operators that run when the calls are made, else the innermost
 *   one around the call.
 * - An operator, since arrows may come from it: its own row. */
const uint32_t *ops_launchers(const struct ops_trace *trace);

/* Returns by track the start of the first work whose launch is in the trace; INT64_MIN if there is none. Earlier work
 * without a launch was queued before the recording. The caller frees the result. Returns NULL if out of memory. */
int64_t *ops_first_launched(const struct ops_trace *trace, const uint32_t *launchers);

static inline bool ops_was_queued_before(const struct ops_events *events, const uint32_t *launchers, const int64_t *first_launched,
                                         size_t row)
{
	return ops_kind_is_work(events->kind[row]) && launchers[row] == OPS_NONE &&
	       events->start_ns[row] < first_launched[events->track[row]];
}

/* Returns the operator that launched the work of a row; OPS_NONE if its call or the operator of the call is unknown. */
static inline uint32_t ops_launching_operator(const uint32_t *launchers, size_t work)
{
	return launchers[work] == OPS_NONE ? OPS_NONE : launchers[launchers[work]];
}

#endif

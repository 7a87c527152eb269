/* SPDX-License-Identifier: Apache-2.0
 *
 * Which call launched which work of a device, and which operator made the call.
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

/* Whether a row has a launcher that is a call: work, that a device waits, and jobs that some devices show instead of kernels. */
static inline bool ops_row_is_launched(const struct ops_events *events, size_t row)
{
	uint8_t kind = events->kind[row];

	return ops_kind_is_work(kind) || ((kind == OPS_EVENT_SYNC || kind == OPS_EVENT_OTHER || kind == OPS_EVENT_GPU_USER_ANNOTATION) &&
	                                  events->correlation && events->correlation[row] >= 0);
}

/* By row, what launched it; OPS_NONE for nothing, and for what the trace does not have. Kept with the trace; NULL when memory is
 * out.
 *
 * - Work has the row of its call. Of several calls with the work's correlation, as a call of the runtime and that of the driver
 *   inside it, it is the one that starts first of those that start work. Work without a correlation has the row that an arrow
 *   comes from.
 *   Synchronisations of a device and jobs (ops_row_is_launched) likewise have that of their correlation.
 * - A call has the operator (OPS_EVENT_CPU_OP, folded ones, too; no step) that made it: the one that the call's external id
 *   names, where the ids of the file name operators that run when the calls are made, else the innermost one around the call.
 * - An operator, which arrows may come from, has its own row. */
const uint32_t *ops_launchers(const struct ops_trace *trace);

/* The operator that launched the work of a row; OPS_NONE if its call or the operator of that is not known. */
static inline uint32_t ops_launching_operator(const uint32_t *launchers, size_t work)
{
	return launchers[work] == OPS_NONE ? OPS_NONE : launchers[launchers[work]];
}

#endif

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

/* Whether a row is work that something launches: a kernel, a copy or a fill. */
static inline bool ops_kind_is_work(uint8_t kind)
{
	return kind == OPS_EVENT_KERNEL || kind == OPS_EVENT_GPU_MEMCPY || kind == OPS_EVENT_GPU_MEMSET;
}

static inline bool ops_kind_is_call(uint8_t kind)
{
	return kind == OPS_EVENT_RUNTIME || kind == OPS_EVENT_DRIVER;
}

/* By row: the row of the call that launched it, OPS_NONE for what is no work and for work whose launch is not in the trace.
 * Of several calls with the work's correlation, as a call of the runtime and that of the driver inside it, it is the one that
 * starts first of those that start work. Work without a correlation has the call that an arrow comes from. Freed with
 * ops_free; NULL when memory is out. */
uint32_t *ops_launching_calls(const struct ops_trace *trace);

/* By row of a call: the row of the operator (OPS_EVENT_CPU_OP, folded ones, too; no step) that made it, OPS_NONE for none; by
 * row of an operator, which arrows may come from, that row. It is the operator that the call's external id names, where the ids
 * of the file name operators that run when the calls are made, else the innermost one around the call. Freed with ops_free;
 * NULL when memory is out. */
uint32_t *ops_calling_operators(const struct ops_trace *trace);

#endif

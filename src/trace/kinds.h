/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of events by what they are for.
 */
#ifndef OPS_TRACE_KINDS_H
#define OPS_TRACE_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

/* Work of a device that something launches: a kernel, a copy or a fill. */
static inline bool ops_kind_is_work(uint8_t kind)
{
	return kind == OPS_EVENT_KERNEL || kind == OPS_EVENT_GPU_MEMCPY || kind == OPS_EVENT_GPU_MEMSET;
}

/* A call of a device's runtime or driver. */
static inline bool ops_kind_is_call(uint8_t kind)
{
	return kind == OPS_EVENT_RUNTIME || kind == OPS_EVENT_DRIVER;
}

#endif

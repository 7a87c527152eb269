/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of event kinds.
 */
#ifndef OPS_TRACE_KINDS_H
#define OPS_TRACE_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

/* Returns whether events of the kind are device work that a call launches: kernels, copies and fills. */
static inline bool ops_kind_is_work(uint8_t kind)
{
	return kind == OPS_EVENT_KERNEL || kind == OPS_EVENT_GPU_MEMCPY || kind == OPS_EVENT_GPU_MEMSET;
}

/* Returns whether events of the kind are calls of a device's runtime or driver. */
static inline bool ops_kind_is_call(uint8_t kind)
{
	return kind == OPS_EVENT_RUNTIME || kind == OPS_EVENT_DRIVER;
}

#endif

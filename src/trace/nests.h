/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows nest: they have a parent if another row of the thread is around them. Others are in no tree, and run next to what else runs on the
 * thread: hidden rows, asynchronous ones, and instants.
 */
#ifndef OPS_TRACE_NESTS_H
#define OPS_TRACE_NESTS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

/* The same for a row whose columns are still being built. */
static inline bool ops_row_nests(uint16_t flags, uint8_t kind)
{
	return !(flags & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)) && kind != OPS_EVENT_CPU_INSTANT;
}

static inline bool ops_event_nests(const struct ops_events *events, size_t row)
{
	return ops_row_nests(events->flags[row], events->kind[row]);
}

#endif

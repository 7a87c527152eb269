/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows nest: they have a parent if another row of the thread is around them. Others are in no tree, and run beside what else runs on the
 * thread: hidden rows, asynchronous ones, and instants.
 */
#ifndef OPS_TRACE_NESTS_H
#define OPS_TRACE_NESTS_H

#include <stdbool.h>

#include <opstrobe/trace.h>

static inline bool ops_event_nests(const struct ops_events *events, size_t row)
{
	return !(events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)) && events->kind[row] != OPS_EVENT_CPU_INSTANT;
}

#endif

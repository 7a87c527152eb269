/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of a trace are shown in tables and lists.
 */
#ifndef OPS_ANALYZE_VISIBLE_H
#define OPS_ANALYZE_VISIBLE_H

#include <stdbool.h>

#include <opstrobe/trace.h>

static inline bool ops_event_visible(const struct ops_events *events, size_t row)
{
	return !(events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_FOLDED));
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows around rows; see around.h. Parents come before their children.
 */
#include "derive/around.h"

#include "base/alloc.h"

uint32_t *ops_rows_around(const struct ops_trace *trace, ops_is_such *is_such, const void *context)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t *around = ops_alloc_none(events->count + 1);

	for (uint32_t row = 0; around && row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (parent != OPS_NONE)
			around[row] = is_such(context, parent) ? parent : around[parent];
	}
	return around;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls launch device work.
 */
#include "analyze/launch/launches.h"

#include "base/alloc.h"
#include "derive/calls.h"

static enum launch_kind launch_kinds_kind_of(struct ops_string name)
{
	unsigned call = ops_call_of(name);

	if (call & OPS_CALL_LAUNCH)
		return LAUNCH_KERNEL;
	return call & (OPS_CALL_COPY | OPS_CALL_SET) ? LAUNCH_MEMORY : LAUNCH_NONE;
}

uint8_t *launch_kinds(const struct event_table *table)
{
	size_t count = ops_trace_string_count(table->trace);
	uint8_t *kinds = ops_alloc_zeroed(count + 1, 1);

	for (uint32_t i = 0; kinds && i < count; i++)
		kinds[i] = (uint8_t)launch_kinds_kind_of(ops_trace_string(table->trace, i));
	return kinds;
}

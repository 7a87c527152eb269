/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls launch.
 */
#include "analyze/launch/launches.h"

#include "base/alloc.h"

static enum launch_kind kind_of(struct ops_string name)
{
	static const char *const memory[] = {"cudaMemcpyAsync", "cudaMemsetAsync", "hipMemcpyAsync", "hipMemsetAsync",
	                                     "hipMemcpyWithStream"};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (ops_string_is(name, memory[i]))
			return LAUNCH_MEMORY;
	if (ops_string_is(name, "runFunction - job_prep_and_submit_for_execution"))
		return LAUNCH_KERNEL;
	if (!ops_string_starts(name, "cu") && !ops_string_starts(name, "hip"))
		return LAUNCH_NONE;
	return ops_string_contains(name, "LaunchKernel") || ops_string_contains(name, "LaunchCooperativeKernel") ||
	                       ops_string_contains(name, "GraphLaunch")
	               ? LAUNCH_KERNEL
	               : LAUNCH_NONE;
}

uint8_t *launch_kinds(const struct event_table *table)
{
	size_t count = ops_trace_string_count(table->trace);
	uint8_t *kinds = ops_alloc_zeroed(count + 1, 1);

	for (uint32_t i = 0; kinds && i < count; i++)
		kinds[i] = (uint8_t)kind_of(ops_trace_string(table->trace, i));
	return kinds;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Python profile functions that record nothing: the least that a profiler of Python calls can cost this way, without and with the
 * time of each event. No header of Python is needed: all arguments are ignored.
 */
#include <opstrobe/internal/collector.h>

int empty_hook(void *object, void *frame, int what, void *argument)
{
	(void)object, (void)frame, (void)what, (void)argument;
	return 0;
}

int clock_hook(void *object, void *frame, int what, void *argument)
{
	static volatile uint64_t last_ticks;

	(void)object, (void)frame, (void)what, (void)argument;
	last_ticks = ops_ticks(1);
	return 0;
}

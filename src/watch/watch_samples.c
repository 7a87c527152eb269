/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of a thread's stack: see watch_samples.h.
 */
#include "watch/watch_samples.h"

#include <string.h>

void watch_samples_clear(struct watch_samples *samples)
{
	samples->total = samples->kinds = samples->collecting = 0;
}

static bool is_same_stack(const struct ops_stack *a, const struct ops_stack *b)
{
	if (a->count != b->count || a->state != b->state || a->system_call != b->system_call)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (a->frames[i].line != b->frames[i].line || strcmp(a->frames[i].function, b->frames[i].function) != 0 ||
		    strcmp(a->frames[i].file, b->frames[i].file) != 0)
			return false;
	return true;
}

void watch_samples_add(struct watch_samples *samples, const struct ops_stack *stack, bool collects)
{
	uint32_t at = 0;

	samples->total++;
	samples->collecting += collects;
	while (at < samples->kinds && !is_same_stack(&samples->stacks[at], stack))
		at++;
	if (at == WATCH_SAMPLES_MAX)
		return; /* counted only in the total */
	if (at == samples->kinds) {
		samples->stacks[samples->kinds++] = *stack;
		samples->counts[at] = 0;
	}
	samples->counts[at]++;
}

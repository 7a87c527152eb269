/* SPDX-License-Identifier: Apache-2.0
 *
 * Subtracts from all rows the time that the program loses only in this recording: waits for a processor that other programs use
 * (advice_waits.c), and imports, since a module is imported once in a process, when it is first used.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

static void lose_imports(struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->zone[row] & ADVICE_IN_IMPORT)
			advice->lost_ns[row] = advice->self_ns[row];
}

/* Also corrects the rows around each row. Children come after their parents. */
static bool subtract_from_rows(struct advice *advice)
{
	int64_t *below_ns = ops_alloc_zeroed(advice->events->count + 1, sizeof(*below_ns));

	for (uint32_t row = (uint32_t)advice->events->count; below_ns && row-- > 0;) {
		uint32_t parent = advice->events->parent[row];

		below_ns[row] = ops_sum(below_ns[row], advice->lost_ns[row]);
		advice->self_ns[row] = ops_difference(advice->self_ns[row], advice->lost_ns[row]);
		advice->ns[row] = ops_difference(advice->ns[row], below_ns[row]);
		if (advice->ns[row] < 0)
			advice->ns[row] = 0;
		if (parent != OPS_NONE)
			below_ns[parent] = ops_sum(below_ns[parent], below_ns[row]);
	}
	ops_free(below_ns);
	return below_ns != NULL;
}

bool advice_subtract_lost(struct advice *advice)
{
	if (!advice_find_lost_waits(advice))
		return false;
	/* With devices and several ranks, times are those of the recording, since the others wait as well. */
	if (!advice->views->device_events.count && !advice->views->has_collectives)
		lose_imports(advice);
	return subtract_from_rows(advice);
}

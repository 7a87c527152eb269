/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rules have explained so far: time that one took, no later one tells of again.
 */
#include <string.h>

#include "analyze/advice/advice.h"

int64_t advice_left_ns(const struct advice *advice, uint32_t row)
{
	int64_t ns = ops_difference(advice_ns(advice, row), advice->claimed_ns[row]);

	return ns > 0 ? ns : 0;
}

int64_t advice_backward_left_ns(const struct advice *advice, uint32_t row)
{
	int64_t ns = ops_difference(advice->backward_ns[row], advice->backward_taken_ns[row]);

	return ns > 0 ? ns : 0;
}

int64_t advice_take(struct advice *advice, uint32_t row, double share)
{
	int64_t ns = (int64_t)((double)advice_left_ns(advice, row) * share);
	int64_t backward_ns = (int64_t)((double)advice_backward_left_ns(advice, row) * share);

	advice->taken_ns[row] = ops_sum(advice->taken_ns[row], ns);
	advice->backward_own_taken_ns[row] = ops_sum(advice->backward_own_taken_ns[row], backward_ns);
	advice->unsettled = true;
	return ops_sum(ns, backward_ns);
}

void advice_take_self(struct advice *advice, uint32_t row, int64_t ns)
{
	advice->taken_ns[row] = ops_sum(advice->taken_ns[row], ns);
	advice->self_taken_ns[row] = ops_sum(advice->self_taken_ns[row], ns);
	advice->unsettled = true;
}

int64_t advice_claim(struct advice *advice, uint32_t row)
{
	advice->claimed[row] = 1;
	return advice_take(advice, row, 1);
}

/* Down for what is claimed, since a row stands behind its parent; up for the sums. */
void advice_settle(struct advice *advice)
{
	size_t count = advice->events->count;

	if (!advice->unsettled)
		return;
	advice->unsettled = false;
	memcpy(advice->claimed_ns, advice->taken_ns, count * sizeof(*advice->claimed_ns));
	memcpy(advice->backward_taken_ns, advice->backward_own_taken_ns, count * sizeof(*advice->backward_taken_ns));
	for (uint32_t row = 0; row < count; row++) {
		uint32_t parent = advice->events->parent[row];

		advice->claimed[row] |= parent != OPS_NONE && advice->claimed[parent];
	}
	for (uint32_t row = (uint32_t)count; row-- > 0;) {
		uint32_t parent = advice->events->parent[row];

		if (parent == OPS_NONE)
			continue;
		advice->claimed_ns[parent] = ops_sum(advice->claimed_ns[parent], advice->claimed_ns[row]);
		advice->backward_taken_ns[parent] = ops_sum(advice->backward_taken_ns[parent], advice->backward_taken_ns[row]);
	}
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * When the steps begin that are compared with each other.
 */
#include "analyze/advice/advice.h"
#include "base/search.h"

#define BEATS_MAX 4096 /* what happens again and again is seen in fewer */

bool advice_beats_find(const struct advice *advice, struct advice_beats *beats)
{
	bool done = true;

	for (size_t i = 0; done && advice->real_steps && i < advice->views->steps.count && i <= BEATS_MAX; i++)
		done = OPS_ARRAY_APPEND(&beats->starts_ns, advice->views->steps.items[i].host_start_ns);
	return done;
}

uint32_t advice_beat_of(const struct advice_beats *beats, const struct advice *advice, uint32_t row)
{
	size_t at = 0;

	OPS_LOWER_BOUND(at, beats->starts_ns.count, i, beats->starts_ns.items[i] <= advice->events->start_ns[row]);
	return at ? (uint32_t)at - 1 : 0;
}

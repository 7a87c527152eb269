/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps that are compared with each other.
 */
#include "analyze/advice/advice.h"
#include "base/search.h"

#define BEATS_MAX 4096 /* what happens again and again is seen in fewer */

size_t advice_beats(const struct advice *advice)
{
	size_t steps = advice->real_steps ? advice->views->steps.count : 0;

	return steps <= BEATS_MAX ? steps : BEATS_MAX + 1;
}

uint32_t advice_beat_of(const struct advice *advice, uint32_t row)
{
	size_t at = 0;

	OPS_LOWER_BOUND(at, advice_beats(advice), i, advice->views->steps.items[i].host_start_ns <= advice->events->start_ns[row]);
	return at ? (uint32_t)at - 1 : 0;
}

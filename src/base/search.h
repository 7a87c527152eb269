/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary search over anything that can be indexed.
 */
#ifndef OPS_BASE_SEARCH_H
#define OPS_BASE_SEARCH_H

#include <stddef.h>

/* Increases `low`, a variable of type size_t, to the first index for which `before`, an expression in the index `i`, is false, or
 * to `high` if there is none. Indexes for which it is true must come first.
 *
 *     size_t at = 0;
 *
 *     OPS_LOWER_BOUND(at, count, i, times_ns[i] < time_ns);
 */
#define OPS_LOWER_BOUND(low, high, i, before)                                                      \
	for (size_t high_ = (high); (low) < high_;) {                                              \
		size_t i = (low) + (high_ - (low)) / 2;                                            \
                                                                                                   \
		if (before)                                                                        \
			(low) = i + 1;                                                             \
		else                                                                               \
			high_ = i;                                                                 \
	}

#endif

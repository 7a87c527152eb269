/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary search over anything that can be indexed.
 */
#ifndef OPS_BASE_SEARCH_H
#define OPS_BASE_SEARCH_H

#include <stddef.h>
#include <stdlib.h>

#include "base/text.h"

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

static inline int ops_search_compare_name(const void *name, const void *entry)
{
	return ops_string_compare(*(const struct ops_string *)name, ops_string_of(*(const char *const *)entry));
}

/* Finds the entry of a name in a table that is sorted by strcmp and whose entries begin with their name, a const char *. Returns
 * NULL if there is none. */
static inline const void *ops_search_name(struct ops_string name, const void *entries, size_t count, size_t size)
{
	return bsearch(&name, entries, count, size, ops_search_compare_name);
}

#endif

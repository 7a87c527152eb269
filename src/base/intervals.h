/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of time as sorted lists of intervals: union, intersection, difference. All are linear but the sort.
 */
#ifndef OPS_BASE_INTERVALS_H
#define OPS_BASE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops_interval {
	int64_t start_ns;
	int64_t end_ns;
};

struct ops_intervals {
	struct ops_interval *items;
	size_t count;
	size_t capacity;
};

void ops_intervals_release(struct ops_intervals *intervals);
/* Frees the memory that no interval needs. */
void ops_intervals_trim(struct ops_intervals *intervals);
/* Adds one behind the others, as it is. False when memory is out. */
bool ops_intervals_push(struct ops_intervals *intervals, int64_t start_ns, int64_t end_ns);
/* Adds one to a merged list of which none starts later: joined with the last where they touch. */
bool ops_intervals_merge(struct ops_intervals *intervals, int64_t start_ns, int64_t end_ns);
/* Sorts and merges: afterwards the list is a set. */
void ops_intervals_sort(struct ops_intervals *intervals);

int64_t ops_intervals_length(const struct ops_intervals *merged);
/* Length of what both have, and of what lies in the interval. */
int64_t ops_intervals_common(const struct ops_intervals *merged, const struct ops_intervals *other);
/* `*cursor` starts at 0 and may only go on to later intervals. */
int64_t ops_intervals_within(const struct ops_intervals *merged, int64_t start_ns, int64_t end_ns, size_t *cursor);
/* What both have, and what the first alone has; into an empty list. */
bool ops_intervals_intersect(const struct ops_intervals *merged, const struct ops_intervals *other,
                             struct ops_intervals *ret_both);
bool ops_intervals_subtract(const struct ops_intervals *merged, const struct ops_intervals *other,
                            struct ops_intervals *ret_left);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of time as sorted lists of intervals: union, intersection, difference. Functions of lists are linear, except for sorting.
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
/* Frees unused memory of the list. */
void ops_intervals_trim(struct ops_intervals *intervals);
/* Appends an interval unchanged. Returns false if out of memory. */
bool ops_intervals_push(struct ops_intervals *intervals, int64_t start_ns, int64_t end_ns);
/* Appends an interval to a merged list in which none starts later; merges it with the last one if they touch. */
bool ops_intervals_merge(struct ops_intervals *intervals, int64_t start_ns, int64_t end_ns);
/* Sorts and merges the list, which is then a set. */
void ops_intervals_sort(struct ops_intervals *intervals);

int64_t ops_intervals_length(const struct ops_intervals *merged);
/* Return the length of the intersection of two sets, and of a set with an interval. */
int64_t ops_intervals_common(const struct ops_intervals *merged, const struct ops_intervals *other);
/* `*cursor` is initially 0; later calls must be for later intervals. */
int64_t ops_intervals_within(const struct ops_intervals *merged, int64_t start_ns, int64_t end_ns, size_t *cursor);
/* The lengths of the parts of a set within ranges that overlap, in any order: each takes a binary search, not a walk over the
 * intervals in it. The set must not change meanwhile. */
struct ops_interval_sums {
	const struct ops_intervals *merged;
	int64_t *before_ns; /* by interval: length of the earlier ones */
};

/* Returns false if out of memory. */
bool ops_interval_sums_init(struct ops_interval_sums *sums, const struct ops_intervals *merged);
void ops_interval_sums_release(struct ops_interval_sums *sums);
int64_t ops_interval_sums_within(const struct ops_interval_sums *sums, int64_t start_ns, int64_t end_ns);
/* Store the intersection of two sets, and their difference, in an empty list. */
bool ops_intervals_intersect(const struct ops_intervals *merged, const struct ops_intervals *other,
                             struct ops_intervals *ret_both);
bool ops_intervals_subtract(const struct ops_intervals *merged, const struct ops_intervals *other,
                            struct ops_intervals *ret_left);

#endif

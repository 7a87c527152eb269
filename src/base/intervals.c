/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of time as sorted lists of intervals; see intervals.h.
 */
#include "base/intervals.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/search.h"

void ops_intervals_release(struct ops_intervals *intervals)
{
	OPS_ARRAY_RELEASE(intervals);
}

void ops_intervals_trim(struct ops_intervals *intervals)
{
	struct ops_interval *items = NULL;

	if (intervals->count)
		items = ops_realloc_array(intervals->items, intervals->count, sizeof(*items));
	if (!items)
		return;
	intervals->items = items;
	intervals->capacity = intervals->count;
}

bool ops_intervals_push(struct ops_intervals *intervals, int64_t start_ns, int64_t end_ns)
{
	struct ops_interval *interval = OPS_ARRAY_PUSH(intervals);

	if (!interval)
		return false;
	*interval = (struct ops_interval){start_ns, end_ns};
	return true;
}

bool ops_intervals_merge(struct ops_intervals *intervals, int64_t start_ns, int64_t end_ns)
{
	struct ops_interval *last = intervals->count ? &intervals->items[intervals->count - 1] : NULL;

	if (!last || start_ns > last->end_ns)
		return ops_intervals_push(intervals, start_ns, end_ns);
	if (end_ns > last->end_ns)
		last->end_ns = end_ns;
	return true;
}

static int intervals_compare(const void *a, const void *b)
{
	const struct ops_interval *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

void ops_intervals_sort(struct ops_intervals *intervals)
{
	size_t count = intervals->count;

	if (count)
		qsort(intervals->items, count, sizeof(*intervals->items), intervals_compare);
	intervals->count = 0;
	/* The list is read ahead of the write position, and never grows. */
	for (size_t i = 0; i < count; i++) {
		struct ops_interval interval = intervals->items[i];

		ops_intervals_merge(intervals, interval.start_ns, interval.end_ns);
	}
}

int64_t ops_intervals_length(const struct ops_intervals *merged)
{
	int64_t length_ns = 0;

	for (size_t i = 0; i < merged->count; i++)
		length_ns += merged->items[i].end_ns - merged->items[i].start_ns;
	return length_ns;
}

static int64_t intervals_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Calls `take` with every interval of the intersection. */
static bool each_common(const struct ops_intervals *a, const struct ops_intervals *b,
                        bool (*take)(void *context, int64_t start_ns, int64_t end_ns), void *context)
{
	size_t i = 0, j = 0;

	while (i < a->count && j < b->count) {
		int64_t start_ns = intervals_later(a->items[i].start_ns, b->items[j].start_ns);
		int64_t end_ns = earlier(a->items[i].end_ns, b->items[j].end_ns);

		if (start_ns < end_ns && !take(context, start_ns, end_ns))
			return false;
		if (a->items[i].end_ns < b->items[j].end_ns)
			i++;
		else
			j++;
	}
	return true;
}

static bool add_length(void *context, int64_t start_ns, int64_t end_ns)
{
	*(int64_t *)context += end_ns - start_ns;
	return true;
}

int64_t ops_intervals_common(const struct ops_intervals *merged, const struct ops_intervals *other)
{
	int64_t length_ns = 0;

	each_common(merged, other, add_length, &length_ns);
	return length_ns;
}

int64_t ops_intervals_within(const struct ops_intervals *merged, int64_t start_ns, int64_t end_ns, size_t *cursor)
{
	int64_t length_ns = 0;

	while (*cursor < merged->count && merged->items[*cursor].end_ns <= start_ns)
		++*cursor;
	for (size_t i = *cursor; i < merged->count && merged->items[i].start_ns < end_ns; i++) {
		int64_t from_ns = intervals_later(merged->items[i].start_ns, start_ns);
		int64_t to_ns = earlier(merged->items[i].end_ns, end_ns);

		if (to_ns > from_ns)
			length_ns += to_ns - from_ns;
	}
	return length_ns;
}

bool ops_interval_sums_init(struct ops_interval_sums *sums, const struct ops_intervals *merged)
{
	*sums = (struct ops_interval_sums){merged, ops_realloc_array(NULL, merged->count + 1, sizeof(*sums->before_ns))};
	if (!sums->before_ns)
		return false;
	sums->before_ns[0] = 0;
	for (size_t i = 0; i < merged->count; i++)
		sums->before_ns[i + 1] = sums->before_ns[i] + merged->items[i].end_ns - merged->items[i].start_ns;
	return true;
}

void ops_interval_sums_release(struct ops_interval_sums *sums)
{
	ops_free(sums->before_ns);
	sums->before_ns = NULL;
}

int64_t ops_interval_sums_within(const struct ops_interval_sums *sums, int64_t start_ns, int64_t end_ns)
{
	const struct ops_intervals *merged = sums->merged;
	size_t first = 0, end;

	OPS_LOWER_BOUND(first, merged->count, i, merged->items[i].end_ns <= start_ns);
	end = first;
	OPS_LOWER_BOUND(end, merged->count, i, merged->items[i].start_ns < end_ns);
	if (first == end)
		return 0;
	return sums->before_ns[end] - sums->before_ns[first] - (intervals_later(start_ns, merged->items[first].start_ns) - merged->items[first].start_ns) -
	       (merged->items[end - 1].end_ns - earlier(end_ns, merged->items[end - 1].end_ns));
}

static bool intervals_push(void *context, int64_t start_ns, int64_t end_ns)
{
	return ops_intervals_push(context, start_ns, end_ns);
}

bool ops_intervals_intersect(const struct ops_intervals *merged, const struct ops_intervals *other,
                             struct ops_intervals *ret_both)
{
	return each_common(merged, other, intervals_push, ret_both);
}

bool ops_intervals_subtract(const struct ops_intervals *merged, const struct ops_intervals *other,
                            struct ops_intervals *ret_left)
{
	size_t j = 0;

	for (size_t i = 0; i < merged->count; i++) {
		int64_t at_ns = merged->items[i].start_ns;
		int64_t end_ns = merged->items[i].end_ns;

		while (j < other->count && other->items[j].end_ns <= at_ns)
			j++;
		for (size_t k = j; k < other->count && other->items[k].start_ns < end_ns; k++) {
			if (other->items[k].start_ns > at_ns && !ops_intervals_push(ret_left, at_ns, other->items[k].start_ns))
				return false;
			at_ns = intervals_later(at_ns, other->items[k].end_ns);
		}
		if (at_ns < end_ns && !ops_intervals_push(ret_left, at_ns, end_ns))
			return false;
	}
	return true;
}

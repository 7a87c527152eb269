/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of time as sorted lists of spans.
 */
#include "analyze/views/view_spans.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/array.h"

void view_spans_release(struct view_spans *spans)
{
	OPS_ARRAY_RELEASE(spans);
}

void view_spans_trim(struct view_spans *spans)
{
	struct view_span *items = spans->count ? ops_realloc_array(spans->items, spans->count, sizeof(*items)) : NULL;

	if (!items)
		return;
	spans->items = items;
	spans->capacity = spans->count;
}

bool view_spans_push(struct view_spans *spans, int64_t start_ns, int64_t end_ns)
{
	struct view_span *span = OPS_ARRAY_PUSH(spans);

	if (!span)
		return false;
	*span = (struct view_span){start_ns, end_ns};
	return true;
}

bool view_spans_merge(struct view_spans *spans, int64_t start_ns, int64_t end_ns)
{
	struct view_span *last = spans->count ? &spans->items[spans->count - 1] : NULL;

	if (!last || start_ns > last->end_ns)
		return view_spans_push(spans, start_ns, end_ns);
	if (end_ns > last->end_ns)
		last->end_ns = end_ns;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct view_span *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

void view_spans_settle(struct view_spans *spans)
{
	size_t count = spans->count;

	if (count)
		qsort(spans->items, count, sizeof(*spans->items), compare);
	spans->count = 0;
	/* The list is read ahead of where it is written, and never grows. */
	for (size_t i = 0; i < count; i++) {
		struct view_span span = spans->items[i];

		view_spans_merge(spans, span.start_ns, span.end_ns);
	}
}

int64_t view_spans_length(const struct view_spans *merged)
{
	int64_t length_ns = 0;

	for (size_t i = 0; i < merged->count; i++)
		length_ns += merged->items[i].end_ns - merged->items[i].start_ns;
	return length_ns;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Calls `take` with every stretch that both have. */
static bool each_common(const struct view_spans *a, const struct view_spans *b,
                        bool (*take)(void *context, int64_t start_ns, int64_t end_ns), void *context)
{
	size_t i = 0, j = 0;

	while (i < a->count && j < b->count) {
		int64_t start_ns = later(a->items[i].start_ns, b->items[j].start_ns);
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

int64_t view_spans_common(const struct view_spans *merged, const struct view_spans *other)
{
	int64_t length_ns = 0;

	each_common(merged, other, add_length, &length_ns);
	return length_ns;
}

int64_t view_spans_within(const struct view_spans *merged, int64_t start_ns, int64_t end_ns, size_t *cursor)
{
	int64_t length_ns = 0;

	while (*cursor < merged->count && merged->items[*cursor].end_ns <= start_ns)
		++*cursor;
	for (size_t i = *cursor; i < merged->count && merged->items[i].start_ns < end_ns; i++) {
		int64_t from_ns = later(merged->items[i].start_ns, start_ns);
		int64_t to_ns = earlier(merged->items[i].end_ns, end_ns);

		if (to_ns > from_ns)
			length_ns += to_ns - from_ns;
	}
	return length_ns;
}

static bool push(void *context, int64_t start_ns, int64_t end_ns)
{
	return view_spans_push(context, start_ns, end_ns);
}

bool view_spans_intersect(const struct view_spans *merged, const struct view_spans *other, struct view_spans *ret_both)
{
	return each_common(merged, other, push, ret_both);
}

bool view_spans_subtract(const struct view_spans *merged, const struct view_spans *other, struct view_spans *ret_left)
{
	size_t j = 0;

	for (size_t i = 0; i < merged->count; i++) {
		int64_t at_ns = merged->items[i].start_ns;
		int64_t end_ns = merged->items[i].end_ns;

		while (j < other->count && other->items[j].end_ns <= at_ns)
			j++;
		for (size_t k = j; k < other->count && other->items[k].start_ns < end_ns; k++) {
			if (other->items[k].start_ns > at_ns && !view_spans_push(ret_left, at_ns, other->items[k].start_ns))
				return false;
			at_ns = later(at_ns, other->items[k].end_ns);
		}
		if (at_ns < end_ns && !view_spans_push(ret_left, at_ns, end_ns))
			return false;
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of time as sorted lists of spans: union, intersection, difference. All linear.
 */
#ifndef OPS_ANALYZE_VIEW_SPANS_H
#define OPS_ANALYZE_VIEW_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view_span {
	int64_t start_ns;
	int64_t end_ns;
};

struct view_spans {
	struct view_span *items;
	size_t count;
	size_t capacity;
};

void view_spans_release(struct view_spans *spans);
/* Gives back what no span needs. */
void view_spans_trim(struct view_spans *spans);
/* Behind the others, as it is. False when memory is out. */
bool view_spans_push(struct view_spans *spans, int64_t start_ns, int64_t end_ns);
/* Into a merged list whose spans do not start later: joined with the last where they touch. */
bool view_spans_merge(struct view_spans *spans, int64_t start_ns, int64_t end_ns);
/* Sorts and merges. */
void view_spans_settle(struct view_spans *spans);

int64_t view_spans_length(const struct view_spans *merged);
/* Length of what both have, and of what the span has. */
int64_t view_spans_common(const struct view_spans *merged, const struct view_spans *other);
/* `*cursor` starts at 0 and may only go on to later spans. */
int64_t view_spans_within(const struct view_spans *merged, int64_t start_ns, int64_t end_ns, size_t *cursor);
/* What both have, and what the first alone has; into an empty list. */
bool view_spans_intersect(const struct view_spans *merged, const struct view_spans *other, struct view_spans *ret_both);
bool view_spans_subtract(const struct view_spans *merged, const struct view_spans *other, struct view_spans *ret_left);

#endif

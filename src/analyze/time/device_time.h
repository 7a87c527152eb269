/* SPDX-License-Identifier: Apache-2.0
 *
 * When the devices of a rank were busy, and with which classes of work.
 */
#ifndef OPS_ANALYZE_DEVICE_TIME_H
#define OPS_ANALYZE_DEVICE_TIME_H

#include "analyze/analysis.h"
#include "base/intern.h"
#include "base/intervals.h"

#define DEVICE_ALL_CLASSES ((1u << EVENT_CLASS_COUNT) - 1)

/* Finds the merged intervals during which work of the classes (one bit each) ran. The caller releases them. Returns
 * false if out of memory. */
bool device_spans(const struct event_table *table, unsigned classes, struct ops_intervals *ret_spans);

/* Figures of all events of one name; durations are in nanoseconds. */
struct name_sum {
	struct ops_string name;
	const char *type; /* class of the work; "" for annotations */
	int64_t rank;
	int64_t sum_ns, max_ns, min_ns;
	uint64_t count;
	double deviation_ns; /* sample standard deviation; 0 for a single event */
};

struct name_sums {
	OPS_ARRAY(struct name_sum) items;
	struct ops_intern names; /* owns the names, so the trace may be freed */
};

struct name_limits {
	int64_t names;  /* at most this many names of a rank and type, */
	double ratio;   /* and only as many as make up this share of their time; the remaining ones are "others" */
	const struct ops_string *allowed; /* names that contain one are always kept */
	size_t allowed_count;
};

/* Adds the sums of rows of one type. Returns false if out of memory. */
bool name_sums_add(struct name_sums *sums, const struct event_table *table, const uint32_t *rows, size_t count,
                   const char *type, const struct name_limits *limits);
void name_sums_release(struct name_sums *sums);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * When the devices of a rank were busy, and with what.
 */
#ifndef OPS_ANALYZE_DEVICE_TIME_H
#define OPS_ANALYZE_DEVICE_TIME_H

#include "analyze/analysis.h"
#include "base/intern.h"
#include "base/intervals.h"

#define DEVICE_ALL_CLASSES ((1u << EVENT_CLASS_COUNT) - 1)

/* Times at which work of the classes (a bit each) ran: merged. False when memory is out; released by the caller. */
bool device_spans(const struct event_table *table, unsigned classes, struct ops_intervals *ret_spans);

/* Figures of all that has one name: durations in nanoseconds. */
struct name_sum {
	struct ops_string name;
	const char *type; /* class of the work; "" for annotations */
	int64_t rank;
	int64_t sum_ns, max_ns, min_ns;
	uint64_t count;
	double deviation_ns; /* of the sample; 0 for a single one */
};

struct name_sums {
	OPS_ARRAY(struct name_sum) items;
	struct ops_intern names; /* owns them: the trace they are from may go */
};

struct name_limits {
	int64_t names;  /* at most this many names of a rank and type, */
	double ratio;   /* and no more than make up this part of their time; the remaining ones are "others" */
	struct ops_string allowed; /* a list of texts: names that hold one are kept in any case; or null */
};

/* Adds the sums of the rows, which all are of one type. False when memory is out. */
bool name_sums_add(struct name_sums *sums, const struct event_table *table, const uint32_t *rows, size_t count,
                   const char *type, const struct name_limits *limits);
void name_sums_release(struct name_sums *sums);

#endif

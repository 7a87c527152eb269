/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of an incident as JSON: what was known when it happened. ops_incident_report makes a report of them.
 */
#ifndef OPS_WATCH_FACTS_H
#define OPS_WATCH_FACTS_H

#include <opstrobe/internal/watch.h>

#include "base/json_writer.h"
#include "watch/watch_samples.h"
#include "watch/watch_task.h"

struct watch_step {
	int64_t number; /* -1: unknown */
	int64_t duration_ns; /* so far, if it has not ended */
	int64_t median_ns;
	int64_t limit_ns; /* beyond which it was slow; 0: unknown */
	bool goes_on;
};

/* NULL, 0 and -1 mean unknown. */
struct watch_facts {
	enum ops_trigger trigger;
	int64_t time_ns; /* wall clock */
	const struct ops_watch_page *page;
	int64_t tid; /* thread of the incident */
	const struct watch_step *step;
	int64_t quiet_ns; /* time without progress */
	const struct watch_samples *samples;
	const struct watch_task *over; /* what the thread did after the step exceeded the limit */
	int64_t over_ns;               /* duration of that */
	int64_t collecting_ns;         /* garbage collections in that time */
	const struct watch_memory *memory;
	const struct ops_watch_sample *threads;
	struct ops_string members; /* further members, JSON */
	struct ops_string native;  /* native stacks of all threads, JSON */
	const uint64_t *suppressed; /* by trigger: number of incidents that were not reported */
};

void watch_facts_write(const struct watch_facts *facts, struct ops_buffer *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of an incident as JSON: what was known when it happened, from which ops_incident_report makes a report.
 */
#ifndef OPS_WATCH_FACTS_H
#define OPS_WATCH_FACTS_H

#include <opstrobe/internal/watch.h>

#include "base/json_writer.h"
#include "watch/watch_samples.h"
#include "watch/watch_task.h"

struct watch_step {
	int64_t number; /* -1 unknown */
	int64_t duration_ns; /* so far, if it goes on */
	int64_t median_ns;
	bool goes_on;
};

/* NULL, 0 and -1 denote what is unknown. */
struct watch_facts {
	enum ops_trigger trigger;
	int64_t time_ns; /* wall clock */
	const struct ops_watch_page *page;
	int64_t tid; /* where it happened */
	const struct watch_step *step;
	int64_t quiet_ns; /* without progress */
	const struct watch_samples *samples;
	const struct watch_task *over; /* what the thread did while the step took too long, */
	int64_t over_ns;               /* and how long that was */
	int64_t collecting_ns;         /* of it, in garbage collections */
	const struct watch_memory *memory;
	const struct ops_watch_sample *threads;
	struct ops_string members; /* more of them, JSON */
	const uint64_t *suppressed; /* by trigger */
};

void watch_facts_write(const struct watch_facts *facts, struct ops_buffer *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps compared with each other: median, 95th percentile, the steps that take much longer and what they did more of, and
 * how long steps waited for a processor.
 */
#ifndef OPS_ANALYZE_VIEW_STEP_STATS_H
#define OPS_ANALYZE_VIEW_STEP_STATS_H

#include "analyze/views/view_phases.h"
#include "analyze/views/views.h"
#include "derive/waits.h"

#define VIEW_OUTLIERS_MAX 5
#define VIEW_CAUSES_MAX 4
#define VIEW_WAITED_MUCH 0.1 /* a share of the steps' time from which on the machine disturbed the figures */

/* Finds how each step was scheduled (`number` is -1 where that was not recorded), and the share of the time of these steps in
 * which they were ready to run, but other threads had the CPUs; NAN if no step says. False when memory is out. */
bool view_waits_find(const struct ops_views *views, struct ops_step_wait *ret_waits, double *ret_ratio);

/* What a step may have more of than others. */
struct view_cause {
	const char *name;  /* in JSON: "cpu_exec", "garbage_collection" */
	const char *title; /* in text: "operators", "garbage collection" */
	bool is_count;     /* calls, allocations; else nanoseconds */
	double value;
	double typical;
};

/* An event name whose own time is longer than in other steps. */
struct view_excess {
	uint32_t name; /* string id */
	double self_ns, typical_self_ns;
	double calls, typical_calls;
};

struct view_outlier {
	size_t step;
	double over_ns; /* beyond the median */
	struct view_cause causes[VIEW_CAUSES_MAX];
	size_t cause_count;
	struct view_excess excesses[VIEW_CAUSES_MAX];
	size_t excess_count;
};

struct view_step_stats {
	double median_ns;
	double p95_ns;
	struct view_outlier outliers[VIEW_OUTLIERS_MAX]; /* in order of steps, the longest of all */
	size_t outlier_count;
	size_t outliers_in_all;
	struct ops_step_wait *waits; /* by step, see view_waits_find() */
	bool has_waits;
	double waited_average_ns; /* of the steps that say */
	double waited_ratio;      /* of their time */
};

/* False when memory is out. Released in any case. */
bool view_step_stats_find(const struct ops_views *views, const struct view_step_phases *phases, struct view_step_stats *stats);
/* Likewise, but explains this step alone, as the only one of `outliers`, also if it takes no longer than others. */
bool view_step_stats_explain(const struct ops_views *views, const struct view_step_phases *phases, size_t step,
                             struct view_step_stats *stats);
void view_step_stats_release(struct view_step_stats *stats);

/* An element of "outliers". */
void view_outlier_write(const struct ops_views *views, const struct view_outlier *outlier, struct ops_json_writer *json);
/* The members "median", "p95", "outliers" and "waited_for_cpu" of the steps. */
void view_step_stats_write(const struct ops_views *views, const struct view_step_stats *stats, struct ops_json_writer *json);

#endif

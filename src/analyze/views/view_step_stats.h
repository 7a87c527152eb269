/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparison of steps: median, 95th percentile, the steps that take much longer and the likely causes, and how long
 * steps waited for a processor.
 */
#ifndef OPS_ANALYZE_VIEW_STEP_STATS_H
#define OPS_ANALYZE_VIEW_STEP_STATS_H

#include "analyze/views/view_phases.h"
#include "analyze/views/views.h"
#include "derive/waits.h"

#define VIEW_OUTLIERS_MAX 3
#define VIEW_CAUSES_MAX 4
#define VIEW_WAITED_MUCH 0.1 /* share of the steps' time above which waits matter */

/* Waits of steps for a processor. */
struct view_waited {
	double ratio;          /* share of the steps' time in which they were ready to run while other threads had the processors; NAN: unknown */
	double threads_share, children_share; /* whose threads those were: derive/waits.h */
};

/* Returns the part of the waits that the program itself causes; 0 unless it is most of them: while other programs have the processors,
 * its own threads wait for each other as well, and poll meanwhile. */
static inline double view_waited_own(struct view_waited waited)
{
	double share = waited.threads_share + waited.children_share;

	return share > 0.5 ? share : 0;
}

/* Returns whether waits for other programs distort the figures. */
static inline bool view_waited_distorts(struct view_waited waited)
{
	return waited.ratio * (1 - view_waited_own(waited)) > VIEW_WAITED_MUCH; /* not NAN */
}

/* Finds how each step was scheduled (`number` is -1 if that is unknown), and what that is of the time of these steps, which is unknown
 * if that of most steps is. Returns false if out of memory. */
bool view_waits_find(const struct ops_views *views, struct ops_step_wait *ret_waits, struct view_waited *ret_waited);
/* Whose threads had the processors, for a sentence: "other threads", or its own ones if they mostly had them. Static. */
const char *view_waited_for(struct view_waited waited);

/* A figure of which a step can have more than others. */
struct view_cause {
	const char *name;  /* name in JSON: "cpu_exec", "garbage_collection" */
	const char *title; /* name in text: "operators", "garbage collection" */
	bool is_count;     /* calls or allocations; else nanoseconds */
	double value;
	double typical;
};

/* An event name whose self time is longer than in other steps. */
struct view_excess {
	uint32_t name; /* string id */
	double self_ns, typical_self_ns;
	double calls, typical_calls;
};

struct view_outlier {
	size_t step;
	double over_ns; /* excess over the median of its kind */
	struct view_cause causes[VIEW_CAUSES_MAX];
	size_t cause_count;
	struct view_excess excesses[VIEW_CAUSES_MAX];
	size_t excess_count;
};

/* Statistics of the steps of one kind. Steps that are not iterations are one kind, OPS_ITERATION_NONE. */
struct view_step_kind {
	size_t count;
	double median_ns;
	double mean_ns;
	double p95_ns;
	double deviation_ns; /* standard deviation, estimated by the median absolute deviation, which outliers hardly
	                      * affect */
};

struct view_step_stats {
	double median_ns;
	double p95_ns;
	struct view_step_kind kinds[OPS_ITERATION_KIND_COUNT];
	struct view_outlier outliers[VIEW_OUTLIERS_MAX]; /* the longest outliers, in order of steps */
	size_t outlier_count;
	size_t outliers_in_all;
	struct ops_step_wait *waits; /* by step, see view_waits_find() */
	bool has_waits;
	double waited_average_ns; /* of the steps that have it */
	size_t waited_steps;      /* number of those */
	struct view_waited waited;
};

/* Returns false if out of memory. The caller must release it in any case. */
bool view_step_stats_find(const struct ops_views *views, const struct view_step_phases *phases, struct view_step_stats *stats);
/* Like view_step_stats_find(), but explains only this step, as the only one of `outliers`, even if it takes no longer
 * than others. */
bool view_step_stats_explain(const struct ops_views *views, const struct view_step_phases *phases, size_t step,
                             struct view_step_stats *stats);
void view_step_stats_release(struct view_step_stats *stats);

/* Writes an element of "outliers". */
void view_outlier_write(const struct ops_views *views, const struct view_outlier *outlier, struct ops_json_writer *json);
/* Writes the members "median", "p95", "outliers", "waited_for_cpu" and "kinds" of the steps. */
void view_step_stats_write(const struct ops_views *views, const struct view_step_stats *stats, struct ops_json_writer *json);

#endif

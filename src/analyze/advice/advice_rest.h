/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of the steady steps that no reported finding explains, by line of the program.
 *
 *     step  ├── claimed by findings ──┼── train.py:88 ──┼─ train.py:90 ─┼ … ┼─ outside of events ─┤
 *
 * Each nanosecond of the steps is in one of these parts, so that they add up to the step.
 */
#ifndef OPS_ANALYZE_ADVICE_REST_H
#define OPS_ANALYZE_ADVICE_REST_H

#include "analyze/advice/advice.h"

/* Time that a rule claims, kept until it is known which findings are reported. */
struct advice_explained {
	const struct advice_rule *rule;
	OPS_ARRAY(struct advice_claim) claims; /* or costs, of which the findings explain as much as they gain */
	double cost_ns;                        /* sum of costs and `outside_ns`; 0: these are claims */
	int64_t outside_ns;                    /* see struct advice_result */
};

struct advice_explanations {
	OPS_ARRAY(struct advice_explained) items;
};

/* Keeps claims and costs of a result that has findings. Returns false if out of memory. */
bool advice_explanations_add(struct advice_explanations *explanations, const struct advice_result *result);
void advice_explanations_release(struct advice_explanations *explanations);

/* Times of the rows of a trace. */
struct rest_times {
	double *self_ns; /* by row: its self time in steady steps, each nanosecond once */
	double *part;    /* by row: part of it that no claim explains */
	double all_ns;   /* sum of `self_ns`, at most the time of the steady steps */
	double exposed_ns; /* of the remaining time: only collectives run */
	double contended_ns; /* of the time after that: waits for processors that the program has */
	bool contended_explained;
	double outside_ns;   /* of the time after that: what no finding explains, in no row */
};

/* Computes the part of the time of each row that claims leave. All arrays are by row; `left_ns`: its own time, and then what claims leave of it
 * and of the rows below. */
void advice_find_parts(const struct advice *advice, const int64_t *claimed_ns, const uint8_t *whole, double *left_ns, double *part);
/* Returns false if out of memory. The caller must release the times in any case. */
bool rest_times_find(const struct advice *advice, const struct advice_explanations *explanations, size_t first, struct rest_times *times);
void rest_times_release(struct rest_times *times);
/* Returns whether findings of a rule are among those from `first` on, and their gain. */
bool rest_is_reported(const struct advice *advice, const struct advice_rule *rule, size_t first, double *ret_gain_ns);

/* Adds a trace to the report. Of the findings, those from `first` on are about it. Returns false if out of memory. */
bool advice_rest_add(const struct advice *advice, const struct advice_explanations *explanations, size_t first);
/* Computes the averages and sorts the lines. */
void advice_rest_finish(struct advice_report *report);

#define REST_SHOWN_PCT 5.0 /* minimum part of a step that is worth a section */

/* Returns whether the rest is known and large enough to be reported. */
static inline bool advice_rest_is_shown(const struct advice_rest *rest)
{
	return rest->traces && rest->lines.count && rest->pct >= REST_SHOWN_PCT;
}

/* Writes the member "not_explained" of the JSON form: null if it is not shown. */
void advice_rest_write_json(const struct advice_report *report, struct ops_json_writer *json);
/* "Not explained by a finding: 12.3 ms (61.0 % of a step)" */
#define REST_TITLE_ROOM 192
void advice_rest_title(const struct advice_report *report, char text[REST_TITLE_ROOM]);
/* Appends what a line does: "34.0 % of a step: operators; aten::mm 20.0 %, aten::add 10.0 %; …". */
void advice_rest_describe(const struct advice_report *report, const struct advice_rest_line *line, struct ops_buffer *out);
/* Returns what would show more; "" if nothing would. */
const char *advice_rest_hint(const struct advice_report *report);

#endif

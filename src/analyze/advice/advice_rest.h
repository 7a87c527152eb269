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

/* Time that the findings of a rule explain. */
struct advice_explained {
	const struct advice_rule *rule;
	OPS_ARRAY(struct advice_claim) claims; /* or costs, of which the findings explain as much as they gain */
	int64_t outside_ns;                    /* see struct advice_result */
	bool is_reported;                      /* set by advice_rest_add() */
};

/* By stage, and within a stage the largest gain first. */
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
	double exposed_ns; /* of the time in no row: only collectives run */
	double contended_ns; /* of the time after that: waits for processors that the program has */
	double outside_ns;   /* of the time after that: what no finding explains */
};

/* Computes the part of the time of each row that claims leave. All arrays are by row; `left_ns`: its own time, and then what claims leave of it
 * and of the rows below. */
void advice_find_parts(const struct advice *advice, const int64_t *claimed_ns, const uint8_t *whole, double *left_ns, double *part);
/* Limits the gains of findings to the time that they explain and no earlier one does, so that no time counts twice, and computes the times that
 * all of them leave. Returns false if out of memory. The caller must release the times in any case. */
bool rest_times_find(const struct advice *advice, struct advice_explanations *explanations, struct advice_finding *findings, size_t count,
                     struct rest_times *times);
void rest_times_release(struct rest_times *times);

/* Limits the gains of the findings about a trace, see rest_times_find(), and adds the rest to the report. Returns false if out of memory. */
bool advice_rest_add(const struct advice *advice, struct advice_explanations *explanations, struct advice_finding *findings, size_t count);
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the rules on each trace of a run in turn, then those about all ranks together.
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_rest.h"
#include "base/alloc.h"
#include "base/fault.h"

struct ops_adviser {
	struct advice_report report;
	struct advice_ranks ranks;
	bool failed; /* out of memory: the findings are incomplete */
};

struct ops_adviser *ops_adviser_new(void)
{
	return ops_alloc_zeroed(1, sizeof(struct ops_adviser));
}

void ops_adviser_free(struct ops_adviser *adviser)
{
	if (!adviser)
		return;
	advice_report_release(&adviser->report);
	advice_ranks_release(&adviser->ranks);
	ops_free(adviser);
}

/* --- traces --------------------------------------------------------------------------------------------------------- */

/* Findings of all stages, and the time that they explain. */
struct advice_found {
	struct advice_result all;
	struct advice_explanations explanations;
};

static bool add_findings(struct advice_result *to, const struct advice_result *from)
{
	for (size_t i = 0; i < from->findings.count; i++) {
		if (!OPS_ARRAY_APPEND(&to->findings, from->findings.items[i]))
			return false;
	}
	return true;
}

/* Adds the findings of all rules of a stage. */
static bool run_stage(struct advice *advice, const struct advice_rule *const *rules, size_t rule_count, enum advice_stage stage,
                      struct advice_result *results, uint8_t *claimed, struct advice_found *found)
{
	size_t count = 0;
	bool done = true;

	for (size_t i = 0; done && i < rule_count; i++) {
		if (advice->is_of_samples || advice->has_no_times || rules[i]->stage != stage || !rules[i]->find || (rules[i]->needs & advice->has) != rules[i]->needs)
			continue;
		advice->report->checked[i] = 1;
		done = advice_result_init(&results[count], rules[i], advice, advice->report, claimed) &&
		       rules[i]->find(advice, &results[count]) && !results[count].failed;
		count++;
	}
	if (done)
		advice_attribute(advice, results, count);
	for (size_t i = 0; i < count; i++) {
		done = done && add_findings(&found->all, &results[i]) && advice_explanations_add(&found->explanations, &results[i]);
		advice_result_release(&results[i]);
	}
	return done;
}

bool advice_run_rules(struct advice *advice, const struct advice_rule *const *rules, size_t count)
{
	struct advice_result *results = ops_alloc_zeroed(count, sizeof(*results));
	struct advice_found found = {0};
	uint8_t *claimed = ops_alloc_zeroed(advice->events->count + 1, 1);
	double left_pct = 100, rest_pct = advice->report->rest.pct;
	bool done = results && claimed;

	for (int stage = 0; done && stage < ADVICE_STAGES; stage++)
		done = run_stage(advice, rules, count, (enum advice_stage)stage, results, claimed, &found);
	done = done && advice_rest_add(advice, &found.explanations, found.all.findings.items, found.all.findings.count) &&
	       advice_report_add(advice->report, found.all.findings.items, found.all.findings.count, &left_pct);
	/* No time counts twice: what findings gain, and what none of them explains. */
	assert(!done || advice->report->rest.pct - rest_pct <= left_pct + 100 * (ADVICE_SHARE_MAX - 1));
	(void)rest_pct;
	if (100 - left_pct > advice->report->gained_pct)
		advice->report->gained_pct = 100 - left_pct;
	advice_result_release(&found.all);
	advice_explanations_release(&found.explanations);
	ops_free(results);
	ops_free(claimed);
	return done;
}

enum ops_code ops_adviser_add(struct ops_adviser *adviser, const struct ops_rank *rank, struct ops_error *error)
{
	size_t first = adviser->report.findings.count;
	struct advice advice;
	bool done = advice_init(&advice, rank->trace, &adviser->report, false) && advice_run_rules(&advice, advice_rules, advice_rule_count);

	adviser->report.has |= advice.has;
	done = done && (advice.incomplete || advice_ranks_add(&adviser->ranks, &advice, rank));
	if (done && !adviser->report.traces) {
		adviser->report.step_ms = advice_step_ms(&advice, (double)advice.steps_ns);
		memcpy(adviser->report.excluded_ns, advice.excluded_ns, sizeof(advice.excluded_ns));
		adviser->report.mean_ms = view_step_shown_average_ns(advice.views, VIEW_TIME_COUNT) / 1e6;
		adviser->report.steady = (uint32_t)advice.step_count;
		adviser->report.steps = advice.real_steps ? (uint32_t)advice.views->steps.count : 0;
		adviser->report.outside_ratio = view_outside_ratio(advice.views);
		adviser->report.waited.ratio = (double)NAN;
	}
	if (!(advice.machine.waited.ratio <= adviser->report.waited.ratio) && advice.machine.has_waits)
		adviser->report.waited = advice.machine.waited;
	adviser->report.incomplete += advice.incomplete;
	adviser->report.of_samples += advice.is_of_samples;
	advice_release(&advice);
	done = done && advice_explain_loader(&adviser->report, first, rank->trace);
	adviser->report.traces++;
	adviser->failed |= !done;
	return done ? OPS_OK : ops_fault_memory(error);
}

/* --- runs ----------------------------------------------------------------------------------------------------------- */

/* Adds the findings about the run. Their gains are limited to what the findings about its traces leave. */
static bool run_rank_rules(struct ops_adviser *adviser)
{
	struct advice_result all = {0};
	double left_pct = 100 - adviser->report.gained_pct;
	bool done = adviser->ranks.ranks.count == 0 || advice_ranks_finalize(&adviser->ranks);

	for (int stage = 0; done && adviser->ranks.ranks.count && stage < ADVICE_STAGES; stage++) {
		double explained_ns = 0;

		for (size_t i = 0; done && i < advice_rule_count; i++) {
			struct advice_result result;

			if (advice_rules[i]->stage != (enum advice_stage)stage || !advice_rules[i]->find_in_ranks)
				continue;
			adviser->report.checked[i] = 1;
			done = advice_result_init(&result, advice_rules[i], NULL, &adviser->report, NULL) &&
			       advice_rules[i]->find_in_ranks(&adviser->ranks, &result) && add_findings(&all, &result);
			explained_ns += result.explained_ns;
			advice_result_release(&result);
		}
		adviser->ranks.explained_ns += explained_ns;
	}
	done = done && advice_report_add(&adviser->report, all.findings.items, all.findings.count, &left_pct);
	advice_result_release(&all);
	return done;
}

/* Completes the report. */
static enum ops_code complete_report(struct ops_adviser *adviser, struct ops_error *error)
{
	if (adviser->failed || !run_rank_rules(adviser))
		return ops_fault_memory(error);
	advice_report_sort(&adviser->report);
	advice_rest_finish(&adviser->report);
	return OPS_OK;
}

enum ops_code advice_finish(struct ops_adviser *adviser, const struct advice_report **ret_report, struct ops_error *error)
{
	*ret_report = &adviser->report;
	return complete_report(adviser, error);
}

enum ops_code ops_adviser_finish(struct ops_adviser *adviser, enum ops_format format, char **ret_text, size_t *ret_size,
                                 struct ops_error *error)
{
	struct ops_buffer out = {0};
	enum ops_code code = complete_report(adviser, error);

	if (code)
		return code;
	if (format == OPS_FORMAT_JSON)
		advice_write_json(&adviser->report, &out);
	else if (format == OPS_FORMAT_CSV)
		advice_write_csv(&adviser->report, &out);
	else if (format == OPS_FORMAT_BRIEF)
		advice_write_brief(&adviser->report, &out);
	else
		advice_write_text(&adviser->report, format == OPS_FORMAT_MARKDOWN, &out);
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

enum ops_code ops_adviser_add_top(struct ops_adviser *adviser, char **text, size_t *size, struct ops_error *error)
{
	struct ops_buffer member = {0};
	struct ops_json_writer json = {.out = &member};
	enum ops_code code = complete_report(adviser, error);

	if (code)
		return code;
	advice_write_top(&adviser->report, false, &json);
	code = ops_json_object_add(text, size, &member, error);
	ops_buffer_release(&member);
	return code;
}

enum ops_code ops_advise(const struct ops_rank *ranks, size_t count, enum ops_format format, char **ret_text,
                         size_t *ret_size, struct ops_error *error)
{
	struct ops_adviser *adviser = ops_adviser_new();
	enum ops_code code = adviser ? OPS_OK : ops_fault_memory(error);

	for (size_t i = 0; !code && i < count; i++)
		code = ops_adviser_add(adviser, &ranks[i], error);
	if (!code)
		code = ops_adviser_finish(adviser, format, ret_text, ret_size, error);
	ops_adviser_free(adviser);
	return code;
}

/* --- list of traces ------------------------------------------------------------------------------------------------- */

enum ops_code ops_trace_summary(const struct ops_rank *rank, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_adviser *adviser = ops_adviser_new();
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code = adviser ? ops_adviser_add(adviser, rank, error) : ops_fault_memory(error);

	if (!code)
		code = complete_report(adviser, error);
	if (!code) {
		ops_json_open(&json, '{');
		out.failed |= !advice_write_about(rank, &json);
		advice_write_top(&adviser->report, true, &json);
		ops_json_close(&json, '}');
	}
	ops_adviser_free(adviser);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

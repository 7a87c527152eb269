/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking every rule about every trace of a run, one after the other, and then about what the ranks say together.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/fault.h"

struct ops_adviser {
	struct advice_report report;
	struct advice_ranks ranks;
	bool failed; /* memory is out: what there is is not all */
};

struct ops_adviser *ops_adviser_new(void)
{
	return ops_alloc_zeroed(1, sizeof(struct ops_adviser));
}

void ops_adviser_free(struct ops_adviser *adviser)
{
	if (!adviser)
		return;
	OPS_ARRAY_RELEASE(&adviser->report.findings);
	ops_arena_release(&adviser->report.texts);
	advice_ranks_release(&adviser->ranks);
	ops_free(adviser);
}

enum ops_code ops_adviser_add(struct ops_adviser *adviser, const struct ops_rank *rank, struct ops_error *error)
{
	struct advice advice;
	bool done = advice_init(&advice, rank->trace, &adviser->report);

	adviser->report.has |= advice.has;
	for (size_t i = 0; done && i < advice_rule_count; i++) {
		if (!advice_rules[i]->check || (advice_rules[i]->needs & advice.has) != advice_rules[i]->needs)
			continue;
		adviser->report.checked |= (uint64_t)1 << i;
		done = advice_rules[i]->check(&advice, advice_rules[i]);
		advice_settle(&advice);
	}
	done = done && (advice.incomplete || advice_ranks_add(&adviser->ranks, &advice, rank));
	if (done && advice_percent(&advice, (double)advice.gained_ns) > adviser->report.gained_pct)
		adviser->report.gained_pct = advice_percent(&advice, (double)advice.gained_ns);
	if (done && !adviser->report.traces) {
		adviser->report.step_ms = advice_step_ms(&advice, (double)advice.steps_ns);
		adviser->report.mean_ms = view_step_average_ns(&advice.views, VIEW_TIME_COUNT) / 1e6;
		adviser->report.steady = (uint32_t)advice.step_count;
		adviser->report.steps = advice.real_steps ? (uint32_t)advice.views.steps.count : 0;
	}
	adviser->report.incomplete += advice.incomplete;
	advice_release(&advice);
	adviser->report.traces++;
	adviser->failed |= !done;
	return done ? OPS_OK : ops_fault_memory(error);
}

static bool ask_ranks(struct ops_adviser *adviser)
{
	bool done = adviser->ranks.ranks.count == 0 || advice_ranks_finalize(&adviser->ranks);

	for (size_t i = 0; done && adviser->ranks.ranks.count && i < advice_rule_count; i++) {
		if (!advice_rules[i]->check_ranks)
			continue;
		adviser->report.checked |= (uint64_t)1 << i;
		done = advice_rules[i]->check_ranks(&adviser->ranks, &adviser->report, advice_rules[i]);
	}
	return done;
}

enum ops_code ops_adviser_finish(struct ops_adviser *adviser, enum ops_format format, char **ret_text, size_t *ret_size,
                                 struct ops_error *error)
{
	struct ops_buffer out = {0};

	if (adviser->failed || !ask_ranks(adviser))
		return ops_fault_memory(error);
	advice_report_sort(&adviser->report);
	if (format == OPS_FORMAT_JSON)
		advice_write_json(&adviser->report, &out);
	else if (format == OPS_FORMAT_CSV)
		advice_write_csv(&adviser->report, &out);
	else if (format == OPS_FORMAT_BRIEF)
		advice_write_brief(&adviser->report, &out);
	else
		advice_write_text(&adviser->report, format == OPS_FORMAT_MARKDOWN, &out);
	return ops_buffer_give(&out, OPS_OK, ret_text, ret_size, error);
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

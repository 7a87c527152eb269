/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording that begins with warm-up steps, which distort averages and totals.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"

#include <opstrobe/internal/format.h>
#include "base/alloc.h"

/* Minimum ratio of a slow first step to the median steady step. */
#define SLOW 3

static int64_t rule_first_steps_step_ns(const struct advice *advice, size_t i)
{
	const struct view_step *step = &advice->views->steps.items[i];

	return ops_difference(step->end_ns, step->start_ns);
}

/* Returns the median duration of the steady steps; -1 if out of memory. */
static double usual_ns(const struct advice *advice)
{
	int64_t *times = ops_realloc_array(NULL, advice->views->steps.count + 1, sizeof(*times));
	double ns = -1;

	for (size_t i = 0; times && i < advice->views->steps.count; i++)
		times[i] = rule_first_steps_step_ns(advice, i);
	if (times)
		ns = advice_typical_ns(advice, times) / (double)advice->step_count;
	ops_free(times);
	return ns;
}

static bool rule_first_steps_find(const struct advice *advice, struct advice_result *result)
{
	size_t steps = advice->views->steps.count, slow = 0;
	int64_t slow_ns = 0, all_ns = 0;
	double usual;
	char first[64];

	if (advice->step_count < 2)
		return true;
	usual = usual_ns(advice);
	while (slow < steps && !advice->steady[slow] &&
	       (double)ops_difference(rule_first_steps_step_ns(advice, slow), advice->machine.waits[slow].waited_ns) > SLOW * usual)
		slow++;
	for (size_t i = 0; i < steps; i++) {
		all_ns = ops_sum(all_ns, rule_first_steps_step_ns(advice, i));
		slow_ns = ops_sum(slow_ns, i < slow ? rule_first_steps_step_ns(advice, i) : 0);
	}
	if (!slow || usual < 0)
		return usual >= 0;
	result->always = true;
	result->severity = ADVICE_LOW;
	snprintf(first, sizeof(first), "The first %zu steps take", slow);
	return advice_report_costs(result, "%s %s of the time of %zu steps, %s%s; a steady step takes %s.", slow == 1 ? "The first step takes" : first,
	                           ops_figure_of_percent(all_ns > 0 ? 100 * (double)slow_ns / (double)all_ns : 0).text, steps,
	                           advice_time((double)slow_ns / 1e6 / (double)slow).text, slow == 1 ? "" : " each",
	                           advice_time(advice_step_ms(advice, (double)advice->steps_ns)).text);
}

const struct advice_rule advice_rule_first_steps = {
	.id = "slow-first-steps",
	.title = "The recording includes slow first steps",
	.condition = "The first steps take more than three times the median.",
	.gain = "none",
	.explanation = "The first steps allocate, choose algorithms, compile and fill caches. Advice excludes them; averages "
		       "of operators and totals of the recording do not.",
	.advice = "Record steady steps only: `opstrobe run --steps 3:11`, or schedule=opstrobe.schedule(wait=1, warmup=2, active=8). To check: "
		  "the time of the first step.",
	.code = "schedule = opstrobe.schedule(wait=1, warmup=2, active=8)",
	.link = "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.schedule",
	.needs = ADVICE_NEEDS_STEPS,
	.severity_max = ADVICE_LOW,
	.stage = ADVICE_STAGE_REST,
	.confidence = ADVICE_SURE,
	.find = rule_first_steps_find,
};

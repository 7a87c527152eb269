/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording that begins with steps which warm up: averages and totals over all of it tell of them, not of the steady ones.
 */
#include "analyze/advice/advice.h"

/* A first step of so many times the steady ones' time spoils averages. */
#define SLOW 3

static bool is_slow(const struct advice *advice, size_t i)
{
	const struct view_step *step = &advice->views.steps.items[i];

	return ops_difference(step->end_ns, step->start_ns) / SLOW > advice->steps_ns / (int64_t)advice->step_count;
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	size_t steps = advice->views.steps.count, slow = 0;
	int64_t slow_ns = 0, all_ns = 0;
	struct advice_tally tally;
	bool done;

	if (advice->step_count < 2)
		return true;
	while (slow < steps && !advice->steady[slow] && advice->machine.waits[slow].waited_ns == 0 && is_slow(advice, slow))
		slow++;
	for (size_t i = 0; i < steps; i++) {
		int64_t ns = ops_difference(advice->views.steps.items[i].end_ns, advice->views.steps.items[i].start_ns);

		all_ns = ops_sum(all_ns, ns);
		slow_ns = ops_sum(slow_ns, i < slow ? ns : 0);
	}
	if (!slow)
		return true;
	done = advice_tally_init(&tally, advice) &&
	       advice_report_add(advice, rule, &tally,
	                         (struct advice_gain){.confidence = ADVICE_SURE, .always = true, .severity = ADVICE_LOW},
	                         "the first %zu of %zu steps take %.1f %% of the time of all, %.3f ms each where a steady one takes "
	                         "%.3f ms. Gain: none; it is the figures that are wrong.", slow, steps,
	                         all_ns > 0 ? 100 * (double)slow_ns / (double)all_ns : 0, (double)slow_ns / 1e6 / (double)slow,
	                         advice_step_ms(advice, (double)advice->steps_ns));
	advice_tally_release(&tally);
	return done;
}

const struct advice_rule advice_rule_first_steps = {
	.id = "slow-first-steps",
	.title = "The recording counts slow first steps",
	.explanation = "The first steps allocate, choose algorithms, compile and fill caches. Advice leaves them out; averages of "
		       "operators and totals of the recording do not.",
	.advice = "Record steady steps only: schedule=opstrobe.schedule(wait=1, warmup=2, active=8). Check: the first step's time.",
	.code = "schedule = opstrobe.schedule(wait=1, warmup=2, active=8)",
	.link = "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.schedule",
	.needs = ADVICE_NEEDS_STEPS,
	.severity_max = ADVICE_LOW,
	.check = check,
};

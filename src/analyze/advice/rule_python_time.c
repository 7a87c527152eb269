/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the user's that compute in Python: time in steps that is in no operator, for want of a tensor operation or
 * with C functions called one by one.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* A call's own time from which a function computes instead of gluing calls together: a hundred lines of Python take less.
 * And the share of the step's below which it does not matter. */
#define CALL_NS_MIN 100000
#define SHARE_MIN 0.05

/* Between two calls of operators a function assigns, compares and looks names up, and a recording adds its own: that is no
 * computation. */
#define GLUE_NS 5000

static int64_t at_least_zero(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

/* A function of the user's, or a step. */
static bool is_own(const struct advice *advice, uint32_t row)
{
	return (advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && advice_own_site(advice, row) != OPS_NONE) ||
	       advice->views.parts[row] == VIEW_STEP;
}

/* Own time of a function that nobody has explained, and what C functions called right from it take outside of operators. */
static void gather(const struct advice *advice, int64_t *own_ns)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		bool inside = parent != OPS_NONE && is_own(advice, parent);

		if (!advice_counts(advice, row))
			continue;
		if (is_own(advice, row))
			own_ns[row] = ops_sum(own_ns[row], at_least_zero(ops_difference(advice->self_ns[row],
			                                                                advice->self_taken_ns[row])));
		else if (inside && advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION &&
		         advice_text_starts(advice_name(advice, row), "<built-in"))
			own_ns[parent] = ops_sum(own_ns[parent], at_least_zero(ops_difference(advice_left_ns(advice, row),
			                                                                     advice->operator_ns[row])));
		if (inside && advice->operator_ns[row])
			own_ns[parent] = ops_difference(own_ns[parent], GLUE_NS);
	}
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	struct advice_tally tally = {0};
	int64_t *own_ns = ops_alloc_zeroed(advice->events->count + 1, sizeof(*own_ns));
	bool done = own_ns && advice_tally_init(&tally, advice);

	if (done)
		gather(advice, own_ns);
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t site;

		if (own_ns[row] < CALL_NS_MIN || (advice->zone[row] & ADVICE_IN_LOADER) || advice_is_claimed(advice, row))
			continue;
		if ((double)own_ns[row] < SHARE_MIN * (double)advice->steps_ns / (double)(advice->step_count * 4))
			continue;
		site = advice->views.parts[row] == VIEW_STEP && advice->caller[row] != OPS_NONE
		               ? advice_own_site(advice, advice->caller[row]) : advice_own_site(advice, row);
		advice_tally_add_at(&tally, site, row, own_ns[row]);
	}
	/* In one step of many it is the machine that was busy. */
	done = done && (tally.events * 2 < advice->step_count || advice_percent(advice, (double)tally.ns) < 100 * SHARE_MIN ||
	                advice_report_add(advice, rule, &tally,
	                                  (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_LIKELY},
	                                  "functions of the program compute %.3f ms a step (%.1f %%) in Python itself, outside of "
	                                  "operators. Gain: that time, when a tensor operation or a worker does it.",
	                                  advice_step_ms(advice, (double)tally.ns), advice_percent(advice, (double)tally.ns)));
	advice_tally_release(&tally);
	ops_free(own_ns);
	return done;
}

const struct advice_rule advice_rule_python_time = {
	.id = "python-in-step",
	.title = "Python code computes within steps",
	.explanation = "Python takes some fifty nanoseconds for each operation on a number, a tensor operation less than one.",
	.advice = "Turn it into tensor operations or NumPy, do it once before the loop, or move it to the loader's workers. "
		  "Check: the function's own time in the step.",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.check = check,
};

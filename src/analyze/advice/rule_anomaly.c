/* SPDX-License-Identifier: Apache-2.0
 *
 * Anomaly detection that was left on: each forward operator formats the stack that it was called from, each backward one
 * looks for NaN in all of its results.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

enum { SWITCH = 1, STACK, SEARCH };

/* A stack is formatted by Python below an operator, and nothing else does that; checks are the engine's, beside a node. */
static bool is_anomaly(const struct advice *advice, uint32_t row, uint8_t which)
{
	if (which == STACK)
		return (advice->zone[row] & ADVICE_IN_OPERATOR) != 0;
	return which == SEARCH && (advice->zone[row] & ADVICE_IN_BACKWARD);
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"*detect_anomaly.__init__", "*format_stack", "*is_nonzero", "*isnan", "*any",
	                                       NULL};
	static const uint8_t kinds[] = {0, SWITCH, STACK, SEARCH, SEARCH, SEARCH};
	uint8_t *which = advice_names(advice, patterns);
	struct advice_tally tally = {0}, switches = {0};
	bool done = which && advice_tally_init(&tally, advice) && advice_tally_init(&switches, advice);
	uint64_t stacks = 0;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		uint8_t kind = kinds[which[advice->events->name[row]]];

		advice->claimed[row] |= parent != OPS_NONE && advice->claimed[parent];
		if (!advice_counts(advice, row) || advice->claimed[row])
			continue;
		if (kind == SWITCH)
			advice_tally_add(&switches, advice, row, 1);
		if (!is_anomaly(advice, row, kind))
			continue;
		stacks += kind == STACK;
		advice_tally_add(&tally, advice, row, advice_left_ns(advice, row));
		if (stacks)
			advice_claim(advice, row);
	}
	/* Where it is switched on in the steps, that is the place. */
	done = done && (!stacks ||
	                advice_report_add(advice, rule, switches.events ? &switches : &tally,
	                                  (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_SURE},
	                                  "%s stacks a step are formatted for operators, and %s results of the backward pass "
	                                  "are searched for NaN, in %.3f ms (%.1f %%). Gain: all of that.",
	                                  advice_average(advice, stacks).text, advice_average(advice, tally.events - stacks).text,
	                                  advice_step_ms(advice, (double)tally.ns), advice_percent(advice, (double)tally.ns)));
	advice_tally_release(&tally);
	advice_tally_release(&switches);
	ops_free(which);
	return done;
}

const struct advice_rule advice_rule_anomaly = {
	.id = "anomaly-mode",
	.title = "Anomaly detection is on",
	.explanation = "torch.autograd.set_detect_anomaly keeps the Python stack of every forward operator as text and checks every "
		       "gradient for NaN.",
	.advice = "Switch it off (torch.autograd.set_detect_anomaly(False), detect_anomaly only around the steps that are looked "
		  "into). Check: no format_stack below operators.",
	.code = "torch.autograd.set_detect_anomaly(False)",
	.link = "https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.bound = ADVICE_AT_LEAST,
	.check = check,
};

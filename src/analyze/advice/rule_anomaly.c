/* SPDX-License-Identifier: Apache-2.0
 *
 * Anomaly detection left enabled: each forward operator formats its Python stack, and each backward operator searches
 * all of its results for NaN.
 */
#include "analyze/advice/advice.h"

enum { SWITCH = 1, STACK, SEARCH };

/* Only anomaly detection formats a stack below an operator. Its checks are operators of the engine, next to a node. */
static bool is_anomaly(const struct advice *advice, uint32_t row, uint8_t which)
{
	if (which == STACK)
		return (advice->zone[row] & ADVICE_IN_OPERATOR) != 0;
	return which == SEARCH && (advice->zone[row] & ADVICE_IN_BACKWARD);
}

static const char *const names[] = {"*detect_anomaly.__init__", "*format_stack", "*is_nonzero", "*isnan", "*any",
                                       NULL};

static bool rule_anomaly_find(const struct advice *advice, struct advice_result *result)
{
	static const uint8_t kinds[] = {0, SWITCH, STACK, SEARCH, SEARCH, SEARCH};
	struct advice_tally switches = {0};
	bool done = advice_tally_init(&switches, advice);
	uint64_t stacks = 0;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		uint8_t kind = kinds[result->which[advice->events->name[row]]];

		result->claimed[row] |= parent != OPS_NONE && result->claimed[parent];
		if (!advice_counts(advice, row) || advice_is_claimed(result, row))
			continue;
		if (kind == SWITCH)
			advice_tally_add(&switches, row, 1);
		if (!is_anomaly(advice, row, kind))
			continue;
		stacks += kind == STACK;
		advice_add(result, row, advice_left_ns(advice, row));
		if (stacks)
			advice_claim(result, row);
	}
	/* If the steps enable it, the place is where they do. */
	done = done && (!stacks ||
	                advice_report_at(result, switches.events ? &switches : &result->tally, (double)result->tally.ns,
	                                 "Each step formats %s for operators and searches %s of the backward "
	                                 "pass for NaN, in %s.",
	                                 advice_counted(advice, stacks, "stack", "stacks").text,
	                                 advice_counted(advice, result->tally.events - stacks, "result", "results").text,
	                                 advice_cost(result).text));
	advice_tally_release(&switches);
	return done;
}

const struct advice_rule advice_rule_anomaly = {
	.id = "anomaly-mode",
	.title = "Anomaly detection is enabled",
	.condition = "Operators call format_stack. Checks for NaN in the backward pass count as well.",
	.gain = "the time of the formatted stacks and of the checks",
	.explanation = "torch.autograd.set_detect_anomaly formats the Python stack of every forward operator as text and "
		       "checks every gradient for NaN.",
	.advice = "Disable it, or use torch.autograd.detect_anomaly only around the steps under investigation. To check: no "
		  "operator calls format_stack.",
	.code = "torch.autograd.set_detect_anomaly(False)",
	.link = "https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.bound = ADVICE_AT_LEAST,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.names = names,
	.find = rule_anomaly_find,
};

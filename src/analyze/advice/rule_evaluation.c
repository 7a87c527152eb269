/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluations of a model in each training step: between the calls of eval() and of train().
 */
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/text.h"

#define STEPS_MIN 0.5  /* minimum share of the steps with an evaluation */
#define SHARE_MIN 0.1  /* minimum share of a step; a small check in each step is cheap */

enum { ENDS_TRAINING = 1, BEGINS_TRAINING };

static const char *const names[] = {"*: Module.eval", "*torch/nn/modules/module.py(*", NULL};

struct evaluations {
	size_t steps;       /* steps with one */
	int64_t claimed_ns; /* their time that other rules explain */
	int64_t ns;
	bool trains;        /* a step has a backward pass */
};

/* Returns whether a row is a call of the program's, of eval or of train, which eval calls as well. */
static int mode_call(const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct ops_string name = advice_name(advice, row);
	uint32_t parent = advice->events->parent[row];
	int call;

	if (!result->which[advice->events->name[row]] || !advice_counts(advice, row) ||
	    (parent != OPS_NONE && result->which[advice->events->name[parent]]))
		return 0;
	call = ops_string_ends(name, "Module.eval") || ops_string_ends(name, ": eval")      ? ENDS_TRAINING
	       : ops_string_ends(name, "Module.train") || ops_string_ends(name, ": train") ? BEGINS_TRAINING
	                                                                                   : 0;
	return call;
}

/* Adds the outermost rows between the two calls. */
static void add_evaluation(struct evaluations *all, struct advice_result *result, uint32_t from, uint32_t to)
{
	const struct advice *advice = result->advice;
	const struct ops_events *events = advice->events;
	uint32_t until = OPS_NONE;

	for (uint32_t row = from + 1; row < to; row++) {
		if (events->track[row] != events->track[from] || events->start_ns[row] < events->end_ns[from] || events->end_ns[row] > events->start_ns[to] ||
		    !advice_counts(advice, row) || (until != OPS_NONE && events->start_ns[row] < events->end_ns[until]))
			continue;
		until = row;
		if (advice_is_claimed(result, row)) {
			all->claimed_ns = ops_sum(all->claimed_ns, advice_ns(advice, row));
			continue;
		}
		all->ns = ops_sum(all->ns, advice_ns(advice, row));
		all->claimed_ns = ops_sum(all->claimed_ns, advice->claimed_ns[row]);
		advice_add(result, row, advice_claim(result, row));
	}
}

static void find_evaluations(struct evaluations *all, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	uint32_t from = OPS_NONE, last = OPS_NONE;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		int call = mode_call(result, row);

		all->trains |= advice_counts(advice, row) && (advice->zone[row] & ADVICE_IN_BACKWARD);
		if (call == ENDS_TRAINING) {
			from = row;
		} else if (call == BEGINS_TRAINING && from != OPS_NONE && advice->step_of[from] == advice->step_of[row]) {
			all->steps += last == OPS_NONE || advice->step_of[last] != advice->step_of[row];
			last = row;
			add_evaluation(all, result, from, row);
			from = OPS_NONE;
		}
	}
}

static bool rule_evaluation_find(const struct advice *advice, struct advice_result *result)
{
	struct evaluations all = {0};

	find_evaluations(&all, result);
	/* Rules with a cause, such as gradients in an evaluation, come first. */
	if (!all.trains || (double)all.steps < STEPS_MIN * (double)advice->step_count || (double)all.ns < SHARE_MIN * (double)advice->steps_ns ||
	    advice_is_explained(all.claimed_ns, ops_sum(all.ns, all.claimed_ns))) {
		result->claims.count = 0;
		return true;
	}
	return advice_report_costs(result, "%zu of %zu steps evaluate a model between eval() and train(), in %s.",
	                           all.steps, advice->step_count, advice_cost(result).text);
}

const struct advice_rule advice_rule_evaluation = {
	.id = "evaluation-in-step",
	.title = "Each training step evaluates the model",
	.condition = "In half of the training steps or more, a model is in evaluation mode for a tenth of the step or more, and no other rule explains a tenth of "
		     "that.",
	.gain = "the time between eval() and train(); an evaluation every N steps takes a part of it",
	.explanation = "A step changes the weights little, so that metrics of consecutive steps are nearly the same.",
	.advice = "Evaluate every N steps or once in an epoch, or on a small part of the validation data. To check: most steps have no evaluation.",
	.code = "if step % 500 == 0:\n"
		"    validate(model)",
	.link = "https://lightning.ai/docs/pytorch/stable/common/trainer.html#val-check-interval",
	.names = names,
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON | ADVICE_NEEDS_STEPS,
	.stage = ADVICE_STAGE_PYTHON,
	.severity_max = ADVICE_MEDIUM, /* it may be intended, as with sampling in reinforcement learning */
	.confidence = ADVICE_UNSURE,
	.bound = ADVICE_AT_MOST,
	.find = rule_evaluation_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules, optimizers and loaders that each step makes again.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define STEPS_SHARE 2 /* minimum share of the steady steps that make some: one in two */

static const char *const constructors[] = {"*.__init__", "*from_pretrained", NULL};

/* Returns the outermost constructor around a row in its step. */
static uint32_t outermost_constructor(const struct advice *advice, const uint8_t *constructs, uint32_t row)
{
	uint32_t outermost = row;

	for (uint32_t at = row; at != OPS_NONE && advice->step_of[at] == advice->step_of[row]; at = advice->events->parent[at])
		if (constructs[advice->events->name[at]] && advice->events->kind[at] == OPS_EVENT_PYTHON_FUNCTION)
			outermost = at;
	return outermost;
}

static bool rule_setup_find(const struct advice *advice, struct advice_result *result)
{
	uint8_t *constructs = advice_names(advice, constructors), *made = ops_alloc_zeroed(advice->views->steps.count + 1, 1);
	size_t steps = 0;
	bool done = constructs && made;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t outermost;

		if (!result->which[advice->events->name[row]] || !advice_counts(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD)))
			continue;
		outermost = outermost_constructor(advice, constructs, row);
		if (advice_is_claimed(result, outermost))
			continue;
		steps += !made[advice->step_of[row]];
		made[advice->step_of[row]] = 1;
		advice_add(result, outermost, advice_left_ns(advice, outermost));
		advice_claim(result, outermost);
	}
	if (steps * STEPS_SHARE < advice->step_count)
		result->claims.count = 0;
	else
		done = done && advice_report_costs(result, "Each step makes %s modules, optimizers or loaders, in %s.", advice_events(result).text,
		                                   advice_cost(result).text);
	ops_free(constructs);
	ops_free(made);
	return done;
}

const struct advice_rule advice_rule_setup = {
	.id = "setup-in-step",
	.title = "Modules or optimizers are made in each step",
	.condition = "In half of the steps or more, the program makes a torch.nn.Module, an optimizer or a DataLoader, or calls from_pretrained.",
	.gain = "the time of the calls",
	.explanation = "A module initializes its parameters, a pretrained one reads them from a file, and an optimizer that is made again has lost its "
		       "state, such as the moments of Adam.",
	.advice = "Make it once before the loop and pass it on. To change settings of an optimizer, change optimizer.param_groups. To check: no calls at the "
		  "line.",
	.code = "metric = PerceptualLoss()  # once, before the loop",
	.link = "https://docs.pytorch.org/docs/stable/optim.html",
	.names = (const char *const[]){"*: Module.__init__", "*: Optimizer.__init__", "*: DataLoader.__init__", "*from_pretrained", NULL},
	.needs = ADVICE_NEEDS_PYTHON | ADVICE_NEEDS_STEPS,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.find = rule_setup_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules, optimizers and loaders that each step or request makes again, and models that it loads.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define STEPS_SHARE 2 /* minimum share of the steady steps, or iterations, that make some: one in two */

static const char *const constructors[] = {"*.__init__", "*from_pretrained", NULL};

/* Returns the outermost constructor around a row in its step or iteration, which begins at `begin_ns`. */
static uint32_t outermost_constructor(const struct advice *advice, const uint8_t *constructs, uint32_t row, int64_t begin_ns)
{
	uint32_t outermost = row;

	for (uint32_t at = row; at != OPS_NONE && advice->events->start_ns[at] >= begin_ns; at = advice->events->parent[at])
		if (constructs[advice->events->name[at]] && advice->events->kind[at] == OPS_EVENT_PYTHON_FUNCTION)
			outermost = at;
	return outermost;
}

/* Adds what is made or loaded. Returns the number of steps or iterations that do. */
static size_t rule_setup_add(struct advice_result *result, const uint8_t *constructs, uint8_t *made)
{
	const struct advice *advice = result->advice;
	size_t count = 0;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t outermost, beat;
		int64_t begin_ns;

		if (!result->which[advice->events->name[row]] || !advice_counts(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD)))
			continue;
		beat = advice_beat_of(advice, row);
		begin_ns = advice->views->steps.items[beat].host_start_ns;
		if (advice->events->start_ns[row] < begin_ns)
			continue; /* before the first one */
		outermost = outermost_constructor(advice, constructs, row, begin_ns);
		if (advice_is_claimed(result, outermost))
			continue;
		count += !made[beat];
		made[beat] = 1;
		advice_add(result, outermost, advice_left_ns(advice, outermost));
		advice_claim(result, outermost);
	}
	return count;
}

static bool rule_setup_find(const struct advice *advice, struct advice_result *result)
{
	uint8_t *constructs = advice_names(advice, constructors), *made = ops_alloc_zeroed(advice_beats(advice) + 1, 1);
	bool done = constructs && made;

	if (done && advice_beats(advice) > 1) {
		if (rule_setup_add(result, constructs, made) * STEPS_SHARE < advice->step_count)
			result->claims.count = 0;
		else
			done = advice_report_costs(result, "%s made or loaded in each step, in %s.",
			                           advice_events(result, "module, optimizer or loader is", "modules, optimizers or loaders are").text,
			                           advice_cost(result).text);
	}
	ops_free(constructs);
	ops_free(made);
	return done;
}

const struct advice_rule advice_rule_setup = {
	.id = "setup-in-step",
	.title = "Modules or optimizers are made or loaded again and again",
	.condition = "In half of the steps or more, the program makes a torch.nn.Module, an optimizer or a DataLoader, or calls torch.load or "
		     "from_pretrained.",
	.gain = "the time of the calls",
	.explanation = "A module initializes its parameters, a pretrained one reads them from a file, and an optimizer that is made again has lost its "
		       "state, such as the moments of Adam.",
	.advice = "Make or load it once before the loop and pass it on. To change settings of an optimizer, change optimizer.param_groups. To check: no calls at the "
		  "line.",
	.code = "metric = PerceptualLoss()  # once, before the loop",
	.link = "https://docs.pytorch.org/docs/stable/optim.html",
	.names = (const char *const[]){"*: Module.__init__", "*: Optimizer.__init__", "*: DataLoader.__init__", "*torch/serialization.py(*: load",
	                                "*: load_file", "*from_pretrained", NULL},
	.needs = ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.find = rule_setup_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Serving and evaluation by a model in training mode: dropout draws random numbers, and batch norms compute and keep averages,
 * for a backward pass that never comes. It is slower, and the answers are wrong besides.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Place of the argument that says "training": dropout(input, p, train), batch_norm(input, weight, bias, running_mean,
 * running_var, training, …). */
static const char *const patterns[] = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::batch_norm", NULL};
static const size_t arguments[] = {0, 2, 2, 2, 5};

static bool trains(const struct advice *advice, uint32_t row, size_t argument)
{
	struct ops_input input;

	return advice_input(advice, row, argument, &input) && input.tag == OPS_INPUT_BOOL && input.n != 0;
}

static bool has_backward(const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER))
			return true;
	return false;
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	uint8_t *which = advice_names(advice, patterns);
	struct advice_tally tally = {0};
	uint64_t norms = 0;
	bool done = which && advice_tally_init(&tally, advice), serves = !has_backward(advice);

	for (uint32_t row = 0; done && serves && row < advice->events->count; row++) {
		uint8_t kind = which[advice->events->name[row]];

		if (!kind || !advice_counts(advice, row) || (advice->zone[row] & ADVICE_IN_OPERATOR) || advice_is_claimed(advice, row) ||
		    !trains(advice, row, arguments[kind]))
			continue;
		norms += arguments[kind] == 5;
		/* A batch norm that has its averages still scales: half of what it reads and writes stays. */
		advice_tally_add(&tally, advice, row, arguments[kind] == 5 ? advice_take(advice, row, 0.5 * advice_work_share(advice, row))
		                                      : advice_claim(advice, row));
	}
	done = done && (!tally.events ||
	                advice_report_add(advice, rule, &tally,
	                                  (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_LIKELY, .always = true,
	                                                       .severity = ADVICE_MEDIUM},
	                                  "%s dropouts and %s batch norms a step run as in training, in a program without a "
	                                  "backward pass. Gain: all of the time of dropouts, half of the norms'.",
	                                  advice_average(advice, tally.events - norms).text, advice_average(advice, norms).text));
	advice_tally_release(&tally);
	ops_free(which);
	return done;
}

const struct advice_rule advice_rule_training_mode = {
	.id = "training-mode",
	.title = "A model that does not train is in training mode",
	.explanation = "Dropout draws a random number for each element and drops what it should not, and batch norms take the average "
		       "of the batch in place of the one they learned: answers are noisy, and take longer.",
	.advice = "Call model.eval() before evaluation and serving, and model.train() when training goes on. Check: dropout is gone "
		  "from the steps.",
	.code = "model.eval()\n"
		"with torch.inference_mode():\n"
		"    out = model(x)",
	.link = "https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.severity_max = ADVICE_HIGH,
	.check = check,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributions of torch that check their parameters, and the values of which they compute the density: each check is a handful
 * of operators and a value that Python reads.
 */
#include "analyze/advice/advice.h"
#include "base/text.h"

static const char *const names[] = {"*torch/distributions/distribution.py(*", NULL};

/* The constructors of all distributions call that of Distribution, which calls operators only to check. Older versions of Python do
 * not name the class. */
static bool checks(const struct advice *advice, uint32_t row)
{
	struct ops_string name = advice_name(advice, row);

	return (ops_string_ends(name, "__init__") || ops_string_ends(name, "_validate_sample")) && advice->operator_ns[row] > 0;
}

static bool rule_distribution_find(const struct advice *advice, struct advice_result *result)
{
	for (uint32_t row = 0; row < advice->events->count; row++)
		advice_add_outermost(result, row, result->which[advice->events->name[row]] && checks(advice, row), ADVICE_IN_LOADER);
	return advice_report_costs(result, "Distributions check their arguments %s in each step, in %s.", advice_events(result, "time", "times").text,
	                           advice_cost(result).text);
}

const struct advice_rule advice_rule_distribution = {
	.id = "distribution-checks",
	.title = "Distributions check their arguments",
	.condition = "Objects of torch.distributions call operators to check parameters and samples.",
	.gain = "the time of the checks",
	.explanation = "Each check compares all elements, reduces the answers, and reads the result in Python, which waits for a device. For "
		       "small batches, as in reinforcement learning, the checks take longer than the density itself.",
	.advice = "Create them with validate_args=False, or call torch.distributions.Distribution.set_default_validate_args(False), once the "
		  "program works. To check: no calls of constraints in steps.",
	.code = "torch.distributions.Distribution.set_default_validate_args(False)",
	.link = "https://docs.pytorch.org/docs/stable/distributions.html#torch.distributions.distribution.Distribution.set_default_validate_args",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.names = names,
	.find = rule_distribution_find,
};

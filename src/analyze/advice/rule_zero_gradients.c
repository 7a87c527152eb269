/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that are set to zero and then added to, although autograd could have replaced them by the new gradient.
 *
 *     aten::zero_ ──▶ zeros ──AccumulateGrad adds to them──▶ gradient
 */
#include "analyze/advice/advice.h"

/* Returns the zeros that a row adds to; OPS_NONE: none. */
static uint32_t zeros_before(const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[row].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[row].first + i];

		if (use->kind == DATA_UPDATES && advice->contents[use->value].kind == CONTENT_ZEROS && !advice->contents[use->value].bytes)
			return advice->contents[use->value].origin;
	}
	return OPS_NONE;
}

static bool rule_zero_gradients_find(const struct advice *advice, struct advice_result *result)
{
	uint64_t gradients = 0;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t origin;

		if (!(advice->flow->memory.rows.context[row] & MEMORY_IN_ACCUMULATE) || !advice_counts(advice, row) || advice_is_claimed(result, row))
			continue;
		origin = zeros_before(advice, row);
		if (origin == OPS_NONE)
			continue;
		gradients++;
		advice_add_at(result, advice->site[origin], origin, advice_claim(result, row));
		if (advice_counts(advice, origin) && !advice_is_claimed(result, origin))
			advice_add(result, origin, advice_claim(result, origin));
	}
	return advice_report_costs(result, "%s added to zeros. Writing and adding take %s.",
	                           advice_counted(advice, gradients, "gradient in each step is", "gradients in each step are").text,
	                           advice_cost(result).text);
}

const struct advice_rule advice_rule_zero_gradients = {
	.id = "zero-filled-gradients",
	.title = "Gradients are set to zero and added to",
	.condition = "Autograd adds a gradient to memory that an operator has set to zero and nothing has written since.",
	.gain = "the operators that write the zeros and those that add to them",
	.explanation = "Without an earlier gradient, autograd keeps the new one as it is. With zeros it reads both and writes the sum.",
	.advice = "Call zero_grad() with its default set_to_none=True, or set p.grad = None. Code that reads p.grad must expect None. To check: no "
		  "aten::zero_ in steps.",
	.code = "optimizer.zero_grad()  # in place of optimizer.zero_grad(set_to_none=False)",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_SURE,
	.find = rule_zero_gradients_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Products in a type for which the processor has no instructions, such as bfloat16 under autocast on many CPUs.
 */
#include "analyze/advice/advice.h"
#include "base/json_walk.h"
#include "trace/inputs.h"

/* Minimum share of the steps. */
#define SHARE_MIN 0.05

/* What torch runs if the library of optimized convolutions refuses a type. */
static const char *const fallbacks[] = {"aten::_slow_conv2d_forward", "aten::slow_conv3d_forward", NULL};

/* Types that are narrower than float32, by their names in the metadata. */
static const struct narrow {
	uint8_t dtype;
	const char *name;
} narrows[] = {{OPS_DTYPE_BFLOAT16, "bfloat16"}, {OPS_DTYPE_HALF, "float16"}};
#define NARROWS (sizeof(narrows) / sizeof(*narrows))

/* The recorder lists the types that the processor emulates ("emulated_types" in the metadata "recording"). */
static bool lists_type(const struct ops_trace *trace, const char *name)
{
	struct ops_string recording, list;

	return ops_trace_find_metadata(trace, "recording", &recording) && ops_json_find_typed(recording, "emulated_types", '[', &list) &&
	       ops_json_lists(list, name);
}

/* Returns the type among the narrow ones of the first tensor that an operator reads; NARROWS: another. */
static size_t narrow_of(const struct advice *advice, uint32_t row)
{
	uint8_t dtype = 0;
	size_t i = 0;

	if (advice_elements(advice, row, &dtype) < 0)
		return NARROWS;
	while (i < NARROWS && dtype != narrows[i].dtype)
		i++;
	return i;
}

/* Other recordings show it by the fallbacks. The last element stays false. */
static void find_emulated(const struct advice_result *result, bool ret_emulated[NARROWS + 1])
{
	const struct advice *advice = result->advice;

	for (size_t i = 0; i < NARROWS; i++)
		ret_emulated[i] = lists_type(advice->trace, narrows[i].name);
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (result->which[advice->events->name[row]])
			ret_emulated[narrow_of(advice, row)] = true;
	ret_emulated[NARROWS] = false;
}

/* Attention is left out: its kernel for the CPU converts blocks of numbers, and is about as fast as with float32. */
static bool multiplies(const struct advice *advice, uint32_t row)
{
	enum operator_kind kind = operator_rows[advice->operators[advice->events->name[row]]].kind;

	return (kind == OPERATOR_PRODUCT || kind == OPERATOR_CONVOLUTION || kind == OPERATOR_RECURRENT) && advice_is_operator(advice, row) &&
	       !advice->device_ns[row];
}

static bool rule_emulated_find(const struct advice *advice, struct advice_result *result)
{
	bool emulated[NARROWS + 1];
	size_t first = NARROWS;

	find_emulated(result, emulated);
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		size_t narrow;

		/* Under autocast the product is in an operator of the same name on float32. Its backward pass counts with it. */
		result->claimed[row] |= parent != OPS_NONE && result->claimed[parent];
		if (!advice_counts(advice, row) || (advice->zone[row] & ADVICE_IN_BACKWARD) || advice_is_claimed(result, row) || !multiplies(advice, row))
			continue;
		narrow = narrow_of(advice, row);
		if (!emulated[narrow])
			continue;
		first = first < NARROWS ? first : narrow;
		advice_add(result, row, advice_claim(result, row));
	}
	if (first == NARROWS || (double)result->tally.ns < SHARE_MIN * (double)advice->steps_ns) {
		result->claims.count = 0;
		return true;
	}
	return advice_report_costs(result, "%s with %s, for which this CPU has no instructions, in %s with "
	                                   "the backward pass.",
	                           advice_events(result, "product or convolution in each step computes", "products and convolutions in each step compute").text,
	                           narrows[first].name, advice_cost(result).text);
}

const struct advice_rule advice_rule_emulated = {
	.id = "emulated-type",
	.title = "The CPU emulates the type of matrix products",
	.condition = "Matrix products, convolutions or recurrent layers on the CPU have inputs of type bfloat16 or float16, for 5 % of the steps or "
		     "more. The recording lists the type as one without instructions, or a convolution falls back to the implementation for all types.",
	.gain = "the time of these operators, with their backward pass; float32 takes some of it",
	.explanation = "A CPU without instructions for a narrow type converts each number, or computes without vectors. On a CPU with AVX2 only, products "
		       "and convolutions in bfloat16 and float16 take 6 to 110 times as long as in float32.",
	.advice = "Compute in float32 on this CPU: leave out torch.autocast(\"cpu\"), .bfloat16() and .half(), or enable them only "
		  "where /proc/cpuinfo lists avx512_bf16 or amx_bf16. To check: no 'c10::BFloat16' among the input types.",
	.code = "with torch.autocast(\"cpu\", enabled=has_bfloat16):\n    loss = criterion(model(images), labels)",
	.link = "https://docs.pytorch.org/docs/stable/amp.html#cpu-op-specific-behavior",
	.names = fallbacks,
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_NUMBERS,
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_MOST,
	.find = rule_emulated_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators on double precision numbers, which often come from NumPy or Python unintentionally.
 */
#include "analyze/advice/advice.h"
#include "trace/inputs.h"

/* With fewer elements the type does not affect the time. */
#define ELEMENTS_MIN 4096

static const char *const widening[] = {"*: Module.double", "<built-in method double *", "<built-in method from_numpy of *", NULL};

static bool rule_double_find(const struct advice *advice, struct advice_result *result)
{
	bool narrower = false; /* other operators compute with fewer bits */

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint8_t dtype = 0;

		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_LOADER)) || !advice->events->self_ns ||
		    advice_elements(advice, row, &dtype) < ELEMENTS_MIN)
			continue;
		narrower |= dtype == OPS_DTYPE_HALF || dtype == OPS_DTYPE_FLOAT || dtype == OPS_DTYPE_BFLOAT16;
		if (dtype != OPS_DTYPE_DOUBLE)
			continue;
		/* float32 has half the bytes, and a vector register holds twice as many numbers. */
		advice_add_share(result, row, 0.5 * advice_work_share(advice, row));
	}
	/* A program that computes with nothing else, such as a simulation, may need the precision. */
	if (!narrower)
		result->confidence = ADVICE_UNSURE;
	advice_list_calls(result, widening);
	return advice_report_costs(result, "%s with float64, in %s with the backward pass.",
	                           advice_events(result, "operator in each step computes", "operators in each step compute").text,
	                           advice_time(2 * advice_step_ms(advice, (double)result->tally.ns)).text);
}

const struct advice_rule advice_rule_double = {
	.id = "float64",
	.title = "Computation uses double precision",
	.condition = "Operators have float64 inputs of 4096 elements or more.",
	.gain = "half of their time, with the backward pass",
	.explanation = "float64 takes twice the memory and time of float32, and 32 or 64 times the time on most GPUs. It often "
		       "comes from the default type of NumPy. Where nothing computes with a narrower type, the program may "
		       "need the precision, and confidence is low.",
	.advice = "Convert the data on input: torch.from_numpy(a).float(), or dtype=torch.float32. Look for .double() and "
		  "torch.set_default_dtype. To check: no 'double' among the input types.",
	.link = "https://docs.pytorch.org/docs/stable/tensor_attributes.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_WIDTH,
	.confidence = ADVICE_LIKELY,
	.find = rule_double_find,
};

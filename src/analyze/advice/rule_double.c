/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators on double precision numbers, which mostly come from NumPy or Python by accident.
 */
#include "analyze/advice/advice.h"

/* c10::ScalarType::Double. */
#define DOUBLE 7
/* Below so many elements the type makes no difference to the time. */
#define ELEMENTS_MIN 4096

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	struct advice_tally tally;
	bool done = advice_tally_init(&tally, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint8_t dtype = 0;

		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_LOADER)) || !advice->events->self_ns ||
		    advice_elements(advice, row, &dtype) < ELEMENTS_MIN || dtype != DOUBLE)
			continue;
		/* Numbers of half the size: half the memory, and twice as many in a vector register. */
		advice_tally_add(&tally, advice, row, advice_take(advice, row, 0.5 * advice_work_share(advice, row)));
	}
	done = done && advice_report_add(advice, rule, &tally,
	                                 (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_LIKELY},
	                                 "%s operators a step compute with float64, %.3f ms with their backward pass. Gain: half "
	                                 "of it, since float32 has half the bytes and twice the numbers a register.",
	                                 advice_average(advice, tally.events).text, 2 * advice_step_ms(advice, (double)tally.ns));
	advice_tally_release(&tally);
	return done;
}

const struct advice_rule advice_rule_double = {
	.id = "float64",
	.title = "Computation in double precision",
	.explanation = "float64 takes twice the memory and time of float32, on most GPUs 32 or 64 times. NumPy's default type "
		       "brings it in.",
	.advice = "Convert where the data come in: torch.from_numpy(a).float(), or dtype=torch.float32; look for .double() and "
		  "torch.set_default_dtype. Check: no 'double' among the input types.",
	.link = "https://docs.pytorch.org/docs/stable/tensor_attributes.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.severity_max = ADVICE_HIGH,
	.check = check,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products and convolutions of integers on the CPU, for which torch has plain loops: the libraries for matrix products
 * compute with floating point.
 *
 *     mm of int64   0.6 GFLOP/s, where the machine reaches 345 with float32
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "analyze/roofline/roof.h"
#include "trace/inputs.h"

#define FLOPS_MIN 10000000 /* below that, calls and conversions count, too */
#define RATIO_MIN 6.0      /* minimum time relative to the bound of float32, which takes up to three times that, with two conversions */

/* Finds the shortest time of float32 for the work of a row; and its FLOPs. Returns false for anything but an outermost product or
 * convolution of integers, and if its demand is unknown or small. */
static bool integers_bound(const struct advice *advice, const struct roof *roof, uint32_t row, double *ret_bound_ns, double *ret_flops)
{
	enum operator_kind kind = advice_kind(advice, row);
	const struct ops_demand *demand = &advice->demands[row];

	if ((kind != OPERATOR_PRODUCT && kind != OPERATOR_CONVOLUTION) || !advice_counts(advice, row) || advice->device_ns[row] ||
	    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_LOADER)) ||
	    !demand->bytes || demand->dtype > OPS_DTYPE_INT64 || demand->flops < FLOPS_MIN)
		return false;
	*ret_flops = (double)demand->flops;
	*ret_bound_ns = fmax(roof_compute_ns(roof, ROOF_FLOAT32, *ret_flops), roof_memory_ns(roof, (double)demand->bytes, (double)advice_ns(advice, row)));
	return roof->flops[ROOF_FLOAT32] > 0;
}

static bool rule_integers_find(const struct advice *advice, struct advice_result *result)
{
	uint32_t longest = OPS_NONE;
	double flops = 0;
	struct roof roof;

	roof_of_cpu(advice->trace, &roof);
	for (uint32_t row = 0; row < advice->events->count; row++) {
		double ns = (double)advice_ns(advice, row), bound_ns, of_row;

		if (!integers_bound(advice, &roof, row, &bound_ns, &of_row) || advice_is_claimed(result, row) || ns < RATIO_MIN * bound_ns)
			continue;
		advice_add_share(result, row, 1 - bound_ns / ns);
		if (longest == OPS_NONE || ns > (double)advice_ns(advice, longest)) {
			longest = row;
			flops = of_row;
		}
	}
	return longest == OPS_NONE ||
	       advice_report_costs(result, "Each step computes %s. The longest, %s, reaches %s GFLOP/s; with float32 the machine reaches %s.",
	                           advice_events(result, "product of integers", "products of integers").text,
	                           advice_name(advice, longest).bytes,
	                           ops_figure_of_number(flops / (double)advice_ns(advice, longest)).text, ops_figure_of_number(roof.flops[ROOF_FLOAT32] / 1e9).text);
}

const struct advice_rule advice_rule_integers = {
	.id = "integer-products",
	.title = "Matrix products of integers",
	.condition = "Matrix products and convolutions of integers with ten million FLOPs or more, on the CPU, take six times as long as float32 would at the "
		     "measured speed of the machine.",
	.gain = "the difference to float32 at the measured speed",
	.explanation = "For integers, torch has plain loops on the CPU. The libraries for matrix products, which use vector and matrix instructions and caches, compute "
		       "with floating point.",
	.advice = "Convert the factors to float32, which has all integers up to 16,777,216, or to float64, up to 9e15, and the product back if integers are needed. "
		  "Large tensors of mostly zeros: torch.bincount, scatter_add, or a sparse product. To check: the GFLOP/s of the operator in `opstrobe roofline`.",
	.code = "counts = (bought.float().T @ bought.float()).long()",
	.link = "https://docs.pytorch.org/docs/stable/type_info.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_ROOF,
	.stage = ADVICE_STAGE_NUMBERS,
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_MOST,
	.find = rule_integers_find,
};

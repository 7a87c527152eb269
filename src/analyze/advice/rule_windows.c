/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of windows that overlap, each of which reads all elements of its window again.
 *
 *     [4, 110, 110] ──unfold──▶ view [4, 96, 96, 15, 15] ──mean──▶ [4, 96, 96]     each element is read 225 times
 */
#include <math.h>

#include "analyze/advice/advice.h"

#define WINDOW_MIN 8          /* minimum number of times that an element is read */
#define ELEMENTS_MIN 65536    /* minimum number of elements read */
#define PASSES_LEFT 4.0       /* gain: passes over windows in one dimension that remain */

struct windows {
	double most;           /* largest number of times */
	uint64_t count;
	struct ops_input tensor;
};

/* Returns how often each element of a tensor occurs in it because two of its dimensions have the same stride; 1: once. */
static double times_read(const struct ops_input *tensor)
{
	double window = 1;

	if (tensor->tag != OPS_INPUT_TENSOR)
		return 1;
	for (size_t i = 0; i < tensor->n; i++) {
		int64_t size = ops_input_int(tensor, i), stride = ops_input_int(tensor, tensor->n + i), other = 1;

		for (size_t k = 0; k < i; k++)
			if (size > 1 && stride > 0 && ops_input_int(tensor, tensor->n + k) == stride && ops_input_int(tensor, k) > 1)
				other = ops_input_int(tensor, k) < size ? ops_input_int(tensor, k) : size;
		window *= (double)other;
	}
	return window;
}

static bool rule_windows_find(const struct advice *advice, struct advice_result *result)
{
	struct windows all = {.most = 0};

	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct ops_input input;
		double window;

		if (!result->which[advice->events->name[row]] || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
		    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD | ADVICE_IN_LOADER)) || !advice_input(advice, row, 0, &input) ||
		    advice_input_elements(&input) < ELEMENTS_MIN)
			continue;
		window = times_read(&input);
		if (window < WINDOW_MIN)
			continue;
		all.count++;
		if (window > all.most) {
			all.most = window;
			all.tensor = input;
		}
		/* Windows in two dimensions can be reduced in one after the other. */
		advice_add_share(result, row, (1 - PASSES_LEFT / (PASSES_LEFT + sqrt(window))) * advice_work_share(advice, row));
	}
	return !all.count ||
	       advice_report_costs(result, "%s windows that overlap, with each element up to %s times: %s, in %s.",
	                           advice_counted(advice, all.count, "operator in each step reduces", "operators in each step reduce").text,
	                           ops_figure_of_number(round(all.most)).text,
	                           advice_describe_tensor(&all.tensor).text, advice_cost(result).text);
}

const struct advice_rule advice_rule_windows = {
	.id = "overlapping-windows",
	.title = "Overlapping windows are reduced element by element",
	.condition = "A sum, mean, standard deviation, maximum or minimum reads a view in which each element occurs at least 8 times, as Tensor.unfold makes it: "
		     "two dimensions have the same stride.",
	.gain = "the time of these operators but for a few passes over windows in one dimension, forward and backward",
	.explanation = "Neighbouring windows share all elements but one row, and each window reads all of them again, in small steps through memory.",
	.advice = "Use an operator for windows: F.avg_pool1d or avg_pool2d with stride 1 for means (of x and of x * x for variances), F.max_pool1d or "
		  "max_pool2d for maxima, one dimension after the other, or differences of torch.cumsum. To check: the time at the line.",
	.code = "mean = F.avg_pool2d(padded, k, stride=1)  # in place of padded.unfold(2, k, 1).unfold(3, k, 1).mean((-1, -2))",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool2d.html",
	.names = (const char *const[]){"aten::mean", "aten::sum", "aten::std", "aten::var", "aten::var_mean", "aten::std_mean", "aten::amax", "aten::amin", "aten::max",
	                               "aten::min", "aten::norm", "aten::linalg_vector_norm", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_FORMULAS,
	.severity_max = ADVICE_MEDIUM, /* how much faster the other operators are is estimated */
	.confidence = ADVICE_LIKELY,
	.find = rule_windows_find,
};

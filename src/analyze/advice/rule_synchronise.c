/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of tensors that Python asks for within steps: .item(), .tolist(), bool(tensor), nonzero, print of a tensor. On an
 * accelerator each waits until all that was launched is done; on the CPU it is the price of the call.
 */
#include "analyze/advice/advice.h"

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {
		"*: Tensor.__repr__", "*: Tensor.__format__", "*: Tensor.tolist", "<built-in method item of Tensor>",
		"<built-in method tolist of Tensor>", "<built-in method item of Parameter>", "aten::item", "aten::is_nonzero",
		"aten::_local_scalar_dense", "aten::nonzero", "<built-in method cpu of Tensor>", "<built-in method numpy of Tensor>",
		"cudaStreamSynchronize", "cudaDeviceSynchronize", "hipStreamSynchronize", "hipDeviceSynchronize",
		"<built-in function _cuda_synchronize>", "aten::equal", NULL};
	struct advice_tally tally;
	/* The loader's and optimizer's own are theirs; anomaly mode's checks in the backward pass have a rule; and with a loop
	 * over rows its calls go. */
	bool done = advice_tally_init(&tally, advice) &&
	            advice_tally_names(&tally, advice, patterns, ADVICE_IN_LOADER | ADVICE_IN_BACKWARD | ADVICE_IN_ROW_LOOP) &&
	            advice_report_add(advice, rule, &tally,
	                              (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_LIKELY},
	                              "%.1f calls a step read values of tensors and take %.3f ms (%.1f %%). Gain: their time%s.",
	                              advice_per_step(advice, tally.events), advice_step_ms(advice, (double)tally.ns),
	                              advice_percent(advice, (double)tally.ns),
	                              advice->views.device_events.count ? ", as far as the accelerator is idle" : "");

	advice_tally_release(&tally);
	return done;
}

const struct advice_rule advice_rule_synchronise = {
	.id = "synchronising-calls",
	.title = "Values of tensors are read within steps",
	.explanation = "Python gets a value only when all work before it is done: an accelerator's queue runs empty, and on the "
		       "CPU each read is a call of its own. To print a tensor takes hundreds of operators.",
	.advice = "Keep figures as tensors (total += loss.detach()) and read them every so many steps; choose with torch.where "
		  "or masks instead of `if tensor`. Check: the calls are gone from the steps.",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS,
	.severity_max = ADVICE_HIGH,
	.check = check,
};

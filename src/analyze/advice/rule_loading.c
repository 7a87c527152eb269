/* SPDX-License-Identifier: Apache-2.0
 *
 * Device code loaded within steps: the first launch of a kernel reads it from the library, may compile it, and sends it
 * to the device before it returns.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"

/* Formats "hipLaunchKernel, 332.118 ms". */
static void describe_longest(const struct advice *advice, uint32_t row, char *text, size_t size)
{
	struct ops_string name = advice_name(advice, row);

	snprintf(text, size, "%.*s, %s", (int)(name.size < 80 ? name.size : 80), name.bytes,
	         advice_time((double)advice_host_ns(advice, row) / 1e6).text);
}

static bool rule_loading_find(const struct advice *advice, struct advice_result *result)
{
	uint32_t longest = OPS_NONE;
	char text[160];

	for (size_t i = 0; i < advice->idle.gaps.count; i++) {
		const struct advice_gap *gap = &advice->idle.gaps.items[i];

		if (gap->cause != ADVICE_IDLE_LOAD)
			continue;
		if (longest == OPS_NONE || advice_host_ns(advice, gap->row) > advice_host_ns(advice, longest))
			longest = gap->row;
		advice_tally_add(&result->tally, gap->row, gap->ns);
	}
	if (longest == OPS_NONE)
		return true;
	if (!advice_spread_idle(result, ADVICE_IDLE_LOAD, 1))
		return false;
	describe_longest(advice, longest, text, sizeof(text));
	return advice_report_costs(result, "%s code for the device, which is idle for %s meanwhile. The "
	                                   "longest: %s.",
	                           advice_events(result, "call in each step loads", "calls in each step load").text,
	                           advice_cost(result).text, text);
}

const struct advice_rule advice_rule_loading = {
	.id = "code-loading",
	.title = "Code for the device is loaded while the program waits",
	.condition = "The device is idle during calls that load modules, or launches that take more than a millisecond.",
	.gain = "the idle time, which later launches of each kernel do not have",
	.explanation = "The first launch of a kernel loads its code, and compiles it if the library has none for this device. "
		       "The call returns afterwards; nothing is launched meanwhile.",
	.advice = "Run a few steps before those that count, and before serving with every shape that will be served, or load "
		  "all code at the start (CUDA_MODULE_LOADING=EAGER). To check: launching calls take microseconds.",
	.code = "for _ in range(3):\n"
		"    model(example)  # before the first request, or the first measured step",
	.link = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#lazy-loading",
	.needs = ADVICE_NEEDS_DEVICE,
	.severity_max = ADVICE_MEDIUM,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_DEVICE,
	.confidence = ADVICE_LIKELY,
	.find = rule_loading_find,
};

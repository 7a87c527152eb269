/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that torch.compile compiles again and again, such as once for each length of its input. A region that runs has a
 * name with the number of its function and of its version: "Torch-Compiled Region: 0/9".
 */
#include "analyze/advice/advice.h"

#include <opstrobe/internal/format.h>

#define RECOMPILATIONS_MIN 3 /* one makes sizes dynamic, and a second one may be for the last batch */

enum { COMPILES = 1, REGION };

static const char *const names[] = {"*torch/_dynamo/convert_frame.py(*: _compile", "Torch-Compiled Region:*", NULL};

/* Returns the version of the function that a region runs: the last number of its name. */
static uint32_t version_of(struct ops_string name)
{
	uint32_t version = 0, scale = 1;

	for (size_t i = name.size; i-- > 0 && name.bytes[i] >= '0' && name.bytes[i] <= '9' && scale < 100000000; scale *= 10)
		version += scale * (uint32_t)(name.bytes[i] - '0');
	return version;
}

/* Returns the call from the program, or from another part of torch, that leads to a compilation. */
static uint32_t compiling_call(const struct advice *advice, uint32_t row)
{
	static const char *const compiler[] = {"*torch/_dynamo/*", NULL};
	uint32_t parent = advice->events->parent[row];

	while (parent != OPS_NONE && advice_text_like(advice_name(advice, parent), compiler)) {
		row = parent;
		parent = advice->events->parent[row];
	}
	return row;
}

/* Duration of all steps, including unsteady ones, since a step that compiles is not steady. */
static int64_t all_steps_ns(const struct advice *advice)
{
	int64_t ns = 0;

	for (size_t i = 0; i < advice->views->steps.count; i++)
		ns = ops_sum(ns, ops_difference(advice->views->steps.items[i].end_ns, advice->views->steps.items[i].start_ns));
	return ns;
}

static bool rule_recompile_find(const struct advice *advice, struct advice_result *result)
{
	int64_t ns = 0, all_ns = all_steps_ns(advice);
	uint32_t pending = OPS_NONE, count = 0;
	double gain_ns;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint8_t which = result->which[advice->events->name[row]];

		if (which == COMPILES)
			pending = pending != OPS_NONE && advice->events->end_ns[pending] > advice->events->start_ns[row] ? pending : compiling_call(advice, row);
		if (which != REGION || pending == OPS_NONE)
			continue;
		if (version_of(advice_name(advice, row)) > 0) {
			int64_t compile_ns = ops_difference(advice->events->end_ns[pending], advice->events->start_ns[pending]);

			ns = ops_sum(ns, compile_ns);
			advice_add_at(result, advice->site[pending], pending, compile_ns);
			if (advice_counts(advice, pending) && !advice_is_claimed(result, pending))
				advice_claim(result, pending);
			count++;
		}
		pending = OPS_NONE;
	}
	if (count < RECOMPILATIONS_MIN || all_ns <= 0) {
		result->claims.count = 0;
		return true;
	}
	gain_ns = (double)(ns < all_ns ? ns : all_ns) / (double)all_ns * (double)advice->steps_ns;
	return advice_report_gain(result, gain_ns, "torch.compile compiles functions again %u times, in %s on average, which is %s of all steps.",
	                          count, advice_time((double)ns / 1e6 / count).text, ops_figure_of_percent(100 * gain_ns / (double)advice->steps_ns).text);
}

const struct advice_rule advice_rule_recompile = {
	.id = "recompilations",
	.title = "torch.compile compiles functions again",
	.condition = "Three or more versions of compiled functions are compiled after their first version. The name of a compiled region has the number of "
		     "its version.",
	.gain = "the time of compiling other versions than the first; all steps count, since steps that compile are not steady",
	.explanation = "Compiled code has guards: if a size, a number or an attribute differs that was taken as constant, the function is compiled again, "
		       "up to a limit, after which it runs without compilation.",
	.advice = "Compile with dynamic=True, mark the dimension with torch._dynamo.mark_dynamic, pad inputs to a few sizes, and pass numbers that change "
		  "as tensors. TORCH_LOGS=recompiles names the guard that failed. To check: no compilation after the first steps.",
	.code = "model = torch.compile(model, dynamic=True)",
	.link = "https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.recompilation.html",
	.names = names,
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.find = rule_recompile_find,
};

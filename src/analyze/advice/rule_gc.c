/* SPDX-License-Identifier: Apache-2.0
 *
 * Collections of Python's garbage collector within steps, those that the program asks for and those of themselves.
 */
#include "analyze/advice/advice.h"

static const char *const names[] = {"<built-in function collect>", "Python GC", NULL};

static bool find(const struct advice *advice, struct advice_result *result)
{
	advice_add_names(result, 0);
	return advice_report_costs(result, "garbage collection takes %.3f ms a step (%.1f %%) in %s collections. "
	                           "Gain: all of their time.",
	                           advice_step_ms(advice, (double)result->tally.ns), advice_percent(advice, (double)result->tally.ns),
	                           advice_average(advice, result->tally.events).text);
}

const struct advice_rule advice_rule_gc = {
	.id = "gc-pauses",
	.title = "Garbage collection within steps",
	.explanation = "A collection stops the thread and walks all of Python's objects of a generation. Tensors are freed by "
		       "their reference counts; the collector is only needed for cycles.",
	.advice = "Take gc.collect() out of the step. Against collections that come of themselves: gc.freeze() before the "
		  "loop, gc.disable() and a gc.collect() at the end of each epoch. Check: no row 'Python GC' within steps.",
	.link = "https://docs.python.org/3/library/gc.html#gc.freeze",
	.needs = ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.names = names,
	.find = find,
};

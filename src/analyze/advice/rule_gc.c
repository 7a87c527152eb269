/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of the Python garbage collector within steps, requested and automatic ones.
 */
#include "analyze/advice/advice.h"

static const char *const names[] = {"<built-in function collect>", "Python GC", NULL};

static bool rule_gc_find(const struct advice *advice, struct advice_result *result)
{
	(void)advice;
	advice_add_names(result, 0);
	return advice_report_costs(result, "%s collections in each step take %s.",
	                           advice_events(result).text, advice_cost(result).text);
}

const struct advice_rule advice_rule_gc = {
	.id = "gc-pauses",
	.title = "Garbage collection runs within steps",
	.condition = "Steps contain collections, automatic ones (recorded with record_python_gc_info=True) or calls of "
		     "gc.collect().",
	.gain = "the time of the collections",
	.explanation = "A collection stops the thread and visits all Python objects of a generation. Reference counts free "
		       "tensors; only cycles of references need the collector.",
	.advice = "Move gc.collect() out of the step. To avoid automatic collections, call gc.freeze() before the loop, then "
		  "gc.disable(), and gc.collect() after each epoch. To check: no event 'Python GC' lies within a step.",
	.link = "https://docs.python.org/3/library/gc.html#gc.freeze",
	.needs = ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.names = names,
	.find = rule_gc_find,
};

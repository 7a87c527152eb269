/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of the Python garbage collector within steps, requested and automatic ones.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"

static const char *const names[] = {"<built-in function collect>", "Python GC", NULL};

/* A recording of some seconds often contains one full collection, and does not show when the next one follows. */
static bool rule_gc_find(const struct advice *advice, struct advice_result *result)
{
	int64_t longest_ns = 0;
	char longest[160] = "";

	advice_add_names(result, 0);
	for (size_t i = 0; i < result->claims.count; i++)
		longest_ns = result->claims.items[i].ns > longest_ns ? result->claims.items[i].ns : longest_ns;
	if (advice->real_steps && result->claims.count > 1 && longest_ns > result->tally.ns / 2) {
		result->confidence = ADVICE_UNSURE;
		snprintf(longest, sizeof(longest), " One of them takes %s. How often such a collection runs is not known.",
		         advice_time((double)longest_ns / 1e6).text);
	}
	return advice_report_costs(result, "%s %s.%s",
	                           advice_events(result, "collection in each step takes", "collections in each step take").text,
	                           advice_cost(result).text, longest);
}

const struct advice_rule advice_rule_gc = {
	.id = "gc-pauses",
	.title = "Garbage collection interrupts the program",
	.condition = "Steps contain collections, automatic ones (recorded with record_python_gc_info=True) or calls of "
		     "gc.collect(). If one of several takes more than half of the time, confidence is low.",
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

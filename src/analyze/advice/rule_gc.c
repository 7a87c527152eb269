/* SPDX-License-Identifier: Apache-2.0
 *
 * Collections of Python's garbage collector within steps, those that the program asks for and those of themselves.
 */
#include "analyze/advice/advice.h"

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"<built-in function collect>", "Python GC", NULL};
	struct advice_tally tally;
	bool done = advice_tally_init(&tally, advice) && advice_tally_names(&tally, advice, patterns, 0) &&
	            advice_report_add(advice, rule, &tally,
	                              (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_SURE},
	                              "garbage collection takes %.3f ms a step (%.1f %%) in %s collections. "
	                              "Gain: all of their time.",
	                              advice_step_ms(advice, (double)tally.ns), advice_percent(advice, (double)tally.ns),
	                              advice_average(advice, tally.events).text);

	advice_tally_release(&tally);
	return done;
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
	.severity_max = ADVICE_HIGH,
	.check = check,
};

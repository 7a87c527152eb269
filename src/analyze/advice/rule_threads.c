/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads per operator compared with the processors: too many threads take turns and wait for each other, too few leave
 * processors idle.
 */
#include <math.h>
#include <stdio.h>

#include <opstrobe/internal/format.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Minimum share of the steps in operators that are divided. */
#define SHARE_MIN_PCT 30.0

static bool rule_threads_find(const struct advice *advice, struct advice_result *result)
{
	const struct advice_machine *machine = &advice->machine;
	bool over = advice_is_oversubscribed(advice);
	bool under = machine->threads == 1 && machine->processors >= 2;
	char detail[160] = "", waited[160] = "";
	int64_t waited_ns = 0;

	if (machine->threads <= 0 || machine->processors <= 0 || (!over && !under))
		return true;
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint8_t dtype;

		/* Work on a device needs no threads. */
		if (advice_is_operator(advice, row) && advice_counts(advice, row) && !advice->device_ns[row] &&
		    !(advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_LOADER)) &&
		    advice_elements(advice, row, &dtype) >= ADVICE_GRAIN_ELEMENTS)
			advice_add(result, row, advice_ns(advice, row));
	}
	snprintf(detail, sizeof(detail), "Call torch.set_num_threads(%d), or set OMP_NUM_THREADS=%d.", (int)(machine->processors + 0.5),
		 (int)(machine->processors + 0.5));
	/* A trace does not show what is lost with one thread, which may be the right choice if other programs run on
	 * the machine. */
	for (size_t i = 0; over && i < advice->views->steps.count; i++)
		waited_ns += advice->steady[i] ? machine->waits[i].waited_ns : 0;
	if (waited_ns > 0)
		snprintf(waited, sizeof(waited), ". For %s a step the thread was ready and another one had the CPU",
		         advice_time(advice_step_ms(advice, (double)waited_ns)).text);
	result->confidence = over ? ADVICE_LIKELY : ADVICE_UNSURE;
	result->detail = detail;
	result->always = true;
	result->severity = over ? ADVICE_MEDIUM : ADVICE_LOW;
	return advice_percent(advice, (double)result->tally.ns) < SHARE_MIN_PCT ||
	       advice_report_gain(result, (double)waited_ns,
	                          "Operators run on %lld thread%s, and %s CPUs are available. Operators that threads "
	                          "share take %s of the steps%s.",
	                          (long long)machine->threads, machine->threads == 1 ? "" : "s", ops_figure_of_number(round(10 * machine->processors) / 10).text,
	                          ops_figure_of_percent(advice_percent(advice, (double)result->tally.ns)).text, waited);
}

const struct advice_rule advice_rule_threads = {
	.id = "thread-count",
	.title = "The number of threads does not match the number of CPUs",
	.condition = "Operators use more threads than CPUs, or one thread on several CPUs, and 30 % of the steps "
		     "or more is in operators that threads share.",
	.gain = "the time of waiting for a CPU; none with one thread, which may be right if other programs run",
	.explanation = "torch divides large operators among its threads and waits for the last. With more threads than "
		       "CPUs some wait for their turn; with one thread the other CPUs are idle.",
	.advice = "Use one thread for each CPU for a single program, and fewer with loader workers or several programs. "
		  "To check: the time of a step with another number.",
	.code = "torch.set_num_threads(len(os.sched_getaffinity(0)))",
	.link = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.severity_max = ADVICE_MEDIUM,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_REST,
	.general = true,
	.find = rule_threads_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of operators, and processes that the program has started, that compete for the processors.
 */
#include <math.h>

#include <opstrobe/internal/format.h>

#include "analyze/advice/advice.h"

extern const struct advice_rule advice_rule_contention, advice_rule_loader;

/* Steps that wait even longer for batches would only get these later if the workers had less of the CPUs. */
const struct advice_rule *advice_contention_rule(const struct advice *advice)
{
	return advice->machine.threads > 1 && advice_waits_for_workers_ns(advice) < advice->contended_ns ? &advice_rule_contention : &advice_rule_loader;
}

static bool find_contention(const struct advice *advice, struct advice_result *result)
{
	const struct view_waited *waited = &advice->machine.waited;
	double all_ns = (double)advice->contended_ns;

	if (all_ns <= 0 || advice_contention_rule(advice) != result->rule)
		return true;
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->views->parts[row] == VIEW_LOADER && advice_counts(advice, row))
			advice_tally_add(&result->tally, row, advice_ns(advice, row)); /* the waits are in no row */
	return advice_report_gain(result, all_ns, "Operators run on %lld threads, and the child processes, such as workers of a loader, need CPUs as well: %s "
	                          "CPUs are available. For %s the thread of the steps was ready and had none, while of the other threads that ran, %s were "
	                          "of this process and %s of its child processes.",
	                          (long long)advice->machine.threads, ops_figure_of_number(round(10 * advice->machine.processors) / 10).text,
	                          advice_spent(advice, all_ns).text, ops_figure_of_percent(100 * waited->threads_share).text,
	                          ops_figure_of_percent(100 * waited->children_share).text);
}

const struct advice_rule advice_rule_contention = {
	.id = "thread-contention",
	.title = "Threads of operators and child processes compete for the CPUs",
	.condition = "Steps wait for a CPU that mostly other threads and child processes of the program have, such as workers of a loader. They wait "
		     "longer for it than for batches, and operators use several threads, but not more than there are CPUs.",
	.gain = "the part of the waits for a CPU that threads and child processes of the program cause, by their share in the CPU time of all "
		"threads that ran meanwhile",
	.explanation = "An operator ends when its last thread has. While a child process has the CPU of that thread, the others poll, which "
		       "takes CPUs from the child processes.",
	.advice = "Leave CPUs for the child processes: call torch.set_num_threads with the number of CPUs less that of busy workers, and at least 1, or "
		  "use fewer workers. To check: the time of a step with another number.",
	.code = "torch.set_num_threads(1)",
	.link = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
	.needs = ADVICE_NEEDS_OPERATORS,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_REST,
	.confidence = ADVICE_LIKELY,
	.find = find_contention,
};

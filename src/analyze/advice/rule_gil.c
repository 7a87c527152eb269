/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits of steps for the global interpreter lock (GIL), which other Python threads hold. Measured by samples of thread
 * states, since no call waits for the GIL.
 */
#include "analyze/advice/advice.h"

/* Below this share there are too few samples. */
#define SHARE_MIN_PCT 4.0

static bool rule_gil_find(const struct advice *advice, struct advice_result *result)
{
	char holder[256];

	for (size_t i = 0; i < advice->stalls.count; i++) {
		const struct advice_stall *stall = &advice->stalls.items[i];

		/* A call that waits for another thread acquires the GIL last, so that is part of its wait. */
		if (stall->state != OPS_THREAD_GIL || (advice->zone[stall->row] & ADVICE_WAITING) ||
		    advice_is_claimed(result, stall->row))
			continue;
		advice_claim_self(result, stall->row, stall->ns);
		/* The thread that holds the GIL is the one to change. */
		if (stall->holder_site != OPS_NONE)
			advice_add_at(result, stall->holder_site, stall->holder, stall->ns);
		else
			advice_add_at(result, stall->site, stall->row, stall->ns);
	}
	if (advice_percent(advice, (double)result->tally.ns) < SHARE_MIN_PCT)
		return true;
	advice_describe_holder(advice, OPS_THREAD_GIL, holder, sizeof(holder));
	return advice_report_costs(result, "The thread of the steps waits for the global interpreter lock (GIL) for %s a step.%s",
	                           advice_cost(result).text, holder);
}

const struct advice_rule advice_rule_gil = {
	.id = "gil-waits",
	.title = "The program waits for the global interpreter lock",
	.condition = "The thread of the steps waits for the GIL for 4 % of the steps or more, by samples of what the kernel says of each "
		     "thread. Places are lines that other threads run meanwhile.",
	.gain = "the time of waiting",
	.explanation = "CPython runs one thread at a time. A thread that computes in Python, or polls without a pause, keeps the GIL for "
		       "5 ms each time, and the step waits before each call.",
	.advice = "Let the other thread wait in Queue.get() or Event.wait() instead of polling, call it less often, or move its work to "
		  "a process. To check: 'opstrobe analyze threads' shows no waits for the GIL.",
	.code = "item = results.get()  # blocks, and does not poll results.empty()",
	.link = "https://docs.python.org/3/library/threading.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_WAITS,
	.confidence = ADVICE_LIKELY,
	.find = rule_gil_find,
};

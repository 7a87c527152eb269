/* SPDX-License-Identifier: Apache-2.0
 *
 * Work within steps that the model does not need: checkpoints, waiting. Each is known by the function it ends in.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

static bool report_tally(struct advice *advice, const struct advice_rule *rule, const struct advice_tally *tally, const char *what)
{
	return advice_report_add(advice, rule, tally, (struct advice_gain){.ns = (double)tally->ns, .confidence = ADVICE_SURE},
	                         "%s takes %.3f ms a step (%.1f %%) in %s calls. Gain: all of their time.", what,
	                         advice_step_ms(advice, (double)tally->ns), advice_percent(advice, (double)tally->ns),
	                         advice_average(advice, tally->events).text);
}

static bool report(struct advice *advice, const struct advice_rule *rule, const char *const *patterns, const char *what)
{
	struct advice_tally tally;
	bool done = advice_tally_init(&tally, advice) && advice_tally_names(&tally, advice, patterns, ADVICE_IN_LOADER) &&
	            report_tally(advice, rule, &tally, what);

	advice_tally_release(&tally);
	return done;
}

static bool check_checkpoint(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"*torch/serialization.py(*", "*: Module.state_dict", "*: Optimizer.state_dict",
	                                       "<built-in function dump>", "<built-in function dumps>", "*: savez",
	                                       "*safetensors/*", "<built-in method dump of *",
	                                       "*: Tensor.__deepcopy__", "*: Parameter.__deepcopy__", NULL};

	return report(advice, rule, patterns, "saving state");
}

/* "waiting for a lock and another thread" */
static void describe_waits(uint32_t kinds, char *text, size_t size)
{
	static const char *const names[] = {[ADVICE_BLOCKED_LOCK] = "for a lock", [ADVICE_BLOCKED_QUEUE] = "for a queue",
	                                    [ADVICE_BLOCKED_THREAD] = "for another thread",
	                                    [ADVICE_BLOCKED_PROCESS] = "for another process or a file",
	                                    [ADVICE_BLOCKED_TIME] = "until a time has passed"};
	size_t used = (size_t)snprintf(text, size, "waiting");

	for (uint32_t kind = ADVICE_BLOCKED_LOCK; kind <= ADVICE_BLOCKED_TIME && used < size; kind++)
		if (kinds >> kind & 1)
			used += (size_t)snprintf(text + used, size - used, "%s %s",
			                         kinds & (((uint32_t)1 << kind) - 1) ? " and" : "", names[kind]);
}

/* A lock that is free and a queue that has something are taken in less: such calls compute. */
#define WAIT_NS_MIN 50000

static bool report_waits(struct advice *advice, const struct advice_rule *rule, uint32_t kinds)
{
	uint8_t *blocked = advice_find_blocked(advice);
	struct advice_tally tally = {0};
	uint32_t met = 0;
	char what[160];
	bool done = blocked && advice_tally_init(&tally, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t kind = (uint32_t)1 << blocked[advice->events->name[row]];
		uint64_t before = tally.events;

		if (advice->events->end_ns[row] - advice->events->start_ns[row] < WAIT_NS_MIN)
			continue;
		advice_tally_outermost(&tally, advice, row, kind & kinds, ADVICE_IN_LOADER);
		met |= tally.events > before ? kind : 0;
	}
	if (done) {
		describe_waits(met, what, sizeof(what));
		done = report_tally(advice, rule, &tally, what);
	}
	advice_tally_release(&tally);
	ops_free(blocked);
	return done;
}

static bool check_waiting(struct advice *advice, const struct advice_rule *rule)
{
	return report_waits(advice, rule, 1 << ADVICE_BLOCKED_PROCESS | 1 << ADVICE_BLOCKED_TIME);
}

static bool check_locks(struct advice *advice, const struct advice_rule *rule)
{
	return report_waits(advice, rule, 1 << ADVICE_BLOCKED_LOCK | 1 << ADVICE_BLOCKED_QUEUE | 1 << ADVICE_BLOCKED_THREAD);
}

const struct advice_rule advice_rule_checkpoint = {
	.id = "checkpoint-in-step",
	.title = "State is saved within steps",
	.explanation = "Saving copies every parameter, pickles it and waits for the disk, and meanwhile nothing is trained.",
	.advice = "Save every N steps or once an epoch, or in the background: copy the state, then write it in another "
		  "thread (torch.distributed.checkpoint.async_save). Check: torch.save is in few steps.",
	.link = "https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.bound = ADVICE_AT_LEAST,
	.check = check_checkpoint,
};

const struct advice_rule advice_rule_waiting = {
	.id = "waiting-in-step",
	.title = "The program sleeps or waits within steps",
	.explanation = "The thread does nothing until a time has passed or another program answers.",
	.advice = "Wait for an event instead of sleeping, and fetch what comes from elsewhere ahead of time, in a worker or a "
		  "thread. Check: the call is gone from the steps.",
	.link = "https://docs.pytorch.org/docs/stable/data.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.check = check_waiting,
};

const struct advice_rule advice_rule_locks = {
	.id = "lock-in-step",
	.title = "The program waits for a lock or another thread within steps",
	.explanation = "The thread that computes the step stops until another one releases a lock, has put something into a queue, or "
		       "is done. Nothing is computed or launched meanwhile.",
	.advice = "Hold locks for shorter, hand results over by a queue that is filled ahead of time, and wait for threads after the "
		  "step. Check: the call is gone from the steps.",
	.link = "https://docs.python.org/3/library/threading.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.bound = ADVICE_AT_MOST,
	.check = check_locks,
};

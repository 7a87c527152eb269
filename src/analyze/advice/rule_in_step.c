/* SPDX-License-Identifier: Apache-2.0
 *
 * Work within steps that the model does not require: saving of state, and waiting. It is identified by names of
 * functions.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

static bool rule_in_step_report(struct advice_result *result, const char *what)
{
	return advice_report_costs(result, "%s takes %s a step in %s.", what,
	                           advice_cost(result).text,
	                           advice_events(result, "call", "calls").text);
}

static const char *const saving[] = {"*torch/serialization.py(*: save", "*: Module.state_dict", "*: Optimizer.state_dict",
                                       "<built-in function dump>", "<built-in function dumps>", "*: savez",
                                       "*: save_file", "<built-in method dump of *",
                                       "*: Tensor.__deepcopy__", "*: Parameter.__deepcopy__", NULL};

/* Leaves out dictionaries of parameters that the calling function updates in a loop, as an average of weights does. */
static bool find_checkpoint(const struct advice *advice, struct advice_result *result)
{
	uint8_t *updates = advice_updating_functions(advice);

	for (uint32_t row = 0; updates && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		bool is_read = parent != OPS_NONE && updates[parent] && ops_string_ends(advice_name(advice, row), ": Module.state_dict");

		result->claimed[row] |= is_read;
		advice_add_outermost(result, row, result->which[advice->events->name[row]], ADVICE_IN_LOADER);
	}
	ops_free(updates);
	return updates && rule_in_step_report(result, "Saving state");
}

/* Formats "Waiting for a lock and another thread". */
static void describe_waits(uint32_t kinds, char *text, size_t size)
{
	static const char *const names[] = {[OPS_BLOCKING_LOCK] = "for a lock", [OPS_BLOCKING_QUEUE] = "for a queue",
	                                    [OPS_BLOCKING_THREAD] = "for another thread",
	                                    [OPS_BLOCKING_PROCESS] = "for another process or a file",
	                                    [OPS_BLOCKING_TIME] = "until a time has passed"};
	size_t used = (size_t)snprintf(text, size, "Waiting");

	for (uint32_t kind = OPS_BLOCKING_LOCK; kind <= OPS_BLOCKING_TIME && used < size; kind++)
		if (kinds >> kind & 1)
			used += (size_t)snprintf(text + used, size - used, "%s %s",
			                         kinds & (((uint32_t)1 << kind) - 1) ? " and" : "", names[kind]);
}

/* Acquiring a free lock, or getting an item from a filled queue, takes less time. Such calls do not wait. */
#define WAIT_NS_MIN 50000

/* Adds calls that wait. `ret_met` is the set of kinds found. */
static bool rule_in_step_add_waits(struct advice_result *result, uint32_t kinds, uint32_t *ret_met)
{
	const struct advice *advice = result->advice;
	uint8_t *blocked = ops_blocking_names(advice->trace);
	bool done = blocked != NULL;

	*ret_met = 0;
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t kind = (uint32_t)1 << blocked[advice->events->name[row]];

		if (advice->events->end_ns[row] - advice->events->start_ns[row] >= WAIT_NS_MIN &&
		    advice_add_outermost(result, row, kind & kinds, ADVICE_IN_LOADER))
			*ret_met |= kind;
	}
	ops_free(blocked);
	return done;
}

/* A process that starts others to do the work waits for them for most of its time, computes little, and has no steps. */
#define PARENT_WAITS_MIN 0.8
#define PARENT_OPERATORS_MAX 0.01

static bool is_parent(const struct advice_result *result)
{
	const struct advice *advice = result->advice;
	int64_t operators_ns = 0;

	if (advice->real_steps || (double)result->tally.ns < PARENT_WAITS_MIN * (double)advice->steps_ns)
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR))
			operators_ns = ops_sum(operators_ns, advice_ns(advice, row));
	return (double)operators_ns <= PARENT_OPERATORS_MAX * (double)advice->steps_ns;
}

/* Metadata of `opstrobe run`: the number of processes with separate traces. */
#define RECORDED_APART "recorded_apart"

/* Adds waits for other processes. Returns false if out of memory. */
static bool find_parent(const struct advice *advice, struct advice_result *result)
{
	uint32_t met;

	struct ops_string apart;

	if (advice->real_steps)
		return true;
	if (!rule_in_step_add_waits(result, 1 << OPS_BLOCKING_PROCESS, &met))
		return false;
	if (!is_parent(result) || ops_trace_find_metadata(advice->trace, RECORDED_APART, &apart)) {
		result->claims.count = 0;
		return true;
	}
	result->always = true;
	result->severity = ADVICE_MEDIUM;
	return advice_report_gain(result, 0, "This process waits for others for %s, and computes nothing.", advice_cost(result).text);
}

static bool find_waiting(const struct advice *advice, struct advice_result *result)
{
	uint32_t met;
	char what[160];

	(void)advice;
	if (!rule_in_step_add_waits(result, 1 << OPS_BLOCKING_PROCESS | 1 << OPS_BLOCKING_TIME, &met))
		return false;
	/* advice_rule_parent reports this. */
	if (met == 1 << OPS_BLOCKING_PROCESS && is_parent(result)) {
		result->claims.count = 0;
		return true;
	}
	describe_waits(met, what, sizeof(what));
	return rule_in_step_report(result, what);
}

/* Adds waits of functions without a call, such as `with lock:`, which samples of thread states show. Waits in calls are
 * found by name. */
static void add_lock_stalls(const struct advice *advice, struct advice_result *result)
{
	for (size_t i = 0; i < advice->stalls.count; i++) {
		const struct advice_stall *stall = &advice->stalls.items[i];
		struct ops_function_text function;

		if (stall->state != OPS_THREAD_LOCK || (advice->zone[stall->row] & (ADVICE_WAITING | ADVICE_IN_LOADER)) ||
		    advice_is_claimed(result, stall->row) ||
		    (advice->views->parts[stall->row] != VIEW_STEP &&
		     (!ops_event_function(advice->trace, stall->row, &function) || !function.file.size)))
			continue;
		advice_claim_self(result, stall->row, stall->ns);
		advice_add_at(result, stall->site, stall->row, stall->ns);
	}
}

static bool find_locks(const struct advice *advice, struct advice_result *result)
{
	uint32_t kinds = 1 << OPS_BLOCKING_LOCK | 1 << OPS_BLOCKING_QUEUE | 1 << OPS_BLOCKING_THREAD, met;
	char what[160], holder[256];

	if (!rule_in_step_add_waits(result, kinds, &met))
		return false;
	if (advice->stalls.count) {
		uint64_t before = result->tally.events;

		add_lock_stalls(advice, result);
		met |= result->tally.events > before ? 1 << OPS_BLOCKING_LOCK : 0;
	}
	describe_waits(met, what, sizeof(what));
	advice_describe_holder(advice, OPS_THREAD_LOCK, holder, sizeof(holder));
	return advice_report_costs(result, "%s takes %s a step.%s", what, advice_cost(result).text, holder);
}

const struct advice_rule advice_rule_checkpoint = {
	.id = "checkpoint-in-step",
	.title = "The program waits while state is saved",
	.condition = "Steps call torch.save, state_dict, pickle.dump, copy.deepcopy of parameters, or similar functions.",
	.gain = "the time of the calls",
	.explanation = "Saving copies every parameter, pickles it and waits for the disk. Training stops meanwhile.",
	.advice = "Save every N steps or once an epoch. Or save in the background: copy the state, then write it in another "
		       "thread (torch.distributed.checkpoint.async_save). To check: few steps call torch.save.",
	.link = "https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.bound = ADVICE_AT_LEAST,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.names = saving,
	.find = find_checkpoint,
};

const struct advice_rule advice_rule_parent = {
	.id = "work-in-children",
	.title = "The work is in processes that were not recorded",
	.condition = "A recording without steps waits for other processes for 80 % of its time or more, and computes for 1 % or less.",
	.gain = "none",
	.explanation = "A program that starts processes, such as torch.multiprocessing.spawn for each rank, computes in those.",
	.advice = "`opstrobe run` of the program records ranks, too, and writes a trace of each. In your own code, call opstrobe.profile in the function that the "
		  "processes run. Then look at all of them: `opstrobe advise DIRECTORY`.",
	.link = "https://docs.pytorch.org/docs/stable/elastic/run.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_WAITS,
	.confidence = ADVICE_SURE,
	.find = find_parent,
};

const struct advice_rule advice_rule_waiting = {
	.id = "waiting-in-step",
	.title = "The program sleeps or waits",
	.condition = "Steps sleep, or wait for sockets, pipes or processes.",
	.gain = "the time of the calls",
	.explanation = "The thread does nothing until a time has passed or another process answers.",
	.advice = "Wait for an event instead of sleeping. Fetch remote data ahead of time, in a worker process or a thread, and many items with one call. To "
		       "check: the steps no longer contain the call.",
	.link = "https://docs.pytorch.org/docs/stable/data.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_WAITS,
	.confidence = ADVICE_SURE,
	.find = find_waiting,
};

const struct advice_rule advice_rule_locks = {
	.id = "lock-in-step",
	.title = "The program waits for a lock or another thread",
	.condition = "Steps wait for locks, queues, conditions, events, futures or threads of threading, queue, "
		       "multiprocessing or concurrent.futures.",
	.gain = "the time of the calls",
	.explanation = "The thread of the step stops until another thread releases a lock, puts an item into a queue, or ends. "
		       "Nothing is computed or launched meanwhile.",
	.advice = "Hold locks for a shorter time, pass results through a queue that is filled ahead of time, and join threads "
		       "after the step. To check: the steps no longer contain the call.",
	.link = "https://docs.python.org/3/library/threading.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_WAITS,
	.confidence = ADVICE_SURE,
	.find = find_locks,
};

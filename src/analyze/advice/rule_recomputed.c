/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations that torch.utils.checkpoint computes again in the backward pass, so that they need not be kept. It is a trade of
 * time for memory, which is of no use where memory is free.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/text.h"

static const char *const names[] = {"*torch/utils/checkpoint.py(*", NULL};

enum checkpoint_call { CALLS_OTHER, CALLS_AGAIN, CALLS_BACKWARD, CALLS_CHECKPOINT };

/* A checkpoint without use_reentrant calls recompute_fn; CheckpointFunction.backward also runs a backward pass. Older versions of
 * Python do not name the class. */
static enum checkpoint_call checkpoint_call_of(const struct advice_result *result, uint32_t row)
{
	struct ops_string name = advice_name(result->advice, row);

	if (!result->which[result->advice->events->name[row]] || !advice_counts(result->advice, row))
		return CALLS_OTHER;
	return ops_string_ends(name, "recompute_fn")                                             ? CALLS_AGAIN
	       : ops_string_ends(name, "backward")                                               ? CALLS_BACKWARD
	       : ops_string_ends(name, ": checkpoint") || ops_string_ends(name, ": checkpoint_sequential") ? CALLS_CHECKPOINT
	                                                                                         : CALLS_OTHER;
}

/* Memory counts as free if the peak is below this share of the limit. */
#define FREE_MAX 0.5

/* Returns the time of the backward passes that a row runs. */
static int64_t backward_ns_below(const struct advice *advice, uint32_t row)
{
	const struct ops_events *events = advice->events;
	int64_t ns = 0;

	for (uint32_t child = row + 1; child < events->count && events->start_ns[child] < events->end_ns[row]; child++)
		if (events->parent[child] == row && ops_string_contains(advice_name(advice, child), "torch/autograd/__init__.py"))
			ns = ops_sum(ns, advice_ns(advice, child));
	return ns;
}

/* Claims what checkpoints compute again. Returns the time. */
static int64_t claim_again(struct advice_result *result, uint64_t *ret_count)
{
	const struct advice *advice = result->advice;
	int64_t sum_ns = 0;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		enum checkpoint_call call = checkpoint_call_of(result, row);
		uint32_t parent = advice->events->parent[row];
		int64_t ns, all_ns = advice_ns(advice, row);

		result->claimed[row] |= parent != OPS_NONE && result->claimed[parent]; /* a checkpoint in another */
		if ((call != CALLS_AGAIN && call != CALLS_BACKWARD) || advice_is_claimed(result, row))
			continue;
		ns = call == CALLS_AGAIN ? all_ns : ops_difference(all_ns, backward_ns_below(advice, row));
		if (ns <= 0)
			continue;
		sum_ns = ops_sum(sum_ns, advice_claim_share(result, row, (double)ns / (double)all_ns));
		result->claimed[row] = call == CALLS_AGAIN;
		++*ret_count;
	}
	return sum_ns;
}

/* The place to change is the call of the checkpoint in the forward pass. */
static void rule_recomputed_add_places(struct advice_result *result, int64_t ns)
{
	const struct advice *advice = result->advice;
	int64_t calls = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t row = 0; row < advice->events->count; row++) {
			if (checkpoint_call_of(result, row) != CALLS_CHECKPOINT || advice->site[row] == OPS_NONE)
				continue;
			if (pass)
				advice_add(result, row, ns / calls);
			calls += !pass;
		}
		if (!calls)
			return;
	}
}

static bool rule_recomputed_find(const struct advice *advice, struct advice_result *result)
{
	const struct advice_machine *machine = &advice->machine;
	char memory[160] = "";
	uint64_t count = 0;
	int64_t ns = claim_again(result, &count);

	rule_recomputed_add_places(result, ns);
	if (machine->memory_limit_bytes > 0 && machine->memory_peak_bytes > 0 && !(advice->has & ADVICE_NEEDS_DEVICE)) {
		snprintf(memory, sizeof(memory), " The program used at most %s of %s of memory.",
		         advice_bytes((double)machine->memory_peak_bytes).text,
		         advice_bytes((double)machine->memory_limit_bytes).text);
		if ((double)machine->memory_peak_bytes < FREE_MAX * (double)machine->memory_limit_bytes)
			result->confidence = ADVICE_LIKELY;
	}
	return advice_report_gain(result, (double)ns, "Checkpoints compute activations again %s in each step, in %s.%s",
	                          advice_counted(advice, count, "time", "times").text,
	                          advice_spent(advice, (double)ns).text, memory);
}

const struct advice_rule advice_rule_recomputed = {
	.id = "recomputed-activations",
	.title = "Checkpoints compute activations again",
	.condition = "torch.utils.checkpoint runs parts of the forward pass again in the backward pass. Confidence is low unless the program used "
		     "less than half of the memory of the machine, without a device.",
	.gain = "the time of what is computed again",
	.explanation = "A checkpoint keeps only the inputs of a block, and computes the rest again for the backward pass. It trades time for memory.",
	.advice = "Where memory suffices, turn checkpoints off, or use them only for the blocks with the largest activations. A selective policy "
		  "keeps results of expensive operators, such as matrix products. To check: the peak of memory still fits.",
	.code = "model.gradient_checkpointing_disable()",
	.link = "https://docs.pytorch.org/docs/stable/checkpoint.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_MODE,
	.severity_max = ADVICE_MEDIUM, /* a trade that may be intended */
	.confidence = ADVICE_UNSURE,
	.names = names,
	.find = rule_recomputed_find,
};

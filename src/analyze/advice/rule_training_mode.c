/* SPDX-License-Identifier: Apache-2.0
 *
 * Serving and evaluation by a model in training mode: dropout draws random numbers, and batch norms compute and store
 * averages, for a backward pass that never runs. This is slower, and the results are wrong.
 *
 * If the program also trains, a forward pass counts as evaluation if gradients are disabled and nothing with a backward
 * pass reads its results. Samples of a generator, or the output of a teacher, are noisy on purpose. Storages show who
 * reads the results.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"
#include "trace/names.h"

/* Position of the argument "training": dropout(input, p, train), batch_norm(input, weight, bias, running_mean, running_var,
 * training, …). */
static const char *const names[] = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::batch_norm", NULL};
static const size_t arguments[] = {0, 2, 2, 2, 5};

static bool trains(const struct advice *advice, uint32_t row, size_t argument)
{
	struct ops_input input;

	return advice_input(advice, row, argument, &input) && input.tag == OPS_INPUT_BOOL && input.n != 0;
}

struct modes {
	const uint8_t *which;
	struct ops_map pass_of; /* from storage to the forward pass that produced it */
	uint8_t *trains;         /* by row of a forward pass: training reads its results */
	size_t next;             /* index of the next memory record */
	int64_t ns;              /* time of the operators; the tally also has it at the lines of the calls that lead to
	                          * them */
	uint64_t operators, norms;
	bool serves;             /* the trace has no backward pass */
};

/* Returns the outermost module call around an operator, or the function that calls it. */
static uint32_t pass_around(const struct advice *advice, uint32_t row)
{
	uint32_t pass = advice->caller[row];

	for (uint32_t at = pass; at != OPS_NONE; at = advice->events->parent[at])
		if (ops_is_module_name(advice_name(advice, at)))
			pass = at;
	return pass;
}

/* Matches an outermost operator in training mode without gradients. */
static bool rule_training_mode_is_candidate(const struct modes *modes, const struct advice *advice, uint32_t row)
{
	uint8_t kind = modes->which[advice->events->name[row]];

	return kind && advice_counts(advice, row) && !advice->claimed[row] &&
	       (modes->serves || advice->events->sequence_nr[row] < 0) && trains(advice, row, arguments[kind]);
}

/* Follows allocations: those of an operator belong to its pass, others to no pass. */
static bool rule_training_mode_follow_memory(struct modes *modes, const struct advice *advice, int64_t time_ns, uint32_t pass)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);

	for (; modes->next < count && records[modes->next].time_ns <= time_ns; modes->next++) {
		uint32_t *slot = ops_map_slot(&modes->pass_of, records[modes->next].address, OPS_NONE);

		if (!slot)
			return false;
		*slot = records[modes->next].bytes > 0 ? pass : OPS_NONE;
	}
	return true;
}

static bool rule_training_mode_follow(struct modes *modes, const struct advice *advice, uint32_t row)
{
	uint32_t pass = rule_training_mode_is_candidate(modes, advice, row) ? pass_around(advice, row) : OPS_NONE;
	struct ops_storage storage;

	if (!rule_training_mode_follow_memory(modes, advice, advice->events->start_ns[row], OPS_NONE))
		return false;
	for (size_t i = 0; ops_event_storage(advice->trace, row, i, &storage); i++) {
		uint32_t from = ops_map_find(&modes->pass_of, storage.address);

		if (from == OPS_NONE)
			continue;
		modes->trains[from] |= advice->backward_ns[row] > 0;
		pass = from;
	}
	return rule_training_mode_follow_memory(modes, advice, advice->events->end_ns[row], pass);
}

/* Finds the passes whose results training reads: through operators whose backward node runs, and then from pass to
 * pass. */
static bool find_readers(struct modes *modes, const struct advice *advice)
{
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (advice_is_operator(advice, row) && !(advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD)))
			done = rule_training_mode_follow(modes, advice, row);
	return done;
}

static void rule_training_mode_add_operators(struct modes *modes, struct advice_result *result)
{
	const struct advice *advice = result->advice;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		size_t argument = arguments[modes->which[advice->events->name[row]]];
		uint32_t pass;
		int64_t ns;

		if ((advice->zone[row] & ADVICE_IN_OPERATOR) || !rule_training_mode_is_candidate(modes, advice, row))
			continue;
		pass = modes->serves ? OPS_NONE : pass_around(advice, row);
		if (pass != OPS_NONE && modes->trains[pass])
			continue;
		modes->operators++;
		modes->norms += argument == 5;
		/* A batch norm in evaluation mode still scales, so half of its memory traffic remains. */
		ns = argument == 5 ? advice_claim_share(result, row, 0.5 * advice_work_share(advice, row)) : advice_claim(result, row);
		modes->ns = ops_sum(modes->ns, ns);
		advice_add_calls(result, row, ns);
	}
}

static bool rule_training_mode_report(const struct modes *modes, struct advice_result *result)
{
	const struct advice *advice = result->advice;

	result->always = true;
	result->severity = ADVICE_MEDIUM;
	return !modes->operators ||
	       advice_report_gain(result, (double)modes->ns,
	                          "%s and %s in each step run in training mode, %s.",
	                          advice_counted(advice, modes->operators - modes->norms, "dropout", "dropouts").text,
	                          advice_counted(advice, modes->norms, "batch norm", "batch norms").text,
	                          modes->serves ? "in a program without a backward pass"
	                                        : "without gradients, and training does not read their results");
}

static bool rule_training_mode_find(const struct advice *advice, struct advice_result *result)
{
	struct modes modes = {.which = result->which,
	                      .serves = !advice->incomplete && !advice_trains(advice)};
	bool done;

	modes.trains = ops_alloc_zeroed(advice->events->count + 1, 1);
	done = modes.trains != NULL;
	if (done && (modes.serves || (advice->has & ADVICE_NEEDS_STORAGES && advice->has & ADVICE_NEEDS_MEMORY))) {
		done = modes.serves || find_readers(&modes, advice);
		if (done)
			rule_training_mode_add_operators(&modes, result);
	}
	done = done && rule_training_mode_report(&modes, result);
	ops_map_release(&modes.pass_of);
	ops_free(modes.trains);
	return done;
}

const struct advice_rule advice_rule_training_mode = {
	.id = "training-mode",
	.title = "A model runs in training mode without training",
	.condition = "aten::dropout or aten::batch_norm run in training mode, in a program without a backward pass, or without "
		     "gradients and with results that nothing in training reads. The latter requires recorded memory.",
	.gain = "the time of dropouts, and half of the time of batch norms, which scale in either mode",
	.explanation = "Dropout draws a random number for each element and drops values that inference needs. Batch norms use "
		       "the average of the batch instead of the learned one. Results are noisy and take longer.",
	.advice = "Call model.eval() before evaluation and serving, and model.train() before training continues. To check: the "
		  "steps contain no dropout.",
	.code = "model.eval()\n"
		"with torch.inference_mode():\n"
		"    out = model(x)",
	.link = "https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.find = rule_training_mode_find,
};

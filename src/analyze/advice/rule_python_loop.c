/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops in functions of the program around operators that are too small to justify their calls: over rows of a tensor,
 * or over other items.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

/* Time of a loop that earlier stages claimed. */
struct claimed {
	int64_t ns, backward_ns;
	uint32_t calls; /* calls directly in the loop that are claimed at least in part */
	bool explained;
};

/* A specific cause in every other iteration, as in a loop of concatenations, explains the loop, whatever its share of
 * the time, unless that is close to zero. Reading values is part of such loops, so only its share of the time
 * decides. */
static bool is_explained(const struct advice_loop *loop, const struct claimed *claimed)
{
	int64_t claimed_ns = ops_sum(claimed->ns, claimed->backward_ns), all_ns = ops_sum(loop->span_ns, loop->backward_ns);

	if (advice_is_explained(claimed_ns, all_ns))
		return true;
	return !loop->reads && claimed_ns > all_ns / 50 && claimed->calls >= loop->iterations / 2;
}

/* Iterations that depend on each other and have more operators than a recurrent cell (an LSTM written out has about
 * fifteen) are a model that is called repeatedly, such as a sampler or a decoder. They cannot be computed at once, nor can those of a
 * small model that looks up the token that it chose before. */
#define CELL_OPERATORS 20

static bool is_sequence(const struct advice_loop *loop)
{
	return loop->recurrent && (loop->operators > CELL_OPERATORS * loop->iterations || (loop->chooses && loop->looks_up));
}

static bool calls_different_modules(const struct advice_loop *loop)
{
	return loop->modules > loop->iterations / 2;
}

/* Every iteration calls another module on the result of the previous one: these are layers of a model, which no operator computes at
 * once. Tables or heads that do not depend on each other can be joined. Without storages, dependencies are unknown. */
static bool is_layers(const struct advice *advice, const struct advice_loop *loop)
{
	return calls_different_modules(loop) && (loop->recurrent || !(advice->has & ADVICE_NEEDS_STORAGES));
}

/* Python code takes most of the loop, so that larger operators would change little. A loop over rows would not need that code, either, unless
 * it is in calls that compute something else. */
#define OPERATORS_SHARE 8

static bool is_python(const struct advice_loop *loop)
{
	if (loop->apart_ns > loop->span_ns / 2)
		return true;
	return !loop->slices && loop->operators_ns < loop->span_ns / OPERATORS_SHARE;
}

/* The engine runs node after node, in no loop of the program. */
static bool cannot_be_one_operator(const struct advice *advice, const struct advice_loop *loop)
{
	return is_sequence(loop) || is_layers(advice, loop) || is_python(loop) || advice_is_node(advice, loop->row);
}

/* Loops that change separate tensors in place, such as parameters, can use functions torch._foreach_…. On the CPU those
 * call the same operators one after another, and save only the time in Python. */
static bool becomes_foreach(const struct advice *advice, const struct advice_loop *loop)
{
	return !(advice->has & ADVICE_NEEDS_DEVICE) && advice_loop_updates(loop);
}

#define COMPARISONS_MIN 16 /* minimum number of comparisons of a value with numbers in a loop */
#define ONE_FOR_ALL 4.0    /* comparisons that take as long as one operator for all numbers, such as bincount */

/* Returns whether an operator compares a value that was made before the loop with a Python number. */
static bool compares(const struct advice *advice, const struct advice_loop *loop, const uint8_t *names, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	uint32_t maker;

	if (!names[advice->events->name[row]] || flow->nodes[row].count != 1)
		return false;
	maker = flow->values[flow->uses.items[flow->nodes[row].first].value].node;
	return maker == OPS_NONE || maker < loop->begin;
}

/* Returns whether all values that an operator reads are masks from comparisons, or results of them. */
static bool reads_masks(const struct advice *advice, const uint8_t *masks, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	bool reads = false;

	for (uint32_t i = 0; i < flow->nodes[row].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[row].first + i];

		if (use->kind < DATA_SELECTS)
			continue;
		if (flow->values[use->value].node == OPS_NONE || !masks[flow->values[use->value].node])
			return false;
		reads = true;
	}
	return reads;
}

/* Finds the time that loops pass over the same values in each iteration, to compare them with another number, beyond one pass for all
 * numbers. Returns it by loop; NULL if out of memory. */
static int64_t *find_comparisons(const struct advice *advice)
{
	static const char *const comparisons[] = {"aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge", NULL};
	uint8_t *names = advice_names(advice, comparisons), *masks = ops_alloc_zeroed(advice->events->count + 1, 1);
	int64_t *again_ns = ops_alloc_zeroed(advice->loops.count + 1, sizeof(*again_ns));
	uint32_t *counts = ops_alloc_zeroed(advice->loops.count + 1, sizeof(*counts));
	bool done = names && masks && again_ns && counts;

	for (uint32_t row = 0; done && advice->flow && row < advice->events->count; row++) {
		uint32_t index = advice->loop_of[row];
		bool begins;

		if (index == OPS_NONE || !advice_is_operator(advice, row) || advice->flow->memory.rows.node[row] != row ||
		    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPERATOR)))
			continue;
		begins = compares(advice, &advice->loops.items[index], names, row);
		masks[row] = begins || reads_masks(advice, masks, row);
		counts[index] += begins;
		again_ns[index] += masks[row] ? advice_ns(advice, row) : 0;
	}
	for (size_t i = 0; done && i < advice->loops.count; i++)
		again_ns[i] = counts[i] < COMPARISONS_MIN ? 0 : (int64_t)((double)again_ns[i] * (1 - ONE_FOR_ALL / counts[i]));
	ops_free(names);
	ops_free(masks);
	ops_free(counts);
	if (!done) {
		ops_free(again_ns);
		again_ns = NULL;
	}
	return again_ns;
}

/* One iteration and the work of large operators remain; of short chains of dependent iterations as many as in the longest. The backward pass shrinks by the same share. */
static int64_t gain_of(const struct advice *advice, const struct advice_loop *loop, const struct claimed *claimed, int64_t again_ns)
{
	int64_t span_ns = loop->span_ns, gain_ns;
	int64_t work_ns = loop->work_ns > again_ns ? loop->work_ns - again_ns : 0;
	uint32_t left;

	left = loop->recurrent || !loop->chain ? 1 : loop->chain + 1;
	gain_ns = span_ns - claimed->ns - (int64_t)((double)span_ns * left / loop->iterations) -
	          (becomes_foreach(advice, loop) ? loop->operators_ns : work_ns);
	if (cannot_be_one_operator(advice, loop))
		return 0;
	if (!loop->small || span_ns <= 0 || gain_ns <= 0 || claimed->explained)
		return 0;
	return gain_ns + (int64_t)((double)loop->backward_ns * (double)gain_ns / (double)span_ns);
}

/* Returns claimed times by loop; NULL if out of memory. */
static struct claimed *find_claimed(const struct advice *advice)
{
	struct claimed *claimed = ops_alloc_zeroed(advice->loops.count + 1, sizeof(*claimed));
	uint8_t *explained = ops_alloc_zeroed(advice->loops.count + 1, 1);

	for (uint32_t row = 0; claimed && row < advice->events->count; row++) {
		uint32_t index = advice->loop_of[row];

		if (index == OPS_NONE || advice->loops.items[index].parent != advice->events->parent[row])
			continue;
		claimed[index].calls += advice->claimed_ns[row] > 0;
		claimed[index].ns = ops_sum(claimed[index].ns, advice->claimed_ns[row]);
		claimed[index].backward_ns = ops_sum(claimed[index].backward_ns, advice->backward_claimed_ns[row]);
	}
	for (size_t i = 0; claimed && explained && i < advice->loops.count; i++)
		explained[i] = is_explained(&advice->loops.items[i], &claimed[i]);
	if (!claimed || !explained || !advice_loops_agree(advice, explained, 2)) {
		ops_free(claimed);
		claimed = NULL;
	}
	for (size_t i = 0; claimed && i < advice->loops.count; i++)
		claimed[i].explained = explained[i];
	ops_free(explained);
	return claimed;
}

/* Returns true if other rules explain the entire loop, whatever its gain. */
static bool is_claimed(const struct advice *advice, const struct advice_loop *loop, bool slices)
{
	return loop->small && !cannot_be_one_operator(advice, loop) && loop->slices == slices;
}

/* Claims the loops, and the self time of their functions in between. */
static void rule_python_loop_claim(struct advice_result *result, bool slices)
{
	const struct advice *advice = result->advice;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t index = advice->loop_of[row];
		const struct advice_loop *loop = index == OPS_NONE ? NULL : &advice->loops.items[index];

		if (loop && loop->parent == advice->events->parent[row] && is_claimed(advice, loop, slices))
			advice_claim(result, row);
	}
	for (size_t i = 0; i < advice->loops.count; i++) {
		const struct advice_loop *loop = &advice->loops.items[i];

		if (is_claimed(advice, loop, slices) && loop->span_ns > loop->inside_ns)
			advice_claim_self(result, loop->parent, loop->span_ns - loop->inside_ns);
	}
}

static const char reads[] =
	"Its iterations read values of tensors (.item(), bool(tensor)). Each read waits for all work before it, and "
	"synchronizes with a device. Keep the values as tensors, and read once after the loop.";

static const char modules[] =
	"Its iterations call different modules that do not depend on each other. Join their weights: one table with an offset for each "
	"column in place of many tables, one wider layer, or torch.func.stack_module_state with torch.vmap.";

static const char gradients[] =
	"Its iterations run a forward and a backward pass each. If these do not depend on each other, torch.func.vmap(torch.func.grad(loss), in_dims=…) "
	"computes the gradients of all samples at once.";

static const char dependent[] =
	"Its iterations depend on each other, so that they cannot be computed at once, unless they are a recurrent layer or a running sum (nn.LSTM, cumsum, logcumsumexp). "
	"torch.compile can fuse the operators of an iteration.";

static const char cells[] =
	"Its iterations call a recurrent cell. If the inputs of all iterations are known before the loop, nn.GRU, nn.LSTM or nn.RNN computes "
	"them in one call, with the same weights.";

/* Returns whether a loop with a gain calls a recurrent cell in each iteration. */
static bool calls_cells(const struct advice *advice, const int64_t *gains_ns)
{
	static const char *const names[] = {"aten::gru_cell", "aten::lstm_cell", "aten::rnn_relu_cell", "aten::rnn_tanh_cell", NULL};

	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->loop_of[row] != OPS_NONE && gains_ns[advice->loop_of[row]] > 0 && advice_is_operator(advice, row) &&
		    advice_text_like(advice_name(advice, row), names))
			return true;
	return false;
}

/* Adds the other lines of the loops, and those of their statements, with at most half of the gain, so that the line with the highest cost stays first. */
static void add_lines(struct advice_result *result, const int64_t *gains_ns)
{
	const struct advice *advice = result->advice;
	uint64_t events = result->tally.events;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t index = advice->loop_of[row];
		const struct advice_loop *loop = index == OPS_NONE ? NULL : &advice->loops.items[index];

		if (!loop || gains_ns[index] <= 0 || loop->parent != advice->events->parent[row] || loop->span_ns <= 0 || loop->inner != index ||
		    advice->site[row] == OPS_NONE || advice->site[row] == advice->site[loop->row])
			continue;
		advice_add(result, row, (int64_t)((double)gains_ns[index] * (double)advice_ns(advice, row) / (double)loop->span_ns / 2));
	}
	for (size_t i = 0; i < advice->loops.count; i++) {
		const struct advice_loop *inner = &advice->loops.items[advice->loops.items[i].inner];

		if (gains_ns[i] > 0 && inner->header != OPS_NONE)
			advice_add_at(result, inner->header, inner->row, gains_ns[i] / 2);
		if (gains_ns[i] > 0 && inner->outer_header != OPS_NONE)
			advice_add_at(result, inner->outer_header, inner->row, gains_ns[i] / 2);
	}
	result->tally.events = events;
}

/* Adds the dictionaries of parameters that functions with such loops make in each step: lists of the tensors can be kept. Returns their
 * time; -1 if out of memory. */
static int64_t add_dictionaries(struct advice_result *result)
{
	const struct advice *advice = result->advice;
	uint8_t *updates = advice_updating_functions(advice);
	int64_t sum_ns = updates ? 0 : -1;

	for (uint32_t row = 0; updates && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		int64_t ns;

		if (parent == OPS_NONE || !updates[parent] || !ops_string_ends(advice_name(advice, row), ": Module.state_dict") || !advice_counts(advice, row) ||
		    advice_is_claimed(result, row))
			continue;
		ns = advice_claim(result, row);
		advice_add(result, row, ns / 2);
		sum_ns = ops_sum(sum_ns, ns);
	}
	ops_free(updates);
	return sum_ns;
}

static bool rule_python_loop_find(const struct advice *advice, struct advice_result *result, bool slices)
{
	struct claimed *claimed = find_claimed(advice);
	int64_t *again_ns = find_comparisons(advice);
	int64_t *gains_ns = ops_alloc_zeroed(advice->loops.count + 1, sizeof(*gains_ns));
	int64_t dictionaries_ns;
	char dictionaries[96] = "";
	double all_ns;
	uint64_t operators = 0, iterations = 0;
	double spent_ns = 0, backward_ns = 0, dependent_ns = 0, steered_ns = 0, differentiated_ns = 0;
	char backward[96] = "";
	bool in_place = false, done = claimed && again_ns && gains_ns;

	for (size_t i = 0; done && i < advice->loops.count; i++) {
		const struct advice_loop *loop = &advice->loops.items[i];
		int64_t gain_ns = gain_of(advice, loop, &claimed[i], again_ns[i]);

		if (loop->slices != slices || gain_ns <= 0)
			continue;
		advice_add(result, advice->loops.items[loop->inner].row, gain_ns);
		gains_ns[i] = gain_ns;
		if (loop->reads || calls_different_modules(loop))
			result->detail = loop->reads ? reads : modules;
		in_place |= becomes_foreach(advice, loop);
		steered_ns += loop->reads && loop->modules ? (double)loop->span_ns : 0;
		differentiated_ns += loop->differentiates ? (double)loop->span_ns : 0;
		dependent_ns += loop->recurrent ? (double)loop->span_ns : 0;
		spent_ns += (double)loop->span_ns;
		backward_ns += (double)loop->backward_ns;
		operators += loop->operators;
		iterations += loop->iterations;
	}
	if (differentiated_ns > spent_ns / 2)
		result->detail = gradients;
	/* Such a recursion has an operator only if it is a recurrent layer or a running sum. */
	if (dependent_ns > spent_ns / 2) {
		result->confidence = ADVICE_UNSURE;
		result->detail = dependent;
	}
	/* What a model returns, and Python reads, may decide what the next iteration does: a search in a tree, or steps of an environment. */
	if (steered_ns > spent_ns / 2)
		result->confidence = ADVICE_UNSURE;
	if (done && calls_cells(advice, gains_ns)) {
		result->confidence = ADVICE_LIKELY;
		result->detail = cells;
	}
	if (backward_ns > 0)
		snprintf(backward, sizeof(backward), ", and %s in the backward pass", advice_time(advice_step_ms(advice, backward_ns)).text);
	all_ns = (double)result->tally.ns;
	if (done)
		add_lines(result, gains_ns);
	if (done && !slices && result->tally.events) {
		dictionaries_ns = add_dictionaries(result);
		done = dictionaries_ns >= 0;
		all_ns += (double)dictionaries_ns;
		if (dictionaries_ns > 0)
			snprintf(dictionaries, sizeof(dictionaries), "; state_dict() for them takes %s",
			         advice_time(advice_step_ms(advice, (double)dictionaries_ns)).text);
	}
	done = done && advice_report_gain(result, all_ns, "Loops of %s in each step call %s in %s%s%s%s.",
	                                   advice_counted(advice, iterations, "iteration", "iterations").text,
	                                   advice_counted(advice, operators, "small operator", "small operators").text,
	                                   advice_spent(advice, spent_ns).text, backward,
	                                   in_place ? "; they change tensors in place, so only the time in Python counts" : "", dictionaries);
	if (done)
		rule_python_loop_claim(result, slices);
	ops_free(claimed);
	ops_free(again_ns);
	ops_free(gains_ns);
	return done;
}

static bool rule_python_loop_find_rows(const struct advice *advice, struct advice_result *result)
{
	return rule_python_loop_find(advice, result, true);
}

static bool find_small(const struct advice *advice, struct advice_result *result)
{
	return rule_python_loop_find(advice, result, false);
}

const struct advice_rule advice_rule_rows = {
	.id = "python-loop-over-rows",
	.title = "A Python loop iterates over the rows of a tensor",
	.condition = "A function of the program makes 16 or more calls at one line, with small operators that select rows. Confidence is low if "
		     "most of the iterations depend on each other, or call a module and read values.",
	.gain = "all iterations but one, less the work of large operators, unless they compare the same values with another number each time, with the backward pass",
	.explanation = "Every iteration pays for Python, for the dispatch of its operators and for their outputs, and in the "
		       "backward pass for a node each. The arithmetic on one row takes almost no time.",
	.advice = "Express it for all rows at once: broadcasting, torch.where, gather/scatter, cumsum, bmm, torch.vmap. To "
		  "check: fewer operators in a step.",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.vmap.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_ROW_LOOPS,
	.confidence = ADVICE_SURE,
	.find = rule_python_loop_find_rows,
};

const struct advice_rule advice_rule_small = {
	.id = "many-small-operators",
	.title = "A loop calls many small operators",
	.condition = "A function of the program makes 16 or more calls at one line, with small operators. Loops that call a "
		       "different module on the result of the previous one in each iteration (the layers of a model), loops of which Python code takes more than seven "
		       "eighths, and code generated by Inductor, do not count. Confidence is low if most of the iterations depend on each other. If the operators change tensors in place, as those on parameters do, only the time in Python "
		       "counts: on the CPU, functions torch._foreach_… call the same operators.",
	.gain = "all iterations but one, less the work of large operators, with the backward pass",
	.explanation = "A call of an operator costs microseconds, independent of its size. These operators do little work beyond that.",
	.advice = "Stack the tensors and compute once, use the functions torch._foreach_…, or let torch.compile fuse them. To "
		       "check: fewer operators in a step.",
	.link = "https://docs.pytorch.org/docs/stable/torch.compiler.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_LOOPS,
	.confidence = ADVICE_LIKELY,
	.find = find_small,
};

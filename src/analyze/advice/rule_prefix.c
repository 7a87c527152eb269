/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences that are computed again from their beginning for each new token: the same operator gets an input that is
 * longer by the same number of tokens each time, as in a decoder without a cache of keys and values.
 */
#include <stdlib.h>

#include <opstrobe/internal/format.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/order.h"

/* Minimum number of lengths in a row, each longer than the last by the same number of tokens. Batches sorted by length
 * are not so regular. */
#define LENGTHS_MIN 8

/* Consecutive calls of an operator at a line with inputs of the same shape, such as those of the layers of a model. */
struct run {
	uint32_t operator_number; /* by line, name and last dimension */
	uint32_t first, last;
};

/* A call that computes a sequence: everything that one iteration does. */
struct pass {
	uint32_t row;
	uint32_t parent; /* the row that contains all iterations; rows of steps are left out */
	int64_t length;
};

struct prefixes {
	struct ops_map operators;
	OPS_ARRAY(uint32_t) current; /* by operator: index of its current run */
	OPS_ARRAY(struct run) runs;
	OPS_ARRAY(struct pass) passes; /* of one streak */
	int64_t by;                    /* tokens added in each of them */
	uint64_t calls;
	int64_t shortest, longest, all, again; /* tokens; `again`: those that a call before has computed */
};

/* Gets the input whose dimensions are batch, length and, but for tokens, features. */
static bool get_sequence(const struct advice *advice, const uint8_t *which, uint32_t row, struct ops_input *ret_input)
{
	bool tokens = which[advice->events->name[row]] == 1;

	return advice_input(advice, row, tokens ? 1 : 0, ret_input) && ops_input_is_tensor(ret_input->tag) &&
	       ret_input->n >= (tokens ? 2u : 3u);
}

/* Returns by how much one dimension other than the first and, but for tokens, the last is larger; 0 if all are the same, and a
 * negative number if they differ in another way. */
static int64_t rule_prefix_growth(const struct advice *advice, const uint8_t *which, uint32_t row, uint32_t other, int64_t *ret_length)
{
	struct ops_input before, after;
	int64_t by = 0;

	if (!get_sequence(advice, which, row, &before) || !get_sequence(advice, which, other, &after) || before.n != after.n)
		return -1;
	for (size_t i = 0; i < after.n; i++) {
		int64_t length = ops_input_int(&after, i), more = ops_difference(length, ops_input_int(&before, i));

		if (!more)
			continue;
		if (by || more < 0 || !i || (i + 1 == after.n && which[advice->events->name[row]] != 1))
			return -1;
		by = more;
		*ret_length = length;
	}
	return by;
}

static bool add_to_runs(struct prefixes *prefixes, const struct advice *advice, const uint8_t *which, uint32_t row)
{
	struct ops_input input;
	uint64_t key = advice->site[row];
	uint32_t number, *current;
	int64_t length;
	struct run *run;

	if (!get_sequence(advice, which, row, &input))
		return true;
	key = key * 0x9e3779b97f4a7c15u + advice->events->name[row];
	key = key * 0x9e3779b97f4a7c15u + (which[advice->events->name[row]] == 1 ? 0 : (uint64_t)ops_input_int(&input, input.n - 1));
	number = ops_map_number(&prefixes->operators, key);
	current = OPS_ARRAY_AT(&prefixes->current, number);
	if (!current)
		return false;
	run = *current ? &prefixes->runs.items[*current - 1] : NULL;
	if (run && rule_prefix_growth(advice, which, run->first, row, &length) == 0) {
		run->last = row;
		return true;
	}
	if (!OPS_ARRAY_APPEND(&prefixes->runs, (struct run){number, row, row}))
		return false;
	*current = (uint32_t)prefixes->runs.count;
	return true;
}

/* Finds the innermost row around both, and the row directly below it that contains `row`. A row precedes those inside it. */
static struct pass find_pass(const struct advice *advice, uint32_t row, uint32_t other)
{
	const uint32_t *parents = advice->events->parent;
	struct pass pass = {row, OPS_NONE, 0};

	while (row != other && row != OPS_NONE && other != OPS_NONE) {
		if (row < other) {
			other = parents[other];
			continue;
		}
		if (advice->views->parts[row] != VIEW_STEP)
			pass.row = row;
		row = parents[row];
	}
	pass.parent = row == other ? row : OPS_NONE;
	return pass;
}

static int64_t rule_prefix_median_ns(const struct advice *advice, const struct pass *passes, size_t count, int64_t *ns)
{
	for (size_t i = 0; i < count; i++)
		ns[i] = advice_ns(advice, passes[i].row);
	return ops_sort_to_middle(ns, count);
}

/* Adds what the calls of a streak would save if each got only the new tokens: its time less that of a call with as many
 * tokens, according to how the time grows with the length. */
static bool add_streak(struct prefixes *prefixes, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	const struct pass *passes = prefixes->passes.items;
	size_t count = prefixes->passes.count, third = count / 3;
	int64_t *ns, first_ns, last_ns;
	double each_ns, few_ns;

	if (count < LENGTHS_MIN)
		return true;
	ns = ops_alloc_zeroed(count, sizeof(*ns));
	if (!ns)
		return false;
	first_ns = rule_prefix_median_ns(advice, passes, third, ns);
	last_ns = rule_prefix_median_ns(advice, passes + count - third, third, ns);
	ops_free(ns);
	each_ns = (double)(last_ns - first_ns) / (double)(passes[count - third + third / 2].length - passes[third / 2].length);
	few_ns = (double)first_ns - each_ns * (double)(passes[third / 2].length - prefixes->by);
	few_ns = few_ns > 0 ? few_ns : 0;
	for (size_t i = 1; i < count && each_ns > 0; i++) {
		double all_ns = (double)advice_ns(advice, passes[i].row), share = all_ns > few_ns ? 1 - few_ns / all_ns : 0;
		double again = 1 - (double)prefixes->by / (double)passes[i].length;

		if (!advice_counts(advice, passes[i].row) || advice_is_claimed(result, passes[i].row))
			continue;
		advice_add_share(result, passes[i].row, share < again ? share : again);
		result->claimed[passes[i].row] = 1;
		prefixes->calls++;
		prefixes->all = ops_sum(prefixes->all, passes[i].length);
		prefixes->again = ops_sum(prefixes->again, passes[i].length - prefixes->by);
		prefixes->longest = passes[i].length > prefixes->longest ? passes[i].length : prefixes->longest;
		if (!prefixes->shortest || passes[i].length < prefixes->shortest)
			prefixes->shortest = passes[i].length;
	}
	return true;
}

/* Adds the pass of a run that follows another run of its operator. */
static bool follow(struct prefixes *prefixes, struct advice_result *result, const uint8_t *which, const struct run *run)
{
	const struct advice *advice = result->advice;
	int64_t length = 0, by = rule_prefix_growth(advice, which, run[-1].first, run->first, &length);
	struct pass pass = find_pass(advice, run->first, run[-1].first), before = find_pass(advice, run[-1].first, run->first);
	bool passes = by > 0 && pass.parent != OPS_NONE && advice->events->end_ns[run->last] <= advice->events->end_ns[pass.row] &&
	              advice->events->end_ns[run[-1].last] <= advice->events->end_ns[before.row];

	pass.length = length;
	before.length = length - by;
	if (!passes || by != prefixes->by || !prefixes->passes.count ||
	    prefixes->passes.items[prefixes->passes.count - 1].parent != pass.parent ||
	    prefixes->passes.items[prefixes->passes.count - 1].row != before.row) {
		if (!add_streak(prefixes, result))
			return false;
		prefixes->passes.count = 0;
		prefixes->by = by;
		if (!passes)
			return true;
		if (!OPS_ARRAY_APPEND(&prefixes->passes, before))
			return false;
	}
	return OPS_ARRAY_APPEND(&prefixes->passes, pass);
}

OPS_ORDER(compare_runs, struct run, OPS_UP(operator_number) OPS_UP(first))

static bool find_streaks(struct prefixes *prefixes, struct advice_result *result, const uint8_t *which)
{
	OPS_ARRAY_SORT(&prefixes->runs, compare_runs);
	for (size_t i = 1; i < prefixes->runs.count; i++) {
		const struct run *run = &prefixes->runs.items[i];

		if (run->operator_number == run[-1].operator_number) {
			if (!follow(prefixes, result, which, run))
				return false;
			continue;
		}
		if (!add_streak(prefixes, result))
			return false;
		prefixes->passes.count = 0;
	}
	return add_streak(prefixes, result);
}

static const char *const names[] = {"aten::embedding", "aten::linear", "aten::_transformer_encoder_layer_fwd", NULL};

static bool rule_prefix_find(const struct advice *advice, struct advice_result *result)
{
	struct prefixes prefixes = {0};
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (result->which[advice->events->name[row]] && advice->site[row] != OPS_NONE && !advice->backward_ns[row] &&
		    !(advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD | ADVICE_IN_LOADER)))
			done = add_to_runs(&prefixes, advice, result->which, row);
	done = done && find_streaks(&prefixes, result, result->which);
	done = done && advice_report_costs(result, "%s a sequence of %lld to %lld tokens from its beginning, "
	                                           "each time a little longer. %s of the tokens have been computed before; that takes %s.",
	                                   advice_counted(advice, prefixes.calls, "call in each step computes", "calls in each step compute").text,
	                                   (long long)prefixes.shortest,
	                                   (long long)prefixes.longest,
	                                   ops_figure_of_percent(prefixes.all ? 100 * (double)prefixes.again / (double)prefixes.all : 0).text,
	                                   advice_cost(result).text);
	ops_map_release(&prefixes.operators);
	OPS_ARRAY_RELEASE(&prefixes.current);
	OPS_ARRAY_RELEASE(&prefixes.runs);
	OPS_ARRAY_RELEASE(&prefixes.passes);
	return done;
}

const struct advice_rule advice_rule_prefix = {
	.id = "decode-without-cache",
	.title = "Earlier tokens are computed again for each new one",
	.condition = "Without a backward pass, eight or more calls get sequences that are longer each time, by the same number of "
		     "tokens: inputs of embeddings, linear layers or encoder layers whose first dimension is the batch.",
	.gain = "the time of the calls, less that of calls with only the new tokens, as it follows from how their time grows with "
		"the length",
	.explanation = "The results of a causal model for a token do not depend on later tokens. Computing all of them again takes "
		       "time that grows with the square of the length.",
	.advice = "Keep the keys and values of earlier tokens (a KV cache), and pass only the new tokens. In transformers, that is "
		  "use_cache=True or past_key_values. To check: after the first call, linear layers get inputs of length 1.",
	.link = "https://huggingface.co/docs/transformers/kv_cache",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_REPEATED,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.find = rule_prefix_find,
};

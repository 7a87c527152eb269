/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer in a loop whose results only code behind the loop reads: it can run once, on all inputs together.
 *
 *     for word in words:                        hidden = []
 *         h = cell(word, h)                     for word in words:
 *         logits.append(vocabulary(h))              h = cell(word, h)
 *     torch.stack(logits)                           hidden.append(h)
 *                                               vocabulary(torch.stack(hidden))
 *
 * The backward pass then makes one gradient of the weight in place of one for each iteration, and a sum of all.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define CALLS_MIN 8        /* minimum number of calls with the same weight in one call of a function */
#define BACKWARD_PASSES 2  /* products in the backward pass, each with as many operations as the forward pass */

/* Products with the input that is the weight, 1-based. */
static const struct advice_named products[] = {{"aten::linear", 2}, {"aten::mm", 2}, {"aten::matmul", 2}, {"aten::addmm", 3}, {NULL, 0}};

/* The calls with one weight in one call of a function. */
struct after_loop_group {
	uint32_t calls;
	uint32_t last;       /* the last of them */
	bool is_read_within; /* an operator between them reads a result */
};

struct after_loop_search {
	uint8_t *products; /* by name: 1-based index of the weight; 0: none */
	struct ops_map by_key;
	OPS_ARRAY(struct after_loop_group) groups;
};

/* Returns the group of a row; NULL if it is none of these products. Sets `*ret_failed` if out of memory. */
static struct after_loop_group *after_loop_group_of(struct after_loop_search *search, const struct advice *advice, uint32_t row, bool *ret_failed)
{
	uint8_t weight = search->products[advice->events->name[row]];
	struct ops_storage storage;
	struct after_loop_group *group;
	uint32_t function;
	uint64_t key;

	if (!weight || !advice_counts(advice, row) || advice->flow->memory.rows.node[row] != row || advice->site[row] == OPS_NONE ||
	    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) ||
	    !ops_event_storage(advice->trace, row, (size_t)weight - 1, &storage))
		return NULL;
	function = advice_function_around(advice, row);
	if (function == OPS_NONE)
		return NULL;
	key = (uint64_t)function << 32 | advice->site[row];
	group = OPS_ARRAY_AT(&search->groups, ops_map_number(&search->by_key, (key ^ storage.address) * 0x9e3779b97f4a7c15u));
	*ret_failed |= !group;
	return group;
}

/* Returns whether an operator up to the row `last` reads a result of a node. */
static bool is_read_until(const struct advice *advice, uint32_t node, uint32_t last)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		if (data_flow_is_scratch(flow, node, value))
			continue;
		for (uint32_t use = flow->values[value].first; use != OPS_NONE; use = flow->uses.items[use].next)
			if (flow->uses.items[use].node > node && flow->uses.items[use].node <= last)
				return true;
	}
	return false;
}

/* Finds the groups. Returns false if out of memory. */
static bool after_loop_find_groups(struct after_loop_search *search, const struct advice *advice)
{
	bool failed = false;

	for (uint32_t row = 0; !failed && row < advice->events->count; row++) {
		struct after_loop_group *group = after_loop_group_of(search, advice, row, &failed);

		if (!group)
			continue;
		group->calls++;
		group->last = row;
	}
	for (uint32_t row = 0; !failed && row < advice->events->count; row++) {
		struct after_loop_group *group = after_loop_group_of(search, advice, row, &failed);

		if (group && group->calls >= CALLS_MIN && !group->is_read_within)
			group->is_read_within = is_read_until(advice, row, group->last);
	}
	return !failed;
}

/* Returns the share of the time of a call and its backward pass that one product for all calls saves. */
static double after_loop_share(const struct advice *advice, uint32_t row)
{
	double all_ns = (double)ops_sum(advice_left_ns(advice, row), advice_backward_left_ns(advice, row)), needed_ns;

	if (!(advice->flops_per_ns > 0) || all_ns <= 0 || !advice->demands[row].bytes)
		return 0;
	needed_ns = (double)advice->demands[row].flops / advice->flops_per_ns * (advice->backward_ns[row] ? 1 + BACKWARD_PASSES : 1);
	return needed_ns < all_ns ? 1 - needed_ns / all_ns : 0;
}

static bool rule_after_loop_find(const struct advice *advice, struct advice_result *result)
{
	struct after_loop_search search = {.products = advice_named_kinds(advice, products)};
	bool failed = !search.products || !after_loop_find_groups(&search, advice);
	uint64_t calls = 0;

	for (uint32_t row = 0; !failed && row < advice->events->count; row++) {
		const struct after_loop_group *group = after_loop_group_of(&search, advice, row, &failed);
		double share = group && group->calls >= CALLS_MIN && !group->is_read_within ? after_loop_share(advice, row) : 0;

		if (!(share > 0) || advice_is_claimed(result, row))
			continue;
		advice_add_share(result, row, share);
		result->claimed[row] = 1;
		calls++;
	}
	if (!failed && calls)
		failed = !advice_report_costs(result, "%s of layers in loops in each step make results that only operators behind the loop read. Together with their "
		                              "backward pass they take %s more than one call for all.",
		                              advice_counted(advice, calls, "call", "calls").text, advice_cost(result).text);
	ops_free(search.products);
	ops_map_release(&search.by_key);
	OPS_ARRAY_RELEASE(&search.groups);
	return !failed;
}

const struct advice_rule advice_rule_after_loop = {
	.id = "layer-in-loop",
	.title = "A layer runs in each iteration of a loop that does not use its results",
	.condition = "A product with the same matrix, such as that of a linear layer, runs eight times or more in one call of a function, and no operator reads a result before the last of "
		     "them has ended.",
	.gain = "the time of the products and of their backward pass, less that of their operations at the highest speed of an operator in the trace",
	.explanation = "Each small product reads all of the matrix. In the backward pass, each makes a gradient as large as the matrix, and all of them are added up.",
	.advice = "Collect the inputs, and call the layer once behind the loop. To check: one call of the layer in each step.",
	.code = "for word in words:\n"
		"    h = cell(word, h)\n"
		"    hidden.append(h)\n"
		"logits = vocabulary(torch.stack(hidden, dim=1))  # in place of a call in each iteration",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_REPEATED,
	.confidence = ADVICE_LIKELY,
	.find = rule_after_loop_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that grow by concatenation: each output is the first input of the next concatenation, so each copies
 * everything.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Minimum length of a chain that counts as a loop. */
#define CHAIN_MIN 4

/* Concatenations at one line, each of which begins with the previous output. */
struct chain {
	int64_t last;   /* number of elements of the last output */
	int64_t copied; /* number of elements of all outputs */
	uint32_t links;
};

struct link {
	uint32_t row;
	uint32_t chain;
};

struct growing {
	OPS_ARRAY(struct chain) chains;
	OPS_ARRAY(struct link) links;
	uint32_t *current; /* by place: the current chain, 1-based */
};

static bool sizes(const struct advice *advice, uint32_t row, int64_t *ret_first, int64_t *ret_all)
{
	struct ops_input list, item;
	struct ops_input_cursor cursor;

	*ret_first = -1;
	*ret_all = 0;
	if (!advice_input(advice, row, 0, &list) || list.tag != OPS_INPUT_TENSOR_LIST)
		return false;
	cursor = ops_input_items(&list);
	while (ops_inputs_next(&cursor, &item)) {
		int64_t elements = advice_input_elements(&item);

		*ret_first = *ret_first < 0 ? elements : *ret_first;
		*ret_all = ops_sum(*ret_all, elements);
	}
	return *ret_first > 0;
}

static bool rule_concatenation_add_link(struct growing *growing, const struct advice *advice, uint32_t row, int64_t first,
                                        int64_t all)
{
	uint32_t *current = &growing->current[advice->site[row] == OPS_NONE ? advice->sites.count : advice->site[row]];
	struct chain *chain = *current ? &growing->chains.items[*current - 1] : NULL;
	struct link *link = OPS_ARRAY_PUSH(&growing->links);

	if (!chain || first != chain->last || all <= first) {
		chain = OPS_ARRAY_PUSH(&growing->chains);
		if (!chain)
			return false;
		*chain = (struct chain){0};
		*current = (uint32_t)growing->chains.count;
	}
	if (!link)
		return false;
	*link = (struct link){row, *current - 1};
	chain->links++;
	chain->last = all;
	chain->copied = ops_sum(chain->copied, all);
	return true;
}

static const char *const names[] = {"aten::cat", NULL};

static bool find_chains(struct growing *growing, const struct advice_result *result)
{
	const struct advice *advice = result->advice;
	bool done;

	growing->current = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*growing->current));
	done = growing->current != NULL;
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		int64_t first, all;

		/* A chain may continue from step to step, including unsteady steps. */
		if (result->which[advice->events->name[row]] && !advice->claimed[row] &&
		    sizes(advice, row, &first, &all))
			done = rule_concatenation_add_link(growing, advice, row, first, all);
	}
	return done;
}

static bool rule_concatenation_find(const struct advice *advice, struct advice_result *result)
{
	struct growing growing = {.current = NULL};
	bool done = find_chains(&growing, result);

	for (size_t i = 0; done && i < growing.links.count; i++) {
		const struct link *link = &growing.links.items[i];
		const struct chain *chain = &growing.chains.items[link->chain];

		/* Copying the final tensor once is still required. */
		if (advice_counts(advice, link->row) && chain->links >= CHAIN_MIN && chain->copied > chain->last)
			advice_add_share(result, link->row, 1 - (double)chain->last / (double)chain->copied);
	}
	done = done && advice_report_costs(result, "%s concatenations in each step append to the output of the previous one. "
	                                           "All copying but once takes %s.",
	                                   advice_events(result).text, advice_cost(result).text);
	OPS_ARRAY_RELEASE(&growing.chains);
	OPS_ARRAY_RELEASE(&growing.links);
	ops_free(growing.current);
	return done;
}

const struct advice_rule advice_rule_concatenation = {
	.id = "quadratic-concatenation",
	.title = "A tensor grows by concatenation in a loop",
	.condition = "At one line, the first input of aten::cat has the size of the previous output, four times or more, "
		     "within a step or across steps.",
	.gain = "all copying but once, forward and backward",
	.explanation = "Each torch.cat copies everything before it: n calls copy n²/2 parts.",
	.advice = "Collect the parts in a list and concatenate once after the loop, or write into a tensor of the final size: "
		  "out[i : i + n] = part. To check: one aten::cat instead of many.",
	.code = "parts.append(part)  # in place of out = torch.cat([out, part])\n"
		"out = torch.cat(parts)  # behind the loop",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.cat.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_SURE,
	.names = names,
	.find = rule_concatenation_find,
};

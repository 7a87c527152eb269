/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that grow by concatenation: each output is the first input of the next concatenation, so each copies
 * everything.
 */
#include "analyze/advice/advice.h"

/* Minimum length of a chain that counts as a loop. */
#define CHAIN_MIN 4

/* Concatenations at one line, each of which begins with the previous output. */
struct chain {
	uint32_t site;
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
	struct ops_map current; /* by place and size: the chain whose last output has the size. Several tensors may grow at a line */
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

static uint64_t chain_key(uint32_t site, int64_t elements)
{
	return ((uint64_t)site + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)elements;
}

static bool rule_concatenation_add_link(struct growing *growing, const struct advice *advice, uint32_t row, int64_t first,
                                        int64_t all)
{
	uint32_t site = advice->site[row], index = ops_map_find(&growing->current, chain_key(site, first)), *slot;
	struct chain *chain = index == OPS_NONE ? NULL : &growing->chains.items[index];
	struct link *link = OPS_ARRAY_PUSH(&growing->links);

	if (!chain || chain->site != site || chain->last != first || all <= first) {
		index = (uint32_t)growing->chains.count;
		chain = OPS_ARRAY_PUSH(&growing->chains);
		if (!chain)
			return false;
		*chain = (struct chain){.site = site};
	}
	slot = ops_map_slot(&growing->current, chain_key(site, all), index);
	if (!link || !slot)
		return false;
	*slot = index;
	*link = (struct link){row, index};
	chain->links++;
	chain->last = all;
	chain->copied = ops_sum(chain->copied, all);
	return true;
}

static const char *const names[] = {"aten::cat", NULL};

static bool find_chains(struct growing *growing, const struct advice_result *result)
{
	const struct advice *advice = result->advice;
	bool done = true;

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
	struct growing growing = {.current = {0}};
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
	ops_map_release(&growing.current);
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

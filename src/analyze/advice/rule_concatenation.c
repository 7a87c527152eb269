/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that grow by concatenation: each output is the first input of the next concatenation, so each copies
 * everything.
 */
#include "analyze/advice/advice.h"

/* Minimum length of a chain that counts as a loop. */
#define CHAIN_MIN 4

/* Concatenations at one line, each of which begins with an earlier output. */
struct chain {
	uint32_t site;
	int64_t last;   /* number of elements of the last output */
	int64_t copied; /* number of elements of all outputs */
	uint32_t links;
	uint32_t next;  /* next chain at the line whose last output has the same size; OPS_NONE: none */
};

struct link {
	uint32_t row;
	uint32_t chain;
};

struct growing {
	OPS_ARRAY(struct chain) chains;
	OPS_ARRAY(struct link) links;
	/* By place and size: the first and the last of the chains whose last output has the size. Several tensors may grow at a line in
	 * turn, such as those of all layers of a model, so the chain that has waited longest continues. */
	struct ops_map first, last;
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

/* Removes the chain that has waited longest at a line for a concatenation that begins with this number of elements. */
static uint32_t pop_chain(struct growing *growing, uint32_t site, int64_t elements)
{
	uint32_t *first = ops_map_find(&growing->first, chain_key(site, elements)) == OPS_NONE
	                          ? NULL
	                          : ops_map_slot(&growing->first, chain_key(site, elements), OPS_NONE);
	uint32_t index = first ? *first : OPS_NONE;
	const struct chain *chain = index == OPS_NONE ? NULL : &growing->chains.items[index];

	if (!chain || chain->site != site || chain->last != elements)
		return OPS_NONE;
	*first = chain->next;
	return index;
}

/* Appends a chain to those that wait. Returns false if out of memory. */
static bool push_chain(struct growing *growing, uint32_t site, int64_t elements, uint32_t index)
{
	uint32_t *first = ops_map_slot(&growing->first, chain_key(site, elements), OPS_NONE);
	uint32_t *last = ops_map_slot(&growing->last, chain_key(site, elements), OPS_NONE);

	if (!first || !last)
		return false;
	if (*first == OPS_NONE)
		*first = index;
	else
		growing->chains.items[*last].next = index;
	*last = index;
	growing->chains.items[index].next = OPS_NONE;
	return true;
}

static bool rule_concatenation_add_link(struct growing *growing, const struct advice *advice, uint32_t row, int64_t first,
                                        int64_t all)
{
	uint32_t site = advice->site[row], index = all > first ? pop_chain(growing, site, first) : OPS_NONE;
	struct link *link = OPS_ARRAY_PUSH(&growing->links);
	struct chain *chain;

	if (index == OPS_NONE) {
		index = (uint32_t)growing->chains.count;
		chain = OPS_ARRAY_PUSH(&growing->chains);
		if (!chain)
			return false;
		*chain = (struct chain){.site = site};
	}
	if (!link || !push_chain(growing, site, all, index))
		return false;
	*link = (struct link){row, index};
	chain = &growing->chains.items[index];
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
	struct growing growing = {.first = {0}};
	bool done = find_chains(&growing, result);

	for (size_t i = 0; done && i < growing.links.count; i++) {
		const struct link *link = &growing.links.items[i];
		const struct chain *chain = &growing.chains.items[link->chain];

		/* Copying the final tensor once is still required. */
		if (advice_counts(advice, link->row) && chain->links >= CHAIN_MIN && chain->copied > chain->last)
			advice_add_share(result, link->row, 1 - (double)chain->last / (double)chain->copied);
	}
	done = done && advice_report_costs(result, "%s to the output of the previous one. "
	                                           "All copying but once takes %s.",
	                                   advice_events(result, "concatenation in each step appends", "concatenations in each step append").text,
	                                   advice_cost(result).text);
	OPS_ARRAY_RELEASE(&growing.chains);
	OPS_ARRAY_RELEASE(&growing.links);
	ops_map_release(&growing.first);
	ops_map_release(&growing.last);
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
		  "out[i : i + n] = part, as for keys and values of a cache. To check: one aten::cat instead of many.",
	.code = "parts.append(part)  # in place of out = torch.cat([out, part])\n"
		"out = torch.cat(parts)  # behind the loop",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.cat.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_SURE,
	.names = names,
	.find = rule_concatenation_find,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that grow by concatenation: the output of one is the first input of the next, so that all is copied each time.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* So many in a row are a loop. */
#define CHAIN_MIN 4

/* The concatenations at one line. */
struct chain {
	int64_t last;   /* elements of the last output */
	int64_t copied; /* elements that were written in all while it grew, and those of the outputs that were left */
	int64_t ns;
	uint32_t links;
	uint32_t row;
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

static void flush(struct advice_tally *tally, const struct advice *advice, struct chain *chain)
{
	/* What is left to copy is what there is in the end, once. */
	if (chain->links >= CHAIN_MIN && chain->copied > chain->last)
		advice_tally_add(tally, advice, chain->row,
		                 (int64_t)((double)chain->ns * (1 - (double)chain->last / (double)chain->copied)));
	*chain = (struct chain){0};
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"aten::cat", NULL};
	uint8_t *which = advice_names(advice, patterns);
	struct chain *chains = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*chains));
	struct advice_tally tally = {0};
	uint64_t links = 0;
	bool done = which && chains && advice_tally_init(&tally, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		struct chain *chain;
		int64_t first, all;

		if (!which[advice->events->name[row]] || !advice_counts(advice, row) || !sizes(advice, row, &first, &all))
			continue;
		chain = &chains[advice->site[row] == OPS_NONE ? advice->sites.count : advice->site[row]];
		if (first != chain->last || all <= first)
			flush(&tally, advice, chain);
		chain->row = row;
		chain->links++;
		links++;
		chain->last = all;
		chain->copied = ops_sum(chain->copied, all);
		chain->ns = ops_sum(chain->ns, ops_sum(advice_ns(advice, row), advice->backward_ns[row]));
	}
	for (size_t i = 0; done && i <= advice->sites.count; i++)
		flush(&tally, advice, &chains[i]);
	done = done && advice_report_add(advice, rule, &tally,
	                                 (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_SURE},
	                                 "%.1f concatenations a step append to the output of the one before. Gain: their time and "
	                                 "their backward pass', less the share of it that copies every element once.",
	                                 advice_per_step(advice, links));
	advice_tally_release(&tally);
	ops_free(which);
	ops_free(chains);
	return done;
}

const struct advice_rule advice_rule_concatenation = {
	.id = "quadratic-concatenation",
	.title = "A tensor grows by concatenation in a loop",
	.explanation = "Each torch.cat copies all that was there before: n of them copy n²/2 parts.",
	.advice = "Collect the parts in a list and concatenate once behind the loop, or write into a tensor of the final size: "
		  "out[i : i + n] = part. Check: one aten::cat in place of many.",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.cat.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.severity_max = ADVICE_HIGH,
	.check = check,
};

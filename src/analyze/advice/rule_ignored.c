/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of samples that the loss ignores: their targets have been set to ignore_index.
 *
 *     labels ──masked_fill with -100──▶ targets ──┐
 *     hidden ──linear──▶ scores of all tokens ────cross_entropy with ignore_index -100──▶ loss
 */
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/text.h"

#define BYTES_MIN (1 << 20) /* minimum size of the scores */
#define CHAIN_MAX 6         /* maximum number of operators that the targets pass through */
#define IGNORE_INDEX 4      /* position among the inputs of aten::cross_entropy_loss */

enum ignored_name { NAME_LOSS = 1, NAME_SETS_UNSEEN, NAME_SETS };

/* The second group sets elements to a value that recordings do not show. */
static const char *const names[] = {"aten::cross_entropy_loss", "aten::index_put_", "aten::masked_scatter_", "aten::masked_fill", "aten::masked_fill_",
                                    "aten::where", "aten::full", "aten::full_like", "aten::fill_", "aten::constant_pad_nd", "aten::pad_sequence", NULL};

static enum ignored_name ignored_name_of(uint8_t which)
{
	return (enum ignored_name)(which == 1 ? NAME_LOSS : which >= 4 ? NAME_SETS : which ? NAME_SETS_UNSEEN : 0);
}

static bool is_number(const struct ops_input *input, int64_t number)
{
	double value;

	if (input->tag == OPS_INPUT_INT)
		return ops_input_int(input, 0) == number;
	if (input->tag != OPS_INPUT_DOUBLE)
		return false;
	memcpy(&value, input->data, sizeof(value));
	return value == (double)number;
}

static bool sets_number(const struct advice *advice, uint32_t row, int64_t number)
{
	struct ops_input input;

	for (size_t i = 0; advice_input(advice, row, i, &input); i++)
		if (is_number(&input, number))
			return true;
	return false;
}

/* Returns the value of storage `i` of the inputs of a node; OPS_NONE: none. */
static uint32_t value_of_input(const struct data_flow *flow, uint32_t node, size_t i)
{
	struct ops_storage storage;

	if (!ops_event_storage(flow->memory.trace, node, i, &storage))
		return OPS_NONE;
	for (uint32_t k = 0; k < flow->nodes[node].count; k++) {
		uint32_t value = flow->uses.items[flow->nodes[node].first + k].value;

		if (flow->memory.blocks.items[flow->memory.values.items[value].block].address == storage.address)
			return value;
	}
	return OPS_NONE;
}

/* Returns true if elements of a value, or of one that it was made from, have been set to a number. */
static bool has_been_set(const struct advice_result *result, uint32_t value, int64_t number)
{
	const struct advice *advice = result->advice;
	const struct data_flow *flow = advice->flow;

	for (int i = 0; i < CHAIN_MAX && value != OPS_NONE; i++) {
		uint32_t node = flow->values[value].node;
		enum ignored_name name = node == OPS_NONE ? 0 : ignored_name_of(result->which[advice->events->name[node]]);

		if (node != OPS_NONE && advice_kind(advice, node) == OPERATOR_SELECTS)
			return false; /* what counts has been selected */
		if (name == NAME_SETS_UNSEEN || (name == NAME_SETS && sets_number(advice, node, number)))
			return true;
		if (flow->memory.values.items[value].previous != OPS_NONE)
			value = flow->memory.values.items[value].previous;
		else
			value = node == OPS_NONE ? OPS_NONE : value_of_input(flow, node, 0);
	}
	return false;
}

/* Returns the product that makes the scores of a loss; OPS_NONE: none. */
static uint32_t product_before(const struct advice *advice, uint32_t loss)
{
	const struct data_flow *flow = advice->flow;
	uint32_t value = value_of_input(flow, loss, 0), node = value == OPS_NONE ? OPS_NONE : flow->values[value].node;

	if (node == OPS_NONE || flow->values[value].bytes < BYTES_MIN || !advice_counts(advice, node))
		return OPS_NONE;
	return advice_kind(advice, node) == OPERATOR_PRODUCT ? node : OPS_NONE;
}

static bool rule_ignored_find(const struct advice *advice, struct advice_result *result)
{
	struct ops_input scores = {0};

	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct ops_input index;
		uint32_t product;

		if (ignored_name_of(result->which[advice->events->name[row]]) != NAME_LOSS || !advice_counts(advice, row) || !advice->flow->nodes[row].count ||
		    advice_is_claimed(result, row) || !advice_input(advice, row, IGNORE_INDEX, &index) || index.tag != OPS_INPUT_INT)
			continue;
		product = product_before(advice, row);
		if (product == OPS_NONE || advice_is_claimed(result, product) ||
		    !has_been_set(result, value_of_input(advice->flow, row, 1), ops_input_int(&index, 0)))
			continue;
		advice_input(advice, row, 0, &scores);
		advice_add(result, product, advice_claim_share(result, product, advice_work_share(advice, product)));
		advice_add(result, row, advice_claim_share(result, row, advice_work_share(advice, row)));
		result->claimed[product] = 1; /* several losses may read its scores */
	}
	return !scores.tag ||
	       advice_report_costs(result, "The loss ignores those of its samples whose targets have been set to ignore_index. How many these are is not recorded. "
	                                   "The scores of all samples, %s, and the loss take %s.",
	                           advice_describe_tensor(&scores).text, advice_cost(result).text);
}

const struct advice_rule advice_rule_ignored = {
	.id = "ignored-samples",
	.title = "Scores are computed that the loss ignores",
	.condition = "aten::cross_entropy_loss reads scores of at least 1 MB from a matrix product, and targets that an operator has set to its ignore_index in part "
		     "(masked_fill, where, an index, padding).",
	.gain = "the product and the loss, forward and backward: all of it if nearly all samples are ignored",
	.explanation = "A loss over a large vocabulary is dominated by the product with its weights. Masked language models use only some 15 % of "
		       "their tokens, and padding is used by none.",
	.advice = "Select the samples that count before the last layer. To check: fewer rows in the product.",
	.code = "kept = labels != -100\n"
		"loss = cross_entropy(head(hidden[kept]), labels[kept])",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
	.names = names,
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_PYTHON, /* it is an upper bound, so rules that know a part come first */
	.severity_max = ADVICE_MEDIUM,
	.confidence = ADVICE_UNSURE,
	.bound = ADVICE_AT_MOST,
	.general = true,
	.find = rule_ignored_find,
};

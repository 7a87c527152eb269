/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that are computed for all rows, and of which a mask then keeps a part: a product with a tensor that is mostly zeros, such as
 * the weights of experts of which each row uses one, or torch.where of two results.
 *
 *     zeros ──scatter of 1 of 8──▶ weights ──┐
 *     8 × linear ──▶ stack ──────────────────┴──▶ mul       seven eighths of the layers are multiplied by zero
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

#define ZEROS_MIN 0.6   /* minimum share of zeros; a triangle of ones has fewer */
#define CHOICE_SAVES 0.5 /* of two results, half of the rows of each are kept if a mask has as many ones as zeros */

enum masked_name { NAME_MASKS = 1, NAME_CHOOSES };

struct masked_search {
	struct advice_vain vain;
	uint8_t *kind;     /* by string: enum masked_name */
	uint8_t *by_rows;  /* by string: equal parts of the result need equal parts of the input alone */
	int64_t ns;        /* of these operators */
	uint64_t operators;
	double zeros;      /* smallest share of zeros; 1: none seen */
	bool chooses;
	bool has_products;
};

/* Returns the share of zeros in what a node reads of a value. */
static double zeros_of(const struct advice *advice, const struct data_use *use)
{
	const struct data_content *content = &advice->contents[use->value];

	if (use->kind != DATA_READS || content->kind != CONTENT_ZEROS || use->bytes <= 0)
		return 0;
	return 1 - (double)data_content_read(advice->contents, use) / (double)use->bytes;
}

static void mark_product(struct masked_search *search, const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	const struct data_node *node = &flow->nodes[row];
	double zeros[2];

	if (node->count != 2)
		return;
	for (uint32_t i = 0; i < 2; i++)
		zeros[i] = zeros_of(advice, &flow->uses.items[node->first + i]);
	for (uint32_t i = 0; i < 2; i++) {
		if (zeros[i] < ZEROS_MIN || zeros[i] >= 1 || zeros[1 - i] > 0)
			continue;
		search->vain.uses[node->first + 1 - i] = 1;
		search->vain.nodes[row] = ADVICE_DISCARDS;
		search->zeros = zeros[i] < search->zeros ? zeros[i] : search->zeros;
	}
}

/* The condition has one byte for each element, and is not a result of layers. */
static void mark_choice(struct masked_search *search, const struct advice *advice, uint32_t row)
{
	struct ops_input result;

	for (size_t i = 1; i < 3; i++)
		if (!advice_input(advice, row, i, &result) || advice_input_elements(&result) < 2)
			return; /* a choice between a result and a number is a mask of it */
	advice_vain_add_reads(&search->vain, advice, row);
	search->vain.nodes[row] = ADVICE_DISCARDS;
	search->chooses = true;
}

static bool is_of_network(const struct advice *advice, uint32_t row)
{
	return advice_kind(advice, row) == OPERATOR_PRODUCT || advice_kind(advice, row) == OPERATOR_CONVOLUTION;
}

static void add_masked(struct masked_search *search, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	double share = search->zeros < 1 ? search->zeros : CHOICE_SAVES;
	int64_t ns;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		if (search->vain.nodes[row] != ADVICE_IN_VAIN || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
		    (advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)))
			continue;
		search->has_products |= is_of_network(advice, row);
		ns = advice_claim_share(result, row, share * advice_work_share(advice, row));
		search->ns = ops_sum(search->ns, ns);
		search->operators++;
		advice_add_calls(result, row, ns);
	}
}

static bool rule_masked_find(const struct advice *advice, struct advice_result *result)
{
	static const struct advice_named names[] = {{"aten::mul", NAME_MASKS}, {"aten::mul_", NAME_MASKS}, {"aten::where", NAME_CHOOSES}, {0}};
	static const char *const by_rows[] = {"aten::linear", "aten::addmm", "aten::mm", "aten::matmul", "aten::bmm", "aten::conv*", "aten::stack",
	                                      "aten::cat", "aten::relu*", "aten::gelu", "aten::silu*", "aten::tanh", "aten::sigmoid", "aten::leaky_relu*",
	                                      "aten::elu*", "aten::add", "aten::sub", "aten::div", "aten::mul", "aten::dropout", "aten::layer_norm", "aten::group_norm",
	                                      "aten::pad", "aten::constant_pad*", "aten::reflection_pad*", "aten::replication_pad*", "aten::grid_sampler*",
	                                      "aten::upsample*", "aten::max_pool*", "aten::avg_pool*", NULL};
	struct masked_search search = {.kind = advice_named_kinds(advice, names), .by_rows = advice_names(advice, by_rows), .zeros = 1};
	double gain_ns;
	bool done = search.kind && search.by_rows && advice_vain_init(&search.vain, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint8_t kind = search.kind[advice->events->name[row]];

		if (!kind || !advice_counts(advice, row) || advice->flow->memory.rows.node[row] != row ||
		    (advice->flow->memory.rows.context[row] & (MEMORY_IN_BACKWARD | MEMORY_IN_OPTIMIZER)))
			continue;
		if (kind == NAME_MASKS)
			mark_product(&search, advice, row);
		else
			mark_choice(&search, advice, row);
	}
	if (done && (search.zeros < 1 || search.chooses)) {
		advice_vain_follow(&search.vain, advice, search.by_rows);
		add_masked(&search, result);
	}
	gain_ns = (double)search.ns;
	if (!search.has_products)
		result->claims.count = 0;
	else if (search.zeros < 1)
		done = done && advice_report_gain(result, gain_ns, "%s operators in each step compute results of which %.0f %% are multiplied by zeros, by construction. "
		                                  "That share takes %s.", advice_average(advice, search.operators).text, 100 * search.zeros, advice_spent(advice, gain_ns).text);
	else
		done = done && advice_report_gain(result, gain_ns, "%s operators in each step compute two results for all rows, of which torch.where keeps one for each. "
		                                  "Half of them takes %s.", advice_average(advice, search.operators).text, advice_spent(advice, gain_ns).text);
	advice_vain_release(&search.vain);
	ops_free(search.kind);
	ops_free(search.by_rows);
	return done;
}

const struct advice_rule advice_rule_masked = {
	.id = "masked-results",
	.title = "Results are computed for all rows and then masked",
	.condition = "Layers and elementwise operators compute a tensor only to multiply it by one of which at least 60 % are zeros by construction "
		     "(aten::zeros into which less is written, one_hot), or only for torch.where to choose between two tensors. At least one is a "
		     "matrix product or a convolution.",
	.gain = "the share of zeros in the time of these operators, forward and backward; half of it for torch.where",
	.explanation = "The mask discards what the layers have computed, such as all experts for tokens that use one of them. Its values are not recorded, "
		       "so how much torch.where discards is unknown.",
	.advice = "Select the rows before the layers and write their results back: out[mask] = layer(x[mask]), or index_add_ for each expert. To check: "
		  "smaller shapes at the line.",
	.code = "for i, expert in enumerate(experts):\n"
		"    rows = (choice == i).nonzero(as_tuple=True)[0]\n"
		"    out.index_add_(0, rows, weight[rows] * expert(x[rows]))",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.severity_max = ADVICE_MEDIUM, /* rows that differ from step to step prevent graphs and compilation */
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_MOST, /* smaller products are less efficient */
	.find = rule_masked_find,
};

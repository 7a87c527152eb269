/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that are computed for all rows, and of which a mask then keeps a part: a product with a tensor that is mostly zeros, such as
 * the weights of experts of which each row uses one, or torch.where of two results.
 *
 *     zeros ──scatter of 1 of 8──▶ weights ──┐
 *     8 × linear ──▶ stack ──────────────────┴──▶ mul       seven eighths of the layers are multiplied by zero
 *
 *     choice == i for 8 values of i ──▶ weights ──▶ mul     the same: each choice is equal to one of them
 */
#include "analyze/advice/advice.h"

#include <opstrobe/internal/format.h>
#include "base/alloc.h"
#include "base/text.h"
#include "trace/inputs.h"

#define ZEROS_MIN 0.6   /* minimum share of zeros; a triangle of ones has fewer */
#define CHOICES_MIN 3   /* minimum number of numbers that integers are compared with: at most one is equal to each integer */
#define CHAIN_MAX 6     /* maximum number of operators between a comparison and the mask */
#define CHOICE_SAVES 0.5 /* of two results, half of the rows of each are kept if a mask has as many ones as zeros */

enum masked_name { NAME_MASKS = 1, NAME_CHOOSES, NAME_GATHERS };

struct masked_search {
	struct advice_vain vain;
	uint8_t *kind;     /* by string: enum masked_name */
	uint8_t *by_rows;  /* by string: equal parts of the result need equal parts of the input alone */
	uint8_t *keeps;    /* by string: its result is zero where its input is, or all of its inputs in a dimension are */
	uint32_t *choices; /* by value: how many numbers it is compared with */
	int64_t ns;        /* of these operators */
	uint64_t operators;
	double zeros;      /* smallest share of zeros; 1: none seen */
	bool chooses;
	bool has_products;
};

/* Returns the integers that a row compares with a Python number; OPS_NONE: it is something else. */
static uint32_t compared_value(const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	struct ops_input integers, number;

	if (!ops_string_is(advice_name(advice, row), "aten::eq") || flow->nodes[row].count != 1 || !advice_input(advice, row, 0, &integers) ||
	    !advice_input(advice, row, 1, &number) || integers.dtype > OPS_DTYPE_INT64 || !ops_input_is_tensor(integers.tag) ||
	    ops_input_is_tensor(number.tag))
		return OPS_NONE;
	return flow->uses.items[flow->nodes[row].first].value;
}

static void count_choices(struct masked_search *search, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t value = compared_value(advice, row);

		if (value != OPS_NONE)
			search->choices[value]++;
	}
}

/* Returns the share of zeros in a mask, if it comes from a comparison of integers with one of several numbers: on average, each result has
 * as many ones as its share of the numbers. Sums over several integers for each element of the mask have more. */
static double zeros_of_choice(const struct masked_search *search, const struct advice *advice, uint32_t value, double elements)
{
	const struct data_flow *flow = advice->flow;

	for (int i = 0; i < CHAIN_MAX && flow->values[value].node != OPS_NONE; i++) {
		uint32_t row = flow->values[value].node, integers = compared_value(advice, row), next = OPS_NONE;
		struct ops_input compared;
		double ones;

		if (integers != OPS_NONE && search->choices[integers] >= CHOICES_MIN && advice_input(advice, row, 0, &compared) && elements > 0) {
			ones = (double)advice_input_elements(&compared) / elements / search->choices[integers];
			return ones < 1 ? 1 - ones : 0;
		}
		for (uint32_t k = 0; search->keeps[advice->events->name[row]] && k < flow->nodes[row].count; k++) {
			uint32_t input = flow->uses.items[flow->nodes[row].first + k].value, maker = flow->values[input].node;

			if (maker != OPS_NONE && (search->keeps[advice->events->name[maker]] || compared_value(advice, maker) != OPS_NONE))
				next = input;
		}
		if (next == OPS_NONE)
			return 0;
		value = next;
	}
	return 0;
}

/* Returns the share of zeros in what a node reads of a value, given its number of elements. */
static double zeros_of(const struct masked_search *search, const struct advice *advice, const struct data_use *use, double elements)
{
	const struct data_content *content = &advice->contents[use->value];

	if (use->kind != DATA_READS || use->bytes <= 0)
		return 0;
	if (content->kind != CONTENT_ZEROS)
		return zeros_of_choice(search, advice, use->value, elements);
	return 1 - (double)data_content_read(advice->contents, use) / (double)use->bytes;
}

/* Returns the number of elements of the tensor in the value of a use: that among the two inputs of a row whose bytes agree. */
static double elements_of_use(const struct advice *advice, uint32_t row, const struct data_use *use)
{
	struct ops_input input;

	for (size_t i = 0; i < 2; i++)
		if (advice_input(advice, row, i, &input) && ops_input_is_tensor(input.tag) &&
		    advice_input_bytes(&input) == use->bytes)
			return (double)advice_input_elements(&input);
	return 0;
}

static void mark_product(struct masked_search *search, const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	const struct data_node *node = &flow->nodes[row];
	double zeros[2];

	if (node->count != 2)
		return;
	for (uint32_t i = 0; i < 2; i++)
		zeros[i] = zeros_of(search, advice, &flow->uses.items[node->first + i],
		                    elements_of_use(advice, row, &flow->uses.items[node->first + i]));
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

/* Of results that are joined, indices pick some for each row. */
static void mark_gathering(struct masked_search *search, const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[row].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[row].first + i];
		uint32_t maker = flow->values[use->value].node;
		double left;

		if (use->kind != DATA_SELECTS || maker == OPS_NONE || !ops_string_is(advice_name(advice, maker), "aten::stack"))
			continue;
		left = 1 - (double)use->bytes / (double)flow->values[use->value].bytes;
		if (left < ZEROS_MIN)
			continue;
		search->vain.uses[flow->nodes[row].first + i] = 1;
		search->vain.nodes[row] = ADVICE_DISCARDS;
		search->zeros = left < search->zeros ? left : search->zeros;
	}
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
	static const struct advice_named names[] = {{"aten::mul", NAME_MASKS}, {"aten::mul_", NAME_MASKS}, {"aten::where", NAME_CHOOSES},
	                                            {"aten::gather", NAME_GATHERS}, {"aten::index", NAME_GATHERS}, {0}};
	static const char *const by_rows[] = {"aten::linear", "aten::addmm", "aten::mm", "aten::matmul", "aten::bmm", "aten::conv*", "aten::stack",
	                                      "aten::cat", "aten::relu*", "aten::gelu", "aten::silu*", "aten::tanh", "aten::sigmoid", "aten::leaky_relu*",
	                                      "aten::elu*", "aten::add", "aten::sub", "aten::div", "aten::mul", "aten::dropout", "aten::layer_norm", "aten::group_norm",
	                                      "aten::pad", "aten::constant_pad*", "aten::reflection_pad*", "aten::replication_pad*", "aten::grid_sampler*",
	                                      "aten::upsample*", "aten::max_pool*", "aten::avg_pool*", NULL};
	static const char *const keeps[] = {"aten::mul", "aten::mul_", "aten::div", "aten::to", "aten::_to_copy", "aten::type_as", "aten::sum", "aten::any",
	                                    "aten::logical_and", "aten::bitwise_and", "aten::clone", "aten::contiguous", NULL};
	struct masked_search search = {.kind = advice_named_kinds(advice, names), .by_rows = advice_names(advice, by_rows), .keeps = advice_names(advice, keeps),
	                               .choices = ops_alloc_zeroed(advice->flow->memory.values.count + 1, sizeof(*search.choices)), .zeros = 1};
	double gain_ns;
	bool done = search.kind && search.by_rows && search.keeps && search.choices && advice_vain_init(&search.vain, advice);

	if (done)
		count_choices(&search, advice);
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint8_t kind = search.kind[advice->events->name[row]];

		if (!kind || !advice_counts(advice, row) || advice->flow->memory.rows.node[row] != row ||
		    (advice->flow->memory.rows.context[row] & (MEMORY_IN_BACKWARD | MEMORY_IN_OPTIMIZER)))
			continue;
		if (kind == NAME_MASKS)
			mark_product(&search, advice, row);
		else if (kind == NAME_GATHERS)
			mark_gathering(&search, advice, row);
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
		done = done && advice_report_gain(result, gain_ns, "%s results of which %s are multiplied by zeros or not picked, by construction. "
		                                  "That share takes %s.", advice_counted(advice, search.operators, "operator in each step computes", "operators in each step compute").text,
		                                  ops_figure_of_percent(100 * search.zeros).text,
		                                  advice_spent(advice, gain_ns).text);
	else
		done = done && advice_report_gain(result, gain_ns, "%s two results for all rows, of which torch.where keeps one for each. "
		                                  "Half of that takes %s.", advice_counted(advice, search.operators, "operator in each step computes", "operators in each step compute").text,
		                                  advice_spent(advice, gain_ns).text);
	advice_vain_release(&search.vain);
	ops_free(search.kind);
	ops_free(search.by_rows);
	ops_free(search.keeps);
	ops_free(search.choices);
	return done;
}

const struct advice_rule advice_rule_masked = {
	.id = "masked-results",
	.title = "Results are computed for all rows and then masked",
	.condition = "Layers and elementwise operators compute a tensor only to multiply it by one of which at least 60 % are zeros by construction "
		     "(aten::zeros into which less is written, one_hot, a comparison of integers with one of three or more numbers), or only for torch.where to choose between two tensors, or joins results by stack, of which gather or an index "
		     "picks at most 40 %. At least one is a "
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

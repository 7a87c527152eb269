/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense gradients of embeddings. They are as large as the table, although a batch uses only a few rows. They are filled
 * with zeros, accumulated, and processed completely by the optimizer.
 */
#include "analyze/advice/advice.h"

/* Minimum ratio of the rows of the table to the rows that a batch looks up, since sparse gradients have an overhead. */
#define RATIO_MIN 16

struct table {
	int64_t elements;
	double touched; /* share of the rows that are looked up */
	uint32_t site;  /* place of the lookup */
};

struct tables {
	OPS_ARRAY(struct table) items;
	int64_t rows, looked_up;
};

static struct table *rule_embedding_table_of(struct tables *tables, int64_t elements)
{
	/* There are few tables; more than a hundred are reported together. */
	for (size_t i = 0; i < tables->items.count && i < 100; i++)
		if (tables->items.items[i].elements == elements)
			return &tables->items.items[i];
	return NULL;
}

/* aten::embedding_dense_backward(grad_output, indices, num_weights, …) */
static bool add_backward(struct tables *tables, const struct advice *advice, struct advice_result *result, uint32_t row)
{
	struct ops_input grad, indices, weights;
	int64_t rows, looked_up, dimension;

	if (!advice_input(advice, row, 0, &grad) || !advice_input(advice, row, 1, &indices) ||
	    !advice_input(advice, row, 2, &weights) || weights.tag != OPS_INPUT_INT || grad.tag != OPS_INPUT_TENSOR || !grad.n)
		return true;
	rows = ops_input_int(&weights, 0);
	looked_up = advice_input_elements(&indices);
	dimension = ops_input_int(&grad, (size_t)grad.n - 1);
	if (looked_up <= 0 || rows / RATIO_MIN < looked_up)
		return true;
	tables->rows = rows > tables->rows ? rows : tables->rows;
	tables->looked_up = looked_up > tables->looked_up ? looked_up : tables->looked_up;
	advice_add_share(result, row, (1 - (double)looked_up / (double)rows) * advice_work_share(advice, row));
	if (rule_embedding_table_of(tables, ops_product(rows, dimension)))
		return true;
	return OPS_ARRAY_APPEND(&tables->items, (struct table){ops_product(rows, dimension), (double)looked_up / (double)rows,
	                                                       advice->site[row]});
}

/* Returns the number of elements of the first tensor, or of the largest one in a list, which a foreach or fused
 * operator processes. */
static int64_t listed_elements(const struct advice *advice, uint32_t row)
{
	struct ops_input list, item;
	struct ops_input_cursor cursor;
	int64_t elements = 0;

	if (!advice_input(advice, row, 0, &list))
		return -1;
	if (list.tag != OPS_INPUT_TENSOR_LIST)
		return advice_input_elements(&list);
	for (cursor = ops_input_items(&list); ops_inputs_next(&cursor, &item);) {
		int64_t one = advice_input_elements(&item);

		elements = one > elements ? one : elements;
	}
	return elements;
}

static const char *const names[] = {"aten::embedding_dense_backward", NULL};
static const char *const making[] = {"*: Embedding.__init__", NULL}; /* where `sparse` is set */

static bool rule_embedding_find(const struct advice *advice, struct advice_result *result)
{
	struct tables tables = {.rows = 0};
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (result->which[advice->events->name[row]] && advice_counts(advice, row) && !advice_is_claimed(result, row))
			done = add_backward(&tables, advice, result, row);
	/* The optimizer then processes the complete table, because of the lookup. */
	for (uint32_t row = 0; done && tables.items.count && row < advice->events->count; row++) {
		const struct table *table;

		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
		    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_LOADER)) || result->which[advice->events->name[row]])
			continue;
		table = rule_embedding_table_of(&tables, listed_elements(advice, row));
		if (table && (advice->zone[row] & ADVICE_IN_OPTIMIZER))
			advice_add_at(result, table->site, row,
			              advice_claim_share(result, row, (1 - table->touched) * advice_work_share(advice, row)));
	}
	result->also = advice_only_call(advice, making);
	done = done && advice_report_costs(result, "Each lookup computes and applies gradients of %lld rows, where the batch "
	                                           "uses %lld.",
	                                   (long long)tables.rows, (long long)tables.looked_up);
	OPS_ARRAY_RELEASE(&tables.items);
	return done;
}

const struct advice_rule advice_rule_embedding = {
	.id = "dense-embedding-gradient",
	.title = "An embedding has dense gradients",
	.condition = "aten::embedding_dense_backward runs on a table with at least 16 times the rows that are looked up.",
	.gain = "the share of the other rows, in this operator and in the operators of the optimizer on the table",
	.explanation = "The gradient of a lookup is zero except for the rows that were looked up. A dense gradient is as large "
		       "as the table, and so is the work of the optimizer.",
	.advice = "Use nn.Embedding(…, sparse=True) or nn.EmbeddingBag(…, sparse=True), with SGD, Adagrad or "
		  "torch.optim.SparseAdam for its parameters. To check: no aten::embedding_dense_backward.",
	.code = "table = nn.Embedding(rows, size, sparse=True)\n"
		"optimizer = torch.optim.SparseAdam(table.parameters())",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.find = rule_embedding_find,
};

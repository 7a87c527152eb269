/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense gradients of embeddings. They are as large as the table, although a batch uses only a few rows. They are filled
 * with zeros, accumulated, and processed completely by the optimizer.
 */
#include "analyze/advice/advice.h"
#include "base/text.h"

/* Minimum ratio of the rows of the table to the rows that a batch looks up, since sparse gradients have an overhead. */
#define RATIO_MIN 16

struct table {
	int64_t elements;
	int64_t rows;
	int64_t looked_up; /* rows of all lookups in all steps */
	uint32_t site;     /* place of the first lookup */
};

struct tables {
	OPS_ARRAY(struct table) items;
	int64_t rows, looked_up;
};

/* aten::embedding_dense_backward(grad_output, indices, num_weights, …) */
struct lookup {
	int64_t rows, looked_up, dimension;
};

static struct table *rule_embedding_table_of(struct tables *tables, int64_t elements)
{
	/* There are few tables; more than a hundred are reported together. */
	for (size_t i = 0; i < tables->items.count && i < 100; i++)
		if (tables->items.items[i].elements == elements)
			return &tables->items.items[i];
	return NULL;
}

/* Returns false if its inputs are unknown. */
static bool read_lookup(const struct advice *advice, uint32_t row, struct lookup *ret_lookup)
{
	struct ops_input grad, indices, weights;

	if (!advice_input(advice, row, 0, &grad) || !advice_input(advice, row, 1, &indices) ||
	    !advice_input(advice, row, 2, &weights) || weights.tag != OPS_INPUT_INT || grad.tag != OPS_INPUT_TENSOR || !grad.n)
		return false;
	*ret_lookup = (struct lookup){ops_input_int(&weights, 0), advice_input_elements(&indices), ops_input_int(&grad, (size_t)grad.n - 1)};
	return ret_lookup->looked_up > 0 && ret_lookup->rows > 0;
}

/* Finds tables of which a lookup reads few rows. Others of the same table make and add dense gradients as well. */
static bool find_table(struct tables *tables, const struct advice *advice, uint32_t row)
{
	struct lookup lookup;

	if (!read_lookup(advice, row, &lookup) || lookup.rows / RATIO_MIN < lookup.looked_up)
		return true;
	tables->rows = lookup.rows > tables->rows ? lookup.rows : tables->rows;
	tables->looked_up = lookup.looked_up > tables->looked_up ? lookup.looked_up : tables->looked_up;
	if (rule_embedding_table_of(tables, ops_product(lookup.rows, lookup.dimension)))
		return true;
	return OPS_ARRAY_APPEND(&tables->items, (struct table){.elements = ops_product(lookup.rows, lookup.dimension), .rows = lookup.rows,
	                                                       .site = advice->site[row]});
}

/* Returns the share of the rows of a table that none of a number of lookups reads. */
static double untouched(int64_t looked_up, int64_t rows)
{
	return looked_up < rows ? 1 - (double)looked_up / (double)rows : 0;
}

static void add_backward(struct tables *tables, const struct advice *advice, struct advice_result *result, uint32_t row)
{
	struct lookup lookup;
	struct table *table = read_lookup(advice, row, &lookup) ? rule_embedding_table_of(tables, ops_product(lookup.rows, lookup.dimension)) : NULL;

	if (!table)
		return;
	table->looked_up = ops_sum(table->looked_up, lookup.looked_up);
	advice_add_share(result, row, untouched(lookup.looked_up, lookup.rows) * advice_work_share(advice, row));
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

/* Returns true for an operator of an optimizer, or one by which the engine adds gradients outside of the nodes that make them. */
static bool is_after_nodes(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	if (advice->zone[row] & ADVICE_IN_LOADER)
		return false;
	if (advice->zone[row] & ADVICE_IN_OPTIMIZER)
		return !(advice->zone[row] & ADVICE_IN_OPERATOR);
	return (advice->zone[row] & ADVICE_IN_BACKWARD) && parent != OPS_NONE && advice_is_node(advice, parent);
}

static const char *const names[] = {"aten::embedding_dense_backward", NULL};
static const char *const making[] = {"*: Embedding.__init__", NULL}; /* where `sparse` is set */

static bool rule_embedding_find(const struct advice *advice, struct advice_result *result)
{
	struct tables tables = {.rows = 0};
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (result->which[advice->events->name[row]] && advice_counts(advice, row) && !advice_is_claimed(result, row))
			done = find_table(&tables, advice, row);
	for (uint32_t row = 0; done && tables.items.count && row < advice->events->count; row++)
		if (result->which[advice->events->name[row]] && advice_counts(advice, row) && !advice_is_claimed(result, row))
			add_backward(&tables, advice, result, row);
	/* The engine adds the gradients of several lookups, and the optimizer processes the complete table, because of the lookups. */
	for (uint32_t row = 0; done && tables.items.count && row < advice->events->count; row++) {
		const struct table *table;

		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
		    !is_after_nodes(advice, row) || result->which[advice->events->name[row]])
			continue;
		table = rule_embedding_table_of(&tables, listed_elements(advice, row));
		if (table)
			advice_add_at(result, table->site, row,
			              advice_claim_share(result, row, untouched(table->looked_up / (int64_t)advice->step_count, table->rows) *
			                                              advice_work_share(advice, row)));
	}
	advice_list_calls(result, making);
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
	.gain = "the share of the other rows, in this operator and in those that add gradients of the table or update it",
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

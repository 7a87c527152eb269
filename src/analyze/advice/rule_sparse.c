/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices in coordinate format that are multiplied again and again. Each product sums or searches the entries in the order of
 * their list, on one thread; compressed rows are multiplied by a library, on all threads.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

#define ROWS_SAVE 0.6 /* gain: products with compressed rows took a ninth to two fifths of the time for 400 000 entries and 16 or 64 columns,
                       * on one thread */
#define CALLS_MIN 3   /* minimum number of products for which a conversion pays */

struct products {
	uint8_t *reads_indices; /* by string: an operator that reads the coordinates */
	struct ops_input largest;
};

/* Returns true if an operator reads the coordinates of a sparse matrix. Compressed rows have none. */
static bool reads_coordinates(const struct products *all, const struct advice *advice, uint32_t row)
{
	const struct ops_events *events = advice->events;

	for (uint32_t child = row + 1; child < events->count && events->parent[child] != OPS_NONE && events->parent[child] >= row; child++)
		if (all->reads_indices[events->name[child]])
			return true;
	return false;
}

static void add_sparse_product(struct products *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct ops_input input, matrix = {0};

	if (!result->which[advice->events->name[row]] || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
	    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER | ADVICE_IN_OPERATOR)))
		return;
	for (size_t i = 0; !matrix.tag && advice_input(advice, row, i, &input); i++)
		if (input.tag == OPS_INPUT_TENSOR_PLAIN && input.n == 2)
			matrix = input;
	if (!matrix.tag || !reads_coordinates(all, advice, row))
		return;
	result->claimed[row] = 1;
	all->largest = matrix;
	advice_add_share(result, row, ROWS_SAVE * advice_work_share(advice, row));
}

static bool rule_sparse_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const patterns[] = {"aten::_indices", "aten::coalesce", "aten::_coalesce", NULL};
	struct products all = {.reads_indices = advice_names(advice, patterns)};
	bool done = all.reads_indices != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_sparse_product(&all, result, row);
	if (result->tally.events < CALLS_MIN)
		result->claims.count = 0;
	else
		done = done && advice_report_costs(result, "%s a sparse matrix in coordinate format, such as [%lld, %lld]. Compressed rows "
		                                           "save %s.",
		                                   advice_events(result, "product in each step has", "products in each step have").text,
		                                   (long long)ops_input_int(&all.largest, 0),
		                                   (long long)ops_input_int(&all.largest, 1), advice_cost(result).text);
	ops_free(all.reads_indices);
	return done;
}

const struct advice_rule advice_rule_sparse = {
	.id = "sparse-coordinates",
	.title = "Sparse matrices are multiplied in coordinate format",
	.condition = "A product has a sparse matrix with coordinates (torch.sparse_coo_tensor), three times or more.",
	.gain = "six tenths of the time of the products, as measured for matrices with 20 entries in a row",
	.explanation = "Coordinates that were never coalesced are sorted and summed again by products and by the backward pass. Sorted coordinates are "
		       "still visited one by one, on one thread.",
	.advice = "Coalesce the matrix once, where it is made, and convert it to compressed rows: matrix = matrix.coalesce().to_sparse_csr(). If the "
		  "backward pass does not support that for your operators, keep the coalesced matrix. To check: the time of the products.",
	.code = "matrix = torch.sparse_coo_tensor(indices, values, size).coalesce().to_sparse_csr()  # once",
	.link = "https://docs.pytorch.org/docs/stable/sparse.html#sparse-csr-docs",
	.names = (const char *const[]){"aten::_sparse_mm", "aten::mm", "aten::addmm", "aten::matmul", "aten::mv", "aten::spmm", "aten::_sparse_addmm",
	                               "aten::smm", "aten::hspmm", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_FORMULAS,
	.severity_max = ADVICE_MEDIUM,
	.confidence = ADVICE_LIKELY,
	.find = rule_sparse_find,
};

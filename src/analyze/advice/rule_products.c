/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products that another order, or a solver, computes with less work.
 *
 *     A [1024, 16], B [16, 1024] ──mm──▶ [1024, 1024] ──mm with x [16, 1024]──▶ [16, 1024]    x @ A @ B takes 3 % of that
 *     einsum("nd,md,me->ne", q, k, v)                                                         einsum("md,me,nd->ne", k, v, q)
 *     K [600, 600] ──linalg_inv──▶ [600, 600] ──mv──▶ [600]                                   solve(K, y) takes a third
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "base/text.h"

#define BYTES_MIN (16 << 10)
#define WORK_MAX 0.5      /* maximum work of another order, relative to this one */
#define SOLVER_SAVES 0.6  /* gain for an inverse: a factorization takes a third of its operations */

/* Sizes of a product of matrices: [rows, inner] by [inner, columns], `count` times. */
struct product {
	double count, rows, inner, columns;
};

/* Reads the sizes of the last two dimensions, and the product of those before them. A vector is a row as first factor, and a column as
 * second one. */
static bool read_matrix(const struct ops_input *input, bool is_first, double *ret_count, double *ret_rows, double *ret_columns)
{
	if (!ops_input_is_tensor(input->tag) || input->n < 1)
		return false;
	*ret_count = 1;
	if (input->n == 1) {
		double size = (double)ops_input_int(input, 0);

		*ret_rows = is_first ? 1 : size;
		*ret_columns = is_first ? size : 1;
		return size > 0;
	}
	for (size_t i = 0; i + 2 < input->n; i++)
		*ret_count *= (double)ops_input_int(input, i);
	*ret_rows = (double)ops_input_int(input, input->n - 2u);
	*ret_columns = (double)ops_input_int(input, input->n - 1u);
	return *ret_rows > 0 && *ret_columns > 0;
}

/* Returns true for a product of the first two inputs alone. */
static bool is_product(const struct advice *advice, uint32_t row)
{
	return advice_kind(advice, row) == OPERATOR_PRODUCT && !advice_operator(advice, row)->where[0];
}

static bool read_product(const struct advice *advice, uint32_t row, struct product *ret_product)
{
	struct ops_input first, second;
	double count, inner;

	return advice_input(advice, row, 0, &first) && advice_input(advice, row, 1, &second) &&
	       read_matrix(&first, true, &ret_product->count, &ret_product->rows, &ret_product->inner) &&
	       read_matrix(&second, false, &count, &inner, &ret_product->columns) && count == ret_product->count && inner == ret_product->inner;
}

/* Returns the only operator that reads a value in the forward pass; OPS_NONE: none. */
static uint32_t only_reader(const struct data_flow *flow, uint32_t value)
{
	uint32_t reader = OPS_NONE;

	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];

		if (use->kind < DATA_OVERWRITES || (flow->memory.rows.context[use->node] & MEMORY_IN_BACKWARD))
			continue;
		if (use->kind != DATA_READS || reader != OPS_NONE)
			return OPS_NONE;
		reader = use->node;
	}
	return flow->values[value].complete ? reader : OPS_NONE;
}

/* Returns the value that a node leaves, if it is exactly one. */
static uint32_t only_result(const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	uint32_t result = OPS_NONE;

	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		if (data_flow_is_scratch(flow, node, value))
			continue;
		if (result != OPS_NONE || flow->memory.values.items[value].previous != OPS_NONE)
			return OPS_NONE;
		result = value;
	}
	return result != OPS_NONE && flow->values[result].bytes >= BYTES_MIN ? result : OPS_NONE;
}

/* Returns the only operator that reads the result of a node in the forward pass; OPS_NONE: none. */
static uint32_t only_reader_of_result(const struct advice *advice, uint32_t node)
{
	uint32_t result = only_result(advice, node);

	return result == OPS_NONE ? OPS_NONE : only_reader(advice->flow, result);
}

static bool is_candidate(const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;

	return advice->flow->nodes[row].made_count && advice_counts(advice, row) && !advice_is_claimed(result, row) &&
	       !(advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER));
}

/* --- order ------------------------------------------------------------------------------------------------------------ */

/* Returns the work of the other order of two products relative to this one; 1 if the products are not such a pair.
 * `inner` is a factor of `outer`. */
static double work_of_other_order(const struct product *inner, const struct product *outer)
{
	double made = inner->rows * inner->columns;
	double now = inner->count * (made * inner->inner + outer->rows * outer->inner * outer->columns);
	double other = now;

	if (inner->count != outer->count)
		return 1;
	if (outer->rows == inner->rows && outer->inner == inner->columns) /* (A B) C */
		other = inner->inner * inner->columns * outer->columns + inner->rows * inner->inner * outer->columns;
	else if (outer->inner == inner->rows && outer->columns == inner->columns) /* C (A B) */
		other = outer->rows * inner->rows * inner->inner + outer->rows * inner->inner * inner->columns;
	else
		return 1;
	return inner->count * other / now;
}

static void add_order(struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct product inner, outer;
	uint32_t reader;
	double work;

	if (!is_product(advice, row) || !is_candidate(result, row) || !read_product(advice, row, &inner))
		return;
	reader = only_reader_of_result(advice, row);
	if (reader == OPS_NONE || !is_product(advice, reader) || !is_candidate(result, reader) ||
	    advice->step_of[reader] != advice->step_of[row] || !read_product(advice, reader, &outer))
		return;
	work = work_of_other_order(&inner, &outer);
	if (work > WORK_MAX)
		return;
	advice_add_share(result, row, (1 - work) * advice_work_share(advice, row));
	advice_add_share(result, reader, (1 - work) * advice_work_share(advice, reader));
}

/* A contraction of several tensors multiplies them from left to right, each product with the next tensor. `last` is the product before
 * this one, or OPS_NONE. */
static void add_contraction(struct advice_result *result, uint32_t row, uint32_t last)
{
	const struct advice *advice = result->advice;
	uint32_t contraction = advice->events->parent[row];
	struct product inner, outer;
	double work;

	if (last == OPS_NONE || advice->events->parent[last] != contraction || !advice_counts(advice, row) || advice_is_claimed(result, contraction) ||
	    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) || !read_product(advice, last, &inner) ||
	    !read_product(advice, row, &outer))
		return;
	work = work_of_other_order(&inner, &outer);
	/* It also makes the large result, and copies it into the layout of the next product. */
	if (work <= WORK_MAX)
		advice_add_share(result, contraction, (1 - work) * advice_work_share(advice, contraction));
}

static bool is_of_contraction(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return is_product(advice, row) && parent != OPS_NONE && ops_string_is(advice_name(advice, parent), "aten::einsum");
}

/* Returns true for an operator that computes each element of its result from one of `elements` elements. */
static bool is_elementwise_on(const struct advice *advice, uint32_t row, double elements)
{
	static const char *const names[] = {"aten::mul", "aten::div", "aten::add", "aten::sub", NULL};
	struct ops_input largest = advice_largest_input(advice, row);

	return advice_text_like(ops_trace_string(advice->trace, advice->events->name[row]), names) &&
	       (double)advice_input_elements(&largest) == elements;
}

#define UPDATE_STEPS_MAX 3   /* elementwise operators between a low-rank product and the layer */
#define UPDATE_RANK_MAX 0.25 /* rank, relative to the smaller side of the matrix */

/* Returns the share of the gradient of the weight in the time of a layer, forward and backward. The backward pass makes that of the input,
 * too, with as many operations. */
static double weight_gradient_share(const struct advice *advice, uint32_t row)
{
	double forward_ns = (double)advice_ns(advice, row), backward_ns = (double)advice->backward_ns[row];

	return backward_ns > 0 ? backward_ns / 2 / (forward_ns + backward_ns) : 0;
}

/* W + s * (A B) is made of matrices of low rank for a layer that multiplies it with x: (x B^T) A^T is a smaller product. */
static void add_update(struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	uint32_t steps[UPDATE_STEPS_MAX], count = 0, reader = row;
	struct product inner;
	struct ops_input x;
	double made, batch;

	if (!is_product(advice, row) || !is_candidate(result, row) || !read_product(advice, row, &inner) || inner.count > 1)
		return;
	made = inner.rows * inner.columns;
	while (count < UPDATE_STEPS_MAX) {
		reader = only_reader_of_result(advice, reader);
		if (reader == OPS_NONE || !is_candidate(result, reader) || advice->step_of[reader] != advice->step_of[row] ||
		    !is_elementwise_on(advice, reader, made))
			break;
		steps[count++] = reader;
	}
	if (!count || reader == OPS_NONE || advice_kind(advice, reader) != OPERATOR_PRODUCT || !advice_input(advice, reader, 0, &x))
		return;
	batch = (double)advice_input_elements(&x) / fmin(inner.rows, inner.columns);
	if (inner.inner > UPDATE_RANK_MAX * fmin(inner.rows, inner.columns) ||
	    batch * inner.inner * (inner.rows + inner.columns) > WORK_MAX * made * (inner.inner + count))
		return;
	advice_add_share(result, row, advice_work_share(advice, row));
	for (uint32_t i = 0; i < count; i++)
		advice_add_share(result, steps[i], advice_work_share(advice, steps[i]));
	advice_add_share(result, reader, weight_gradient_share(advice, reader) * advice_work_share(advice, reader));
}

static bool rule_products_find_order(const struct advice *advice, struct advice_result *result)
{
	uint32_t last = OPS_NONE;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		add_order(result, row);
		add_update(result, row);
		if (is_of_contraction(advice, row)) {
			add_contraction(result, row, last);
			last = row;
		}
	}
	return advice_report_costs(result, "%s a large matrix that only meets a smaller one. With the products in the "
	                                   "other order, %s less.",
	                           advice_events(result, "operator in each step makes", "operators in each step make").text,
	                           advice_cost(result).text);
}

const struct advice_rule advice_rule_order = {
	.id = "product-order",
	.title = "Matrices are multiplied in an expensive order",
	.condition = "A product of two matrices is only read by another product, and the other order, A (B C) in place of (A B) C, takes at most half of "
		     "the operations, by the shapes. So does a product within einsum, which multiplies three or more tensors from left to right, and a sum W + s (A B) with matrices A and B of low rank that only a layer reads: W x + s A (B x).",
	.gain = "the share of operations that the other order saves, of both products, forward and backward; for a sum, it, its product, and half of the backward pass of the layer: "
		"the gradient of a full matrix",
	.explanation = "Products of matrices give the same in any order, and the order decides how large the intermediate result is.",
	.advice = "Multiply the smaller factors first, as x @ a @ b in place of x @ (a @ b), or use torch.linalg.multi_dot, which chooses the order. In "
		  "einsum, write the tensors in the best order, or install opt_einsum, which torch then uses. "
		  "To check: fewer FLOPs at the line. Rounding may differ.",
	.code = "y = (x @ a) @ b  # in place of x @ (a @ b)\n"
		"y = linear(x, w) + s * linear(linear(x, b), a)  # in place of linear(x, w + s * (a @ b))\n"
		"y = torch.einsum(\"md,me,nd->ne\", k, v, q)  # in place of einsum(\"nd,md,me->ne\", q, k, v)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.linalg.multi_dot.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_products_find_order,
};

/* --- inverses --------------------------------------------------------------------------------------------------------- */

static bool rule_products_find_inverses(const struct advice *advice, struct advice_result *result)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t reader;

		if ((advice_kind(advice, row) != OPERATOR_INVERTS && advice_kind(advice, row) != OPERATOR_PSEUDOINVERTS) ||
		    !is_candidate(result, row))
			continue;
		reader = only_reader_of_result(advice, row);
		if (reader != OPS_NONE && is_product(advice, reader))
			advice_add_share(result, row, SOLVER_SAVES * advice_work_share(advice, row));
	}
	return advice_report_costs(result, "%s only to be multiplied with something. A solver saves %s.",
	                           advice_events(result, "matrix in each step is inverted", "matrices in each step are inverted").text,
	                           advice_cost(result).text);
}

const struct advice_rule advice_rule_inverse = {
	.id = "explicit-inverse",
	.title = "A matrix is inverted to be multiplied",
	.condition = "Only one product reads the result of linalg.inv or linalg.pinv.",
	.gain = "six tenths of the inverse, forward and backward: a factorization takes a third of its operations, and more on small matrices",
	.explanation = "A solver factors the matrix and needs no inverse, which takes three times the operations and is less exact.",
	.advice = "Use torch.linalg.solve(A, b) in place of torch.linalg.inv(A) @ b, torch.linalg.lstsq in place of a pseudoinverse, and "
		  "torch.cholesky_solve if the matrix is a covariance. To check: no inverse in the operators of a step.",
	.code = "weights = torch.linalg.solve(covariance, y)  # in place of torch.linalg.inv(covariance) @ y",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_products_find_inverses,
};

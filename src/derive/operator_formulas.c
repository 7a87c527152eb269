/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of an operator, and the bytes that it must move, estimated from the arguments it was called
 * with.
 *
 * A multiplication and an addition count one each, and so does an elementary function (exp, tanh, …). A call counts
 * once, at the outermost operator whose formula gives a value: aten::conv2d has the value and the aten::convolution
 * inside it none, as in torch.profiler; if the arguments are not sufficient (padding given as a string is not
 * recorded), the operator inside has the value. Composite operators have no formula: the FLOPs of aten::linear are at
 * its aten::addmm, those of the "math" form of attention at its aten::bmm calls, those of aten::lstm at the operators
 * of its layers.
 *
 * Intended differences from torch.profiler: pointwise operators count the elements of the broadcast result, also in
 * place; sub, div, vector products, all convolutions, fused attention and the backward operators have formulas; a list
 * of one stride applies to all dimensions; sparse operands give no value instead of a dense one. Known limit: under
 * vmap the outermost operator sees one sample's shape. The FLOPs of other pointwise operators, reductions and
 * normalisation are for rooflines; tables, which are compared with torch's, omit them.
 */
#include "derive/operator_call.h"

#include <string.h>

#include "derive/traffic.h"

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static bool is_none(const struct operator_call *call, size_t i)
{
	return i >= call->count || call->arguments[i].tag == OPS_INPUT_NONE;
}

/* Gets element `i` of a list of integers; a single number applies to all. Returns false if there is no such list. */
static bool list_number(const struct operator_call *call, size_t argument, size_t i, int64_t *ret_number)
{
	const struct ops_input *list;

	if (argument >= call->count)
		return false;
	list = &call->arguments[argument];
	if (list->tag != OPS_INPUT_INT_LIST || list->n == 0 || (list->n > 1 && i >= list->n))
		return false;
	*ret_number = ops_input_int(list, list->n == 1 ? 0 : i);
	return true;
}

/* Returns a truth value given as a scalar. The next function returns element `i` of a list of them. */
static bool flops_truth(const struct operator_call *call, size_t argument)
{
	return argument < call->count && call->arguments[argument].tag == OPS_INPUT_BOOL && call->arguments[argument].n;
}

bool operator_list_truth(const struct operator_call *call, size_t argument, size_t i)
{
	struct ops_input_cursor cursor;
	struct ops_input item = {0};

	if (argument >= call->count || call->arguments[argument].tag != OPS_INPUT_SCALAR_LIST)
		return false;
	cursor = ops_input_items(&call->arguments[argument]);
	for (size_t n = 0; n <= i; n++)
		if (!ops_inputs_next(&cursor, &item))
			return false;
	return item.tag == OPS_INPUT_BOOL && item.n;
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* One operation per element of the broadcast result of arguments 0 and 1; a number broadcasts to anything. */
static int64_t pointwise(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *a = &call->arguments[0], *b = &call->arguments[1];
	int64_t product = 1;
	size_t n;

	(void)where;
	if (!operator_is_tensor(call, 0, true) || call->count < 2)
		return OPERATOR_UNKNOWN;
	if (!operator_is_tensor(call, 1, false))
		return operator_elements(a, 0, a->n);
	if (!operator_is_tensor(call, 1, true))
		return OPERATOR_UNKNOWN;
	n = a->n > b->n ? a->n : b->n;
	for (size_t back = 1; back <= n; back++) {
		int64_t x = back <= a->n ? ops_input_int(a, a->n - back) : 1;
		int64_t y = back <= b->n ? ops_input_int(b, b->n - back) : 1;

		if (x != y && x != 1 && y != 1)
			return OPERATOR_UNKNOWN;
		product = ops_product(product, x == 1 ? y : x);
	}
	return product;
}

/* 2 · rows · inner · columns (· batch). where: argument of the first factor (the second follows), its dimensions, those of
 * the second factor. A vector has no columns. */
static int64_t matrix_product(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *a = &call->arguments[where[0]], *b = a + 1;
	size_t inner;

	if (!operator_is_tensor(call, where[0], true) || !operator_is_tensor(call, where[0] + 1u, true) || a->n != where[1] ||
	    b->n != where[2])
		return OPERATOR_UNKNOWN;
	inner = b->n == 1 ? 0 : b->n - 2u;
	if (ops_input_int(a, a->n - 1u) != ops_input_int(b, inner))
		return OPERATOR_UNKNOWN;
	return ops_product(2, ops_product(operator_elements(a, 0, a->n), operator_elements(b, inner + 1, b->n)));
}

/* Gets the size of a convolution's output along dimension i. Returns false if it cannot be computed from the
 * arguments. */
static bool output_size(const struct operator_call *call, const uint8_t *where, int64_t size, int64_t kernel, size_t i,
			int64_t *ret_size)
{
	int64_t stride, padding, dilation = 1, room;

	if (!list_number(call, where[2], i, &stride) || !list_number(call, where[3], i, &padding))
		return false;
	if (where[4] && !list_number(call, where[4], i, &dilation))
		return false;
	if (stride <= 0 || padding < 0 || dilation <= 0 || kernel <= 0)
		return false;
	room = ops_sum(size, ops_product(2, padding));
	room = ops_difference(room, ops_sum(ops_product(dilation, kernel - 1), 1));
	*ret_size = room < 0 ? 0 : ops_sum(room / stride, 1);
	return true;
}

/* 2 · batch · positions · weights. The positions are those of the input for a transposed convolution, else those of the
 * output. At each position every weight is used once, regardless of groups. where: arguments of input and weight,
 * stride, padding, dilation (0: none), and the flag for transposed (0: none). */
static int64_t convolution(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[where[0]], *weight = &call->arguments[where[1]];
	size_t dimensions, first;
	int64_t positions = 1;

	if (!operator_is_tensor(call, where[0], false) || !operator_is_tensor(call, where[1], false) || weight->n < 3 ||
	    (input->n != weight->n && input->n + 1 != weight->n))
		return OPERATOR_UNKNOWN;
	dimensions = weight->n - 2u;
	first = input->n - dimensions;
	if (where[5] && flops_truth(call, where[5])) {
		positions = operator_elements(input, first, input->n);
	} else {
		for (size_t i = 0; i < dimensions; i++) {
			int64_t size;

			if (!output_size(call, where, ops_input_int(input, first + i), ops_input_int(weight, 2 + i), i,
					 &size))
				return OPERATOR_UNKNOWN;
			positions = ops_product(positions, size);
		}
	}
	if (input->n == weight->n)
		positions = ops_product(positions, ops_input_int(input, 0));
	return ops_product(2, ops_product(positions, operator_elements(weight, 0, weight->n)));
}

/* Arguments (input, weight, …). */
static int64_t transposed_convolution(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[0], *weight = &call->arguments[1];
	int64_t positions;

	(void)where;
	if (!operator_is_tensor(call, 0, false) || !operator_is_tensor(call, 1, false) || weight->n < 3 ||
	    (input->n != weight->n && input->n + 1 != weight->n))
		return OPERATOR_UNKNOWN;
	positions = operator_elements(input, input->n - (weight->n - 2u), input->n);
	if (input->n == weight->n)
		positions = ops_product(positions, ops_input_int(input, 0));
	return ops_product(2, ops_product(positions, operator_elements(weight, 0, weight->n)));
}

/* The gradients of input and weight each cost as much as the convolution. The last argument selects them. (flop_counter
 * counts the gradient of a grouped convolution's weight as if it were not grouped.) */
static int64_t convolution_backward(const struct operator_call *call, const uint8_t *where)
{
	int64_t gradients = operator_list_truth(call, 10, 0) + operator_list_truth(call, 10, 1);

	return ops_product(gradients, convolution(call, where));
}

/* Every weight is used once for every row of the input. Rows are all dimensions except the last. where: arguments of
 * the input and of up to two weights (0: none), and how many times (0: once). */
static int64_t weight_product(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[where[0]];
	int64_t weights = 0;

	if (!operator_is_tensor(call, where[0], false) || input->n == 0)
		return OPERATOR_UNKNOWN;
	for (size_t i = 1; i <= 2 && where[i]; i++) {
		const struct ops_input *weight = &call->arguments[where[i]];

		if (!operator_is_tensor(call, where[i], false))
			return OPERATOR_UNKNOWN;
		weights = ops_sum(weights, operator_elements(weight, 0, weight->n));
	}
	weights = ops_product(weights, where[3] ? where[3] : 1);
	return ops_product(2, ops_product(operator_elements(input, 0, input->n - 1u), weights));
}

/* (input, weights, …): a complete stack of layers. Each matrix is multiplied once with every step of every sequence.
 * Biases are vectors. */
static int64_t recurrent(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[0];
	struct ops_input_cursor cursor;
	struct ops_input weight;
	int64_t weights = 0;

	(void)where;
	if (!operator_is_tensor(call, 0, true) || input->n == 0 || call->count < 2 ||
	    call->arguments[1].tag != OPS_INPUT_TENSOR_LIST)
		return OPERATOR_UNKNOWN;
	cursor = ops_input_items(&call->arguments[1]);
	while (ops_inputs_next(&cursor, &weight)) {
		if (operator_has_negative_size(&weight))
			return OPERATOR_UNKNOWN;
		if (weight.n == 2)
			weights = ops_sum(weights, operator_elements(&weight, 0, 2));
	}
	return ops_product(2, ops_product(operator_elements(input, 0, input->n - 1u), weights));
}

/* One operation per element of each tensor in a list. */
static int64_t flops_each(const struct operator_call *call, const uint8_t *where)
{
	struct ops_input_cursor cursor;
	struct ops_input tensor;
	int64_t sum = 0;

	(void)where;
	if (!call->count || call->arguments[0].tag != OPS_INPUT_TENSOR_LIST)
		return OPERATOR_UNKNOWN;
	cursor = ops_input_items(&call->arguments[0]);
	while (ops_inputs_next(&cursor, &tensor)) {
		if (operator_has_negative_size(&tensor))
			return OPERATOR_UNKNOWN;
		sum = ops_sum(sum, operator_elements(&tensor, 0, tensor.n));
	}
	return sum;
}

/* Inductor's operators, alone (X, W, …) or with another tensor fused in (X, other, W, …), which then have at least
 * `where[0]` arguments. Fused operations are not counted. */
static int64_t fused_convolution(const struct operator_call *call, const uint8_t *where)
{
	static const uint8_t alone[6] = {0, 1, 4, 3, 5}, with_other[6] = {0, 2, 5, 4, 6};

	return convolution(call, call->count >= where[0] ? with_other : alone);
}

static int64_t fused_linear(const struct operator_call *call, const uint8_t *where)
{
	static const uint8_t alone[6] = {0, 1}, with_other[6] = {0, 2};

	return weight_product(call, call->count <= where[0] ? with_other : alone);
}

/* Fused attention: for every pair of a query and a key, matrix products of the lengths of a query and of a value,
 * `times` of each. where: argument of the query (key and value follow), dimension of the heads, dimension of the
 * sequence, times for queries, times for values, an argument that makes the batch ragged if it is given (0: none). */
static int64_t attention(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *query = &call->arguments[where[0]], *key = query + 1, *value = query + 2;
	int64_t pairs, length;

	for (size_t i = 0; i < 3; i++)
		if (!operator_is_tensor(call, where[0] + i, true) || query[i].n != 4)
			return OPERATOR_UNKNOWN;
	if (where[5] && !is_none(call, where[5]))
		return OPERATOR_UNKNOWN;
	pairs = ops_product(ops_input_int(query, 0), ops_input_int(query, where[1]));
	pairs = ops_product(pairs, ops_product(ops_input_int(query, where[2]), ops_input_int(key, where[2])));
	length = ops_sum(ops_product(where[3], ops_input_int(query, 3)), ops_product(where[4], ops_input_int(value, 3)));
	return ops_product(2, ops_product(pairs, length));
}

/* where: argument, and operations for each of its elements. */
static int64_t each_element(const struct operator_call *call, const uint8_t *where)
{
	if (!operator_is_tensor(call, where[0], true))
		return OPERATOR_UNKNOWN;
	return ops_product(where[1], operator_elements(&call->arguments[where[0]], 0, call->arguments[where[0]].n));
}

/* Decompositions of matrices of m rows and n columns (m >= n, otherwise exchanged): (a m n^2 - b n^3) / 3 each, and
 * 2 n^2 for each right side of a system. where: argument, a, b, argument of the right sides (0: none). */
static int64_t decomposition(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *matrix = &call->arguments[where[0]], *sides = &call->arguments[where[3]];
	int64_t rows, columns, longer, shorter, each, flops;

	if (!operator_is_tensor(call, where[0], true) || matrix->n < 2)
		return OPERATOR_UNKNOWN;
	rows = ops_input_int(matrix, matrix->n - 2u);
	columns = ops_input_int(matrix, matrix->n - 1u);
	longer = rows > columns ? rows : columns;
	shorter = rows > columns ? columns : rows;
	/* The difference is split into terms that are not negative, so that huge sizes do not cancel. */
	each = ops_sum(ops_product(where[1] - where[2], longer), ops_product(where[2], longer - shorter));
	flops = ops_product(operator_elements(matrix, 0, matrix->n - 2u), ops_product(ops_product(shorter, shorter), each)) / 3;
	if (!where[3])
		return flops;
	if (!operator_is_tensor(call, where[3], true))
		return OPERATOR_UNKNOWN;
	return ops_sum(flops, ops_product(2, ops_product(columns, operator_elements(sides, 0, sides->n))));
}

/* A Fourier transform of N points takes 5 N log2 N operations, and half of that if the input is real. where: halves of
 * 5. The logarithm is rounded down. Arguments (self, dimensions, …). */
static int64_t fourier(const struct operator_call *call, const uint8_t *where)
{
	const struct ops_input *tensor = &call->arguments[0], *dimensions = &call->arguments[1];
	int64_t points = 1, logarithm = 0;

	if (!operator_is_tensor(call, 0, true) || call->count < 2 || dimensions->tag != OPS_INPUT_INT_LIST)
		return OPERATOR_UNKNOWN;
	for (size_t i = 0; i < dimensions->n; i++) {
		int64_t dimension = ops_input_int(dimensions, i);

		dimension += dimension < 0 ? tensor->n : 0;
		if (dimension < 0 || dimension >= tensor->n)
			return OPERATOR_UNKNOWN;
		points = ops_product(points, ops_input_int(tensor, (size_t)dimension));
	}
	for (; points > 1; points /= 2)
		logarithm++;
	return ops_product(ops_product(5 * where[0], logarithm), operator_elements(tensor, 0, tensor->n)) / 2;
}

/* Names are without "aten::". Sources of FLOPs: [P] torch.profiler, [F] torch.utils.flop_counter; otherwise the
 * definition of the operator, counted in the same way. Source of traffic: the operator's schema, whose tensors are read
 * and written once. READS and WRITES list argument numbers. A result has the size of an argument in WRITES, or `result`
 * computes its size. */
#define BIT(i) (1u << (i))
#define READS_1(a) BIT(a)
#define READS_2(a, b) (BIT(a) | BIT(b))
#define READS_3(a, b, c) (BIT(a) | BIT(b) | BIT(c))
#define READS_4(a, b, c, d) (BIT(a) | BIT(b) | BIT(c) | BIT(d))
#define READS_5(a, b, c, d, e) (BIT(a) | BIT(b) | BIT(c) | BIT(d) | BIT(e))
#define WRITES(a) BIT(a)

/* Operators with one, two and three tensors, and those that write to the first; `times` operations per element. */
#define POINTWISE_1(name, times) \
	{name, each_element, {0, times, 1}, {READS_1(0), 0, traffic_broadcast}, true}, \
	{name "_", each_element, {0, times, 1}, {READS_1(0), WRITES(0), NULL}, true}
#define POINTWISE_2(name) \
	{name, pointwise, {0, 1, 2}, {READS_2(0, 1), 0, traffic_broadcast}, false}, \
	{name "_", pointwise, {0, 1, 2}, {READS_2(0, 1), WRITES(0), NULL}, false}
#define POINTWISE_2_OTHER(name) \
	{name, pointwise, {0, 1, 2}, {READS_2(0, 1), 0, traffic_broadcast}, true}, \
	{name "_", pointwise, {0, 1, 2}, {READS_2(0, 1), WRITES(0), NULL}, true}
#define POINTWISE_3(name, times) \
	{name, each_element, {0, times, 3}, {READS_3(0, 1, 2), 0, traffic_broadcast}, true}, \
	{name "_", each_element, {0, times, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, true}
/* Comparisons count no operations. */
#define COMPARISON(name) {name, NULL, {0, 0, 2}, {READS_2(0, 1), 0, traffic_truth}, false}
/* (grad_output, self or result, …). */
#define GRADIENT(name, times) {name, each_element, {0, times, 2}, {READS_2(0, 1), 0, traffic_broadcast}, true}
/* (self, dim, …); the last number is the argument with the dimensions. */
#define REDUCTION(name, times, dimensions) {name, each_element, {0, times, dimensions}, {READS_1(0), 0, traffic_reduced}, true}
#define FILL(name) {name, NULL, {0}, {0, WRITES(0), NULL}, false}
/* Reads all of the first argument; writes are not counted. */
#define READ_ALL(name) {name, NULL, {0}, {READS_1(0), 0, NULL}, false}
/* (self[], other[], …): lists of tensors, like the operators on single tensors. */
#define FOREACH(name, reads, only_work) \
	{"_foreach_" name, flops_each, {0}, {reads, WRITES(0), NULL}, only_work}, \
	{"_foreach_" name "_", flops_each, {0}, {reads, WRITES(0), NULL}, only_work}

const struct operator_row operator_rows[] = {
	/* One operation per element [P for add and mul of equal shapes]. */
	POINTWISE_2("add"), POINTWISE_2("sub"), POINTWISE_2("mul"), POINTWISE_2("div"),
	POINTWISE_2_OTHER("pow"), POINTWISE_2_OTHER("maximum"), POINTWISE_2_OTHER("minimum"), POINTWISE_2_OTHER("atan2"),
	POINTWISE_2_OTHER("remainder"), POINTWISE_2_OTHER("fmod"), POINTWISE_2_OTHER("floor_divide"), POINTWISE_2_OTHER("true_divide"),
	POINTWISE_1("abs", 1), POINTWISE_1("neg", 1), POINTWISE_1("exp", 1), POINTWISE_1("exp2", 1), POINTWISE_1("expm1", 1),
	POINTWISE_1("log", 1), POINTWISE_1("log2", 1), POINTWISE_1("log10", 1), POINTWISE_1("log1p", 1),
	POINTWISE_1("sqrt", 1), POINTWISE_1("rsqrt", 1), POINTWISE_1("reciprocal", 1), POINTWISE_1("square", 1),
	POINTWISE_1("sin", 1), POINTWISE_1("cos", 1), POINTWISE_1("tan", 1), POINTWISE_1("tanh", 1), POINTWISE_1("erf", 1),
	POINTWISE_1("sigmoid", 1), POINTWISE_1("relu", 1), POINTWISE_1("silu", 1), POINTWISE_1("gelu", 1), POINTWISE_1("mish", 1),
	POINTWISE_1("elu", 1), POINTWISE_1("leaky_relu", 1), POINTWISE_1("softplus", 1), POINTWISE_1("hardtanh", 1),
	POINTWISE_1("hardswish", 1), POINTWISE_1("hardsigmoid", 1), POINTWISE_1("clamp_min", 1), POINTWISE_1("clamp_max", 1),
	POINTWISE_1("floor", 1), POINTWISE_1("ceil", 1), POINTWISE_1("round", 1), POINTWISE_1("trunc", 1), POINTWISE_1("sign", 1),
	POINTWISE_3("clamp", 2), POINTWISE_3("lerp", 3), POINTWISE_3("addcmul", 3), POINTWISE_3("addcdiv", 3),
	{"where", NULL, {0, 0, 3}, {READS_3(0, 1, 2), 0, traffic_broadcast}, false},
	{"masked_fill", NULL, {0, 0, 2}, {READS_2(0, 1), 0, traffic_broadcast}, false},
	COMPARISON("eq"), COMPARISON("ne"), COMPARISON("lt"), COMPARISON("le"), COMPARISON("gt"), COMPARISON("ge"),
	COMPARISON("logical_and"), COMPARISON("logical_or"), COMPARISON("logical_not"), COMPARISON("isnan"), COMPARISON("isinf"),
	GRADIENT("threshold_backward", 1), GRADIENT("sigmoid_backward", 3), GRADIENT("tanh_backward", 3),
	GRADIENT("gelu_backward", 1), GRADIENT("silu_backward", 1), GRADIENT("mish_backward", 1), GRADIENT("elu_backward", 1),
	GRADIENT("leaky_relu_backward", 1), GRADIENT("hardtanh_backward", 1), GRADIENT("hardswish_backward", 1),
	GRADIENT("hardsigmoid_backward", 1), GRADIENT("native_dropout_backward", 2),
	{"native_dropout", each_element, {0, 2}, {READS_1(0), WRITES(0), traffic_mask}, true},

	/* Operators that move data: (self, src), lists of tensors, and pure writes. The rows selected by indices may be
	 * few. */
	{"copy_", NULL, {0}, {READS_1(1), WRITES(0), NULL}, false},
	{"cat", NULL, {0}, {READS_1(0), WRITES(0), NULL}, false},
	FILL("fill_"), FILL("zero_"), FILL("normal_"), FILL("uniform_"), FILL("bernoulli_"), FILL("random_"), FILL("exponential_"),
	{"embedding", NULL, {0, 1}, {READS_1(1), 0, traffic_rows}, false},
	{"index_select", NULL, {0, 2, 1}, {READS_1(2), 0, traffic_selected}, false},
	{"gather", NULL, {0, 2}, {READS_1(2), 0, traffic_gathered}, false},
	{"embedding_dense_backward", NULL, {0, 2}, {READS_2(0, 1), 0, traffic_embedding_gradient}, false},
	{"flip", NULL, {0}, {READS_1(0), WRITES(0), NULL}, false},
	{"roll", NULL, {0}, {READS_1(0), WRITES(0), NULL}, false},

	/* One operation per input element; means divide; variances subtract, square and add. */
	REDUCTION("sum", 1, 1), REDUCTION("mean", 1, 1), REDUCTION("prod", 1, 1), REDUCTION("amax", 1, 1), REDUCTION("amin", 1, 1),
	REDUCTION("max", 1, 1), REDUCTION("min", 1, 1), REDUCTION("argmax", 1, 1), REDUCTION("argmin", 1, 1),
	REDUCTION("logsumexp", 3, 1), REDUCTION("std", 4, 1), REDUCTION("var", 4, 1), REDUCTION("std_mean", 4, 1),
	REDUCTION("var_mean", 4, 1), REDUCTION("linalg_vector_norm", 2, 2), REDUCTION("norm", 2, 2),
	{"any", NULL, {0, 0, 1}, {READS_1(0), 0, traffic_reduced}, false},
	{"all", NULL, {0, 0, 1}, {READS_1(0), 0, traffic_reduced}, false},
	{"cumsum", each_element, {0, 1}, {READS_1(0), WRITES(0), NULL}, true},
	{"sort", NULL, {0}, {READS_1(0), WRITES(0), NULL}, false},
	READ_ALL("topk"),

	/* Golub and Van Loan, "Matrix Computations", 4th edition: Cholesky 4.2, LU 3.2 (and 2 n^3 for the inverse), R of
	 * Householder's QR 5.2. Eigenvalues and singular values are bounded from below by the reduction to tridiagonal
	 * (8.3) and bidiagonal (5.4) form. Vectors and Q take more, but the arguments do not always show whether they are
	 * computed. */
	{"linalg_cholesky_ex", decomposition, {0, 1, 0, 0}, {READS_1(0), WRITES(0), NULL}, true},
	{"cholesky", decomposition, {0, 1, 0, 0}, {READS_1(0), WRITES(0), NULL}, true},
	{"linalg_lu_factor_ex", decomposition, {0, 3, 1, 0}, {READS_1(0), WRITES(0), NULL}, true},
	{"_linalg_solve_ex", decomposition, {0, 3, 1, 1}, {READS_2(0, 1), WRITES(1), NULL}, true},
	{"linalg_inv_ex", decomposition, {0, 6, 0, 0}, {READS_1(0), WRITES(0), NULL}, true},
	{"linalg_qr", decomposition, {0, 6, 2, 0}, {READS_1(0), 0, NULL}, true},
	{"_linalg_eigh", decomposition, {0, 4, 0, 0}, {READS_1(0), 0, NULL}, true},
	{"_linalg_svd", decomposition, {0, 12, 4, 0}, {READS_1(0), 0, NULL}, true},

	/* Operations by the convention of benchFFT (fftw.org/speed/method.html). */
	{"_fft_c2c", fourier, {2}, {READS_1(0), WRITES(0), NULL}, true},
	{"_fft_r2c", fourier, {1}, {READS_1(0), 0, NULL}, true},

	/* (self, dim, …): maximum, difference, exponential, sum, quotient. Backward: the product of gradient and
	 * result, its sum, difference and product; for a logarithm, an exponential instead of the first product. */
	{"_softmax", each_element, {0, 5}, {READS_1(0), WRITES(0), NULL}, true},
	{"_log_softmax", each_element, {0, 5}, {READS_1(0), WRITES(0), NULL}, true},
	{"_softmax_backward_data", each_element, {0, 4}, {READS_2(0, 1), WRITES(0), NULL}, true},
	{"_log_softmax_backward_data", each_element, {0, 4}, {READS_2(0, 1), WRITES(0), NULL}, true},

	/* Mean, difference, square, sum, product with the scale, weight and bias: 7 operations per element, 5 without
	 * mean and bias. Backward: the normalised element (2), its gradient (1), the sums of that and of its product
	 * with the element (3), the result (4), the gradients of weight and bias (3). The input is counted as read
	 * once, although its mean requires all of it first. */
	{"native_layer_norm", each_element, {0, 7}, {READS_3(0, 2, 3), WRITES(0), NULL}, true},
	{"native_group_norm", each_element, {0, 7}, {READS_3(0, 1, 2), WRITES(0), NULL}, true},
	{"native_batch_norm", each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, true},
	{"_native_batch_norm_legit", each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, true},
	{"_batch_norm_with_update", each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, true},
	{"cudnn_batch_norm", each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, true},
	{"miopen_batch_norm", each_element, {0, 7}, {READS_5(0, 1, 2, 3, 4), WRITES(0), NULL}, true},
	{"_fused_rms_norm", each_element, {0, 5}, {READS_2(0, 2), WRITES(0), NULL}, true},
	/* (grad_output, input, …); library versions (input, grad_output, …). */
	{"native_layer_norm_backward", each_element, {1, 13}, {READS_5(0, 1, 3, 4, 5), WRITES(1), NULL}, true},
	{"native_group_norm_backward", each_element, {1, 13}, {READS_5(0, 1, 2, 3, 4), WRITES(1), NULL}, true},
	{"native_batch_norm_backward", each_element, {1, 13}, {READS_3(0, 1, 2), WRITES(1), NULL}, true},
	{"batch_norm_backward", each_element, {1, 13}, {READS_3(0, 1, 2), WRITES(1), NULL}, true},
	{"_fused_rms_norm_backward", each_element, {1, 11}, {READS_4(0, 1, 3, 4), WRITES(1), NULL}, true},
	{"cudnn_batch_norm_backward", each_element, {0, 13}, {READS_3(0, 1, 2), WRITES(0), NULL}, true},
	{"miopen_batch_norm_backward", each_element, {0, 13}, {READS_3(0, 1, 2), WRITES(0), NULL}, true},

	/* Pooling reads all of its input, and writes less. Backward: (grad_output, self, …). */
	READ_ALL("max_pool2d_with_indices"), READ_ALL("avg_pool2d"), READ_ALL("_adaptive_avg_pool2d"), READ_ALL("mkldnn_max_pool2d"),
	{"max_pool2d_with_indices_backward", NULL, {0}, {READS_1(0), WRITES(1), NULL}, false},
	{"avg_pool2d_backward", NULL, {0}, {READS_1(0), WRITES(1), NULL}, false},
	{"_adaptive_avg_pool2d_backward", NULL, {0}, {READS_1(0), WRITES(1), NULL}, false},

	/* (self, mat2) [P, F]; the scale factors of _scaled_mm are not counted [F]. */
	{"mm", matrix_product, {0, 2, 2}, {READS_2(0, 1), 0, traffic_product}, false},
	{"bmm", matrix_product, {0, 3, 3}, {READS_2(0, 1), 0, traffic_product}, false},
	{"_scaled_mm", matrix_product, {0, 2, 2}, {READS_2(0, 1), 0, NULL}, false},
	{"_int_mm", matrix_product, {0, 2, 2}, {READS_2(0, 1), 0, NULL}, false},
	/* (self, mat1, mat2): the addition is not counted [P, F]. */
	{"addmm", matrix_product, {1, 2, 2}, {READS_3(0, 1, 2), 0, traffic_product}, false},
	{"addmm_", matrix_product, {1, 2, 2}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"_addmm_activation", matrix_product, {1, 2, 2}, {READS_3(0, 1, 2), 0, traffic_product}, false},
	{"baddbmm", matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), 0, traffic_product}, false},
	{"baddbmm_", matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"addbmm", matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"addbmm_", matrix_product, {1, 3, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	/* Products with vectors, counted as matrices of one column. */
	{"mv", matrix_product, {0, 2, 1}, {READS_2(0, 1), 0, traffic_product}, false},
	{"addmv", matrix_product, {1, 2, 1}, {READS_3(0, 1, 2), 0, traffic_product}, false},
	{"addmv_", matrix_product, {1, 2, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"dot", matrix_product, {0, 1, 1}, {READS_2(0, 1), 0, traffic_product}, false},
	{"vdot", matrix_product, {0, 1, 1}, {READS_2(0, 1), 0, traffic_product}, false},

	/* (input, weight, bias, stride, padding, dilation, groups) [P for conv2d]. */
	{"conv1d", convolution, {0, 1, 3, 4, 5}, {READS_2(0, 1), 0, traffic_convolution}, false},
	{"conv2d", convolution, {0, 1, 3, 4, 5}, {READS_2(0, 1), 0, traffic_convolution}, false},
	{"conv3d", convolution, {0, 1, 3, 4, 5}, {READS_2(0, 1), 0, traffic_convolution}, false},
	/* (input, weight, bias, stride, padding, dilation, transposed, …) [F]. */
	{"convolution", convolution, {0, 1, 3, 4, 5, 6}, {READS_2(0, 1), 0, traffic_convolution}, false},
	{"_convolution", convolution, {0, 1, 3, 4, 5, 6}, {READS_2(0, 1), 0, traffic_convolution}, false},
	{"convolution_overrideable", convolution, {0, 1, 3, 4, 5, 6}, {READS_2(0, 1), 0, traffic_convolution}, false},
	/* (self, weight, bias, padding, stride, dilation, groups). */
	{"mkldnn_convolution", convolution, {0, 1, 4, 3, 5}, {READS_2(0, 1), 0, traffic_convolution}, false},
	{"miopen_convolution", convolution, {0, 1, 4, 3, 5}, {READS_2(0, 1), 0, traffic_convolution}, false},
	/* (self, weight, padding, stride, dilation, groups, …) [F]. */
	{"cudnn_convolution", convolution, {0, 1, 3, 2, 4}, {READS_2(0, 1), 0, traffic_convolution}, false},
	/* (self, weight, kernel_size, bias, stride, padding) [F]. */
	{"_slow_conv2d_forward", convolution, {0, 1, 4, 5, 0}, {READS_2(0, 1), 0, traffic_convolution}, false},
	/* (input, weight, …) [F for the operator inside]. */
	{"conv_transpose1d", transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, false},
	{"conv_transpose2d", transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, false},
	{"conv_transpose3d", transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, false},
	/* (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask) [F]. */
	{"convolution_backward", convolution_backward, {1, 2, 4, 5, 6, 7}, {READS_3(0, 1, 2), 0, traffic_gradients}, false},

	FOREACH("add", READS_2(0, 1), false), FOREACH("sub", READS_2(0, 1), false), FOREACH("mul", READS_2(0, 1), false), FOREACH("div", READS_2(0, 1), false),
	FOREACH("addcmul", READS_3(0, 1, 2), true), FOREACH("addcdiv", READS_3(0, 1, 2), true), FOREACH("lerp", READS_2(0, 1), true),
	FOREACH("sqrt", READS_1(0), true), FOREACH("neg", READS_1(0), true), FOREACH("exp", READS_1(0), true),
	{"_foreach_zero_", NULL, {0}, {0, WRITES(0), NULL}, false},
	{"_foreach_copy_", NULL, {0}, {READS_1(1), WRITES(0), NULL}, false},
	{"_foreach_norm", NULL, {0}, {READS_1(0), 0, NULL}, false},
	/* (self[], grads[], exp_avgs[], exp_avg_sqs[], …) and (self[], grads[], momentum_buffers[], …). */
	{"_fused_adam_", NULL, {0}, {READS_4(0, 1, 2, 3), BIT(0) | BIT(2) | BIT(3), NULL}, false},
	{"_fused_adamw_", NULL, {0}, {READS_4(0, 1, 2, 3), BIT(0) | BIT(2) | BIT(3), NULL}, false},
	{"_fused_sgd_", NULL, {0}, {READS_3(0, 1, 2), BIT(0) | BIT(2), NULL}, false},

	/* Recurrent layers in one operator: matrix products only. */
	{"_cudnn_rnn", recurrent, {0}, {READS_2(0, 1), 0, NULL}, false},
	{"miopen_rnn", recurrent, {0}, {READS_2(0, 1), 0, NULL}, false},
	/* (input, w_ih, w_hh, …); backward: gradients of the multiplied inputs and of the weights. */
	{"mkldnn_rnn_layer", weight_product, {0, 1, 2}, {READS_3(0, 1, 2), 0, NULL}, false},
	{"mkldnn_rnn_layer_backward", weight_product, {0, 1, 2, 2}, {READS_3(0, 1, 2), 0, NULL}, false},

	/* (self, weight, bias). */
	{"mkldnn_linear", weight_product, {0, 1}, {READS_3(0, 1, 2), 0, traffic_linear}, false},
	{"mkldnn::_linear_pointwise", fused_linear, {5}, {READS_2(0, 1), 0, NULL}, false},
	/* (X, W, B, padding, stride, dilation, …); in place (other, X, W, B, padding, stride, dilation, …). */
	{"mkldnn::_convolution_pointwise", fused_convolution, {12}, {READS_2(0, 1), 0, NULL}, false},
	{"mkldnn::_convolution_pointwise_", convolution, {1, 2, 5, 4, 6}, {READS_2(1, 2), 0, traffic_convolution}, false},
	{"mkldnn::_convolution_transpose_pointwise", transposed_convolution, {0}, {READS_2(0, 1), 0, NULL}, false},

	/* (query, key, value, …), each (batch, heads, length, size): scores and weighted values [F]. */
	{"_scaled_dot_product_flash_attention", attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"_scaled_dot_product_flash_attention_for_cpu", attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"_scaled_dot_product_efficient_attention", attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"_scaled_dot_product_cudnn_attention", attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"_scaled_dot_product_fused_attention_overrideable", attention, {0, 1, 2, 1, 1}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	/* The same with (batch, length, heads, size), which flop_counter mistakes for the order above. No value if the
	 * sequences are packed; their lengths are then a tensor, in argument 3, 4, or 6 backward. */
	{"_flash_attention_forward", attention, {0, 2, 1, 1, 1, 3}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	{"_efficient_attention_forward", attention, {0, 2, 1, 1, 1, 4}, {READS_3(0, 1, 2), WRITES(0), NULL}, false},
	/* (grad_out, query, key, value, …): the scores again, and the gradients of scores, values, queries, keys
	 * [F]. */
	{"_scaled_dot_product_flash_attention_backward", attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, false},
	{"_scaled_dot_product_flash_attention_for_cpu_backward", attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, false},
	{"_scaled_dot_product_efficient_attention_backward", attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, false},
	{"_scaled_dot_product_cudnn_attention_backward", attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, false},
	{"_scaled_dot_product_fused_attention_overrideable_backward", attention, {1, 1, 2, 3, 2}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, false},
	{"_flash_attention_backward", attention, {1, 2, 1, 3, 2, 6}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, false},
	{"_efficient_attention_backward", attention, {1, 2, 1, 3, 2, 6}, {READS_4(0, 1, 2, 3), BIT(1) | BIT(2) | BIT(3), NULL}, false},
};
const size_t operator_row_count = sizeof(operator_rows) / sizeof(operator_rows[0]);

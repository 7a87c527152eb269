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
#include "derive/operators.h"
#include "trace/inputs.h"

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static bool is_none(const struct operator_call *call, size_t i)
{
	return i >= call->count || call->arguments[i].tag == OPS_INPUT_NONE;
}

/* Gets element `i` of a list of integers; a single number applies to all. Returns false if the argument is something else. */
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
	struct ops_input item;

	if (argument >= call->count || call->arguments[argument].tag != OPS_INPUT_SCALAR_LIST)
		return false;
	return ops_inputs_at(ops_input_items(&call->arguments[argument]), i, &item) && item.tag == OPS_INPUT_BOOL && item.n;
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* One operation per element of the broadcast result of arguments 0 and 1; a number broadcasts to anything. */
int64_t flops_pointwise(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_matrix_product(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_convolution(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_transposed_convolution(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_convolution_backward(const struct operator_call *call, const uint8_t *where)
{
	int64_t gradients = operator_list_truth(call, 10, 0) + operator_list_truth(call, 10, 1);

	return ops_product(gradients, flops_convolution(call, where));
}

/* Every weight is used once for every row of the input. Rows are all dimensions except the last. where: arguments of
 * the input and of up to two weights (0: none), and how many times (0: once). */
int64_t flops_weight_product(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_recurrent(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_each(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_fused_convolution(const struct operator_call *call, const uint8_t *where)
{
	static const uint8_t alone[6] = {0, 1, 4, 3, 5}, with_other[6] = {0, 2, 5, 4, 6};

	return flops_convolution(call, call->count >= where[0] ? with_other : alone);
}

int64_t flops_fused_linear(const struct operator_call *call, const uint8_t *where)
{
	static const uint8_t alone[6] = {0, 1}, with_other[6] = {0, 2};

	return flops_weight_product(call, call->count <= where[0] ? with_other : alone);
}

/* Fused attention: for every pair of a query and a key, matrix products of the lengths of a query and of a value,
 * `times` of each. where: argument of the query (key and value follow), dimension of the heads, dimension of the
 * sequence, times for queries, times for values, an argument that makes the batch ragged if it is given (0: none). */
int64_t flops_attention(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_each_element(const struct operator_call *call, const uint8_t *where)
{
	if (!operator_is_tensor(call, where[0], true))
		return OPERATOR_UNKNOWN;
	return ops_product(where[1], operator_elements(&call->arguments[where[0]], 0, call->arguments[where[0]].n));
}

/* Decompositions of matrices of m rows and n columns (m >= n, otherwise exchanged): (a m n^2 - b n^3) / 3 each, and
 * 2 n^2 for each right side of a system. where: argument, a, b, argument of the right sides (0: none). */
int64_t flops_decomposition(const struct operator_call *call, const uint8_t *where)
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
int64_t flops_fourier(const struct operator_call *call, const uint8_t *where)
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of an operator, estimated from the shapes it was called with.
 *
 * A multiplication and an addition count one each. A call counts once, at the outermost operator whose formula knows the
 * answer: aten::conv2d carries the value and the aten::convolution inside it none, as in torch.profiler; where the
 * arguments do not tell (padding given as a string is not recorded) the value stands at the operator inside. Composite
 * operators have no formula: aten::linear's stands at its aten::addmm, that of the "math" form of attention at its
 * aten::bmm's, aten::lstm's at what its layers run.
 *
 * Differs from torch.profiler on purpose (D26): pointwise operators count the elements of the broadcast result, also in
 * place; sub, div, vector products, all convolutions, fused attention and the backward operators have formulas; lists of
 * one number for strides stand for all dimensions; sparse operands give no value instead of a dense one. Known limit:
 * under vmap the outermost operator sees one sample's shape.
 */
#include <opstrobe/internal/analyze.h>

#include <string.h>

#include "analyze/flops.h"
#include "analyze/sum.h"
#include "base/alloc.h"

#define ARGUMENTS_MAX 12
#define UNKNOWN 0

/* How far up to look for an operator that counts already: operators inside operators are not many, a hostile file's may be. */
#define ANCESTORS_MAX 256

struct call {
	struct ops_input arguments[ARGUMENTS_MAX];
	size_t count;
};

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static bool flops_is_tensor(const struct call *call, size_t i, bool with_strides)
{
	if (i >= call->count)
		return false;
	return call->arguments[i].tag == OPS_INPUT_TENSOR ||
	       (!with_strides && call->arguments[i].tag == OPS_INPUT_TENSOR_PLAIN);
}

static bool is_none(const struct call *call, size_t i)
{
	return i >= call->count || call->arguments[i].tag == OPS_INPUT_NONE;
}

/* Product of a tensor's sizes from dimension `from` up to `to`. */
static int64_t elements(const struct ops_input *tensor, size_t from, size_t to)
{
	int64_t product = 1;

	for (size_t i = from; i < to; i++)
		product = ops_product(product, ops_input_int(tensor, i));
	return product;
}

/* Sizes of -1 and the like, which only a file can hold, would make nonsense of the products. */
static bool has_negative_size(const struct ops_input *argument)
{
	if (argument->tag != OPS_INPUT_TENSOR && argument->tag != OPS_INPUT_TENSOR_PLAIN)
		return false;
	for (size_t i = 0; i < argument->n; i++)
		if (ops_input_int(argument, i) < 0)
			return true;
	return false;
}

/* The ith number of a list of integers, of which one number stands for all. False when there is no such list. */
static bool list_number(const struct call *call, size_t argument, size_t i, int64_t *ret_number)
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

/* A truth value as a scalar, and the ith of a list of them. */
static bool flops_truth(const struct call *call, size_t argument)
{
	return argument < call->count && call->arguments[argument].tag == OPS_INPUT_BOOL && call->arguments[argument].n;
}

static bool list_truth(const struct call *call, size_t argument, size_t i)
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

/* One operation an element of the broadcast result of arguments 0 and 1; a number broadcasts to anything. */
static int64_t pointwise(const struct call *call, const uint8_t *where)
{
	const struct ops_input *a = &call->arguments[0], *b = &call->arguments[1];
	int64_t product = 1;
	size_t n;

	(void)where;
	if (!flops_is_tensor(call, 0, true) || call->count < 2)
		return UNKNOWN;
	if (!flops_is_tensor(call, 1, false))
		return elements(a, 0, a->n);
	if (!flops_is_tensor(call, 1, true))
		return UNKNOWN;
	n = a->n > b->n ? a->n : b->n;
	for (size_t back = 1; back <= n; back++) {
		int64_t x = back <= a->n ? ops_input_int(a, a->n - back) : 1;
		int64_t y = back <= b->n ? ops_input_int(b, b->n - back) : 1;

		if (x != y && x != 1 && y != 1)
			return UNKNOWN;
		product = ops_product(product, x == 1 ? y : x);
	}
	return product;
}

/* 2 · rows · inner · columns (· batch). where: argument of the first factor (the second follows), its dimensions, those of
 * the second factor. A vector has no columns. */
static int64_t matrix_product(const struct call *call, const uint8_t *where)
{
	const struct ops_input *a = &call->arguments[where[0]], *b = a + 1;
	size_t inner;

	if (!flops_is_tensor(call, where[0], true) || !flops_is_tensor(call, where[0] + 1u, true) || a->n != where[1] ||
	    b->n != where[2])
		return UNKNOWN;
	inner = b->n == 1 ? 0 : b->n - 2u;
	if (ops_input_int(a, a->n - 1u) != ops_input_int(b, inner))
		return UNKNOWN;
	return ops_product(2, ops_product(elements(a, 0, a->n), elements(b, inner + 1, b->n)));
}

/* The size of a convolution's output along dimension i. False when the arguments do not tell. */
static bool output_size(const struct call *call, const uint8_t *where, int64_t size, int64_t kernel, size_t i,
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

/* 2 · batch · positions · weights, the positions being those of the input for a transposed convolution and those of the
 * output for others: at each of them every weight is used once, whatever the groups. where: arguments of input and weight,
 * stride, padding, dilation (0: none), and whether transposed (0: no). */
static int64_t convolution(const struct call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[where[0]], *weight = &call->arguments[where[1]];
	size_t dimensions, first;
	int64_t positions = 1;

	if (!flops_is_tensor(call, where[0], false) || !flops_is_tensor(call, where[1], false) || weight->n < 3 ||
	    (input->n != weight->n && input->n + 1 != weight->n))
		return UNKNOWN;
	dimensions = weight->n - 2u;
	first = input->n - dimensions;
	if (where[5] && flops_truth(call, where[5])) {
		positions = elements(input, first, input->n);
	} else {
		for (size_t i = 0; i < dimensions; i++) {
			int64_t size;

			if (!output_size(call, where, ops_input_int(input, first + i), ops_input_int(weight, 2 + i), i,
					 &size))
				return UNKNOWN;
			positions = ops_product(positions, size);
		}
	}
	if (input->n == weight->n)
		positions = ops_product(positions, ops_input_int(input, 0));
	return ops_product(2, ops_product(positions, elements(weight, 0, weight->n)));
}

/* Arguments (input, weight, …). */
static int64_t transposed_convolution(const struct call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[0], *weight = &call->arguments[1];
	int64_t positions;

	(void)where;
	if (!flops_is_tensor(call, 0, false) || !flops_is_tensor(call, 1, false) || weight->n < 3 ||
	    (input->n != weight->n && input->n + 1 != weight->n))
		return UNKNOWN;
	positions = elements(input, input->n - (weight->n - 2u), input->n);
	if (input->n == weight->n)
		positions = ops_product(positions, ops_input_int(input, 0));
	return ops_product(2, ops_product(positions, elements(weight, 0, weight->n)));
}

/* The gradients of input and of weight cost as much as the convolution each; the last argument says which are wanted.
 * (flop_counter counts the gradient of a grouped convolution's weight as if it were not grouped.) */
static int64_t convolution_backward(const struct call *call, const uint8_t *where)
{
	int64_t gradients = list_truth(call, 10, 0) + list_truth(call, 10, 1);

	return ops_product(gradients, convolution(call, where));
}

/* Every weight once for every row of the input, which are all its dimensions but the last. where: arguments of the input and
 * of up to two weights (0: none), and how many times (0: once). */
static int64_t weight_product(const struct call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[where[0]];
	int64_t weights = 0;

	if (!flops_is_tensor(call, where[0], false) || input->n == 0)
		return UNKNOWN;
	for (size_t i = 1; i <= 2 && where[i]; i++) {
		const struct ops_input *weight = &call->arguments[where[i]];

		if (!flops_is_tensor(call, where[i], false))
			return UNKNOWN;
		weights = ops_sum(weights, elements(weight, 0, weight->n));
	}
	weights = ops_product(weights, where[3] ? where[3] : 1);
	return ops_product(2, ops_product(elements(input, 0, input->n - 1u), weights));
}

/* (input, weights, …): a whole stack of layers, each of whose matrices every step of every sequence is multiplied with once.
 * Biases are vectors. */
static int64_t recurrent(const struct call *call, const uint8_t *where)
{
	const struct ops_input *input = &call->arguments[0];
	struct ops_input_cursor cursor;
	struct ops_input weight;
	int64_t weights = 0;

	(void)where;
	if (!flops_is_tensor(call, 0, true) || input->n == 0 || call->count < 2 ||
	    call->arguments[1].tag != OPS_INPUT_TENSOR_LIST)
		return UNKNOWN;
	cursor = ops_input_items(&call->arguments[1]);
	while (ops_inputs_next(&cursor, &weight)) {
		if (has_negative_size(&weight))
			return UNKNOWN;
		if (weight.n == 2)
			weights = ops_sum(weights, elements(&weight, 0, 2));
	}
	return ops_product(2, ops_product(elements(input, 0, input->n - 1u), weights));
}

/* One operation an element of each tensor in a list. */
static int64_t flops_each(const struct call *call, const uint8_t *where)
{
	struct ops_input_cursor cursor;
	struct ops_input tensor;
	int64_t sum = 0;

	(void)where;
	if (call->count < 2 || call->arguments[0].tag != OPS_INPUT_TENSOR_LIST)
		return UNKNOWN;
	cursor = ops_input_items(&call->arguments[0]);
	while (ops_inputs_next(&cursor, &tensor)) {
		if (has_negative_size(&tensor))
			return UNKNOWN;
		sum = ops_sum(sum, elements(&tensor, 0, tensor.n));
	}
	return sum;
}

/* inductor's operators, alone (X, W, …) or with another tensor fused in (X, other, W, …), which has `where[0]` arguments
 * at least. What is fused in is not counted. */
static int64_t fused_convolution(const struct call *call, const uint8_t *where)
{
	static const uint8_t alone[6] = {0, 1, 4, 3, 5}, with_other[6] = {0, 2, 5, 4, 6};

	return convolution(call, call->count >= where[0] ? with_other : alone);
}

static int64_t fused_linear(const struct call *call, const uint8_t *where)
{
	static const uint8_t alone[6] = {0, 1}, with_other[6] = {0, 2};

	return weight_product(call, call->count <= where[0] ? with_other : alone);
}

/* Fused attention: for every pair of a query and a key, matrix products of the lengths of a query and of a value, `times`
 * of each. where: argument of the query (key and value follow), dimension of the heads, dimension of the sequence, times
 * for queries, times for values, an argument that makes the batch ragged when it is given (0: none). */
static int64_t attention(const struct call *call, const uint8_t *where)
{
	const struct ops_input *query = &call->arguments[where[0]], *key = query + 1, *value = query + 2;
	int64_t pairs, length;

	for (size_t i = 0; i < 3; i++)
		if (!flops_is_tensor(call, where[0] + i, true) || query[i].n != 4)
			return UNKNOWN;
	if (where[5] && !is_none(call, where[5]))
		return UNKNOWN;
	pairs = ops_product(ops_input_int(query, 0), ops_input_int(query, where[1]));
	pairs = ops_product(pairs, ops_product(ops_input_int(query, where[2]), ops_input_int(key, where[2])));
	length = ops_sum(ops_product(where[3], ops_input_int(query, 3)), ops_product(where[4], ops_input_int(value, 3)));
	return ops_product(2, ops_product(pairs, length));
}

/* Names are without "aten::". Sources: [P] what torch.profiler gives, [F] what torch.utils.flop_counter gives; others by the definition of the
 * operator in the same way of counting. */
static const struct formula {
	const char *name;
	int64_t (*evaluate)(const struct call *call, const uint8_t *where);
	uint8_t where[6];
} formulas[] = {
	/* One operation an element [P for add and mul of equal shapes]. */
	{"add", pointwise, {0}},
	{"add_", pointwise, {0}},
	{"sub", pointwise, {0}},
	{"sub_", pointwise, {0}},
	{"mul", pointwise, {0}},
	{"mul_", pointwise, {0}},
	{"div", pointwise, {0}},
	{"div_", pointwise, {0}},

	/* (self, mat2) [P, F]; the scale factors of _scaled_mm are not counted [F]. */
	{"mm", matrix_product, {0, 2, 2}},
	{"bmm", matrix_product, {0, 3, 3}},
	{"_scaled_mm", matrix_product, {0, 2, 2}},
	{"_int_mm", matrix_product, {0, 2, 2}},
	/* (self, mat1, mat2): what is added is not counted [P, F]. */
	{"addmm", matrix_product, {1, 2, 2}},
	{"addmm_", matrix_product, {1, 2, 2}},
	{"_addmm_activation", matrix_product, {1, 2, 2}},
	{"baddbmm", matrix_product, {1, 3, 3}},
	{"baddbmm_", matrix_product, {1, 3, 3}},
	{"addbmm", matrix_product, {1, 3, 3}},
	{"addbmm_", matrix_product, {1, 3, 3}},
	/* Products with vectors, counted as matrices of one column. */
	{"mv", matrix_product, {0, 2, 1}},
	{"addmv", matrix_product, {1, 2, 1}},
	{"addmv_", matrix_product, {1, 2, 1}},
	{"dot", matrix_product, {0, 1, 1}},
	{"vdot", matrix_product, {0, 1, 1}},

	/* (input, weight, bias, stride, padding, dilation, groups) [P for conv2d]. */
	{"conv1d", convolution, {0, 1, 3, 4, 5}},
	{"conv2d", convolution, {0, 1, 3, 4, 5}},
	{"conv3d", convolution, {0, 1, 3, 4, 5}},
	/* (input, weight, bias, stride, padding, dilation, transposed, …) [F]. */
	{"convolution", convolution, {0, 1, 3, 4, 5, 6}},
	{"_convolution", convolution, {0, 1, 3, 4, 5, 6}},
	{"convolution_overrideable", convolution, {0, 1, 3, 4, 5, 6}},
	/* (self, weight, bias, padding, stride, dilation, groups). */
	{"mkldnn_convolution", convolution, {0, 1, 4, 3, 5}},
	{"miopen_convolution", convolution, {0, 1, 4, 3, 5}},
	/* (self, weight, padding, stride, dilation, groups, …) [F]. */
	{"cudnn_convolution", convolution, {0, 1, 3, 2, 4}},
	/* (self, weight, kernel_size, bias, stride, padding) [F]. */
	{"_slow_conv2d_forward", convolution, {0, 1, 4, 5, 0}},
	/* (input, weight, …) [F for what is inside]. */
	{"conv_transpose1d", transposed_convolution, {0}},
	{"conv_transpose2d", transposed_convolution, {0}},
	{"conv_transpose3d", transposed_convolution, {0}},
	/* (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask) [F]. */
	{"convolution_backward", convolution_backward, {1, 2, 4, 5, 6, 7}},

	/* Lists of tensors, as the operators for one. */
	{"_foreach_add", flops_each, {0}},
	{"_foreach_add_", flops_each, {0}},
	{"_foreach_sub", flops_each, {0}},
	{"_foreach_sub_", flops_each, {0}},
	{"_foreach_mul", flops_each, {0}},
	{"_foreach_mul_", flops_each, {0}},
	{"_foreach_div", flops_each, {0}},
	{"_foreach_div_", flops_each, {0}},

	/* Recurrent layers in one operator: their matrix products. */
	{"_cudnn_rnn", recurrent, {0}},
	{"miopen_rnn", recurrent, {0}},
	/* (input, w_ih, w_hh, …); backward the gradients of what is multiplied and of the weights. */
	{"mkldnn_rnn_layer", weight_product, {0, 1, 2}},
	{"mkldnn_rnn_layer_backward", weight_product, {0, 1, 2, 2}},

	/* (self, weight, bias). */
	{"mkldnn_linear", weight_product, {0, 1}},
	{"mkldnn::_linear_pointwise", fused_linear, {5}},
	/* (X, W, B, padding, stride, dilation, …); in place (other, X, W, B, padding, stride, dilation, …). */
	{"mkldnn::_convolution_pointwise", fused_convolution, {12}},
	{"mkldnn::_convolution_pointwise_", convolution, {1, 2, 5, 4, 6}},
	{"mkldnn::_convolution_transpose_pointwise", transposed_convolution, {0}},

	/* (query, key, value, …), each (batch, heads, length, size): scores and weighted values [F]. */
	{"_scaled_dot_product_flash_attention", attention, {0, 1, 2, 1, 1}},
	{"_scaled_dot_product_flash_attention_for_cpu", attention, {0, 1, 2, 1, 1}},
	{"_scaled_dot_product_efficient_attention", attention, {0, 1, 2, 1, 1}},
	{"_scaled_dot_product_cudnn_attention", attention, {0, 1, 2, 1, 1}},
	{"_scaled_dot_product_fused_attention_overrideable", attention, {0, 1, 2, 1, 1}},
	/* The same with (batch, length, heads, size), which flop_counter takes for the order above; no value when the
	 * sequences are packed, whose lengths are then a tensor: argument 3, 4, or 6 backward. */
	{"_flash_attention_forward", attention, {0, 2, 1, 1, 1, 3}},
	{"_efficient_attention_forward", attention, {0, 2, 1, 1, 1, 4}},
	/* (grad_out, query, key, value, …): the scores once more, and the gradients of scores, values, queries, keys [F]. */
	{"_scaled_dot_product_flash_attention_backward", attention, {1, 1, 2, 3, 2}},
	{"_scaled_dot_product_flash_attention_for_cpu_backward", attention, {1, 1, 2, 3, 2}},
	{"_scaled_dot_product_efficient_attention_backward", attention, {1, 1, 2, 3, 2}},
	{"_scaled_dot_product_cudnn_attention_backward", attention, {1, 1, 2, 3, 2}},
	{"_scaled_dot_product_fused_attention_overrideable_backward", attention, {1, 1, 2, 3, 2}},
	{"_flash_attention_backward", attention, {1, 2, 1, 3, 2, 6}},
	{"_efficient_attention_backward", attention, {1, 2, 1, 3, 2, 6}},
};
#define FORMULA_COUNT (sizeof(formulas) / sizeof(formulas[0]))

/* --- events ------------------------------------------------------------------------------------------------------- */

/* Number of the formula plus one; 0 for none. */
static uint8_t formula_number(struct ops_string name)
{
	static const char prefix[] = "aten::";
	static const size_t prefix_size = sizeof(prefix) - 1;

	static const char other_prefix[] = "mkldnn::"; /* which the table has with its names */

	if (name.size > prefix_size && memcmp(name.bytes, prefix, prefix_size) == 0) {
		name.bytes += prefix_size;
		name.size -= prefix_size;
	} else if (name.size < sizeof(other_prefix) || memcmp(name.bytes, other_prefix, sizeof(other_prefix) - 1) != 0) {
		return 0;
	}
	for (size_t i = 0; i < FORMULA_COUNT; i++)
		if (formulas[i].name[0] == name.bytes[0] && strlen(formulas[i].name) == name.size &&
		    memcmp(formulas[i].name, name.bytes, name.size) == 0)
			return (uint8_t)(i + 1);
	return 0;
}

uint8_t *ops_flops_formulas(const struct ops_trace *trace)
{
	size_t count = ops_trace_string_count(trace);
	uint8_t *numbers = ops_realloc_array(NULL, count + 1, sizeof(*numbers));

	for (size_t id = 0; numbers && id < count; id++)
		numbers[id] = formula_number(ops_trace_string(trace, (uint32_t)id));
	return numbers;
}

/* The formula's value for one event, whatever is around it. */
static int64_t own_flops(const struct ops_trace *trace, const struct ops_events *events, uint32_t event,
			 const uint8_t *numbers)
{
	struct call call = {.count = 0};
	struct ops_input_cursor cursor;
	struct ops_string inputs;
	uint8_t number;

	if (events->kind[event] != OPS_EVENT_CPU_OP || events->inputs[event] == OPS_NONE)
		return UNKNOWN;
	number = numbers ? numbers[events->name[event]] : formula_number(ops_trace_string(trace, events->name[event]));
	if (number == 0)
		return UNKNOWN;
	inputs = ops_trace_inputs(trace, events->inputs[event]);
	cursor = ops_inputs_open(inputs.bytes, inputs.size);
	while (call.count < ARGUMENTS_MAX && ops_inputs_next(&cursor, &call.arguments[call.count]))
		if (has_negative_size(&call.arguments[call.count++]))
			return UNKNOWN;
	return formulas[number - 1].evaluate(&call, formulas[number - 1].where);
}

int64_t ops_flops_of(const struct ops_trace *trace, uint32_t event, const uint8_t *numbers)
{
	const struct ops_events *events = ops_trace_events(trace);
	int64_t flops = own_flops(trace, events, event, numbers);
	uint32_t ancestor = event;

	for (int i = 0; flops != UNKNOWN && i < ANCESTORS_MAX; i++) {
		ancestor = events->parent[ancestor];
		if (ancestor == OPS_NONE)
			break;
		if (own_flops(trace, events, ancestor, numbers) != UNKNOWN)
			flops = UNKNOWN;
	}
	return flops;
}

int64_t ops_event_flops(const struct ops_trace *trace, uint32_t event)
{
	return ops_flops_of(trace, event, NULL);
}

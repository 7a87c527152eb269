/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that operators must move; see traffic.h.
 */
#include "derive/traffic.h"

#include "derive/operators.h"
#include "trace/inputs.h"

#define LIST_DTYPE_UNKNOWN 0

static const struct ops_input *tensor_at(const struct operator_call *call, size_t i)
{
	return operator_is_tensor(call, i, false) ? &call->arguments[i] : NULL;
}

static int64_t elements_of(const struct ops_input *tensor)
{
	return operator_elements(tensor, 0, tensor->n);
}

int64_t traffic_tensor_bytes(const struct ops_input *tensor)
{
	int64_t distinct = 1, span = 1;

	if (tensor->tag == OPS_INPUT_TENSOR_PLAIN)
		return ops_product(elements_of(tensor), (int64_t)ops_dtype_bytes(tensor->dtype));
	for (size_t i = 0; i < tensor->n; i++) {
		int64_t size = ops_input_int(tensor, i), stride = ops_input_int(tensor, tensor->n + i);

		if (size == 0)
			return 0;
		stride = stride < 0 ? 0 : stride; /* negative strides occur only in malformed files */
		distinct = stride ? ops_product(distinct, size) : distinct;
		span = ops_sum(span, ops_product(size - 1, stride));
	}
	return ops_product(distinct < span ? distinct : span, (int64_t)ops_dtype_bytes(tensor->dtype));
}

/* Gets the bytes of a tensor, or of the tensors in a list; 0 for any other argument. Returns false if the type is
 * unknown. Files omit the types in lists, so they are read as the first one. */
static bool argument_bytes(const struct operator_call *call, size_t i, int64_t *ret_bytes)
{
	const struct ops_input *tensor = tensor_at(call, i);
	struct ops_input_cursor cursor;
	struct ops_input item;

	*ret_bytes = 0;
	if (tensor) {
		*ret_bytes = traffic_tensor_bytes(tensor);
		return ops_dtype_bytes(tensor->dtype) != 0;
	}
	if (i >= call->count || call->arguments[i].tag != OPS_INPUT_TENSOR_LIST)
		return true;
	cursor = ops_input_items(&call->arguments[i]);
	while (ops_inputs_next(&cursor, &item)) {
		if (item.dtype == LIST_DTYPE_UNKNOWN || !ops_dtype_bytes(item.dtype) || operator_has_negative_size(&item))
			return false;
		*ret_bytes = ops_sum(*ret_bytes, traffic_tensor_bytes(&item));
	}
	return true;
}

/* Returns an argument that is an integer, else `default_value`. */
static int64_t integer_at(const struct operator_call *call, size_t i, int64_t default_value)
{
	return i < call->count && call->arguments[i].tag == OPS_INPUT_INT ? ops_input_int(&call->arguments[i], 0) : default_value;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* Returns the number of elements of the broadcast result, and gets the bytes of the largest type. Tensors without
 * dimensions affect the type only if all tensors are such. */
static int64_t traffic_broadcast_elements(const struct operator_call *call, size_t count, int64_t *ret_size)
{
	int64_t product = 1, size = 0, single = 0;
	size_t dimensions = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ops_input *tensor = tensor_at(call, i);
		int64_t own = tensor ? (int64_t)ops_dtype_bytes(tensor->dtype) : 0;

		if (tensor && tensor->n > dimensions)
			dimensions = tensor->n;
		if (tensor && tensor->n)
			size = own > size ? own : size;
		else
			single = own > single ? own : single;
	}
	for (size_t back = 1; back <= dimensions; back++) {
		int64_t most = 1;

		for (size_t i = 0; i < count; i++) {
			const struct ops_input *tensor = tensor_at(call, i);
			int64_t own = tensor && back <= tensor->n ? ops_input_int(tensor, tensor->n - back) : 1;

			most = own != 1 ? own : most;
		}
		product = ops_product(product, most);
	}
	*ret_size = size ? size : single;
	return product;
}

int64_t traffic_broadcast(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	int64_t size, elements = traffic_broadcast_elements(call, where[2], &size);

	(void)flops;
	return ops_product(elements, size);
}

int64_t traffic_truth(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	int64_t size;

	(void)flops;
	return traffic_broadcast_elements(call, where[2], &size);
}

int64_t traffic_mask(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	(void)where;
	(void)flops;
	return elements_of(&call->arguments[0]);
}

static bool is_reduced(const struct operator_call *call, size_t argument, int64_t dimension, int64_t dimensions)
{
	const struct ops_input *list = argument < call->count ? &call->arguments[argument] : NULL;
	size_t count = !list ? 0 : list->tag == OPS_INPUT_INT ? 1 : list->tag == OPS_INPUT_INT_LIST ? list->n : 0;

	for (size_t i = 0; i < count; i++) {
		int64_t named = ops_input_int(list, i);

		if (named == dimension || named == dimension - dimensions)
			return true;
	}
	return count == 0;
}

int64_t traffic_reduced(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *tensor = &call->arguments[0];
	int64_t elements = 1;

	(void)flops;
	for (int64_t i = 0; i < tensor->n; i++)
		if (!is_reduced(call, where[2], i, tensor->n))
			elements = ops_product(elements, ops_input_int(tensor, (size_t)i));
	return ops_product(elements, (int64_t)ops_dtype_bytes(tensor->dtype));
}

/* Each element of a product requires two operations for each of the `inner` pairs. */
static int64_t product_bytes(const struct ops_input *factor, int64_t inner, int64_t flops)
{
	if (flops == OPERATOR_UNKNOWN || inner <= 0)
		return 0;
	return ops_product(flops / 2 / inner, (int64_t)ops_dtype_bytes(factor->dtype));
}

int64_t traffic_product(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *factor = &call->arguments[where[0]];

	return factor->n ? product_bytes(factor, ops_input_int(factor, factor->n - 1u), flops) : 0;
}

int64_t traffic_linear(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *input = &call->arguments[where[0]];

	return input->n ? product_bytes(input, ops_input_int(input, input->n - 1u), flops) : 0;
}

int64_t traffic_convolution(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *weight = tensor_at(call, where[1]);
	bool transposed = where[5] && where[5] < call->count && call->arguments[where[5]].tag == OPS_INPUT_BOOL &&
	                  call->arguments[where[5]].n;

	if (!weight || weight->n < 2 || transposed) /* more arguments determine its size */
		return 0;
	return product_bytes(weight, operator_elements(weight, 1, weight->n), flops);
}

int64_t traffic_gradients(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	int64_t sum = 0, bytes;

	(void)flops;
	for (size_t i = 0; i < 2; i++)
		if (operator_list_truth(call, 10, i) && argument_bytes(call, where[i], &bytes))
			sum = ops_sum(sum, bytes);
	return sum;
}

/* Returns the bytes of `elements` elements of an argument's type. */
static int64_t bytes_like(const struct operator_call *call, size_t argument, int64_t elements)
{
	const struct ops_input *tensor = tensor_at(call, argument);

	return tensor ? ops_product(elements, (int64_t)ops_dtype_bytes(tensor->dtype)) : 0;
}

int64_t traffic_rows(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *table = tensor_at(call, where[0]), *indices = tensor_at(call, where[1]);

	(void)flops;
	if (!table || !indices || table->n == 0)
		return 0;
	return bytes_like(call, where[0], ops_product(elements_of(indices), operator_elements(table, 1, table->n)));
}

int64_t traffic_selected(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *table = tensor_at(call, 0), *indices = tensor_at(call, where[1]);
	int64_t dimension = integer_at(call, where[2], INT64_MAX), elements;

	(void)flops;
	if (!table || !indices)
		return 0;
	dimension += dimension < 0 ? table->n : 0;
	if (dimension < 0 || dimension >= table->n)
		return 0;
	elements = operator_elements(table, 0, (size_t)dimension);
	elements = ops_product(elements, operator_elements(table, (size_t)dimension + 1, table->n));
	return bytes_like(call, 0, ops_product(elements, elements_of(indices)));
}

int64_t traffic_gathered(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *indices = tensor_at(call, where[1]);

	(void)flops;
	return indices ? bytes_like(call, 0, elements_of(indices)) : 0;
}

int64_t traffic_embedding_gradient(const struct operator_call *call, const uint8_t *where, int64_t flops)
{
	const struct ops_input *gradient = tensor_at(call, 0);
	int64_t rows = integer_at(call, where[1], 0);

	(void)flops;
	if (!gradient || gradient->n == 0 || rows < 0)
		return 0;
	return bytes_like(call, 0, ops_product(rows, ops_input_int(gradient, gradient->n - 1u)));
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Returns true if a call (self, mat1, mat2, beta, …) multiplies the added tensor by zero. It is not read then. */
static bool adds_nothing(const struct operator_call *call, const struct operator_row *row)
{
	const struct ops_input *beta = call->count > 3 ? &call->arguments[3] : NULL;

	if (row->traffic.result != traffic_product || row->where[0] != 1 || !beta)
		return false;
	return (beta->tag == OPS_INPUT_INT && ops_input_int(beta, 0) == 0) ||
	       (beta->tag == OPS_INPUT_DOUBLE && ops_input_double(beta, 0) == 0);
}

int64_t operator_traffic(const struct operator_call *call, const struct operator_row *row, int64_t flops)
{
	uint16_t reads = row->traffic.reads & (uint16_t)(adds_nothing(call, row) ? ~1u : ~0u);
	int64_t sum = 0, bytes;

	for (size_t i = 0; i < OPERATOR_ARGUMENTS_MAX; i++) {
		int times = (reads >> i & 1) + (row->traffic.writes >> i & 1);

		if (times && !argument_bytes(call, i, &bytes))
			return OPERATOR_UNKNOWN;
		if (times)
			sum = ops_sum(sum, ops_product(times, bytes));
	}
	if (sum && row->traffic.result)
		sum = ops_sum(sum, row->traffic.result(call, row->where, flops));
	return sum;
}

uint8_t operator_dtype(const struct operator_call *call)
{
	uint8_t first = UINT8_MAX;

	for (size_t i = 0; i < call->count; i++) {
		const struct ops_input *argument = &call->arguments[i];
		struct ops_input_cursor cursor = ops_input_items(argument);
		struct ops_input item = *argument;
		bool known = operator_is_tensor(call, i, false) ||
		             (argument->tag == OPS_INPUT_TENSOR_LIST && ops_inputs_next(&cursor, &item));

		if (known && ops_dtype_is_floating(item.dtype))
			return item.dtype;
		if (known && first == UINT8_MAX)
			first = item.dtype;
	}
	return first;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The four arrays of an operator's inputs, as an input list (opstrobe/inputs.h). Files from before 2023 have fewer arrays or
 * other texts in them: then the list has what it can represent (usually shapes), and the arrays are kept as text.
 */
#include "read/kineto.h"

#include <string.h>

#include "trace/inputs.h"

enum { DIMS, TYPES, STRIDES, CONCRETE, ARRAYS };

/* A type of torch that this version does not know. */
#define DTYPE_UNKNOWN UINT8_MAX
#define ITEMS_MAX UINT16_MAX

/* Returns a cursor over an array. */
static struct ops_json_cursor open_array(const struct ops_json_member *array)
{
	if (!array || array->type != '[')
		return (struct ops_json_cursor){"", "", NULL};
	return (struct ops_json_cursor){array->value + 1, array->value + array->value_size, NULL};
}

static void kineto_inputs_put_head(struct ops_buffer *out, uint8_t tag, uint8_t dtype, size_t n)
{
	struct ops_input_head head = {tag, dtype, (uint16_t)n};

	ops_buffer_append(out, &head, sizeof(head));
}

/* --- tensors -------------------------------------------------------------------------------------------------------- */

/* Appends the array's integers. Returns their number, or -1 if it contains anything else. */
static int kineto_inputs_put_ints(struct ops_buffer *out, const struct ops_json_member *array)
{
	struct ops_json_cursor cursor = open_array(array);
	struct ops_json_member element;
	int count = 0;

	while (ops_json_parse_element(&cursor, &element)) {
		int64_t value;

		if (!kineto_integer(&element, &value) || count == ITEMS_MAX)
			return -1;
		ops_buffer_append(out, &value, sizeof(value));
		count++;
	}
	return count;
}

/* Appends a tensor with these sizes and, if there are as many, strides. */
static bool kineto_inputs_put_tensor(struct ops_buffer *out, uint8_t dtype, const struct ops_json_member *sizes,
                                     const struct ops_json_member *strides)
{
	struct ops_input_head head = {OPS_INPUT_TENSOR, dtype, 0};
	size_t start = out->size;
	int count, stride_count;
	size_t end;

	kineto_inputs_put_head(out, OPS_INPUT_TENSOR, dtype, 0);
	count = kineto_inputs_put_ints(out, sizes);
	if (count < 0)
		return false;
	end = out->size;
	stride_count = strides && strides->type == '[' ? kineto_inputs_put_ints(out, strides) : -1;
	if (stride_count != count) {
		head.tag = OPS_INPUT_TENSOR_PLAIN;
		out->size = end;
	}
	head.n = (uint16_t)count;
	if (!out->failed)
		memcpy(out->bytes + start, &head, sizeof(head));
	return true;
}

static bool put_tensor_list(struct ops_buffer *out, const struct ops_json_member *sizes,
                            const struct ops_json_member *strides)
{
	struct ops_json_cursor size_cursor = open_array(sizes), stride_cursor = open_array(strides);
	struct ops_json_member size, stride;
	size_t start = out->size;
	size_t count = 0;

	kineto_inputs_put_head(out, OPS_INPUT_TENSOR_LIST, 0, 0);
	for (; ops_json_parse_element(&size_cursor, &size); count++) {
		bool has_stride = ops_json_parse_element(&stride_cursor, &stride);

		if (count == ITEMS_MAX || size.type != '[' ||
		    !kineto_inputs_put_tensor(out, 0, &size, has_stride ? &stride : NULL))
			return false;
	}
	if (!out->failed)
		memcpy(out->bytes + start + offsetof(struct ops_input_head, n), &(uint16_t){(uint16_t)count}, 2);
	return true;
}

/* --- scalars -------------------------------------------------------------------------------------------------------- */

/* Returns the start of the imaginary part of "1.5-2.j", or NULL. */
static const char *imaginary_part(const char *text, size_t size)
{
	for (size_t i = size - 1; i > 0; i--)
		if ((text[i] == '+' || text[i] == '-') && (text[i - 1] | 0x20) != 'e')
			return text + i;
	return NULL;
}

static bool put_complex(struct ops_buffer *out, const char *text, size_t size)
{
	const char *second = imaginary_part(text, size);
	double parts[2];

	if (!second || !ops_json_double(text, (size_t)(second - text), &parts[0]) ||
	    !ops_json_double(second, (size_t)(text + size - 1 - second), &parts[1]))
		return false;
	kineto_inputs_put_head(out, OPS_INPUT_COMPLEX, 0, 0);
	ops_buffer_append(out, parts, sizeof(parts));
	return true;
}

/* Accepts all integers of 64 bits, such as seeds; kineto_integer has at most 18 digits. */
static bool parse_scalar_integer(const char *text, size_t size, int64_t *ret_value)
{
	struct ops_json_member number = {.value = text, .value_size = (uint32_t)size, .type = OPS_JSON_NUMBER};
	bool is_negative = text[0] == '-';
	uint64_t most = (uint64_t)INT64_MAX + is_negative, value = 0;

	if (size - is_negative != 19)
		return kineto_integer(&number, ret_value);
	for (size_t i = is_negative; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0'); /* 19 digits fit */
	}
	if (value > most)
		return false;
	*ret_value = (int64_t)(is_negative ? 0 - value : value);
	return true;
}

/* Parses a scalar as torch writes it: "1", "True", "0.5", "1.", "1.+2.j". */
static bool put_scalar(struct ops_buffer *out, const char *text, size_t size)
{
	int64_t whole;
	double value;

	if (size == 0)
		return false;
	if (KINETO_IS(text, size, "True") || KINETO_IS(text, size, "False")) {
		kineto_inputs_put_head(out, OPS_INPUT_BOOL, 0, text[0] == 'T');
	} else if (parse_scalar_integer(text, size, &whole)) {
		kineto_inputs_put_head(out, OPS_INPUT_INT, 0, 0);
		ops_buffer_append(out, &whole, sizeof(whole));
	} else if (text[size - 1] == 'j') {
		return put_complex(out, text, size);
	} else if (ops_json_double(text, size, &value)) {
		kineto_inputs_put_head(out, OPS_INPUT_DOUBLE, 0, 0);
		ops_buffer_append(out, &value, sizeof(value));
	} else {
		return false;
	}
	return true;
}

/* Parses "[1, 1]". If all elements are integers, the result is an INT_LIST. */
static bool put_scalar_list(struct ops_buffer *out, const char *text, size_t size)
{
	size_t start = out->size;
	const char *end = text + size - 1;
	size_t count = 0;
	bool whole = true;

	if (size < 2 || text[0] != '[' || *end != ']')
		return false;
	kineto_inputs_put_head(out, OPS_INPUT_SCALAR_LIST, 0, 0);
	for (text++; text < end; count++) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		size_t item = out->size;

		if (!comma)
			comma = end;
		if (count == OPS_INPUT_LIST_MAX || !put_scalar(out, text, (size_t)(comma - text)))
			return false;
		whole &= !out->failed && out->bytes[item] == OPS_INPUT_INT;
		text = comma + 1;
		text += text < end && *text == ' ';
	}
	if (out->failed)
		return true;
	if (whole) /* without the heads */
		for (size_t i = 0; i < count; i++)
			memmove(out->bytes + start + 4 + i * 8, out->bytes + start + 8 + i * 12, 8);
	out->size = whole ? start + 4 + count * 8 : out->size;
	memcpy(out->bytes + start,
	       &(struct ops_input_head){whole ? OPS_INPUT_INT_LIST : OPS_INPUT_SCALAR_LIST, 0, (uint16_t)count}, 4);
	return true;
}

/* --- list ----------------------------------------------------------------------------------------------------------- */

static bool find_dtype(const struct ops_json_member *type, uint8_t *ret_dtype)
{
	for (unsigned dtype = 0; *ops_dtype_name((uint8_t)dtype); dtype++) {
		const char *name = ops_dtype_name((uint8_t)dtype);

		if (kineto_is(type->value, type->value_size, name, strlen(name))) {
			*ret_dtype = (uint8_t)dtype;
			return true;
		}
	}
	return false;
}

/* Appends one input; without type or value if its texts cannot be represented. */
static void kineto_inputs_put_item(struct ops_buffer *out, const struct ops_json_member items[ARRAYS])
{
	const struct ops_json_member *type = &items[TYPES], *dims = &items[DIMS], *value = &items[CONCRETE];
	const struct ops_json_member *strides = items[STRIDES].value ? &items[STRIDES] : NULL;
	size_t start = out->size;
	uint8_t dtype = DTYPE_UNKNOWN;
	bool done = false;

	if (type->value && find_dtype(type, &dtype))
		done = kineto_inputs_put_tensor(out, dtype, dims, strides);
	else if (type->value && KINETO_IS(type->value, type->value_size, "TensorList"))
		done = put_tensor_list(out, dims, strides);
	else if (type->value && value->value && KINETO_IS(type->value, type->value_size, "Scalar"))
		done = put_scalar(out, value->value, value->value_size);
	else if (type->value && value->value && KINETO_IS(type->value, type->value_size, "ScalarList"))
		done = put_scalar_list(out, value->value, value->value_size);
	else if (dims->value && dims->value_size > 2 && dims->value[1] == '[')
		done = put_tensor_list(out, dims, strides);
	else if (dims->value && dims->value_size > 2)
		done = kineto_inputs_put_tensor(out, dtype, dims, strides);
	if (!done) {
		out->size = start;
		kineto_inputs_put_head(out, OPS_INPUT_NONE, 0, 0);
	}
}

static bool append_inputs(struct ops_buffer *out, const struct ops_json_member *const arrays[ARRAYS])
{
	struct ops_json_cursor cursors[ARRAYS];
	uint32_t count = 0;

	for (int i = 0; i < ARRAYS; i++)
		cursors[i] = open_array(arrays[i]);
	out->size = 0;
	ops_buffer_append(out, &count, sizeof(count));
	for (;; count++) {
		struct ops_json_member items[ARRAYS] = {0};

		/* As many inputs as shapes or, without shapes, types. */
		for (int i = 0; i < ARRAYS; i++)
			if (!ops_json_parse_element(&cursors[i], &items[i]))
				items[i] = (struct ops_json_member){0};
		if (!items[DIMS].value && !items[TYPES].value)
			break;
		if (count == ITEMS_MAX || (items[DIMS].value && items[DIMS].type != '['))
			return false;
		kineto_inputs_put_item(out, items);
	}
	if (!out->failed)
		memcpy(out->bytes, &count, sizeof(count));
	return !out->failed;
}

/* Returns whether the array would be written with the same text, except for white space between values. */
static bool same_text(struct kineto_reader *reader, const struct ops_json_member *array, struct ops_string list,
                      void (*write)(struct ops_buffer *out, struct ops_string inputs))
{
	size_t written;

	if (!array)
		return false;
	reader->scratch.size = 0;
	write(&reader->scratch, list);
	written = reader->scratch.size;
	if (ops_json_clean(&reader->scratch, array->value, array->value_size, false, NULL) || reader->scratch.failed)
		return false;
	return reader->scratch.size == 2 * written &&
	       memcmp(reader->scratch.bytes, reader->scratch.bytes + written, written) == 0;
}

struct kineto_inputs kineto_convert_inputs(struct kineto_reader *reader, const struct ops_json_member *const arrays[ARRAYS])
{
	static void (*const writers[ARRAYS])(struct ops_buffer *, struct ops_string) = {
		ops_inputs_json_dims, ops_inputs_json_types, ops_inputs_json_strides, ops_inputs_json_concrete,
	};
	struct kineto_inputs inputs = {OPS_NONE, true};
	struct ops_string list;

	if (!append_inputs(&reader->list, arrays))
		return inputs;
	list = (struct ops_string){reader->list.bytes, reader->list.size};
	if (ops_inputs_count(list.bytes, list.size))
		inputs.id = ops_builder_inputs(reader->builder, list.bytes, list.size);
	inputs.keep_text = false;
	for (int i = 0; i < ARRAYS; i++)
		inputs.keep_text |= !same_text(reader, arrays[i], list, writers[i]);
	return inputs;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Input lists as text; see inputs.h. The formats were taken from what torch 2.13 prints for every kind of argument.
 */
#include "trace/inputs.h"

#include <inttypes.h>
#include <math.h>

/* Names of c10::ScalarType by number, as C++ prints them. */
static const char *const dtype_names[] = {
	"unsigned char",
	"signed char",
	"short int",
	"int",
	"long int",
	"c10::Half",
	"float",
	"double",
	"c10::complex<c10::Half>",
	"c10::complex<float>",
	"c10::complex<double>",
	"bool",
	"c10::qint8",
	"c10::quint8",
	"c10::qint32",
	"c10::BFloat16",
	"c10::quint4x2",
	"c10::quint2x4",
	"c10::bits1x8",
	"c10::bits2x4",
	"c10::bits4x2",
	"c10::bits8",
	"c10::bits16",
	"c10::Float8_e5m2",
	"c10::Float8_e4m3fn",
	"c10::Float8_e5m2fnuz",
	"c10::Float8_e4m3fnuz",
	"short unsigned int",
	"unsigned int",
	"long unsigned int",
	"c10::dummy_uint1_7_t<1>",
	"c10::dummy_uint1_7_t<2>",
	"c10::dummy_uint1_7_t<3>",
	"c10::dummy_uint1_7_t<4>",
	"c10::dummy_uint1_7_t<5>",
	"c10::dummy_uint1_7_t<6>",
	"c10::dummy_uint1_7_t<7>",
	"c10::dummy_int1_7_t<1>",
	"c10::dummy_int1_7_t<2>",
	"c10::dummy_int1_7_t<3>",
	"c10::dummy_int1_7_t<4>",
	"c10::dummy_int1_7_t<5>",
	"c10::dummy_int1_7_t<6>",
	"c10::dummy_int1_7_t<7>",
	"c10::Float8_e8m0fnu",
	"c10::Float4_e2m1fn_x2",
};

/* torch's names of the same in Python. */
static const char *const dtype_python_names[] = {
	"uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128",
	"bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8",
	"bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64", "uint1",
	"uint2", "uint3", "uint4", "uint5", "uint6", "uint7", "int1", "int2", "int3", "int4", "int5", "int6", "int7",
	"float8_e8m0fnu", "float4_e2m1fn_x2",
};

const char *ops_dtype_name(uint8_t dtype)
{
	return dtype < sizeof(dtype_names) / sizeof(dtype_names[0]) ? dtype_names[dtype] : "";
}

const char *ops_dtype_python_name(uint8_t dtype)
{
	return dtype < sizeof(dtype_python_names) / sizeof(dtype_python_names[0]) ? dtype_python_names[dtype] : "";
}

size_t ops_dtype_bytes(uint8_t dtype)
{
	static const uint8_t bytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2, 0, 0, 0, 0, 0, 1, 2, 1, 1, 1, 1, 2, 4, 8};

	return dtype < sizeof(bytes) ? bytes[dtype] : 0;
}

int64_t ops_tensor_bytes(const struct ops_input *tensor)
{
	int64_t bytes = (int64_t)ops_dtype_bytes(tensor->dtype);

	for (uint16_t i = 0; i < tensor->n; i++)
		if (__builtin_mul_overflow(bytes, ops_input_int(tensor, i), &bytes))
			return 0;
	return bytes < 0 ? 0 : bytes;
}

bool ops_inputs_valid(const char *bytes, size_t size)
{
	struct ops_input_cursor cursor = ops_inputs_open(bytes, size);
	struct ops_input item;

	if (size < sizeof(uint32_t))
		return false;
	while (ops_inputs_next(&cursor, &item))
		;
	return cursor.left == 0 && cursor.at == cursor.end;
}

bool ops_inputs_at(struct ops_input_cursor items, size_t i, struct ops_input *ret_item)
{
	while (ops_inputs_next(&items, ret_item))
		if (i-- == 0)
			return true;
	return false;
}

const char *ops_input_type_name(const struct ops_input *item)
{
	switch (item->tag) {
	case OPS_INPUT_TENSOR:
	case OPS_INPUT_TENSOR_PLAIN:
		return ops_dtype_name(item->dtype);
	case OPS_INPUT_TENSOR_LIST:
		return "TensorList";
	case OPS_INPUT_INT:
	case OPS_INPUT_BOOL:
	case OPS_INPUT_DOUBLE:
	case OPS_INPUT_COMPLEX:
		return "Scalar";
	case OPS_INPUT_SCALAR_LIST:
	case OPS_INPUT_INT_LIST:
		return "ScalarList";
	default:
		return "";
	}
}

/* --- scalars -------------------------------------------------------------------------------------------------------- */

/* An integral value that fits an int64 is written with all digits and a decimal point (without the sign of a zero), others with
 * 17 significant digits. */
static void double_text(struct ops_buffer *out, double value)
{
	if (value >= -0x1p63 && value < 0x1p63 && value == trunc(value))
		ops_buffer_printf(out, "%" PRId64 ".", (int64_t)value);
	else
		ops_buffer_printf(out, "%.17g", value);
}

static void complex_text(struct ops_buffer *out, double real, double imaginary)
{
	double_text(out, real);
	ops_buffer_append_text(out, imaginary >= 0 ? "+" : "-");
	double_text(out, fabs(imaginary));
	ops_buffer_append_text(out, "j");
}

static void scalar_text(struct ops_buffer *out, const struct ops_input *item)
{
	switch (item->tag) {
	case OPS_INPUT_INT:
		ops_buffer_append_int(out, ops_input_int(item, 0));
		break;
	case OPS_INPUT_BOOL:
		ops_buffer_append_text(out, item->n ? "True" : "False");
		break;
	case OPS_INPUT_DOUBLE:
		double_text(out, ops_input_double(item, 0));
		break;
	case OPS_INPUT_COMPLEX:
		complex_text(out, ops_input_double(item, 0), ops_input_double(item, 1));
		break;
	default:
		break;
	}
}

/* The int64s of an item from `first` on, as a list. */
static void ints_text(struct ops_buffer *out, const struct ops_input *item, size_t first, size_t count,
                      const char *comma)
{
	ops_buffer_append_text(out, "[");
	for (size_t i = 0; i < count; i++) {
		if (i)
			ops_buffer_append_text(out, comma);
		ops_buffer_append_int(out, ops_input_int(item, first + i));
	}
	ops_buffer_append_text(out, "]");
}

void ops_input_value_text(struct ops_buffer *out, const struct ops_input *item)
{
	struct ops_input_cursor cursor;
	struct ops_input inner;
	const char *comma = "";

	if (item->tag == OPS_INPUT_INT_LIST) {
		ints_text(out, item, 0, item->n, ", ");
	} else if (item->tag == OPS_INPUT_SCALAR_LIST) {
		ops_buffer_append_text(out, "[");
		for (cursor = ops_input_items(item); ops_inputs_next(&cursor, &inner); comma = ", ") {
			ops_buffer_append_text(out, comma);
			scalar_text(out, &inner);
		}
		ops_buffer_append_text(out, "]");
	} else {
		scalar_text(out, item);
	}
}

/* --- sizes and strides ---------------------------------------------------------------------------------------------- */

enum axis { SIZES, STRIDES };

static void tensor_text(struct ops_buffer *out, const struct ops_input *item, enum axis axis, const char *comma)
{
	if (axis == SIZES && ops_input_is_tensor(item->tag))
		ints_text(out, item, 0, item->n, comma);
	else if (axis == STRIDES && item->tag == OPS_INPUT_TENSOR)
		ints_text(out, item, item->n, item->n, comma);
	else
		ops_buffer_append_text(out, "[]");
}

/* One entry for each item; a TensorList is the list of the entries of its tensors. */
static void axis_text(struct ops_buffer *out, struct ops_string inputs, enum axis axis, const char *comma)
{
	struct ops_input_cursor outer = ops_inputs_open(inputs.bytes, inputs.size);
	struct ops_input item;
	const char *outer_comma = "";

	ops_buffer_append_text(out, "[");
	for (; ops_inputs_next(&outer, &item); outer_comma = comma) {
		ops_buffer_append_text(out, outer_comma);
		if (item.tag == OPS_INPUT_TENSOR_LIST) {
			struct ops_input_cursor list = ops_input_items(&item);
			struct ops_input tensor;
			const char *list_comma = "";

			ops_buffer_append_text(out, "[");
			for (; ops_inputs_next(&list, &tensor); list_comma = comma) {
				ops_buffer_append_text(out, list_comma);
				tensor_text(out, &tensor, axis, comma);
			}
			ops_buffer_append_text(out, "]");
		} else {
			tensor_text(out, &item, axis, comma);
		}
	}
	ops_buffer_append_text(out, "]");
}

void ops_inputs_shapes_text(struct ops_buffer *out, struct ops_string inputs)
{
	axis_text(out, inputs, SIZES, ", ");
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

void ops_inputs_json_dims(struct ops_buffer *out, struct ops_string inputs)
{
	axis_text(out, inputs, SIZES, ",");
}

void ops_inputs_json_strides(struct ops_buffer *out, struct ops_string inputs)
{
	axis_text(out, inputs, STRIDES, ",");
}

static void type_text(struct ops_buffer *out, const struct ops_input *item)
{
	ops_buffer_append_text(out, ops_input_type_name(item));
}

/* An array with a string for each item. Neither type names nor values contain characters that JSON escapes. */
static void strings_json(struct ops_buffer *out, struct ops_string inputs,
                         void (*text)(struct ops_buffer *out, const struct ops_input *item))
{
	struct ops_input_cursor cursor = ops_inputs_open(inputs.bytes, inputs.size);
	struct ops_input item;
	const char *open = "\"";

	ops_buffer_append_text(out, "[");
	for (; ops_inputs_next(&cursor, &item); open = ",\"") {
		ops_buffer_append_text(out, open);
		text(out, &item);
		ops_buffer_append_text(out, "\"");
	}
	ops_buffer_append_text(out, "]");
}

void ops_inputs_json_types(struct ops_buffer *out, struct ops_string inputs)
{
	strings_json(out, inputs, type_text);
}

void ops_inputs_json_concrete(struct ops_buffer *out, struct ops_string inputs)
{
	strings_json(out, inputs, ops_input_value_text);
}

void ops_inputs_json_args(struct ops_buffer *out, struct ops_string inputs)
{
	ops_buffer_append_text(out, "\"Concrete Inputs\":");
	ops_inputs_json_concrete(out, inputs);
	ops_buffer_append_text(out, ",\"Input type\":");
	ops_inputs_json_types(out, inputs);
	ops_buffer_append_text(out, ",\"Input Strides\":");
	ops_inputs_json_strides(out, inputs);
	ops_buffer_append_text(out, ",\"Input Dims\":");
	ops_inputs_json_dims(out, inputs);
}

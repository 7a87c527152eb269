/* SPDX-License-Identifier: Apache-2.0
 *
 * An input list (opstrobe/inputs.h) as text: Python's str() of the shapes, and the four JSON arrays of a Chrome trace's args. All
 * functions append to a buffer, whose failure is sticky. A malformed list is truncated at its first invalid item.
 */
#ifndef OPS_TRACE_INPUTS_H
#define OPS_TRACE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/inputs.h>
#include <opstrobe/trace.h>

#include "base/buffer.h"

/* Values of c10::ScalarType, the type of a tensor's elements. */
enum ops_dtype {
	OPS_DTYPE_UINT8,
	OPS_DTYPE_INT8,
	OPS_DTYPE_INT16,
	OPS_DTYPE_INT32,
	OPS_DTYPE_INT64,
	OPS_DTYPE_HALF,
	OPS_DTYPE_FLOAT,
	OPS_DTYPE_DOUBLE,
	OPS_DTYPE_COMPLEX_HALF,
	OPS_DTYPE_COMPLEX_FLOAT,
	OPS_DTYPE_COMPLEX_DOUBLE,
	OPS_DTYPE_BOOL,
	OPS_DTYPE_QINT8,
	OPS_DTYPE_QUINT8,
	OPS_DTYPE_BFLOAT16 = 15,
	OPS_DTYPE_FLOAT8_FIRST = 23, /* four formats of 8 bits */
	OPS_DTYPE_FLOAT8_LAST = 26,
};

static inline bool ops_dtype_is_float8(uint8_t dtype)
{
	return dtype >= OPS_DTYPE_FLOAT8_FIRST && dtype <= OPS_DTYPE_FLOAT8_LAST;
}

/* Returns true for real and complex numbers. */
static inline bool ops_dtype_is_floating(uint8_t dtype)
{
	return (dtype >= OPS_DTYPE_HALF && dtype <= OPS_DTYPE_COMPLEX_DOUBLE) || dtype == OPS_DTYPE_BFLOAT16 || ops_dtype_is_float8(dtype);
}

/* Returns whether the bytes are exactly one well-formed list. */
bool ops_inputs_valid(const char *bytes, size_t size);

/* The shapes as tables show and group them: "[[2, 3], [], [4]]". A TensorList has the sizes of all its tensors ("[[[2, 3], [4]],
 * []]"), where torch shows "[]". */
void ops_inputs_shapes_text(struct ops_buffer *out, struct ops_string inputs);

/* Returns the bytes of a tensor's elements; 0 if the type or a size is unknown or the product overflows. */
int64_t ops_tensor_bytes(const struct ops_input *tensor);

/* The values of "Input Dims", "Input Strides", "Input type" and "Concrete Inputs", each a JSON array without white space. For a
 * list of more than 30 tensors, torch writes []; here it is complete, so that nothing is lost. */
void ops_inputs_json_dims(struct ops_buffer *out, struct ops_string inputs);
void ops_inputs_json_strides(struct ops_buffer *out, struct ops_string inputs);
void ops_inputs_json_types(struct ops_buffer *out, struct ops_string inputs);
void ops_inputs_json_concrete(struct ops_buffer *out, struct ops_string inputs);

/* The four as members of an args object, in torch's order: `"Concrete Inputs":[…],"Input type":[…],"Input Strides":[…], "Input
 * Dims":[…]`, without a comma before or after. */
void ops_inputs_json_args(struct ops_buffer *out, struct ops_string inputs);

/* Item `i` of a list, counted from 0. Returns false if the list has fewer. */
bool ops_inputs_at(struct ops_input_cursor items, size_t i, struct ops_input *ret_item);

/* Returns the type of one item as torch writes it: "float", "Scalar", "ScalarList", "TensorList", "". Static. */
const char *ops_input_type_name(const struct ops_input *item);

/* A scalar or a list of scalars as torch writes it ("1", "True", "0.5", "1.", "1.+2.j", "[1, 1]"); nothing for other items. */
void ops_input_value_text(struct ops_buffer *out, const struct ops_input *item);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * An input list (opstrobe/inputs.h) as text: Python's str() of the shapes, and the four JSON arrays of a Chrome trace's
 * args. All append to a buffer, whose failure is sticky. A malformed list is cut at its first bad item.
 */
#ifndef OPS_TRACE_INPUTS_H
#define OPS_TRACE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/inputs.h>
#include <opstrobe/trace.h>

#include "base/buffer.h"

/* Whether the bytes are one well-formed list and nothing more. */
bool ops_inputs_valid(const char *bytes, size_t size);

/* The shapes as tables show and group them: "[[2, 3], [], [4]]", a TensorList with the sizes of its tensors, however
 * many ("[[[2, 3], [4]], []]"), where torch shows "[]". */
void ops_inputs_shapes_text(struct ops_buffer *out, struct ops_string inputs);

/* The values of "Input Dims", "Input Strides", "Input type" and "Concrete Inputs", each a JSON array without
 * white space. Torch writes [] for a list of more than 30 tensors; here it is whole, so that nothing is lost. */
void ops_inputs_json_dims(struct ops_buffer *out, struct ops_string inputs);
void ops_inputs_json_strides(struct ops_buffer *out, struct ops_string inputs);
void ops_inputs_json_types(struct ops_buffer *out, struct ops_string inputs);
void ops_inputs_json_concrete(struct ops_buffer *out, struct ops_string inputs);

/* The four as members of an args object, in torch's order: `"Concrete Inputs":[…],"Input type":[…],"Input Strides":[…],
 * "Input Dims":[…]`, with no comma around. */
void ops_inputs_json_args(struct ops_buffer *out, struct ops_string inputs);

/* The type of one item as torch writes it: "float", "Scalar", "ScalarList", "TensorList", "". Static. */
const char *ops_input_type_name(const struct ops_input *item);

/* A scalar or a list of scalars as torch writes it ("1", "True", "0.5", "1.", "1.+2.j", "[1, 1]"); nothing for any other. */
void ops_input_value_text(struct ops_buffer *out, const struct ops_input *item);

#endif

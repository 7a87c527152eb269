/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of an operator call, for formulas of its operations and bytes.
 */
#ifndef OPS_DERIVE_OPERATOR_CALL_H
#define OPS_DERIVE_OPERATOR_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/inputs.h>

#include "base/sum.h"

#define OPERATOR_ARGUMENTS_MAX 12
#define OPERATOR_UNKNOWN 0 /* the FLOPs or bytes do not follow from the arguments */

struct operator_call {
	struct ops_input arguments[OPERATOR_ARGUMENTS_MAX];
	size_t count;
};

/* Computes the operations of a call; `where` are the numbers in the row of the table of operators. */
typedef int64_t operator_formula(const struct operator_call *call, const uint8_t *where);

operator_formula flops_pointwise, flops_matrix_product, flops_convolution, flops_transposed_convolution, flops_convolution_backward, flops_weight_product,
	flops_recurrent, flops_each, flops_fused_convolution, flops_fused_linear, flops_attention, flops_each_element, flops_decomposition, flops_fourier;

static inline bool operator_is_tensor(const struct operator_call *call, size_t i, bool with_strides)
{
	if (i >= call->count)
		return false;
	return call->arguments[i].tag == OPS_INPUT_TENSOR ||
	       (!with_strides && call->arguments[i].tag == OPS_INPUT_TENSOR_PLAIN);
}

/* Product of a tensor's sizes from dimension `from` up to `to`. */
static inline int64_t operator_elements(const struct ops_input *tensor, size_t from, size_t to)
{
	int64_t product = 1;

	for (size_t i = from; i < to; i++)
		product = ops_product(product, ops_input_int(tensor, i));
	return product;
}

/* Negative sizes, which only a malformed file can contain, would make the products meaningless. */
static inline bool operator_has_negative_size(const struct ops_input *argument)
{
	if (!ops_input_is_tensor(argument->tag))
		return false;
	for (size_t i = 0; i < argument->n; i++)
		if (ops_input_int(argument, i) < 0)
			return true;
	return false;
}

/* Returns element `i` of a list of truth values. */
bool operator_list_truth(const struct operator_call *call, size_t argument, size_t i);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes that an operator must move: each tensor that it reads and each that it writes, once. It is a lower bound:
 * repeated reads, scratch memory and small outputs are not counted.
 */
#ifndef OPS_DERIVE_TRAFFIC_H
#define OPS_DERIVE_TRAFFIC_H

#include "derive/operator_call.h"

/* Returns the bytes of a result whose size is not that of any argument. `where` are the numbers in the row, `flops` the
 * result of its formula. */
typedef int64_t operator_result(const struct operator_call *call, const uint8_t *where, int64_t flops);

operator_result traffic_broadcast;          /* broadcast of the first where[2] arguments */
operator_result traffic_truth;              /* the same, one byte per element */
operator_result traffic_mask;               /* one byte for each element of the first argument */
operator_result traffic_reduced;            /* first argument without the dimensions of argument where[2] */
operator_result traffic_product;            /* product of matrices, the first of which is argument where[0] */
operator_result traffic_linear;             /* product of the input and the weight, which are arguments where[0] and
                                             * where[1] */
operator_result traffic_convolution;        /* convolution of the same */
operator_result traffic_gradients;          /* gradients of a convolution's input and weight */
operator_result traffic_rows;               /* rows of argument where[0], selected by the indices of argument where[1] */
operator_result traffic_selected;           /* parts of argument 0 along dimension where[2], selected by the indices of
                                             * argument where[1] */
operator_result traffic_gathered;           /* an element of argument 0's type for each of the indices of argument
                                             * where[1] */
operator_result traffic_embedding_gradient; /* gradient of a table; argument where[1] has the number of rows */

struct operator_row;

struct operator_traffic {
	uint16_t reads;  /* bits: argument numbers */
	uint16_t writes; /* bits: results of the size and type of these arguments */
	operator_result *result;
};

/* Returns the bytes of memory that a tensor's elements occupy. The elements of an expanded dimension share memory, and
 * overlapping windows occupy no more than their span. 0 for a type of unknown size. */
int64_t traffic_tensor_bytes(const struct ops_input *tensor);
/* Returns the bytes that a call moves; OPERATOR_UNKNOWN if they do not follow from its arguments, or nothing is
 * moved. */
int64_t operator_traffic(const struct operator_call *call, const struct operator_row *row, int64_t flops);
/* Returns the type of the computation: that of the first tensor of floating-point numbers, else of the first tensor.
 * UINT8_MAX: none. */
uint8_t operator_dtype(const struct operator_call *call);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes that an operator must move: each tensor that it reads and each that it writes, once. It is a lower bound: what is
 * read again, scratch memory and small outputs are not counted.
 */
#ifndef OPS_ANALYZE_TRAFFIC_H
#define OPS_ANALYZE_TRAFFIC_H

#include "analyze/operator_call.h"

/* Bytes of a result that has the size of no argument. `where` are the row's numbers, `flops` what its formula computes. */
typedef int64_t operator_result(const struct operator_call *call, const uint8_t *where, int64_t flops);

operator_result traffic_broadcast;          /* of the first where[2] arguments */
operator_result traffic_truth;              /* likewise, a byte an element */
operator_result traffic_mask;               /* a byte for each element of the first argument */
operator_result traffic_reduced;            /* of the first argument without the dimensions of argument where[2] */
operator_result traffic_product;            /* of matrices, the first of which is argument where[0] */
operator_result traffic_linear;             /* of the input and the weight, which are arguments where[0] and where[1] */
operator_result traffic_convolution;        /* likewise */
operator_result traffic_gradients;          /* of a convolution's input and weight */
operator_result traffic_rows;               /* of argument where[0], selected by the indices of argument where[1] */
operator_result traffic_selected;           /* along dimension where[2] of argument 0, by the indices of argument where[1] */
operator_result traffic_gathered;           /* of argument 0's type, for each of the indices of argument where[1] */
operator_result traffic_embedding_gradient; /* argument where[1] has the number of rows */

/* A row of the table of operators. */
struct operator_row {
	const char *name;
	operator_formula *flops; /* NULL: none */
	uint8_t where[6];
	struct operator_traffic {
		uint16_t reads;  /* bits: numbers of arguments */
		uint16_t writes; /* results of the size and type of arguments */
		operator_result *result;
	} traffic;
	bool only_work; /* tables of FLOPs leave it out, as torch.profiler's do */
};
extern const struct operator_row operator_rows[];
extern const size_t operator_row_count;

/* Bytes of memory that a tensor's elements lie in: those of an expanded dimension share one place, and those of overlapping
 * windows are no more than the span. 0 for a type whose size is not known. */
int64_t traffic_tensor_bytes(const struct ops_input *tensor);
/* Bytes of a call; OPERATOR_UNKNOWN when that does not follow from its arguments, or nothing is moved. */
int64_t operator_traffic(const struct operator_call *call, const struct operator_row *row, int64_t flops);
/* The type that is computed with: that of the first tensor of floating-point numbers, else of the first tensor. UINT8_MAX: none. */
uint8_t operator_dtype(const struct operator_call *call);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/inputs.h: the compact form of an operator's inputs, written on the hot path, decoded only when asked.
 *
 * An input list is a uint32_t count followed by that many items. An item is a 4-byte head {tag, dtype, n} followed by
 * its data, 4-byte aligned, in the machine's byte order:
 *
 *     tag           n                 data                              torch's "Input type"
 *     NONE          0                 –                                 ""  (None, strings, devices, undefined tensors)
 *     TENSOR        dimensions        int64 sizes[n], int64 strides[n]  "float", "long int", …
 *     TENSOR_PLAIN  dimensions        int64 sizes[n]                    as TENSOR; a layout without strides (sparse)
 *     TENSOR_LIST   tensors           n TENSOR or TENSOR_PLAIN items    "TensorList"
 *     INT           0                 int64                             "Scalar"
 *     BOOL          0 or 1            –                                 "Scalar"
 *     DOUBLE        0                 double                            "Scalar"
 *     COMPLEX       0                 double re, double im              "Scalar"
 *     SCALAR_LIST   items (≤ 30)      n scalar items (heads included)   "ScalarList"
 *     INT_LIST      items (≤ 30)      int64[n]                          "ScalarList"
 *
 * Lists of more than OPS_INPUT_LIST_MAX scalars are written as NONE (torch drops them too: spec 3.6).
 */
#ifndef OPSTROBE_INPUTS_H
#define OPSTROBE_INPUTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_INPUT_LIST_MAX 30

enum ops_input_tag {
	OPS_INPUT_NONE = 0,
	OPS_INPUT_TENSOR,
	OPS_INPUT_TENSOR_PLAIN,
	OPS_INPUT_TENSOR_LIST,
	OPS_INPUT_INT,
	OPS_INPUT_BOOL,
	OPS_INPUT_DOUBLE,
	OPS_INPUT_COMPLEX,
	OPS_INPUT_SCALAR_LIST,
	OPS_INPUT_INT_LIST,
};

struct ops_input_head {
	uint8_t tag;   /* enum ops_input_tag */
	uint8_t dtype; /* c10::ScalarType of a tensor */
	uint16_t n;
};

#ifdef __cplusplus
}
#endif
#endif

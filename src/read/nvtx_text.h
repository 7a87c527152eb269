/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of NVTX and ROCTX ranges that torch.autograd.profiler.emit_nvtx() creates for operators.
 */
#ifndef OPS_READ_NVTX_TEXT_H
#define OPS_READ_NVTX_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/common.h>

#include "base/buffer.h"

struct nvtx_operator {
	struct ops_string name;
	struct ops_string sizes; /* JSON; empty if the range has none */
	int64_t sequence;        /* -1: none */
};

/* Parses "aten::mm, seq = 3, op_id = 7, sizes = [[2, 3], [3, 4]]". Returns false for a range of the program itself. The results
 * are borrowed from the text. */
bool nvtx_parse_operator(struct ops_string text, struct nvtx_operator *ret_operator);
/* Appends the member `args` of the operator's row, preceded by a comma. */
void nvtx_put_args(struct ops_buffer *out, const struct nvtx_operator *operator);

#endif

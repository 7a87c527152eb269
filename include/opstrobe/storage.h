/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/storage.h: the memory behind a tensor, as an operator's input shows it. With memory and shapes recorded, each
 * operator has a list of these in addition to its inputs: one for each tensor in order, those in lists included, without tensors
 * that have no memory (undefined, meta, empty). Together with the allocator's reports they show which operator reads and writes
 * which allocation.
 *
 * A Python number among tensors (`x / 2`) becomes a temporary tensor whose memory is meaningless. Its entry identifies the number
 * instead: address 0, and as `bytes` a digest of its value.
 */
#ifndef OPSTROBE_STORAGE_H
#define OPSTROBE_STORAGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a storage is to its program. */
enum ops_role {
	OPS_ROLE_NONE,
	OPS_ROLE_PARAMETER,       /* of a model */
	OPS_ROLE_OPTIMIZER_STATE,
	OPS_ROLE_GRADIENT,        /* of a parameter */
	OPS_ROLE_BUFFER,          /* a model's tensor that is not a parameter, such as a running mean */
	OPS_ROLE_TENSOR,          /* alive, no more is known */
};

#define OPS_STORAGE_BYTES_MAX (((uint64_t)1 << 44) - 1)

struct ops_storage {
	uint64_t address;           /* of its first byte; 0 a number of Python's */
	uint64_t bytes : 44;        /* at most OPS_STORAGE_BYTES_MAX; of a number its digest */
	uint64_t device_type : 6;   /* c10::DeviceType */
	uint64_t device_index : 8;  /* index + 1; 0 for the CPU */
	uint64_t written : 1;       /* the operator's schema says that it writes to it */
	uint64_t role : 4;          /* enum ops_role */
	uint64_t unused : 1;
};

#ifdef __cplusplus
}
static_assert(sizeof(struct ops_storage) == 16, "storage layout");
#else
_Static_assert(sizeof(struct ops_storage) == 16, "storage layout");
#endif
#endif

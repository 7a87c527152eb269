/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/storage.h: the memory behind a tensor that is an operator's input. If memory and shapes are recorded, each operator
 * has a list of storages in addition to its inputs: one for each tensor in order, including those in lists, but not for tensors
 * without memory (undefined, meta, empty). Together with the allocator's reports they show which operator reads and writes which
 * allocation.
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

/* What the program uses a storage for. */
enum ops_role {
	OPS_ROLE_NONE,
	OPS_ROLE_PARAMETER,       /* of a model */
	OPS_ROLE_OPTIMIZER_STATE,
	OPS_ROLE_GRADIENT,        /* of a parameter */
	OPS_ROLE_BUFFER,          /* a model's tensor that is not a parameter, such as a running mean */
	OPS_ROLE_TENSOR,          /* alive; nothing more is known */
};

#define OPS_STORAGE_BYTES_MAX (((uint64_t)1 << 44) - 1)

struct ops_storage {
	uint64_t address;           /* of its first byte; 0: a Python number */
	uint64_t bytes : 44;        /* at most OPS_STORAGE_BYTES_MAX; the digest of a Python number */
	uint64_t device_type : 6;   /* c10::DeviceType */
	uint64_t device_index : 8;  /* index + 1; 0 for the CPU */
	uint64_t written : 1;       /* the operator's schema says that it writes to the storage */
	uint64_t role : 4;          /* enum ops_role */
	uint64_t unused : 1;
};

/* Returns the digest of a Python number of 8 or 16 bytes, whose parts are its bits: the second one of a number that is not complex is
 * 0. */
static inline uint64_t ops_number_digest(uint64_t bytes, uint64_t part, uint64_t second_part)
{
	uint64_t digest = (bytes ^ part) * 0x9e3779b97f4a7c15u;

	digest ^= digest >> 29;
	digest = (digest ^ second_part) * 0x9e3779b97f4a7c15u;
	digest ^= digest >> 29;
	return digest & OPS_STORAGE_BYTES_MAX;
}

#ifdef __cplusplus
}
static_assert(sizeof(struct ops_storage) == 16, "storage layout");
#else
_Static_assert(sizeof(struct ops_storage) == 16, "storage layout");
#endif
#endif

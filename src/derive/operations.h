/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of several ranks are one operation: the nth one of a kind in a process group, or the one with the same sequence number
 * that torch assigned in that group.
 */
#ifndef OPS_DERIVE_OPERATIONS_H
#define OPS_DERIVE_OPERATIONS_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/buffer.h"
#include "base/intern.h"
#include "base/map.h"

/* Operations of all ranks, numbered in order of first occurrence. Zero-initialised is empty. */
struct ops_operations {
	struct ops_intern kinds;
	struct ops_map numbers; /* by kind and by the number of earlier ones of that kind on the rank */
};

/* Appends the process group of a row and its sequence number there. Returns false if the row names neither. Torch stores them in
 * an operator around the collective, and in its kernels. */
bool ops_operation_append_group(const struct ops_trace *trace, uint32_t row, struct ops_buffer *kind);
/* Returns the operation that is the next one of its kind on a rank, in whose order they are to be numbered. `seen` belongs to the
 * rank. Returns OPS_NONE if out of memory. */
uint32_t ops_operations_number(struct ops_operations *operations, struct ops_map *seen, const void *kind, size_t size);
void ops_operations_release(struct ops_operations *operations);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A heap of numbers, in memory of the caller. The first one precedes all others.
 */
#ifndef OPS_BASE_HEAP_H
#define OPS_BASE_HEAP_H

#include "base/order.h"

/* `heap` has space for one more. */
void ops_heap_push(uint32_t *heap, size_t *count, uint32_t item, ops_before *before, const void *context);
/* Removes the first one. */
void ops_heap_pop(uint32_t *heap, size_t *count, ops_before *before, const void *context);

#endif

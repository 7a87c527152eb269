/* SPDX-License-Identifier: Apache-2.0
 *
 * A heap of numbers; see heap.h.
 */
#include "base/heap.h"

#include <assert.h>

void ops_heap_push(uint32_t *heap, size_t *count, uint32_t item, ops_before *before, const void *context)
{
	size_t at = (*count)++;

	for (; at && before(context, item, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = item;
}

void ops_heap_pop(uint32_t *heap, size_t *count, ops_before *before, const void *context)
{
	uint32_t item;
	size_t at = 0, size;

	assert(*count);
	size = --*count;
	item = heap[size];
	for (size_t child; (child = 2 * at + 1) < size; at = child) {
		child += child + 1 < size && before(context, heap[child + 1], heap[child]);
		if (!before(context, heap[child], item))
			break;
		heap[at] = heap[child];
	}
	heap[at] = item; /* of an empty heap, the slot is unused */
}

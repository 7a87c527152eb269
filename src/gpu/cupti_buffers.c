/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers for CUPTI; see cupti_buffers.h.
 */
#include "gpu/cupti_buffers.h"

#include "base/alloc.h"

/* Claims an unused buffer. */
static bool cupti_buffers_claim(struct ops_cupti_buffer *buffer)
{
	return !atomic_load_explicit(&buffer->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&buffer->taken, true, memory_order_acquire);
}

uint8_t *ops_cupti_buffers_claim(struct ops_cupti_buffers *buffers)
{
	for (size_t i = 0; i < OPS_CUPTI_BUFFERS; i++) {
		struct ops_cupti_buffer *buffer = &buffers->items[i];
		uint8_t *bytes;

		if (!cupti_buffers_claim(buffer))
			continue;
		bytes = atomic_load_explicit(&buffer->bytes, memory_order_relaxed);
		if (!bytes) {
			bytes = ops_alloc(OPS_CUPTI_BUFFER_BYTES);
			atomic_store_explicit(&buffer->bytes, bytes, memory_order_relaxed);
		}
		if (bytes)
			return bytes;
		ops_cupti_buffers_return(buffer);
		return NULL;
	}
	return NULL;
}

void ops_cupti_buffers_fill(struct ops_cupti_buffers *buffers, const uint8_t *bytes, size_t valid_bytes)
{
	for (size_t i = 0; i < OPS_CUPTI_BUFFERS; i++) {
		struct ops_cupti_buffer *buffer = &buffers->items[i];

		if (atomic_load_explicit(&buffer->bytes, memory_order_relaxed) != bytes ||
		    !atomic_load_explicit(&buffer->taken, memory_order_relaxed))
			continue;
		if (valid_bytes == 0) {
			ops_cupti_buffers_return(buffer);
			return;
		}
		buffer->valid_bytes = valid_bytes < OPS_CUPTI_BUFFER_BYTES ? valid_bytes : OPS_CUPTI_BUFFER_BYTES;
		buffer->next = atomic_load_explicit(&buffers->full, memory_order_relaxed);
		while (!atomic_compare_exchange_weak_explicit(&buffers->full, &buffer->next, buffer, memory_order_release,
		                                              memory_order_relaxed))
			;
		return;
	}
}

struct ops_cupti_buffer *ops_cupti_buffers_drain(struct ops_cupti_buffers *buffers)
{
	struct ops_cupti_buffer *newest = atomic_exchange_explicit(&buffers->full, NULL, memory_order_acquire);
	struct ops_cupti_buffer *oldest = NULL;

	while (newest) {
		struct ops_cupti_buffer *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

void ops_cupti_buffers_return(struct ops_cupti_buffer *buffer)
{
	atomic_store_explicit(&buffer->taken, false, memory_order_release);
}

void ops_cupti_buffers_release(struct ops_cupti_buffers *buffers)
{
	for (size_t i = 0; i < OPS_CUPTI_BUFFERS; i++) {
		if (!cupti_buffers_claim(&buffers->items[i]))
			continue; /* CUPTI still has it, and may write to it */
		ops_free(atomic_exchange_explicit(&buffers->items[i].bytes, NULL, memory_order_relaxed));
		ops_cupti_buffers_return(&buffers->items[i]);
	}
}

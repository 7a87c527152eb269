/* SPDX-License-Identifier: Apache-2.0
 *
 * The buffers that CUPTI fills. It requests empty buffers and returns full ones on its own threads and the program's, so neither
 * operation takes a lock: a buffer is claimed by one atomic exchange and returned by one push on a stack. There are at most
 * OPS_CUPTI_BUFFERS; if all are in use, CUPTI drops records and counts them.
 */
#ifndef OPS_GPU_CUPTI_BUFFERS_H
#define OPS_GPU_CUPTI_BUFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPS_CUPTI_BUFFER_BYTES (2u << 20)
#define OPS_CUPTI_BUFFERS 128u

struct ops_cupti_buffer {
	_Atomic(uint8_t *) bytes; /* NULL before the first use; kept afterwards */
	atomic_bool taken;
	size_t valid_bytes;
	struct ops_cupti_buffer *next; /* next full buffer */
};

struct ops_cupti_buffers {
	struct ops_cupti_buffer items[OPS_CUPTI_BUFFERS];
	_Atomic(struct ops_cupti_buffer *) full; /* newest first */
};

/* Returns memory for CUPTI to fill; NULL if there is none. Any thread. */
uint8_t *ops_cupti_buffers_claim(struct ops_cupti_buffers *buffers);
/* Takes back filled memory, which is not decoded if it contains nothing valid. Any thread. */
void ops_cupti_buffers_fill(struct ops_cupti_buffers *buffers, const uint8_t *bytes, size_t valid_bytes);
/* Returns the buffers completed since the last call, oldest first. The caller returns each with ops_cupti_buffers_return(). */
struct ops_cupti_buffer *ops_cupti_buffers_drain(struct ops_cupti_buffers *buffers);
void ops_cupti_buffers_return(struct ops_cupti_buffer *buffer);
/* Frees the memory of buffers that CUPTI does not have. */
void ops_cupti_buffers_release(struct ops_cupti_buffers *buffers);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Compresses to gzip on several threads. The result is one member, as if one thread had written it: each block refers back to the
 * bytes before it.
 */
#ifndef OPS_BASE_GZIP_THREADS_H
#define OPS_BASE_GZIP_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#define OPS_GZIP_BLOCK_BYTES (256u << 10)
#define OPS_GZIP_THREADS_MAX 16u

struct ops_gzip_threads;

/* Receives compressed bytes, in order, on the thread that adds blocks. */
typedef void ops_gzip_emit(void *context, const char *bytes, size_t size);

/* Returns NULL if out of memory. Threads start with the second block; if none can be started, the calling thread compresses. */
struct ops_gzip_threads *ops_gzip_threads_new(int level, unsigned threads, ops_gzip_emit *emit, void *context);
/* Adds the next block, of at most OPS_GZIP_BLOCK_BYTES, which is copied. Waits if many blocks are not compressed yet. After the last
 * one, everything has been emitted. */
void ops_gzip_threads_add(struct ops_gzip_threads *of, const char *bytes, size_t size, bool is_last);
/* Ends the threads, even before the last block. NULL is allowed. */
void ops_gzip_threads_free(struct ops_gzip_threads *of);

#endif

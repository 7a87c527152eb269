/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of the core on complete blocks (opstrobe/internal/collector.h has their layout).
 */
#ifndef OPS_RECORD_BLOCK_H
#define OPS_RECORD_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

/* Initialises an empty block for a thread and session. Readers of a recording file ignore it until ops_block_show: the
 * process may be killed at any instruction. */
void ops_block_init(struct ops_block *block, uint64_t epoch, uint32_t thread);

/* Shows a block that was initialised to readers of recording files. `magic` says what it holds. */
static inline void ops_block_show(struct ops_block *block, uint32_t magic)
{
	__atomic_store_n(&block->magic, magic, __ATOMIC_RELEASE);
}

/* Returns the number of published slots. Pairs with the release store in ops_publish. */
static inline uint32_t ops_block_count(const struct ops_block *block)
{
	return __atomic_load_n(&block->count, __ATOMIC_ACQUIRE);
}

/* Returns whether a published slot is still open, so that a thread may write to the block. */
bool ops_block_open(const struct ops_block *block);

/* Returns the size of the space between the published slots and their payload. */
uint32_t ops_block_free_bytes(const struct ops_block *block);

/* Returns a copy of the published slots and their payload, without unused space. The owner may continue writing meanwhile.
 * Returns NULL if out of memory. ops_pool_return frees the copy. */
struct ops_block *ops_block_pack(const struct ops_block *block);

#endif

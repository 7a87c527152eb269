/* SPDX-License-Identifier: Apache-2.0
 *
 * What the core does to a block as a whole (opstrobe/internal/collector.h has its layout).
 */
#ifndef OPS_RECORD_BLOCK_H
#define OPS_RECORD_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

/* Makes `block` an empty block of a thread and session. */
void ops_block_init(struct ops_block *block, uint64_t epoch, uint32_t thread);

/* The published slots. Pairs with the release store in ops_publish. */
static inline uint32_t ops_block_count(const struct ops_block *block)
{
	return __atomic_load_n(&block->count, __ATOMIC_ACQUIRE);
}

/* Whether a published slot is still open, so that somebody may write to the block. */
bool ops_block_open(const struct ops_block *block);

/* A copy of the published slots and their payload, of no more bytes than they need. The owner may go on writing
 * meanwhile. NULL when memory is out. ops_pool_give frees it. */
struct ops_block *ops_block_pack(const struct ops_block *block);

#endif

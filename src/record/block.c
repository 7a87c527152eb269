/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on complete blocks (block.h). They may run while the block's thread adds slots and any thread closes slots: they
 * only read published slots, and never the members of an open slot that are written when it is closed.
 */
#include "record/block.h"

#include <string.h>

#include "base/alloc.h"
#include "record/recording.h"

void ops_block_init(struct ops_block *block, uint64_t epoch, uint32_t thread)
{
	__atomic_store_n(&block->magic, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* a killed process has done what precedes an instruction, if compilers keep the order */
	block->abi = OPS_COLLECTOR_ABI;
	block->epoch = epoch;
	block->thread = thread;
	block->bytes = OPS_BLOCK_BYTES;
	block->sequence = 0;
	block->lost = 0;
	memset(block->reserved, 0, sizeof(block->reserved));
	block->next = NULL;
	__atomic_store_n(&block->count, 0, __ATOMIC_RELAXED); /* a stop may read it; the session's lock orders the rest */
}

bool ops_block_open(const struct ops_block *block)
{
	uint32_t count = ops_block_count(block);

	for (uint32_t i = 0; i < count; i++) {
		if (!ops_slot_is_memory(&block->slots[i]) && !ops_slot_end(&block->slots[i]))
			return true;
	}
	return false;
}

/* Returns the start of the payload of the first `count` slots. */
static uint32_t payload_start(const struct ops_block *block, uint32_t count)
{
	uint32_t start = block->bytes;

	for (uint32_t i = 0; i < count; i++) {
		const struct ops_slot *slot = &block->slots[i];

		if (!ops_slot_is_memory(slot) && slot->payload && slot->payload < start)
			start = slot->payload;
	}
	return start;
}

uint32_t ops_block_free_bytes(const struct ops_block *block)
{
	uint32_t count = ops_block_count(block);

	return payload_start(block, count) - (uint32_t)(sizeof(*block) + count * sizeof(struct ops_slot));
}

/* Copies each member separately, because the end of an open slot may be written at this moment. */
static void copy_slot(struct ops_slot *to, const struct ops_slot *from, uint32_t shift)
{
	uint64_t end_ticks;

	if (ops_slot_is_memory(from)) {
		memcpy(to, from, sizeof(*to));
		return;
	}
	end_ticks = ops_slot_end(from);
	to->owner = NULL;
	to->start_ticks = from->start_ticks;
	to->end_ticks = end_ticks;
	to->sequence_nr = from->sequence_nr;
	to->name = from->name;
	to->call_line = from->call_line;
	to->payload = (uint16_t)(from->payload ? from->payload - shift : 0);
	to->payload_bytes = from->payload_bytes;
	to->forward_thread = from->forward_thread;
	to->end_thread = end_ticks ? from->end_thread : 0;
	to->kind = from->kind;
	to->scope = from->scope;
	to->flags = from->flags;
}

struct ops_block *ops_block_pack(const struct ops_block *block)
{
	uint32_t count = ops_block_count(block);
	uint32_t slots_end = (uint32_t)(sizeof(*block) + count * sizeof(struct ops_slot));
	uint32_t start = payload_start(block, count);
	uint32_t shift = (start - slots_end) & ~7u; /* preserves every alignment */
	struct ops_block *copy = ops_alloc(block->bytes - shift);

	if (!copy)
		return NULL;
	ops_block_init(copy, block->epoch, block->thread);
	copy->home = NULL;
	copy->bytes = block->bytes - shift;
	copy->count = count;
	copy->sequence = block->sequence;
	for (uint32_t i = 0; i < count; i++)
		copy_slot(&copy->slots[i], &block->slots[i], shift);
	memcpy((char *)copy + (start - shift), (const char *)block + start, block->bytes - start);
	ops_block_show(copy, OPS_BLOCK_MAGIC);
	return copy;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings built by hand, in which every tick is known: one tick is a nanosecond, the session runs from tick 1000 (wall clock
 * 5000) to tick 2000. For tests that set OPSTROBE_CLOCK to "monotonic" and include cmocka.h.
 */
#ifndef OPS_TESTS_BY_HAND_H
#define OPS_TESTS_BY_HAND_H

#include <string.h>

#include <opstrobe/read.h>

#include "base/alloc.h"
#include "record/recorder.h"

#define START 1000
#define STOP 2000
#define WALL 5000
#define NS(tick) ((tick) - START + WALL)
#define BLOCK_SLOTS 64
#define PAYLOAD_BYTES 4096

static inline struct ops_recording *new_recording(void)
{
	struct ops_recording *recording = ops_alloc_zeroed(1, sizeof(*recording));

	recording->start = (struct ops_clock_pair){.ticks = START, .monotonic_ns = START, .wall_ns = WALL};
	recording->stop = (struct ops_clock_pair){.ticks = STOP, .monotonic_ns = STOP, .wall_ns = WALL + STOP - START};
	return recording;
}

static inline struct ops_share *add_share(struct ops_recording *recording, uint32_t number, uint32_t torch_number)
{
	struct ops_share *share = ops_alloc_zeroed(1, sizeof(*share));

	share->tid = 100 + number;
	share->number = number;
	share->torch_number = torch_number;
	share->next = recording->shares;
	recording->shares = share;
	recording->share_count++;
	return share;
}

static inline struct ops_block *add_block(struct ops_share *share)
{
	size_t bytes = sizeof(struct ops_block) + BLOCK_SLOTS * sizeof(struct ops_slot) + PAYLOAD_BYTES;
	struct ops_block *block = ops_alloc_zeroed(1, bytes);

	block->magic = OPS_BLOCK_MAGIC;
	block->abi = OPS_COLLECTOR_ABI;
	block->thread = share->number;
	block->bytes = (uint32_t)bytes;
	ops_share_append(share, block);
	return block;
}

static inline uint32_t add_name(struct ops_share *share, const char *first, const char *second)
{
	struct ops_name name = {ops_intern_add(&share->texts, first, strlen(first)), OPS_INTERN_NONE};

	if (second)
		name.second = ops_intern_add(&share->texts, second, strlen(second));
	return ops_intern_add(&share->names, &name, sizeof(name)) + 1;
}

/* Adds a closed operator to the share's last block. */
static inline struct ops_slot *add_slot(struct ops_recording *recording, struct ops_share *share, const char *name,
                                 uint64_t start, uint64_t end)
{
	struct ops_block *block = share->last ? share->last : add_block(share);
	struct ops_slot *slot = &block->slots[block->count++];

	assert_true(block->count <= BLOCK_SLOTS);
	recording->slot_count++;
	share->slot_count++;
	*slot = (struct ops_slot){.start_ticks = start, .end_ticks = end, .sequence_nr = -1, .end_thread = share->number,
	                          .kind = OPS_SLOT_OP};
	slot->name = add_name(share, name, NULL);
	return slot;
}

/* Gives the slot a payload, behind those of the slots before it. */
static inline void add_payload(struct ops_share *share, struct ops_slot *slot, const void *bytes, size_t size)
{
	struct ops_block *block = share->last;

	slot->payload = (uint32_t)(sizeof(*block) + BLOCK_SLOTS * sizeof(*slot) + block->reserved[0]);
	slot->payload_bytes = (uint32_t)size;
	memcpy((char *)block + slot->payload, bytes, size);
	block->reserved[0] += (uint32_t)size;
}

static inline struct ops_trace *read_recording(struct ops_recording *take_recording)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_from_recording(take_recording, &trace, &error))
		fail_msg("%s", error.text);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static inline void assert_name(const struct ops_trace *trace, uint32_t id, const char *expected)
{
	assert_string_equal(ops_trace_string(trace, id).bytes, expected);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that keep only their last part; see ring.h.
 */
#include "record/ring.h"

#include <string.h>

#include <opstrobe/internal/clock.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "record/block.h"
#include "record/pool.h"
#include "record/recorder.h"
#include "record/spill.h"
#include "record/spill_format.h"

#define UNIT_SLOTS ((OPS_BLOCK_BYTES - (uint32_t)sizeof(struct ops_block)) / (uint32_t)sizeof(struct ops_memory_slot))
#define PREFETCH_SLOTS 16u
#define GIVEN_SHARE 64 /* at most this fraction of the window is given up to reuse a block whose last slots ended after it was full */
#define PURGE_LEAST 8192u /* number of addresses before those without an allocation are removed */

struct ring_entry {
	struct ops_block *block;
	struct ops_share *share;
	uint64_t ticks; /* when the block was added */
	uint64_t time_ns; /* the same, on CLOCK_MONOTONIC */
};

struct ops_ring {
	uint64_t keep_ns;
	struct ring_entry *entries; /* circular buffer of `capacity`, a power of two */
	size_t capacity;
	size_t first;
	size_t count;
	uint64_t window_ticks; /* when the reused blocks were filled and their slots had ended; 0: none was reused */
	uint64_t dropped;      /* number of slots in reused blocks */
	struct ops_map places; /* of the baseline: address and device → number of the record */
	OPS_ARRAY(struct ops_block *) units;
	uint32_t record_count;
	uint32_t purge_at; /* number of records for the next removal */
};

/* --- queue ----------------------------------------------------------------------------------------------------------- */

struct ops_ring *ops_ring_new(uint64_t keep_ns)
{
	struct ops_ring *ring = ops_alloc_zeroed(1, sizeof(*ring));

	if (ring) {
		ring->keep_ns = keep_ns;
		ring->purge_at = PURGE_LEAST;
	}
	return ring;
}

static bool ring_grow(struct ops_ring *ring)
{
	size_t capacity = ring->capacity ? 2 * ring->capacity : 64;
	struct ring_entry *entries = ops_realloc_array(NULL, capacity, sizeof(*entries));

	if (!entries)
		return false;
	for (size_t i = 0; i < ring->count; i++)
		entries[i] = ring->entries[(ring->first + i) & (ring->capacity - 1)];
	ops_free(ring->entries);
	ring->entries = entries;
	ring->capacity = capacity;
	ring->first = 0;
	return true;
}

/* Coarse, because each block needs it. */
static uint64_t ring_now_ns(void)
{
	return (uint64_t)ops_clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

static bool ring_push_entry(struct ops_ring *ring, struct ring_entry entry)
{
	if (ring->count == ring->capacity && !ring_grow(ring))
		return false;
	ring->entries[(ring->first + ring->count++) & (ring->capacity - 1)] = entry;
	return true;
}

bool ops_ring_push(struct ops_ring *ring, struct ops_share *share, struct ops_block *block)
{
	return ring_push_entry(ring, (struct ring_entry){block, share, ops_ticks(ops_clock_tsc()), ring_now_ns()});
}

/* Removes a block from its list. */
static void unlink_block(struct ops_share *share, struct ops_block *block)
{
	struct ops_block **link = &share->held, *before = NULL;

	if (share->blocks == block)
		link = &share->blocks; /* nearly always, because the oldest block is reused */
	while (*link && *link != block)
		link = &(*link)->next;
	if (link == &share->blocks || !*link) {
		for (link = &share->blocks; *link != block; link = &(*link)->next)
			before = *link;
		if (share->last == block)
			share->last = before;
	}
	*link = block->next;
	block->next = NULL;
}

/* Keeps a block to which a thread will write, in the list before the ordered blocks of the share. */
static void hold_block(struct ops_share *share, struct ops_block *block)
{
	struct ops_block **link = &share->held;

	while (*link && *link != block)
		link = &(*link)->next;
	if (*link)
		return;
	unlink_block(share, block);
	*link = block; /* the end of the list */
	ops_live_move_block(block);
}

/* Frees a share whose thread has ended together with its last block. */
static void ring_drop_share(struct ops_share *share)
{
	struct ops_recording *recording = ops_recorder.recording;
	struct ops_share **link = &recording->shares;

	while (*link && *link != share)
		link = &(*link)->next;
	if (!*link)
		return; /* its thread is running */
	*link = share->next;
	recording->share_count--;
	ops_share_free(share);
}

/* --- baseline -------------------------------------------------------------------------------------------------------- */

static struct ops_memory_slot *record_at(const struct ops_ring *ring, uint32_t number)
{
	struct ops_block *unit = ring->units.items[number / UNIT_SLOTS];

	return (struct ops_memory_slot *)(void *)&unit->slots[number % UNIT_SLOTS];
}

/* Writes a record, which a reader of the file ignores until it is complete. */
static void write_record(struct ops_memory_slot *to, const struct ops_memory_slot *from, uint32_t thread)
{
	struct ops_memory_slot record = *from;

	if (!record.unused[0])
		record.unused[0] = thread;
	__atomic_store_n(&to->kind, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	record.kind = 0;
	*to = record;
	__atomic_store_n(&to->kind, OPS_SLOT_MEMORY, __ATOMIC_RELEASE);
}

/* Returns room for one more record; NULL if out of memory. */
static struct ops_memory_slot *ring_add_record(struct ops_ring *ring)
{
	struct ops_block *unit, **added;

	if (ring->record_count == ring->units.count * UNIT_SLOTS) {
		unit = ops_pool_alloc();
		added = unit ? OPS_ARRAY_PUSH(&ring->units) : NULL;
		if (!added) {
			if (unit)
				ops_pool_return(unit);
			return NULL;
		}
		*added = unit;
		ops_block_init(unit, ops_recorder.session, 0);
		ops_block_show(unit, OPS_SPILL_BASELINE_MAGIC);
	}
	unit = ring->units.items[ring->record_count / UNIT_SLOTS];
	memset(&unit->slots[ring->record_count % UNIT_SLOTS], 0, sizeof(unit->slots[0]));
	__atomic_store_n(&unit->count, ring->record_count % UNIT_SLOTS + 1, __ATOMIC_RELEASE);
	return record_at(ring, ring->record_count++);
}

static void note_record(struct ops_ring *ring, const struct ops_memory_slot *slot, uint32_t thread)
{
	uint32_t *number = ops_map_slot(&ring->places, ops_memory_place(slot), UINT32_MAX);
	struct ops_memory_slot *record;

	if (!number)
		return; /* out of memory: sums lack this record */
	if (*number == UINT32_MAX) {
		record = ring_add_record(ring);
		if (!record)
			return;
		*number = ring->record_count - 1;
	} else {
		record = record_at(ring, *number);
		if (slot->time_ticks < record->time_ticks)
			return;
	}
	write_record(record, slot, thread);
}

/* Returns the time of the oldest slot in a block: the baseline will get nothing older. */
static uint64_t find_oldest(const struct ops_ring *ring)
{
	uint64_t oldest = UINT64_MAX;

	for (size_t i = 0; i < ring->count; i++) {
		const struct ops_block *block = ring->entries[(ring->first + i) & (ring->capacity - 1)].block;

		if (block->slots[0].start_ticks < oldest)
			oldest = block->slots[0].start_ticks;
	}
	for (const struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next) {
		const struct ops_block *block = thread->hot.block;

		if (block && block->epoch == ops_recorder.session && ops_block_count(block) && block->slots[0].start_ticks < oldest)
			oldest = block->slots[0].start_ticks;
	}
	return oldest;
}

/* Removes addresses without an allocation, so that the size of the baseline is proportional to the number of allocations. */
static void purge_records(struct ops_ring *ring)
{
	uint64_t oldest = find_oldest(ring);
	uint32_t kept = 0;

	ops_map_release(&ring->places);
	for (uint32_t i = 0; i < ring->record_count; i++) {
		const struct ops_memory_slot *record = record_at(ring, i);

		if (record->bytes <= 0 && record->time_ticks < oldest)
			continue;
		if (kept != i)
			write_record(record_at(ring, kept), record, 0);
		ops_map_add(&ring->places, ops_memory_place(record), kept++);
	}
	ring->record_count = kept;
	for (size_t i = 0; i < ring->units.count; i++) {
		uint32_t before = (uint32_t)i * UNIT_SLOTS;
		uint32_t count = kept <= before ? 0 : kept - before < UNIT_SLOTS ? kept - before : UNIT_SLOTS;

		__atomic_store_n(&ring->units.items[i]->count, count, __ATOMIC_RELEASE);
	}
	ring->purge_at = kept < PURGE_LEAST / 2 ? PURGE_LEAST : 2 * kept;
}

static void note_memory(struct ops_ring *ring, const struct ops_block *block)
{
	for (uint32_t i = 0; i < block->count; i++) {
		const struct ops_memory_slot *slot = (const struct ops_memory_slot *)(const void *)&block->slots[i];

		if (slot->kind == OPS_SLOT_MEMORY)
			note_record(ring, slot, block->thread);
	}
	if (ring->record_count >= ring->purge_at)
		purge_records(ring);
}

/* --- reuse of blocks ------------------------------------------------------------------------------------------------- */

/* Removes the block's slots, which ended at `end_ticks` at the latest, from the session. */
static void ring_remove(struct ops_ring *ring, const struct ring_entry *entry, uint64_t end_ticks)
{
	struct ops_block *block = entry->block;
	struct ops_share *share = entry->share;

	note_memory(ring, block);
	ops_live_drop_block(block);
	unlink_block(share, block);
	share->slot_count -= block->count;
	if (share->ended)
		ops_recorder.recording->slot_count -= block->count;
	if (end_ticks < entry->ticks)
		end_ticks = entry->ticks;
	if (ring->window_ticks < end_ticks)
		ring->window_ticks = end_ticks;
	ring->dropped += block->count;
	ops_spill_window(ops_recorder.recording->spill, ring->window_ticks, ring->dropped);
	/* A reader of the file that copies the block at this moment notices the change when it checks again. */
	__atomic_store_n(&block->magic, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&block->count, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (share->ended && !share->blocks && !share->held)
		ring_drop_share(share);
}

/* Returns when the last slot of the block ended; UINT64_MAX if one is open. */
static uint64_t find_last_end(const struct ops_block *block)
{
	uint64_t last_ticks = 0;

	for (uint32_t i = 0; i < block->count; i++) {
		uint64_t end_ticks = ops_slot_is_memory(&block->slots[i]) ? 1 : ops_slot_end(&block->slots[i]);

		/* The block was written long ago, so it is in no cache. */
		__builtin_prefetch(&block->slots[i + PREFETCH_SLOTS < block->count ? i + PREFETCH_SLOTS : i]);
		if (!end_ticks)
			return UINT64_MAX;
		if (end_ticks > last_ticks)
			last_ticks = end_ticks;
	}
	return last_ticks;
}

/* Returns the latest end of slots with which a block is reused. Nearly always an operator is running when a block is full. To keep
 * the block for it, until all others have been reused, would take room from the window. */
static uint64_t ring_reuse_limit(const struct ring_entry *entry)
{
	uint64_t now_ticks = ops_ticks(ops_clock_tsc());

	return now_ticks > entry->ticks ? entry->ticks + (now_ticks - entry->ticks) / GIVEN_SHARE : entry->ticks;
}

struct ops_block *ops_ring_pop(struct ops_ring *ring, bool for_room)
{
	uint64_t now_ns = ring_now_ns();

	for (size_t left = ring->count; left; left--) {
		struct ring_entry entry = ring->entries[ring->first];
		uint64_t end_ticks;

		if (!for_room && (!ring->keep_ns || now_ns - entry.time_ns <= ring->keep_ns))
			return NULL;
		ring->first = (ring->first + 1) & (ring->capacity - 1);
		ring->count--;
		end_ticks = find_last_end(entry.block);
		if (end_ticks <= ring_reuse_limit(&entry)) {
			ring_remove(ring, &entry, end_ticks);
			return entry.block;
		}
		hold_block(entry.share, entry.block);
		entry.ticks = ops_ticks(ops_clock_tsc());
		entry.time_ns = now_ns;
		ring_push_entry(ring, entry); /* there is room, because one was removed */
	}
	return NULL;
}

/* --- end ------------------------------------------------------------------------------------------------------------- */

void ops_ring_finish(struct ops_ring *ring, struct ops_recording *recording)
{
	for (struct ops_share *share = recording->shares; share; share = share->next)
		ops_share_join_held(share);
	for (size_t i = 0; i < ring->units.count; i++) {
		ring->units.items[i]->next = recording->baseline;
		recording->baseline = ring->units.items[i];
	}
	ring->units.count = 0;
	recording->window_ticks = ring->window_ticks;
	recording->dropped = ring->dropped;
}

void ops_ring_free(struct ops_ring *ring)
{
	if (!ring)
		return;
	for (size_t i = 0; i < ring->units.count; i++)
		ops_pool_return(ring->units.items[i]);
	OPS_ARRAY_RELEASE(&ring->units);
	ops_map_release(&ring->places);
	ops_free(ring->entries);
	ops_free(ring);
}

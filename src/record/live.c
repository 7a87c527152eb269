/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a session while it records (opstrobe/internal/live.h).
 *
 * Each thread has a cursor: `done` is the last block that was read to its end, and `slot` is the number of slots read in the
 * block after it, which is the next in the share or the one that the thread is filling. Slots are in order of their start, so a
 * stack of open slots represents the nesting:
 *
 *     share ▶ block ▶ block (done) ▶ │ block being filled: slot 0, 1, … slot │ not read yet
 *
 * A session that keeps only its last part reuses blocks (ring.h). It announces this first; then what is needed of the block is
 * saved, and the next one is found by its position in the session.
 *
 * A block that is being filled is only read under the recorder's lock, because the thread may end and its block be replaced by a
 * copy of the same slots. So the stack refers to such a slot by its number only.
 */
#include <opstrobe/internal/live.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/text.h"
#include "record/block.h"
#include "record/recorder.h"

#define BLOCKS_A_TIME 4u /* blocks read before the lock is released: takes tens of microseconds */
#define ROWS_MAX 4096u   /* limits memory for programs that generate names */
#define OTHER_ROW 0u

struct live_open {
	const struct ops_block *block; /* NULL: the block that is being filled */
	uint32_t slot;
	uint32_t row;
	uint64_t inside_ticks; /* time of everything that ended inside it */
	uint64_t start_ticks;
	uint64_t end_ticks; /* set if the block is gone; else 0 */
};

struct live_thread {
	const struct ops_block *done; /* NULL: none, or the block is gone */
	uint32_t next_sequence;       /* of blocks after `done` */
	uint32_t filling_sequence;    /* of the block whose slots were last counted while it was filled */
	uint32_t slot;
	OPS_ARRAY(uint32_t) rows; /* by the thread's id of a name: row + 1; 0: unknown */
	OPS_ARRAY(struct live_open) open;
	uint64_t last_ticks; /* start of the last opened slot */
};

struct live_sum {
	uint64_t calls;
	uint64_t total_ticks;
	uint64_t self_ticks;
};

struct ops_live {
	struct ops_live *next; /* in `lives` */
	uint64_t session;
	struct ops_clock_pair start;
	struct ops_intern names; /* names of rows */
	OPS_ARRAY(struct live_sum) sums;
	OPS_ARRAY(struct ops_live_row) shown;
	struct ops_intern numbers; /* numbers of threads, as bytes; ids are indexes of `threads` */
	OPS_ARRAY(struct live_thread) threads;
	uint32_t step_row; /* the row whose ends are steps; OPS_INTERN_NONE: none yet */
	uint64_t last_step_ticks;
	uint64_t step_ticks[OPS_LIVE_STEPS]; /* ring of the last ends */
	uint64_t step_distances;
	struct ops_live_state state; /* except for members derived from ticks */
	uint64_t lost_before;        /* lost in earlier sessions */
	uint64_t lost_now;
};

/* All objects; protected by recorder.lock. */
static struct ops_live *lives;

/* --- rows ------------------------------------------------------------------------------------------------------------ */

static uint32_t live_find_row(struct ops_live *live, const char *bytes, size_t size)
{
	bool is_step = ops_begins_with(bytes, size, "ProfilerStep#");
	uint32_t row;

	if (is_step)
		size = strlen("ProfilerStep");
	row = live->names.count < ROWS_MAX ? ops_intern_add(&live->names, bytes, size) : ops_intern_find(&live->names, bytes, size);
	if (row == OPS_INTERN_NONE)
		return OTHER_ROW;
	while (live->sums.count <= row) {
		struct live_sum *sum = OPS_ARRAY_PUSH(&live->sums);

		if (!sum)
			return OTHER_ROW;
		*sum = (struct live_sum){0};
	}
	if (is_step && live->step_row != row) { /* a program that marks its steps is more reliable than an optimizer */
		live->step_row = row;
		live->state.steps = live->step_distances = live->last_step_ticks = 0;
	} else if (live->step_row == OPS_INTERN_NONE && ops_begins_with(bytes, size, "Optimizer.step#")) {
		live->step_row = row;
	}
	return row;
}

/* The name precedes the rest of the slot's payload. */
static uint32_t inline_row(struct ops_live *live, const struct ops_block *block, const struct ops_slot *slot)
{
	const char *payload = (const char *)block + slot->payload;
	uint32_t size;

	memcpy(&size, payload, sizeof(size));
	return live_find_row(live, payload + sizeof(size), size);
}

static uint32_t named_row(struct ops_live *live, struct live_thread *thread, const struct ops_share *share, uint32_t id)
{
	const struct ops_intern_entry *text;
	uint32_t row;

	if (!id || id > share->names.count)
		return OTHER_ROW;
	if (id < thread->rows.count && thread->rows.items[id])
		return thread->rows.items[id] - 1;
	text = &share->texts.entries[ops_share_name(share, id).first];
	row = live_find_row(live, text->bytes, text->size);
	while (thread->rows.count <= id) {
		uint32_t *known = OPS_ARRAY_PUSH(&thread->rows);

		if (!known)
			return row;
		*known = 0;
	}
	thread->rows.items[id] = row + 1;
	return row;
}

/* --- slots ----------------------------------------------------------------------------------------------------------- */

static void count_step(struct ops_live *live, uint64_t end_ticks)
{
	if (live->state.steps++ && end_ticks > live->last_step_ticks)
		live->step_ticks[live->step_distances++ % OPS_LIVE_STEPS] = end_ticks - live->last_step_ticks;
	live->last_step_ticks = end_ticks;
}

/* Adds the innermost slot of the stack, which has ended, to the sums. */
static void live_finish(struct ops_live *live, struct live_thread *thread, uint64_t end_ticks)
{
	const struct live_open *open = &thread->open.items[--thread->open.count];
	uint64_t ticks = end_ticks > open->start_ticks ? end_ticks - open->start_ticks : 0;
	struct live_sum *sum = &live->sums.items[open->row];

	sum->calls++;
	sum->total_ticks += ticks;
	sum->self_ticks += ticks > open->inside_ticks ? ticks - open->inside_ticks : 0;
	if (open->row == live->step_row)
		count_step(live, end_ticks);
	if (thread->open.count)
		thread->open.items[thread->open.count - 1].inside_ticks += ticks;
}

/* Adds everything that ended before `ticks` to the sums. `filling` is the block that the thread is filling, or NULL. */
static void finish_before(struct ops_live *live, struct live_thread *thread, const struct ops_block *filling, uint64_t ticks)
{
	while (thread->open.count) {
		const struct live_open *open = &thread->open.items[thread->open.count - 1];
		uint64_t end_ticks = open->end_ticks;

		if (!end_ticks)
			end_ticks = ops_slot_end(&(open->block ? open->block : filling)->slots[open->slot]);
		if (!end_ticks || end_ticks > ticks)
			return;
		live_finish(live, thread, end_ticks);
	}
}

static void live_read_memory(struct ops_live *live, const struct ops_memory_slot *slot)
{
	struct ops_live_memory *memory = live->state.memory;
	size_t i = 0;

	while (i < live->state.memory_count &&
	       (memory[i].device_type != slot->device_type || memory[i].device_index != slot->device_index))
		i++;
	if (slot->kind != OPS_SLOT_MEMORY || i == OPS_LIVE_DEVICES)
		return;
	if (i == live->state.memory_count)
		memory[live->state.memory_count++] = (struct ops_live_memory){slot->device_type, slot->device_index, 0, 0};
	memory[i].allocated_bytes = slot->total_allocated;
	if (slot->total_allocated > memory[i].peak_bytes)
		memory[i].peak_bytes = slot->total_allocated;
}

/* Adds a range that was recorded after its end. Events inside it are already in the sums, so it has no self time. */
static void add_past(struct ops_live *live, const struct ops_slot *slot, uint32_t row)
{
	uint64_t end_ticks = ops_slot_end(slot);
	struct live_sum *sum = &live->sums.items[row];

	sum->calls++;
	sum->total_ticks += end_ticks > slot->start_ticks ? end_ticks - slot->start_ticks : 0;
	if (row == live->step_row)
		count_step(live, end_ticks);
}

/* Reads the slots of a block up to `count`. */
static void read_slots(struct ops_live *live, struct live_thread *thread, const struct ops_share *share,
                       const struct ops_block *block, bool is_filling, uint32_t count)
{
	for (; thread->slot < count; thread->slot++) {
		const struct ops_slot *slot = &block->slots[thread->slot];
		struct live_open *open;
		uint32_t row;

		live->state.records++;
		if (ops_slot_is_memory(slot))
			live_read_memory(live, (const struct ops_memory_slot *)slot);
		if ((slot->kind != OPS_SLOT_OP && slot->kind != OPS_SLOT_RANGE) || (slot->flags & OPS_SLOT_ASYNC))
			continue;
		row = slot->flags & OPS_SLOT_NAME_INLINE ? inline_row(live, block, slot) : named_row(live, thread, share, slot->name);
		if (slot->start_ticks < thread->last_ticks) {
			add_past(live, slot, row);
			continue;
		}
		thread->last_ticks = slot->start_ticks;
		finish_before(live, thread, is_filling ? block : NULL, slot->start_ticks);
		open = OPS_ARRAY_PUSH(&thread->open);
		if (open)
			*open = (struct live_open){
				.block = is_filling ? NULL : block, .slot = thread->slot, .row = row, .start_ticks = slot->start_ticks};
	}
	thread->filling_sequence = block->sequence;
}

/* --- threads --------------------------------------------------------------------------------------------------------- */

/* Returns NULL if out of memory. */
static struct live_thread *find_thread(struct ops_live *live, uint32_t number)
{
	uint32_t index = ops_intern_add(&live->numbers, &number, sizeof(number));

	if (index == OPS_INTERN_NONE)
		return NULL;
	while (live->threads.count <= index) {
		struct live_thread *thread = OPS_ARRAY_PUSH(&live->threads);

		if (!thread)
			return NULL;
		*thread = (struct live_thread){0};
	}
	return &live->threads.items[index];
}

/* The block that was being filled is now part of the share. */
static void live_finalize(struct live_thread *thread, const struct ops_block *block)
{
	for (size_t i = thread->open.count; i && !thread->open.items[i - 1].block; i--)
		thread->open.items[i - 1].block = block;
}

/* Returns the first block of a share that has not been read to its end; NULL if it is the one being filled. */
static const struct ops_block *live_next_block(const struct live_thread *thread, const struct ops_share *share)
{
	const struct ops_block *block = share->blocks;

	if (thread->done)
		return thread->done->next;
	while (block && block->sequence < thread->next_sequence)
		block = block->next;
	return block;
}

/* Continues reading a share. `block` is the one that its thread is filling; NULL if the thread has ended. Returns true if there
 * is more. */
static bool read_share(struct ops_live *live, const struct ops_share *share, const struct ops_block *filling)
{
	struct live_thread *thread = find_thread(live, share->number);
	const struct ops_block *block;

	if (!thread)
		return false;
	for (unsigned i = 0; i < BLOCKS_A_TIME; i++) {
		block = live_next_block(thread, share);
		if (!block)
			break;
		live_finalize(thread, block);
		read_slots(live, thread, share, block, false, ops_block_count(block));
		thread->done = block;
		thread->next_sequence = block->sequence + 1;
		thread->slot = 0;
	}
	block = live_next_block(thread, share);
	if (!block && filling)
		read_slots(live, thread, share, filling, true, ops_block_count(filling));
	finish_before(live, thread, filling, UINT64_MAX);
	return block != NULL;
}

/* Reads a limited amount; the recorder's lock must be held. Returns true if there is more. */
static bool read_some(struct ops_live *live)
{
	bool more = false;

	live->lost_now = __atomic_load_n(&ops_recorder.lost_nowhere, __ATOMIC_RELAXED) + ops_recorder.recording->lost;
	for (struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next) {
		const struct ops_block *block = thread->hot.block;

		if (thread->hot.epoch != live->session || !thread->share)
			continue;
		live->lost_now += __atomic_load_n(&thread->hot.lost, __ATOMIC_RELAXED);
		pthread_mutex_lock(&thread->names_lock);
		more |= read_share(live, thread->share, block && block->epoch == live->session ? block : NULL);
		pthread_mutex_unlock(&thread->names_lock);
	}
	for (const struct ops_share *share = ops_recorder.recording->shares; share; share = share->next)
		more |= read_share(live, share, NULL);
	return more;
}

/* Returns the thread of a block while reading the session in progress; NULL if the thread was not seen in it. */
static struct live_thread *thread_of_block(struct ops_live *live, const struct ops_block *block)
{
	uint32_t index = live->session == block->epoch
	                         ? ops_intern_find(&live->numbers, &block->thread, sizeof(block->thread))
	                         : OPS_INTERN_NONE;

	return index == OPS_INTERN_NONE ? NULL : &live->threads.items[index];
}

/* The block has been removed from its share. Slots that were not read are skipped. */
static void leave_block(struct live_thread *thread, const struct ops_block *block)
{
	if (thread->done == block)
		thread->done = NULL;
	if (block->sequence < thread->next_sequence)
		return;
	if (block->sequence == thread->filling_sequence)
		live_finalize(thread, block);
	thread->next_sequence = block->sequence + 1;
	thread->slot = 0;
}

void ops_live_move_block(const struct ops_block *block)
{
	for (struct ops_live *live = lives; live; live = live->next) {
		struct live_thread *thread = thread_of_block(live, block);

		if (thread)
			leave_block(thread, block);
	}
}

void ops_live_drop_block(const struct ops_block *block)
{
	for (struct ops_live *live = lives; live; live = live->next) {
		struct live_thread *thread = thread_of_block(live, block);

		if (!thread)
			continue;
		leave_block(thread, block);
		for (size_t i = 0; i < thread->open.count; i++) {
			struct live_open *open = &thread->open.items[i];

			if (!open->end_ticks && open->block == block)
				open->end_ticks = ops_slot_end(&block->slots[open->slot]);
		}
	}
}

static void forget_threads(struct ops_live *live)
{
	for (size_t i = 0; i < live->threads.count; i++) {
		OPS_ARRAY_RELEASE(&live->threads.items[i].rows);
		OPS_ARRAY_RELEASE(&live->threads.items[i].open);
	}
	OPS_ARRAY_RELEASE(&live->threads);
	ops_intern_release(&live->numbers);
	live->lost_before += live->lost_now;
	live->lost_now = 0;
}

void ops_live_sample(struct ops_live *live)
{
	bool more = true;

	while (more) {
		pthread_mutex_lock(&ops_recorder.lock);
		if (live->session != ops_recorder.session) {
			forget_threads(live);
			live->session = ops_recorder.session;
		}
		more = live->session && read_some(live);
		live->state.recorder_bytes = live->session ? ops_recorder.bytes : 0;
		pthread_mutex_unlock(&ops_recorder.lock);
	}
}

/* --- lifetime -------------------------------------------------------------------------------------------------------- */

static int by_self(const void *a, const void *b)
{
	const struct ops_live_row *left = a, *right = b;

	return (left->self_ns < right->self_ns) - (left->self_ns > right->self_ns);
}

void ops_live_read(struct ops_live *live, struct ops_live_state *ret_state)
{
	struct ops_clock_map map = ops_clock_map_between(live->start, ops_clock_pair_now());
	struct ops_live_state *state = &live->state;
	size_t kept = live->step_distances < OPS_LIVE_STEPS ? live->step_distances : OPS_LIVE_STEPS;

	live->shown.count = 0;
	state->self_ns = 0;
	if (OPS_ARRAY_RESERVE(&live->shown, live->sums.count)) {
		for (size_t i = 0; i < live->sums.count; i++) {
			const struct live_sum *sum = &live->sums.items[i];
			const struct ops_intern_entry *name = &live->names.entries[i];

			if (sum->calls)
				live->shown.items[live->shown.count++] = (struct ops_live_row){
					name->bytes, name->size, sum->calls, (uint64_t)((double)sum->total_ticks * map.ns_per_tick),
					(uint64_t)((double)sum->self_ticks * map.ns_per_tick)};
			state->self_ns += (uint64_t)((double)sum->self_ticks * map.ns_per_tick);
		}
		qsort(live->shown.items, live->shown.count, sizeof(*live->shown.items), by_self);
	}
	for (size_t i = 0; i < kept; i++)
		state->step_ns[i] = (uint64_t)((double)live->step_ticks[(live->step_distances - kept + i) % OPS_LIVE_STEPS] *
		                               map.ns_per_tick);
	state->step_count = kept;
	state->lost = live->lost_before + live->lost_now;
	state->rows = live->shown.items;
	state->row_count = live->shown.count;
	*ret_state = *state;
}

enum ops_code ops_live_new(struct ops_live **ret_live, struct ops_error *error)
{
	struct ops_live *live = ops_alloc_zeroed(1, sizeof(*live));

	if (!live)
		return ops_fault_memory(error);
	live->start = ops_clock_pair_now();
	live->step_row = OPS_INTERN_NONE;
	if (live_find_row(live, "(other)", strlen("(other)")) != OTHER_ROW || !live->sums.count) {
		ops_live_free(live);
		return ops_fault_memory(error);
	}
	pthread_mutex_lock(&ops_recorder.lock);
	live->next = lives;
	lives = live;
	pthread_mutex_unlock(&ops_recorder.lock);
	*ret_live = live;
	return OPS_OK;
}

void ops_live_free(struct ops_live *live)
{
	struct ops_live **link = &lives;

	if (!live)
		return;
	pthread_mutex_lock(&ops_recorder.lock);
	while (*link && *link != live)
		link = &(*link)->next;
	if (*link)
		*link = live->next;
	pthread_mutex_unlock(&ops_recorder.lock);
	forget_threads(live);
	ops_intern_release(&live->names);
	OPS_ARRAY_RELEASE(&live->sums);
	OPS_ARRAY_RELEASE(&live->shown);
	ops_free(live);
}

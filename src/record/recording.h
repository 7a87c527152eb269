/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a session: for each thread its names, and its blocks in the order in which they were filled. The reader
 * (read/recording.c) decodes it block by block.
 *
 * Most blocks are those that the threads wrote, moved and not copied. Nothing is added to them, but a slot that was open at the
 * stop may still be closed by its thread while it is read: read the end once, with ops_slot_end, and `end_thread` only if it is
 * not 0. The stop decides: a slot whose end is 0 or later than `stop.ticks` is unfinished and ends at the stop. A slot may also
 * start a little after the stop (its thread had not seen it yet). If another thread closed it, it may end a few ticks before its
 * start, because the TSC is read out of order and the TSCs of processors differ by a few ticks: clamp both.
 */
#ifndef OPS_RECORD_RECORDING_H
#define OPS_RECORD_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/record.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"

/* An interned (name, overload): ids in the thread's `texts`. `second` is the overload or, for a range, the argument text;
 * OPS_INTERN_NONE if there is none. */
struct ops_name {
	uint32_t first;
	uint32_t second;
};

/* One thread's share of a session. */
struct ops_share {
	struct ops_share *next;
	int64_t tid;
	uint32_t number;       /* struct ops_thread.number, unique in the process's life */
	uint32_t torch_number; /* torch's logical thread number, 0: none */
	char *name;            /* any bytes, followed by a NUL; NULL if unknown */
	size_t name_size;
	bool named;                 /* `name` was set by the program, and is not the system's */
	struct ops_intern texts;    /* distinct names, overloads and argument texts */
	struct ops_intern names;    /* struct ops_name, as bytes; ops_slot.name is the id + 1 */
	struct ops_block *blocks;   /* linked by `next`, in the order in which they were filled */
	struct ops_block *last;     /* the last of `blocks`; NULL: none */
	struct ops_block *held;     /* for a ring: blocks before `blocks`, kept because a slot was open (ring.h) */
	bool ended;                 /* in a session in progress: the thread has ended */
	size_t slot_count;          /* number of slots in all blocks, including consumed ones */
};

/* See ops_recording_add_function: ids in the recording's `texts`; OPS_INTERN_NONE: none. */
struct ops_function_names {
	uint32_t row_name;
	uint32_t name;
	uint32_t file;
	uint32_t line;
};

struct ops_activities;
struct ops_spill;

/* Facts about the recorded process, for a recording that was read from its file. */
struct ops_recovered {
	struct ops_clock_map clock;
	int64_t pid;
	char host_name[256];
	char process_name[64];
};

struct ops_recording {
	struct ops_clock_pair start;
	struct ops_clock_pair stop;
	uint64_t epoch;
	uint64_t lost;            /* number of records that could not be stored */
	uint64_t window_ticks;    /* the trace begins here: everything that ended earlier is left out. 0: at `start` */
	uint64_t dropped;         /* number of older records that were discarded as intended */
	struct ops_block *baseline; /* linked by `next`: memory slots from before the window, in any order; owned */
	bool args_are_inputs;     /* see ops_record_options */
	size_t slot_count;        /* in all shares */
	size_t share_count;
	struct ops_share *shares; /* linked by `next`, in no particular order */
	struct ops_recorded_module *modules; /* their contents are in module_arena */
	size_t module_count;
	struct ops_arena module_arena;
	struct ops_intern texts;
	OPS_ARRAY(struct ops_function_names) functions;
	int64_t *pair_times_ns; /* see ops_recording_set_pair_times; owned */
	size_t pair_count;
	struct ops_spill *spill; /* the recording file (spill.h), owned; NULL: none */
	struct ops_recovered *recovered; /* for a recording read from a file: facts that otherwise come from the process; else
	                                  * NULL. Owned */
	struct ops_activities *activities; /* of devices (activities.h), owned; NULL if no collector ran */
	/* The part of the trace that the reader built before it ran out of memory, from which it continues (read/recording.c);
	 * NULL before the first block is dropped. */
	void *reading;
	void (*free_reading)(void *reading);
};

/* Returns the end of a slot in ticks, 0 while open. Pairs with ops_slot_close. Not for memory slots. */
static inline uint64_t ops_slot_end(const struct ops_slot *slot)
{
	return __atomic_load_n(&slot->end_ticks, __ATOMIC_ACQUIRE);
}

static inline bool ops_slot_is_memory(const struct ops_slot *slot)
{
	return slot->kind == OPS_SLOT_MEMORY || slot->kind == OPS_SLOT_OOM;
}

/* Returns the two texts of a slot's interned name; `id` is ops_slot.name and not 0. */
static inline struct ops_name ops_share_name(const struct ops_share *share, uint32_t id)
{
	return *(const struct ops_name *)share->names.entries[id - 1].bytes;
}

/* Returns a key for an address on a device. */
static inline uint64_t ops_memory_place(const struct ops_memory_slot *slot)
{
	return slot->address ^ ((uint64_t)slot->device_type << 58 | (uint64_t)((uint32_t)slot->device_index & 63) << 52);
}

/* Returns whether there is memory for `bytes` and for small allocations. Checked where a later failure would lose recorded data.
 * The trace of blocks takes less than twice their size. */
bool ops_recording_has_memory(uint64_t bytes);

/* Prepends the blocks that a ring held. */
void ops_share_join_held(struct ops_share *share);

/* Returns the share's first block to the pool or, while it has an open slot, keeps it aside until it is closed. */
void ops_share_drop_block(struct ops_share *share);

#endif

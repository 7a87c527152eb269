/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/collector.h: the hot path. How a collector inside the profiled process (the torch bridge, the C API's
 * ranges, a device collector) writes records: reserve a slot, fill it, publish it. Everything on the fast path is
 * inline, takes no lock, allocates nothing and never fails loudly: a full recorder counts the loss and goes on.
 *
 * Each thread owns a block. Fixed-size slots grow up from its front, variable payload grows down from its end:
 *
 *     ops_block ┌────────┬──────┬──────┬──────┬ ─ ─ ─ ─ ─ ┬─────────┬───────────┐ OPS_BLOCK_BYTES
 *               │ header │ slot │ slot │ slot │   room    │ payload │  payload  │
 *               └────────┴──────┴──────┴──────┴ ─ ─ ─ ─ ─ ┴─────────┴───────────┘
 *                          0      1      2  → count          ← payload_start
 *
 * A slot's payload lies in the slot's own block, and is named by its offset from the block's start: a block is
 * position-independent and says itself which thread, format and session it belongs to. Slots of equal payload may share it:
 * who publishes a second one sets `payload` and `payload_bytes` to those of the first.
 *
 * Life of a slot: reserved (only its thread knows it) → published by one release store of the block's count (the
 * drain may read it) → closed by one release store of `end_ticks` (any thread may do this, at any later time, even
 * after the session stopped: a block with open slots is kept until they close).
 *
 * This header compiles as C11 and as C++17. It is a contract between parts built at different times (the torch
 * bridge is compiled on the user's machine): whoever changes a layout here raises OPS_COLLECTOR_ABI.
 */
#ifndef OPSTROBE_COLLECTOR_H
#define OPSTROBE_COLLECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_COLLECTOR_ABI 8u

#define OPS_BLOCK_BYTES 65536u
#define OPS_BLOCK_MAGIC 0x4b4c424fu /* "OBLK" in memory order on little endian */

/* What a slot holds. */
enum ops_slot_kind {
	OPS_SLOT_OP = 1,      /* a dispatcher-level operator or autograd node */
	OPS_SLOT_RANGE = 2,   /* a user's range: record_function, ops_range_begin */
	OPS_SLOT_INSTANT = 3, /* a point in time with a name */
	OPS_SLOT_COUNTER = 4, /* a named value at a time; sequence_nr holds the bits of the double */
	OPS_SLOT_MEMORY = 5,  /* struct ops_memory_slot: an allocator report */
	OPS_SLOT_OOM = 6,     /* struct ops_memory_slot: an allocation that failed */
	OPS_SLOT_ROLE = 7,    /* what a storage is for: its name, and as argument text a struct ops_storage */
	OPS_SLOT_MODULE = 8,  /* a call of an nn.Module; sequence_nr is its id, see ops_recording_set_modules */
	OPS_SLOT_PYTHON = 9,  /* a call of a Python function, or from Python of a C function: `name` is the function's number,
	                       * see ops_recording_add_function */
	OPS_SLOT_CONTEXT = 10, /* what the thread records from here on belongs to another coroutine: see ops_note_context */
};

enum ops_slot_flag {
	OPS_SLOT_ASYNC = 1,       /* said by its maker to be asynchronous */
	OPS_SLOT_NAME_INLINE = 2, /* the payload begins with the name: uint32_t length, then the bytes, padded to 4 */
	OPS_SLOT_HAS_INPUTS = 4,  /* the payload (after all that the other flags name) is an input list: see inputs.h */
	OPS_SLOT_HAS_ARGS = 8,    /* a range has an argument text. With NAME_INLINE it follows the name in the same form
	                           * (length, bytes, padded); else it is the second text interned under `name` */
	OPS_SLOT_HAS_STORAGES = 16, /* the payload's inputs are preceded by a text (length, bytes) that is an array of
	                             * struct ops_storage: see storage.h */
	OPS_SLOT_HAS_VALUES = 32, /* behind those texts: uint32_t count, then as many named values: the name as a text, a
	                           * uint32_t enum ops_value_kind, and the value */
	OPS_SLOT_DROPPED = 64,    /* of a Python call: it is not wanted after all */
	OPS_SLOT_HAS_SCRIPT = 128, /* behind the named values: two uint32_t, ids from ops_collector.intern of TorchScript's call
	                            * stack and module hierarchy, 0 none */
	OPS_SLOT_HELD = 256, /* an operator that a program opens and closes like a range: it may be open while others run */
	OPS_SLOT_ADDED = 512, /* a range that was recorded when it was over */
};

/* The type of a named value and its representation. */
enum ops_value_kind {
	OPS_VALUE_INT,       /* int64_t, aligned to 4 like all in a payload */
	OPS_VALUE_DOUBLE,    /* double */
	OPS_VALUE_BOOL,      /* uint32_t, 0 or 1 */
	OPS_VALUE_TEXT,      /* a text */
	OPS_VALUE_TEXT_LIST, /* uint32_t count, then as many texts */
	OPS_VALUE_COUNT,     /* int64_t: of a counter, known only once the slot is closed, and then perhaps not */
	OPS_VALUE_UINT,      /* uint64_t */
	OPS_VALUE_PAIR,      /* int64_t: of a pair of events on a device, known as a count is; what it is shown as is the time
	                      * between them, see ops_recording_set_pair_times */
};
#define OPS_COUNT_UNKNOWN INT64_MIN

/* The named value of such a pair around an operator or a range, of kind OPS_VALUE_PAIR, and the argument that it becomes. */
#define OPS_DEVICE_TIME_NAME "Device time (ns)"

/* Offsets in a block and sizes of payloads are less than OPS_BLOCK_BYTES. */
struct ops_slot {
	void *owner;          /* free for whoever opened the slot; the torch bridge keeps a C++ object's vtable here */
	uint64_t start_ticks; /* ops_ticks() at the start */
	uint64_t end_ticks;   /* 0 while open; written with release order, see ops_slot_close */
	int64_t sequence_nr;  /* autograd sequence number, -1 for none */
	uint32_t name;        /* id from ops_collector.intern for this thread; 0 with OPS_SLOT_NAME_INLINE */
	uint32_t call_line;   /* in the source of the Python function that this was called from; 0 unknown */
	uint32_t forward_thread; /* torch's logical thread number of the forward operator, 0 for none */
	uint32_t end_thread;     /* `number` of the thread that closed the slot, 0 when unknown */
	uint16_t payload;        /* offset in the block, 0 when there is none */
	uint16_t payload_bytes;
	uint8_t kind;            /* enum ops_slot_kind */
	uint8_t scope;           /* at::RecordScope; 7 (USER_SCOPE) for ranges */
	uint16_t flags;          /* enum ops_slot_flag */
};

/* A slot of kind OPS_SLOT_MEMORY or OPS_SLOT_OOM: same size, `kind` at the same place. */
struct ops_memory_slot {
	uint64_t address;
	uint64_t time_ticks;
	int64_t bytes; /* > 0 allocated, < 0 freed */
	uint64_t total_allocated;
	uint64_t total_reserved;
	uint32_t unused[2];
	int16_t device_index; /* -1 for the CPU */
	uint16_t device_type; /* c10::DeviceType */
	uint8_t kind;
	uint8_t reserved[3];
};

struct ops_block {
	uint32_t magic;         /* OPS_BLOCK_MAGIC */
	uint32_t abi;           /* OPS_COLLECTOR_ABI */
	uint64_t epoch;         /* the session it was filled in */
	uint32_t thread;        /* struct ops_thread.number */
	uint32_t count;         /* published slots; release store by the owner, acquire load by the drain */
	uint32_t bytes;         /* size of the block: OPS_BLOCK_BYTES, less for a packed copy */
	uint32_t sequence;      /* the core's: place among the blocks of the session */
	uint64_t lost;          /* records that the thread could not keep in this session so far; its owner writes it */
	uint32_t reserved[2];
	void *home;             /* the core's: the chunk of memory that the block is carved from */
	struct ops_block *next; /* the core's: the list that the block is on */
	struct ops_slot slots[];
};

/* The part of a recording thread that the hot path touches. The core owns it and hides the rest behind it. */
struct ops_thread {
	uint64_t epoch;               /* session that `block` is being filled for */
	struct ops_block *block;      /* NULL before the first record */
	uint32_t reserved_slots;      /* slots reserved in `block`; published count follows */
	uint32_t payload_start;       /* where payload ends up next, growing down */
	uint32_t number;              /* 1-based, unique in the process's life */
	uint32_t torch_number;        /* at::RecordFunction::currentThreadId(), 0 when torch never ran here; set by the
	                               * thread with a relaxed atomic store, since the drain reads it */
	uint64_t lost;                /* records dropped in this session; relaxed atomic stores by the thread alone */
	const void *context;          /* of the coroutine that was noted last in this session, NULL for none: ops_note_context */
	const void *greenlet;
};

/* The interface that the core passes to a collector in another library. Static storage; never changes. */
struct ops_collector {
	uint32_t abi;          /* OPS_COLLECTOR_ABI of the core */
	uint32_t tsc;          /* 1: ticks are the TSC; 0: CLOCK_MONOTONIC nanoseconds */
	const uint64_t *epoch; /* number of the session being recorded, 0 while none is (or it is paused) */

	/* The calling thread's recorder; registers the thread on first use. NULL when memory is out: record nothing. */
	struct ops_thread *(*thread)(void);

	/* The slow path of ops_reserve: new block or new session. Returns NULL if `epoch` is not the session being
	 * recorded, or if there is no space, which is counted as a loss. */
	struct ops_slot *(*reserve_slow)(struct ops_thread *thread, uint64_t epoch, size_t payload_bytes);

	/* An id for (name, overload) on this thread. Copies both. `overload` may be NULL. 0 when memory is out (counted as
	 * a loss) or the session is over: then do not record. Slow: for names met for the first time; callers keep their
	 * own cache. Ids hold for one epoch only: load the epoch first, intern, then reserve with that epoch. */
	uint32_t (*intern)(struct ops_thread *thread, const char *name, size_t name_bytes, const char *overload,
	                   size_t overload_bytes);

	/* Returns the line that the calling thread runs, see ops_call_line; NULL if unavailable. */
	uint32_t (*const *call_line)(void);

	/* What notes the calling thread's coroutine, see ops_note_context; NULL while nobody can. */
	void (*const *note_context)(struct ops_thread *thread, uint64_t epoch);
};

#if defined(__GNUC__)
#define OPS_LIKELY(x) __builtin_expect(!!(x), 1)
#define OPS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OPS_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define OPS_LIKELY(x) (x)
#define OPS_UNLIKELY(x) (x)
#define OPS_ALWAYS_INLINE static inline
#endif

/* Now, in the clock that `tsc` names. */
static inline uint64_t ops_ticks(uint32_t tsc)
{
#if defined(__x86_64__)
	if (OPS_LIKELY(tsc))
		return __rdtsc();
#endif
	(void)tsc;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The session number if one is being recorded now, else 0. A thread may see a start or stop a little late, which
 * reserve_slow settles under the session's lock. Pairs with the release store at start: `tsc` is known by then. */
static inline uint64_t ops_collector_epoch(const struct ops_collector *collector)
{
	return __atomic_load_n(collector->epoch, __ATOMIC_ACQUIRE);
}

/* Which line of the Python function that runs on this thread makes the call that is to be recorded; 0 unknown. Without the
 * GIL, for Python functions stand still while they call. */
OPS_ALWAYS_INLINE uint32_t ops_call_line(const struct ops_collector *collector)
{
	uint32_t (*get_line)(void) = __atomic_load_n(collector->call_line, __ATOMIC_ACQUIRE);

	return OPS_UNLIKELY(get_line != NULL) ? get_line() : 0;
}

/* Coroutines (asyncio tasks, greenlets, …) take turns on a thread and leave ranges open meanwhile. Before a range begins or ends,
 * this writes a slot of kind OPS_SLOT_CONTEXT if another coroutine runs on the calling thread than at the last time. The
 * payload of the slot, with OPS_SLOT_NAME_INLINE, is what the coroutine is called, then uint64_t identities: of its greenlet, 0 for
 * that of the thread itself, and of the contexts (contextvars) that are entered, innermost first. Not between a reservation
 * and its publication. */
OPS_ALWAYS_INLINE void ops_note_context(const struct ops_collector *collector, struct ops_thread *thread, uint64_t epoch)
{
	void (*note)(struct ops_thread *, uint64_t) = __atomic_load_n(collector->note_context, __ATOMIC_ACQUIRE);

	if (note != NULL)
		note(thread, epoch);
}

/* The same before any other record. It matters only if the thread has a range that a coroutine opened, so programs without
 * coroutines pay for a look at the thread alone. */
OPS_ALWAYS_INLINE void ops_note_context_again(const struct ops_collector *collector, struct ops_thread *thread,
                                              uint64_t epoch)
{
	if (OPS_UNLIKELY(thread->context != NULL || thread->greenlet != NULL))
		ops_note_context(collector, thread, epoch);
}

/* The largest payload of one slot: more is always a loss. */
#define OPS_PAYLOAD_MAX (OPS_BLOCK_BYTES - sizeof(struct ops_block) - sizeof(struct ops_slot))

/* Where in its block the thread's next slot ends. Added up so that compilers multiply once for this and for the slot. */
OPS_ALWAYS_INLINE size_t ops_next_slot_end(const struct ops_thread *thread)
{
	return thread->reserved_slots * sizeof(struct ops_slot) + offsetof(struct ops_block, slots) + sizeof(struct ops_slot);
}

/* The end of ops_reserve, for those who know that the block has room and is of the session that records. */
OPS_ALWAYS_INLINE struct ops_slot *ops_reserve_in_block(struct ops_thread *thread, size_t payload_bytes)
{
	struct ops_slot *slot = &thread->block->slots[thread->reserved_slots++];

	thread->payload_start -= (uint32_t)payload_bytes;
	slot->payload = (uint16_t)(payload_bytes ? thread->payload_start : 0);
	slot->payload_bytes = (uint16_t)payload_bytes;
	slot->call_line = 0;
	return slot;
}

/* Reserves the next slot of `thread` and `payload_bytes` (a multiple of 4; 0 for none) in its block. The caller holds
 * a non-zero `epoch` from ops_collector_epoch. Sets `payload`, `payload_bytes` and, to 0, `call_line`; every other field is the
 * caller's to fill before ops_publish, `end_ticks` (0, or the start for what has no length) included. Nothing else is
 * reserved between the two. Only the thread itself may call this. */
OPS_ALWAYS_INLINE struct ops_slot *ops_reserve(const struct ops_collector *collector, struct ops_thread *thread,
                                               uint64_t epoch, size_t payload_bytes)
{
	if (OPS_UNLIKELY(thread->epoch != epoch || ops_next_slot_end(thread) + payload_bytes > thread->payload_start))
		return collector->reserve_slow(thread, epoch, payload_bytes);
	return ops_reserve_in_block(thread, payload_bytes);
}

/* Lets the drain see every slot reserved so far. Pairs with the acquire load of `count` in record/block.c. */
static inline void ops_publish(struct ops_thread *thread)
{
	__atomic_store_n(&thread->block->count, thread->reserved_slots, __ATOMIC_RELEASE);
}

/* Closes an open slot; the last touch of it. Any thread. Pairs with the acquire load of `end_ticks` in the drain. */
static inline void ops_slot_close(struct ops_slot *slot, uint64_t ticks, uint32_t thread_number)
{
	slot->end_thread = thread_number;
	__atomic_store_n(&slot->end_ticks, ticks, __ATOMIC_RELEASE);
}

static inline void *ops_slot_payload(struct ops_thread *thread, struct ops_slot *slot)
{
	return (char *)thread->block + slot->payload;
}

/* Sets or, with NULL, unsets what ops_call_line calls. */
void ops_set_call_line(uint32_t (*get_line)(void));

/* Sets or, with NULL, unsets what ops_note_context calls. */
void ops_set_note_context(void (*note)(struct ops_thread *thread, uint64_t epoch));

/* The core's collector. Collectors inside the core use it directly, others are handed the pointer. */
const struct ops_collector *ops_collector_get(void);

#ifdef __cplusplus
}
static_assert(sizeof(struct ops_slot) == 56, "slot layout");
static_assert(sizeof(struct ops_memory_slot) == sizeof(struct ops_slot), "slot layout");
static_assert(offsetof(struct ops_memory_slot, kind) == offsetof(struct ops_slot, kind), "slot layout");
#else
_Static_assert(sizeof(struct ops_slot) == 56, "slot layout");
_Static_assert(sizeof(struct ops_memory_slot) == sizeof(struct ops_slot), "slot layout");
_Static_assert(offsetof(struct ops_memory_slot, kind) == offsetof(struct ops_slot, kind), "slot layout");
_Static_assert(offsetof(struct ops_block, slots) == 64, "block layout");
#endif
#endif

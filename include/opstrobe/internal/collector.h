/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/collector.h: the hot path. How a collector inside the profiled process (the torch bridge, the C API's ranges,
 * a device collector) writes records: reserve a slot, fill it, publish it. Everything on the fast path is inline, takes no lock,
 * allocates nothing and reports no errors: a full recorder counts the loss and continues.
 *
 * Each thread owns a block. Fixed-size slots grow up from its front, variable payload grows down from its end:
 *
 *     ops_block ┌────────┬──────┬──────┬──────┬ ─ ─ ─ ─ ─ ┬─────────┬───────────┐ OPS_BLOCK_BYTES
 *               │ header │ slot │ slot │ slot │   room    │ payload │  payload  │
 *               └────────┴──────┴──────┴──────┴ ─ ─ ─ ─ ─ ┴─────────┴───────────┘
 *                          0      1      2  → count          ← payload_start
 *
 * The payload of a slot is in the same block, identified by its offset from the block's start. So a block is
 * position-independent, and its header identifies its thread, format and session. Slots with equal payload may share it: the
 * second slot has the `payload` and `payload_bytes` of the first.
 *
 * Life of a slot: reserved (only its thread knows it) → published by one release store of the block's count (the drain may read
 * it) → closed by one release store of `end_ticks` (any thread may do this, at any later time, even after the session stopped: a
 * block with open slots is kept until they close).
 *
 * This header compiles as C11 and as C++17. It is a contract between parts that are built at different times (the torch bridge is
 * compiled on the user's machine): a change of a layout here must increase OPS_COLLECTOR_ABI.
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
	OPS_SLOT_MEMORY = 5,  /* struct ops_memory_slot: a report of an allocator */
	OPS_SLOT_OOM = 6,     /* struct ops_memory_slot: a failed allocation */
	OPS_SLOT_ROLE = 7,    /* the role of a storage: its name, and a struct ops_storage as argument text */
	OPS_SLOT_MODULE = 8,  /* a call of an nn.Module; sequence_nr is its id, see ops_recording_set_modules */
	OPS_SLOT_PYTHON = 9,  /* a call of a Python function, or of a C function from Python: `name` is the function's number, see
	                       * ops_recording_add_function */
	OPS_SLOT_CONTEXT = 10, /* later records of the thread belong to another coroutine: see ops_note_context */
	OPS_SLOT_SAMPLE = 11, /* the stack of another thread at one moment. `sequence_nr` is that thread's id, `scope` its enum
	                       * ops_thread_state (OPS_THREAD_STATES: unknown), `call_line` how many microseconds the sample
	                       * represents: those since the one before. The payload is struct ops_sample_frame, innermost first */
};

enum ops_slot_flag {
	OPS_SLOT_ASYNC = 1,       /* declared asynchronous by the collector */
	OPS_SLOT_NAME_INLINE = 2, /* the payload begins with the name: uint32_t length, then the bytes, padded to 4 */
	OPS_SLOT_HAS_INPUTS = 4,  /* the payload (after everything that the other flags name) is an input list: see inputs.h */
	OPS_SLOT_HAS_ARGS = 8,    /* a range has an argument text. With NAME_INLINE it follows the name in the same form
	                           * (length, bytes, padded); else it is the second text interned under `name` */
	OPS_SLOT_HAS_STORAGES = 16, /* the payload's inputs are preceded by a text (length, bytes) that is an array of
	                             * struct ops_storage: see storage.h */
	OPS_SLOT_HAS_VALUES = 32, /* after those texts: uint32_t count, then as many named values: the name as a text, a uint32_t
	                           * enum ops_value_kind, and the value */
	OPS_SLOT_DROPPED = 64,    /* a Python call that is to be dropped */
	OPS_SLOT_HAS_SCRIPT = 128, /* after the named values: two uint32_t, ids from ops_collector.intern of TorchScript's call
	                            * stack and module hierarchy, 0: none */
	OPS_SLOT_HELD = 256, /* an operator that a program opens and closes like a range: it may be open while other operators run */
	OPS_SLOT_ADDED = 512, /* a range that was recorded after its end */
};

/* The type of a named value and its representation. */
enum ops_value_kind {
	OPS_VALUE_INT,       /* int64_t, aligned to 4 like everything in a payload */
	OPS_VALUE_DOUBLE,    /* double */
	OPS_VALUE_BOOL,      /* uint32_t, 0 or 1 */
	OPS_VALUE_TEXT,      /* a text */
	OPS_VALUE_TEXT_LIST, /* uint32_t count, then as many texts */
	OPS_VALUE_COUNT,     /* int64_t: of a counter, known only after the slot is closed, or not at all */
	OPS_VALUE_UINT,      /* uint64_t */
	OPS_VALUE_PAIR,      /* int64_t: number of a pair of events on a device, known when a count is; shown as the time between
	                      * them, see ops_recording_set_pair_times */
};
#define OPS_COUNT_UNKNOWN INT64_MIN

/* Named value of kind OPS_VALUE_PAIR for such a pair around an operator or range, and the argument that it becomes. */
#define OPS_DEVICE_TIME_NAME "Device time (ns)"

/* A frame of a sampled stack, which has OPS_SAMPLE_FRAMES_MAX of them at most. */
#define OPS_SAMPLE_FRAMES_MAX 128u
struct ops_sample_frame {
	uint32_t name; /* id from ops_collector.intern for the thread that samples: the function, and as second text its file */
	uint32_t line; /* 0 unknown */
};

/* Bit of ops_slot.call_line. The text of a call stack is "file(line): function;…", innermost first. */
#define OPS_CALL_STACK (UINT32_C(1) << 31)

/* Offsets in a block and sizes of payloads are less than OPS_BLOCK_BYTES. */
struct ops_slot {
	void *owner;          /* for the use of the collector that opened the slot; the torch bridge keeps a C++ object's vtable
	                       * here */
	uint64_t start_ticks; /* ops_ticks() at the start */
	uint64_t end_ticks;   /* 0 while open; written with release order, see ops_slot_close */
	int64_t sequence_nr;  /* autograd sequence number; -1: none */
	uint32_t name;        /* id from ops_collector.intern for this thread; 0 with OPS_SLOT_NAME_INLINE */
	uint32_t call_line;   /* line in the source of the calling Python function, or with OPS_CALL_STACK the id from
	                       * ops_collector.intern of a call stack; 0: unknown */
	uint32_t forward_thread; /* torch's logical thread number of the forward operator; 0: none */
	uint32_t end_thread;     /* `number` of the thread that closed the slot; 0: unknown */
	uint16_t payload;        /* offset in the block; 0: none */
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
	uint64_t epoch;         /* the session of its records */
	uint32_t thread;        /* struct ops_thread.number */
	uint32_t count;         /* published slots; release store by the owner, acquire load by the drain */
	uint32_t bytes;         /* size of the block: OPS_BLOCK_BYTES, or less for a packed copy */
	uint32_t sequence;      /* used by the core: position among the blocks of the session */
	uint64_t lost;          /* records that the thread has lost in this session so far; written by the owner */
	uint32_t reserved[2];
	void *home;             /* used by the core: the chunk of memory that contains the block */
	struct ops_block *next; /* used by the core: next block in the same list */
	struct ops_slot slots[];
};

/* The part of a recording thread that the hot path uses. The core owns it; private members follow it. */
struct ops_thread {
	uint64_t epoch;               /* session that `block` is being filled for */
	struct ops_block *block;      /* NULL before the first record */
	uint32_t reserved_slots;      /* slots reserved in `block`; the published count follows it */
	uint32_t payload_start;       /* end of the free space, where payload is added, growing down */
	uint32_t number;              /* 1-based, unique during the life of the process */
	uint32_t torch_number;        /* at::RecordFunction::currentThreadId(), or 0 if torch has not run on the thread; the
	                               * thread sets it with a relaxed atomic store, since the drain reads it */
	uint64_t lost;                /* records dropped in this session; written only by the thread, with relaxed atomic stores */
	const void *context;          /* the coroutine noted last in this session, NULL: none; see ops_note_context */
	const void *greenlet;
};

/* The interface that the core passes to a collector in another library. Static storage; never changes. */
struct ops_collector {
	uint32_t abi;          /* OPS_COLLECTOR_ABI of the core */
	uint32_t tsc;          /* 1: ticks are the TSC; 0: CLOCK_MONOTONIC nanoseconds */
	const uint64_t *epoch; /* number of the session being recorded, 0 while none is (or it is paused) */

	/* Returns the calling thread's recorder; registers the thread on first use. Returns NULL if out of memory: then record
	 * nothing. */
	struct ops_thread *(*thread)(void);

	/* The slow path of ops_reserve: new block or new session. Returns NULL if `epoch` is not the session being
	 * recorded, or if there is no space, which is counted as a loss. */
	struct ops_slot *(*reserve_slow)(struct ops_thread *thread, uint64_t epoch, size_t payload_bytes);

	/* Returns an id for (name, overload) on this thread. Copies both. `overload` may be NULL. Returns 0 if out of memory
	 * (counted as a loss) or if the session has ended: then do not record. Slow, so callers cache ids. Ids are valid for one
	 * epoch only: load the epoch first, intern, then reserve with that epoch. */
	uint32_t (*intern)(struct ops_thread *thread, const char *name, size_t name_bytes, const char *overload,
	                   size_t overload_bytes);

	/* Returns the line that the calling thread executes, see ops_call_line. NULL if unavailable. */
	uint32_t (*const *call_line)(void);

	/* Notes the coroutine of the calling thread, see ops_note_context. NULL if unavailable. */
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

/* Returns the current time of the clock that `tsc` selects. */
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

/* Returns the number of the session being recorded, or 0. A thread may see a start or stop a little late; reserve_slow checks
 * again under the session's lock. Pairs with the release store at start: `tsc` is known by then. */
static inline uint64_t ops_collector_epoch(const struct ops_collector *collector)
{
	return __atomic_load_n(collector->epoch, __ATOMIC_ACQUIRE);
}

/* Returns ops_slot.call_line of the call to be recorded on this thread; 0: unknown. Needs no GIL, because Python functions do not
 * advance during a call. */
OPS_ALWAYS_INLINE uint32_t ops_call_line(const struct ops_collector *collector)
{
	uint32_t (*get_line)(void) = __atomic_load_n(collector->call_line, __ATOMIC_ACQUIRE);

	return OPS_UNLIKELY(get_line != NULL) ? get_line() : 0;
}

/* Coroutines (asyncio tasks, greenlets, …) take turns on a thread and leave ranges open meanwhile. Called before a range begins
 * or ends, this writes a slot of kind OPS_SLOT_CONTEXT if the coroutine on the calling thread has changed since the last call.
 * The payload of the slot, with OPS_SLOT_NAME_INLINE, is the name of the coroutine, then uint64_t identities: of its greenlet (0:
 * that of the thread itself), and of the entered contexts (contextvars), innermost first. Must not be called between a
 * reservation and its publication. */
OPS_ALWAYS_INLINE void ops_note_context(const struct ops_collector *collector, struct ops_thread *thread, uint64_t epoch)
{
	void (*note)(struct ops_thread *, uint64_t) = __atomic_load_n(collector->note_context, __ATOMIC_ACQUIRE);

	if (note != NULL)
		note(thread, epoch);
}

/* Like ops_note_context, for all other records. The coroutine matters to them only if the thread has a range that a coroutine
 * opened, so programs without coroutines only pay for reading a member of the thread. */
OPS_ALWAYS_INLINE void ops_note_context_again(const struct ops_collector *collector, struct ops_thread *thread,
                                              uint64_t epoch)
{
	if (OPS_UNLIKELY(thread->context != NULL || thread->greenlet != NULL))
		ops_note_context(collector, thread, epoch);
}

/* The largest payload of one slot. Larger ones are always lost. */
#define OPS_PAYLOAD_MAX (OPS_BLOCK_BYTES - sizeof(struct ops_block) - sizeof(struct ops_slot))

/* Returns the end of the thread's next slot in its block. The sum is written so that compilers multiply once for this and for the
 * slot. */
OPS_ALWAYS_INLINE size_t ops_next_slot_end(const struct ops_thread *thread)
{
	return thread->reserved_slots * sizeof(struct ops_slot) + offsetof(struct ops_block, slots) + sizeof(struct ops_slot);
}

/* The last part of ops_reserve, for callers that know that the block has room and belongs to the recording session. */
OPS_ALWAYS_INLINE struct ops_slot *ops_reserve_in_block(struct ops_thread *thread, size_t payload_bytes)
{
	struct ops_slot *slot = &thread->block->slots[thread->reserved_slots++];

	thread->payload_start -= (uint32_t)payload_bytes;
	slot->payload = (uint16_t)(payload_bytes ? thread->payload_start : 0);
	slot->payload_bytes = (uint16_t)payload_bytes;
	slot->call_line = 0;
	return slot;
}

/* Reserves the next slot of `thread` and `payload_bytes` (a multiple of 4; 0 for none) in its block. The caller holds a non-zero
 * `epoch` from ops_collector_epoch. Sets `payload`, `payload_bytes` and `call_line` (to 0). The caller sets all other members
 * before ops_publish, including `end_ticks` (0, or the start for instants). Nothing else may be reserved between the two calls.
 * Only the thread itself may call this. */
OPS_ALWAYS_INLINE struct ops_slot *ops_reserve(const struct ops_collector *collector, struct ops_thread *thread,
                                               uint64_t epoch, size_t payload_bytes)
{
	if (OPS_UNLIKELY(thread->epoch != epoch || ops_next_slot_end(thread) + payload_bytes > thread->payload_start))
		return collector->reserve_slow(thread, epoch, payload_bytes);
	return ops_reserve_in_block(thread, payload_bytes);
}

/* Makes all slots reserved so far visible to the drain. Pairs with the acquire load of `count` in record/block.c. */
static inline void ops_publish(struct ops_thread *thread)
{
	__atomic_store_n(&thread->block->count, thread->reserved_slots, __ATOMIC_RELEASE);
}

/* Closes an open slot, which must not be used afterwards. Any thread. Pairs with the acquire load of `end_ticks` in the drain. */
static inline void ops_slot_close(struct ops_slot *slot, uint64_t ticks, uint32_t thread_number)
{
	slot->end_thread = thread_number;
	__atomic_store_n(&slot->end_ticks, ticks, __ATOMIC_RELEASE);
}

static inline void *ops_slot_payload(struct ops_thread *thread, struct ops_slot *slot)
{
	return (char *)thread->block + slot->payload;
}

/* Sets the function that ops_call_line calls; NULL: none. */
void ops_set_call_line(uint32_t (*get_line)(void));

/* Sets the function that ops_note_context calls; NULL: none. */
void ops_set_note_context(void (*note)(struct ops_thread *thread, uint64_t epoch));

/* Returns the core's collector. Collectors inside the core use it directly; others receive the pointer. */
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

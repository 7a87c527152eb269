/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks of operators; see call_stacks.h.
 *
 *     frames (code objects, instructions) ─▶ hash ─▶ id of a text, "net.py(7): step;train.py(3): main"
 *
 * Programs call operators from few places, so nearly all stacks are known. The hash of a stack costs a few nanoseconds a frame.
 */
#include "call_stacks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/program.h>

#include "path_prefixes.h"
#include "stack_reader.h"

#define DEPTH_MAX 512
#define FRAMES_MAX 16    /* of the program, in a text */
#define STACKS_MAX 16384 /* of a thread; operators called from further ones have none */

/* Numbers by hash, in open addressing. Of equal hashes, the first counts. */
struct hash_table {
	struct {
		uint64_t hash; /* 0: the entry is free */
		uint32_t value;
	} *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

/* What a thread knows of its stacks. */
struct call_stacks_thread {
	uint64_t epoch;              /* of the session that `ids` are for */
	struct hash_table ids;       /* of stacks; 0: no function of the program is in it */
	struct hash_table libraries; /* code objects: whether they are of a library */
	struct {
		const ops_frame *frame;
		int offset;
		uint32_t id;
		const struct ops_block *block; /* with the slot that was reserved for it */
		uint32_t sequence;
		uint32_t slot;
	} last;
	struct ops_stack_frame frame; /* scratch */
	char text[FRAMES_MAX * (sizeof(struct ops_stack_frame) + 16)]; /* scratch */
	size_t size;                                                   /* of the text */
};

static __thread struct call_stacks_thread *this_thread;
static pthread_key_t exit_key;
static bool has_key;

/* --- tables ----------------------------------------------------------------------------------------------------------- */

/* Returns the entry of a hash, or the free one for it. The table is not full. */
static size_t hash_table_find(const struct hash_table *table, uint64_t hash)
{
	size_t at = (size_t)(hash >> 32) & (table->capacity - 1);

	while (table->entries[at].hash && table->entries[at].hash != hash)
		at = (at + 1) & (table->capacity - 1);
	return at;
}

/* Returns whether the table has the hash, and its value. */
static inline bool hash_table_get(const struct hash_table *table, uint64_t hash, uint32_t *ret_value)
{
	size_t at;

	if (!table->capacity)
		return false;
	at = hash_table_find(table, hash);
	if (!table->entries[at].hash)
		return false;
	*ret_value = table->entries[at].value;
	return true;
}

static bool hash_table_grow(struct hash_table *table)
{
	struct hash_table larger = {.capacity = table->capacity ? 2 * table->capacity : 64, .count = table->count};

	larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
	if (!larger.entries)
		return false;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->entries[i].hash)
			larger.entries[hash_table_find(&larger, table->entries[i].hash)] = table->entries[i];
	free(table->entries);
	*table = larger;
	return true;
}

/* Adds a hash that the table does not have. Without memory it is not added. */
static void hash_table_add(struct hash_table *table, uint64_t hash, uint32_t value)
{
	size_t at;

	if (2 * table->count >= table->capacity && !hash_table_grow(table))
		return;
	at = hash_table_find(table, hash);
	table->entries[at].hash = hash;
	table->entries[at].value = value;
	table->count++;
}

static void hash_table_release(struct hash_table *table)
{
	free(table->entries);
	*table = (struct hash_table){0};
}

/* --- threads ---------------------------------------------------------------------------------------------------------- */

static void forget(struct call_stacks_thread *thread)
{
	hash_table_release(&thread->ids);
	hash_table_release(&thread->libraries);
}

static void call_stacks_end_thread(void *argument)
{
	struct call_stacks_thread *thread = argument;

	this_thread = NULL;
	forget(thread);
	free(thread);
}

static void make_key(void)
{
	has_key = pthread_key_create(&exit_key, call_stacks_end_thread) == 0;
}

/* Returns what the calling thread knows in the session `epoch`; NULL if out of memory. */
static struct call_stacks_thread *thread_in(uint64_t epoch)
{
	struct call_stacks_thread *thread = this_thread;

	if (OPS_UNLIKELY(!thread)) {
		thread = calloc(1, sizeof(*thread));
		if (!thread || pthread_setspecific(exit_key, thread) != 0) {
			free(thread);
			return NULL;
		}
		this_thread = thread;
	}
	if (OPS_UNLIKELY(thread->epoch != epoch)) {
		forget(thread);
		thread->last.frame = NULL;
		thread->epoch = epoch;
	}
	return thread;
}

/* --- texts ------------------------------------------------------------------------------------------------------------ */

static inline uint64_t call_stacks_mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
}

/* Code objects are freed, and others may then be at their addresses, of which nearly all are from other lines. */
static inline uint64_t code_number(const PyCodeObject *code)
{
	return (uintptr_t)code ^ (uint64_t)(uint32_t)code->co_firstlineno << 44;
}

/* Reads a frame; returns false unless its function is of the program. */
static bool read_frame_of_program(struct call_stacks_thread *thread, ops_frame *frame)
{
	uint64_t hash = code_number(ops_frame_code(frame));
	uint32_t is_library = false;
	bool known = hash_table_get(&thread->libraries, hash, &is_library);

	if (is_library || !ops_stack_frame_read(frame, &thread->frame))
		return false;
	is_library = ops_file_is_library((struct ops_string){thread->frame.file, strlen(thread->frame.file)});
	if (!known)
		hash_table_add(&thread->libraries, hash, is_library);
	return !is_library;
}

static void append_frame(struct call_stacks_thread *thread)
{
	const struct ops_stack_frame *frame = &thread->frame;
	struct ops_string file = ops_path_without_prefix((struct ops_string){frame->file, strlen(frame->file)});

	thread->size += (size_t)snprintf(thread->text + thread->size, sizeof(thread->text) - thread->size, "%.*s(%u): %s;",
	                                 (int)file.size, file.bytes, frame->line, frame->function);
}

/* Returns the id of the stack's text; 0 if none of its functions is of the program, or if it cannot be stored. */
static uint32_t intern_stack(struct call_stacks_thread *thread, struct ops_thread *recorder, ops_frame *frame)
{
	size_t count = 0;

	thread->size = 0;
	for (size_t depth = 0; frame && depth < DEPTH_MAX && count < FRAMES_MAX; depth++, frame = ops_frame_caller(frame)) {
		if (!read_frame_of_program(thread, frame))
			continue;
		append_frame(thread);
		count++;
	}
	return count ? ops_collector_get()->intern(recorder, thread->text, thread->size, "", 0) : 0;
}

/* --- stacks ----------------------------------------------------------------------------------------------------------- */

/* Returns whether the slot that the thread reserved last is of an operator within that of the last stack: the one is still open, and
 * Python has not advanced. */
static inline bool is_nested(const struct call_stacks_thread *thread, const struct ops_thread *recorder, const ops_frame *frame, int offset)
{
	return thread->last.frame == frame && thread->last.offset == offset && thread->last.block == recorder->block &&
	       thread->last.sequence == recorder->block->sequence &&
	       !__atomic_load_n(&recorder->block->slots[thread->last.slot].end_ticks, __ATOMIC_RELAXED);
}

static inline uint64_t stack_hash(ops_frame *innermost)
{
	uint64_t hash = 0;
	unsigned depth = 0;

	for (ops_frame *at = innermost; at && depth < DEPTH_MAX; at = ops_frame_caller(at), depth++)
		hash = call_stacks_mix(call_stacks_mix(hash, code_number(ops_frame_code(at))), (uint64_t)ops_frame_offset(at));
	return hash | 1; /* 0: a free entry */
}

static __attribute__((noinline)) uint32_t add_stack(struct call_stacks_thread *thread, struct ops_thread *recorder, ops_frame *frame,
                                                    uint64_t hash)
{
	uint32_t id;

	if (thread->ids.count >= STACKS_MAX)
		return 0;
	id = intern_stack(thread, recorder, frame);
	hash_table_add(&thread->ids, hash, id);
	return id;
}

/* The function behind ops_call_line, called when a slot has been reserved. Needs no GIL: the frames of a thread do not change while
 * it is in an operator. */
static uint32_t call_stacks_current(void)
{
	PyThreadState *state = PyGILState_GetThisThreadState();
	ops_frame *frame = state ? ops_frame_current(state) : NULL;
	struct ops_thread *recorder = frame ? ops_collector_get()->thread() : NULL;
	struct call_stacks_thread *thread = recorder && recorder->block ? thread_in(recorder->epoch) : NULL;
	uint64_t hash;
	int offset;

	if (!thread)
		return 0;
	offset = ops_frame_offset(frame);
	if (!is_nested(thread, recorder, frame, offset)) {
		hash = stack_hash(frame);
		thread->last.frame = frame;
		thread->last.offset = offset;
		thread->last.block = recorder->block;
		thread->last.sequence = recorder->block->sequence;
		thread->last.slot = recorder->reserved_slots - 1;
		if (OPS_UNLIKELY(!hash_table_get(&thread->ids, hash, &thread->last.id)))
			thread->last.id = add_stack(thread, recorder, frame, hash);
	}
	return thread->last.id ? thread->last.id | OPS_CALL_STACK : 0;
}

/* --- sessions --------------------------------------------------------------------------------------------------------- */

int ops_call_stacks_start(PyObject *path_prefixes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_key);
	if (!has_key) {
		PyErr_NoMemory();
		return -1;
	}
	if (ops_path_prefixes_set(path_prefixes) < 0)
		return -1;
	ops_stacks_init();
	ops_set_call_line(call_stacks_current);
	return 0;
}

void ops_call_stacks_stop(void)
{
	ops_set_call_line(NULL);
}

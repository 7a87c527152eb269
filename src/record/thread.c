/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording threads: registration on first use, removal when they end, and the slow path of recording.
 */
#include "record/recorder.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opstrobe/common.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "record/block.h"
#include "record/pool.h"
#include "record/ring.h"
#include "record/spill.h"

/* The round of thread destructors in which a thread is removed. */
#define LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 1)

static struct ops_thread *collector_thread(void);
static struct ops_slot *reserve_slow(struct ops_thread *hot, uint64_t epoch, size_t payload_bytes);
static uint32_t intern(struct ops_thread *hot, const char *name, size_t name_bytes, const char *overload,
                       size_t overload_bytes);

__attribute__((aligned(64))) uint64_t ops_recorder_epoch;
struct recorder ops_recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t (*call_line)(void);
static void (*note_context)(struct ops_thread *thread, uint64_t epoch);
struct ops_collector ops_recorder_collector = {
	.abi = OPS_COLLECTOR_ABI,
	.epoch = &ops_recorder_epoch,
	.thread = collector_thread,
	.reserve_slow = reserve_slow,
	.intern = intern,
	.call_line = &call_line,
	.note_context = &note_context,
};

void ops_set_call_line(uint32_t (*get_line)(void))
{
	__atomic_store_n(&call_line, get_line, __ATOMIC_RELEASE); /* pairs with the acquire load in ops_call_line */
}

void ops_set_note_context(void (*note)(struct ops_thread *thread, uint64_t epoch))
{
	__atomic_store_n(&note_context, note, __ATOMIC_RELEASE); /* pairs with the acquire load in ops_note_context */
}

static pthread_key_t exit_key;
__thread struct recorder_thread *ops_this_thread;
static __thread int exit_rounds;

/* --- registration ----------------------------------------------------------------------------------------------------- */

/* Called when a thread ends. Other libraries' destructors may record after this one, so it requests further calls and acts in the
 * last round but one. The last round belongs to allocators and sanitizers, which this function needs. */
static void thread_thread_exit(void *argument)
{
	struct recorder_thread *thread = argument;

	if (++exit_rounds < LAST_ROUND && pthread_setspecific(exit_key, thread) == 0)
		return;
	exit_rounds = LAST_ROUND;
	ops_this_thread = NULL;
	pthread_mutex_lock(&ops_recorder.lock);
	ops_recorder_collect(thread, true);
	ops_recorder_retire(thread->hot.block);
	ops_recorder_unlink(thread);
	pthread_mutex_unlock(&ops_recorder.lock);
	pthread_mutex_destroy(&thread->names_lock);
	ops_free(thread);
}

static bool init_done;

static void thread_init(void)
{
	ops_recorder_collector.tsc = ops_clock_tsc();
	if (pthread_key_create(&exit_key, thread_thread_exit) != 0)
		return;
	init_done = ops_recorder_at_fork() == 0;
}

bool ops_recorder_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, thread_init);
	return init_done;
}

const struct ops_collector *ops_collector_get(void)
{
	ops_recorder_init();
	return &ops_recorder_collector;
}

struct ops_thread *ops_recorder_register(void)
{
	struct recorder_thread *thread = NULL;

	/* A thread whose last destructor round is over would never be removed. */
	if (exit_rounds < LAST_ROUND && ops_recorder_init())
		thread = ops_alloc_zeroed(1, sizeof(*thread));
	if (!thread || pthread_setspecific(exit_key, thread) != 0) {
		ops_free(thread);
		if (ops_collector_epoch(&ops_recorder_collector))
			__atomic_add_fetch(&ops_recorder.lost_nowhere, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	thread->tid = syscall(SYS_gettid);
	pthread_mutex_init(&thread->names_lock, NULL);
	pthread_mutex_lock(&ops_recorder.lock);
	thread->hot.number = ++ops_recorder.last_thread;
	thread->next = ops_recorder.threads;
	if (thread->next)
		thread->next->previous = thread;
	ops_recorder.threads = thread;
	pthread_mutex_unlock(&ops_recorder.lock);
	ops_this_thread = thread;
	return &thread->hot;
}

void ops_recorder_unlink(struct recorder_thread *thread)
{
	if (thread->previous)
		thread->previous->next = thread->next;
	else
		ops_recorder.threads = thread->next;
	if (thread->next)
		thread->next->previous = thread->previous;
}

static struct ops_thread *collector_thread(void)
{
	return ops_recorder_thread();
}

/* --- slow path of reserving -------------------------------------------------------------------------------------- */

static struct ops_share *new_share(const struct recorder_thread *thread)
{
	struct ops_share *share = ops_alloc_zeroed(1, sizeof(*share));
	char name[17] = "";

	if (!share)
		return NULL;
	share->tid = thread->tid;
	share->number = thread->hot.number;
	if (prctl(PR_GET_NAME, name, 0, 0, 0) == 0 && (share->name = ops_alloc(sizeof(name)))) {
		memcpy(share->name, name, sizeof(name));
		share->name_size = strlen(name);
	}
	return share;
}

/* Describes the thread in the session's recording file. */
static void thread_note(struct recorder_thread *thread, uint64_t epoch)
{
	char name[17] = "";

	if (!ops_spill_is_on(epoch))
		return;
	prctl(PR_GET_NAME, name, 0, 0, 0);
	thread->noted_torch_number = __atomic_load_n(&thread->hot.torch_number, __ATOMIC_RELAXED);
	ops_spill_thread(epoch, thread->hot.number, thread->noted_torch_number, thread->tid,
	                 (struct ops_string){name, strlen(name)});
}

/* Makes the thread part of session `epoch`. Returns false if that session is no longer recorded. If out of memory for a share,
 * the thread still becomes part of it, so that its losses are counted, and the next record tries again. */
static bool thread_join(struct recorder_thread *thread, uint64_t epoch)
{
	struct ops_share *share = new_share(thread);
	bool joined;

	pthread_mutex_lock(&ops_recorder.lock);
	joined = ops_recorder_epoch == epoch;
	if (joined) {
		if (thread->hot.epoch != epoch) {
			thread->hot.epoch = epoch;
			thread->hot.context = thread->hot.greenlet = NULL;
			thread->hot.payload_start = 0; /* no room, so the next record calls next_block */
			thread->collected = false;
			__atomic_store_n(&thread->hot.lost, 0, __ATOMIC_RELAXED);
		}
		thread->share = share;
		thread->joined = share != NULL;
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	if (share && !joined)
		ops_share_free(share);
	else if (share)
		thread_note(thread, epoch);
	return joined;
}

static bool is_member(const struct recorder_thread *thread, uint64_t epoch)
{
	return thread->hot.epoch == epoch && thread->joined;
}

/* Number of blocks of a file that cannot grow that are reserved for the log. */
#define SPARE_BLOCKS 16u

static void return_ring_block(struct ops_block *block)
{
	ops_pool_return(block);
	ops_recorder_refund(OPS_BLOCK_BYTES);
}

/* Returns a new block within the session's limit, or a reused one; the lock must be held. Returns NULL if all blocks are needed. */
static struct ops_block *pop_ring_block(void)
{
	struct ops_block *block = NULL, *old;

	while ((old = ops_ring_pop(ops_recorder.ring, false))) {
		if (block)
			return_ring_block(block);
		block = old;
	}
	if (!block && ops_recorder_charge(OPS_BLOCK_BYTES)) {
		block = ops_pool_alloc();
		if (!block) { /* the file is full */
			ops_recorder_refund(OPS_BLOCK_BYTES);
			ops_recorder.max_bytes = ops_recorder.bytes > 2 * SPARE_BLOCKS * OPS_BLOCK_BYTES
			                                 ? ops_recorder.bytes - SPARE_BLOCKS * OPS_BLOCK_BYTES
			                                 : ops_recorder.bytes;
		}
	}
	if (!block)
		block = ops_ring_pop(ops_recorder.ring, true);
	while (block && ops_recorder.bytes > ops_recorder.max_bytes && (old = ops_ring_pop(ops_recorder.ring, true)))
		return_ring_block(old);
	return block;
}

/* Like pop_ring_block, for a thread. First moves its block to its share, because it may be the oldest. */
static struct ops_block *next_ring_block(struct recorder_thread *thread, bool filled)
{
	if (filled)
		ops_recorder_append(thread->share, thread->hot.block);
	else
		ops_recorder_retire(thread->hot.block);
	thread->hot.block = NULL;
	thread->hot.payload_start = 0; /* full: without a new block, the next record calls next_block */
	return pop_ring_block();
}

/* Gives the thread an empty block. Returns false if out of memory, or if the session has ended or is paused; then `*ret_over` is
 * true. */
static bool next_block(struct recorder_thread *thread, uint64_t epoch, bool *ret_over)
{
	struct ops_thread *hot = &thread->hot;
	struct ops_block *old = hot->block;
	bool filled = old && old->epoch == epoch;
	bool reuse = old && !filled && !ops_block_open(old) && ops_pool_is_current(old);
	bool is_ring = __atomic_load_n(&ops_recorder.ring_session, __ATOMIC_RELAXED) == epoch;
	struct ops_block *block = is_ring ? NULL : reuse ? old : ops_pool_alloc();
	bool over, taken = false;

	pthread_mutex_lock(&ops_recorder.lock);
	over = ops_recorder_epoch != epoch;
	if (!over && is_ring && thread->share) {
		block = next_ring_block(thread, filled);
		taken = block != NULL;
	} else if (!over && block && thread->share) {
		taken = ops_recorder_charge(OPS_BLOCK_BYTES);
		if (!taken)
			__atomic_store_n(&ops_recorder.full, epoch, __ATOMIC_RELAXED);
	}
	if (taken) {
		if (filled && !is_ring)
			ops_share_append(thread->share, old);
		else if (!reuse && !is_ring)
			ops_recorder_retire(old);
		ops_block_init(block, epoch, hot->number);
		block->sequence = ops_recorder.last_block++;
		ops_recorder.observer_blocks += thread->is_observer;
		block->lost = hot->lost;
		ops_block_show(block, OPS_BLOCK_MAGIC);
		hot->block = block;
		hot->reserved_slots = 0;
		hot->payload_start = OPS_BLOCK_BYTES;
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	if (block && !taken && !reuse)
		ops_pool_return(block);
	else if (taken)
		ops_spill_block(epoch, block);
	*ret_over = over;
	return taken;
}

static void count_lost(struct ops_thread *hot)
{
	/* Written only by the thread; read by the stop. */
	__atomic_store_n(&hot->lost, hot->lost + 1, __ATOMIC_RELAXED);
	if (hot->block && hot->block->epoch == hot->epoch)
		hot->block->lost = hot->lost; /* for the readers of recording files */
}

static struct ops_slot *reserve_slow(struct ops_thread *hot, uint64_t epoch, size_t payload_bytes)
{
	struct recorder_thread *thread = (struct recorder_thread *)hot;
	bool over = false;

	if (!is_member(thread, epoch) && !thread_join(thread, epoch))
		return NULL;
	if (payload_bytes > OPS_PAYLOAD_MAX || __atomic_load_n(&ops_recorder.full, __ATOMIC_RELAXED) == epoch ||
	    !next_block(thread, epoch, &over)) {
		if (!over)
			count_lost(hot);
		return NULL;
	}
	return ops_reserve(&ops_recorder_collector, hot, epoch, payload_bytes);
}

/* --- names ------------------------------------------------------------------------------------------------------- */

/* Returns the id of (name, overload) in the share; 0 if it is not there. */
static uint32_t thread_find_name(const struct ops_share *share, struct ops_string name, struct ops_string overload)
{
	struct ops_name pair = {
		.first = ops_intern_find(&share->texts, name.bytes, name.size),
		.second = overload.bytes ? ops_intern_find(&share->texts, overload.bytes, overload.size) : OPS_INTERN_NONE,
	};
	uint32_t id;

	if (pair.first == OPS_INTERN_NONE || (overload.bytes && pair.second == OPS_INTERN_NONE))
		return 0;
	id = ops_intern_find(&share->names, &pair, sizeof(pair));
	return id == OPS_INTERN_NONE ? 0 : id + 1;
}

/* Like thread_find_name, but adds a missing name. Returns 0 if out of memory. */
static uint32_t thread_add_name(struct ops_share *share, struct ops_string name, struct ops_string overload)
{
	struct ops_name pair = {
		.first = ops_intern_add(&share->texts, name.bytes, name.size),
		.second = overload.bytes ? ops_intern_add(&share->texts, overload.bytes, overload.size) : OPS_INTERN_NONE,
	};
	uint32_t id;

	if (pair.first == OPS_INTERN_NONE || (overload.bytes && pair.second == OPS_INTERN_NONE))
		return 0;
	id = ops_intern_add(&share->names, &pair, sizeof(pair));
	return id == OPS_INTERN_NONE ? 0 : id + 1;
}

/* Only the thread itself adds names, so a name that is not found cannot appear before it is added. */
static uint32_t intern(struct ops_thread *hot, const char *name_bytes, size_t name_size, const char *overload_bytes,
                       size_t overload_size)
{
	struct recorder_thread *thread = (struct recorder_thread *)hot;
	const struct ops_string name = {name_size ? name_bytes : "", name_size};
	const struct ops_string overload = {overload_bytes, overload_size};
	uint64_t epoch = ops_collector_epoch(&ops_recorder_collector);
	bool over, room;
	uint32_t id = 0;

	if (!epoch || (!is_member(thread, epoch) && !thread_join(thread, epoch)))
		return 0;
	pthread_mutex_lock(&thread->names_lock);
	if (thread->share)
		id = thread_find_name(thread->share, name, overload);
	pthread_mutex_unlock(&thread->names_lock);
	if (id)
		return id;
	pthread_mutex_lock(&ops_recorder.lock);
	over = ops_recorder_epoch != epoch;
	room = !over && ops_recorder_charge(name.size + overload.size);
	pthread_mutex_unlock(&ops_recorder.lock);
	if (over)
		return 0;
	if (room) {
		pthread_mutex_lock(&thread->names_lock);
		if (thread->share) /* else the session has stopped, or there has been no memory from the beginning */
			id = thread_add_name(thread->share, name, overload);
		pthread_mutex_unlock(&thread->names_lock);
	}
	if (id && ops_spill_is_on(epoch)) {
		if (thread->noted_torch_number != __atomic_load_n(&hot->torch_number, __ATOMIC_RELAXED))
			thread_note(thread, epoch); /* torch has started to run on it */
		ops_spill_name(epoch, hot->number, id, name, overload);
	}
	if (!id)
		count_lost(hot);
	return id;
}

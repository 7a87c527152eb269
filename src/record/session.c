/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: start, pause, resume, stop, and collecting the records of threads (recorder.h).
 *
 * A session has a number, 1, 2, … in the life of a process. The callers' handle is that number, not an address, so that the
 * handle of a stopped session, or one inherited by a forked child, is never mistaken for a valid one.
 */
#include <opstrobe/internal/host.h>
#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/record.h>

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/options.h"
#include "record/block.h"
#include "record/pool.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "record/spill.h"

static struct ops_session *handle_of(uint64_t session)
{
	return (struct ops_session *)(uintptr_t)session;
}

/* Returns whether the handle is that of the session in progress. The lock must be held. */
static bool is_current(const struct ops_session *handle)
{
	return handle && (uintptr_t)handle == ops_recorder.session;
}

/* --- budget and limbo -------------------------------------------------------------------------------------------- */

bool ops_recorder_charge(uint64_t bytes)
{
	if (bytes > ops_recorder.max_bytes || ops_recorder.bytes > ops_recorder.max_bytes - bytes)
		return false;
	ops_recorder.bytes += bytes;
	return true;
}

void ops_recorder_refund(uint64_t bytes)
{
	ops_recorder.bytes -= bytes;
	__atomic_store_n(&ops_recorder.full, 0, __ATOMIC_RELAXED);
}

void ops_recorder_append(struct ops_share *share, struct ops_block *block)
{
	ops_share_append(share, block);
	if (ops_recorder.ring)
		ops_ring_push(ops_recorder.ring, share, block); /* if out of memory, the block is kept until the end */
}

void ops_recorder_retire(struct ops_block *block)
{
	if (!block)
		return;
	if (ops_block_open(block)) {
		block->next = ops_recorder.limbo;
		ops_recorder.limbo = block;
	} else {
		ops_pool_return(block);
	}
}

size_t ops_recorder_sweep(void)
{
	struct ops_block *block = ops_recorder.limbo;
	struct ops_block *next;
	size_t left = 0;

	ops_recorder.limbo = NULL;
	for (; block; block = next) {
		next = block->next;
		ops_recorder_retire(block);
	}
	for (block = ops_recorder.limbo; block; block = block->next)
		left++;
	return left;
}

/* --- collecting -------------------------------------------------------------------------------------------------- */

/* Returns the link to the name of a thread, or the link where it would be inserted. */
static struct recorder_name **session_find_name(int64_t tid)
{
	struct recorder_name **link = &ops_recorder.names[(uint64_t)tid % OPS_NAME_LISTS];

	while (*link && (*link)->tid != tid)
		link = &(*link)->next;
	return link;
}

/* Uses up a name set for the share's thread; it replaces the system's. */
static void session_read_name(struct ops_share *share)
{
	struct recorder_name **link = session_find_name(share->tid);
	struct recorder_name *name = *link;
	char *copy;

	if (!name)
		return;
	*link = name->next;
	copy = ops_alloc(name->size + 1);
	if (copy) {
		memcpy(copy, name->bytes, name->size);
		copy[name->size] = 0;
		ops_free(share->name);
		share->name = copy;
		share->name_size = name->size;
		share->named = true;
	}
	ops_free(name);
}

void ops_recorder_forget_names(void)
{
	for (size_t i = 0; i < OPS_NAME_LISTS; i++) {
		struct recorder_name *name;

		while ((name = ops_recorder.names[i])) {
			ops_recorder.names[i] = name->next;
			ops_free(name);
		}
	}
}

/* Returns whether the thread has records in the session in progress that have not been collected. */
static bool is_to_collect(const struct recorder_thread *thread)
{
	return ops_recorder.recording && thread->hot.epoch == ops_recorder.session && !thread->collected;
}

/* Moves or copies the contents of the thread's current block to the share. Returns false, with nothing changed, if out of memory
 * for the copy. */
static bool collect_block(struct recorder_thread *thread, struct ops_share *share, bool leaving)
{
	struct ops_block *block = thread->hot.block;
	struct ops_block *copy;

	if (!ops_block_count(block))
		return true;
	/* A block in a recording file is not replaced, because the file must keep its contents. */
	copy = leaving && (ops_block_open(block) || ops_pool_is_in_file(block)) ? NULL : ops_block_pack(block);
	if (copy) {
		ops_share_append(share, copy);
		if (leaving)
			ops_recorder_refund(OPS_BLOCK_BYTES - copy->bytes);
	} else if (leaving) {
		ops_recorder_append(share, block);
		thread->hot.block = NULL;
	} else {
		return false;
	}
	return true;
}

/* Moves the thread's share of the session in progress to the recording. */
static void hand_over(struct recorder_thread *thread)
{
	struct ops_recording *recording = ops_recorder.recording;
	struct ops_share *share = thread->share;

	if (!is_to_collect(thread))
		return;
	thread->collected = true;
	recording->lost += __atomic_load_n(&thread->hot.lost, __ATOMIC_RELAXED);
	if (!share)
		return;
	pthread_mutex_lock(&thread->names_lock); /* the thread may be interning */
	thread->share = NULL;
	pthread_mutex_unlock(&thread->names_lock);
	share->ended = true;
	share->torch_number = __atomic_load_n(&thread->hot.torch_number, __ATOMIC_RELAXED);
	session_read_name(share);
	share->next = recording->shares;
	recording->shares = share;
	recording->share_count++;
	recording->slot_count += share->slot_count;
}

bool ops_recorder_collect(struct recorder_thread *thread, bool leaving)
{
	struct ops_block *block = thread->hot.block;

	if (!is_to_collect(thread))
		return true;
	if (thread->share && block && block->epoch == ops_recorder.session && !collect_block(thread, thread->share, leaving))
		return false;
	hand_over(thread);
	return true;
}

void ops_recorder_drop_ring(void)
{
	ops_ring_free(ops_recorder.ring);
	ops_recorder.ring = NULL;
	__atomic_store_n(&ops_recorder.ring_session, 0, __ATOMIC_RELAXED);
}

/* --- lifetime ---------------------------------------------------------------------------------------------------- */

/* Assigns `recording` to a new session, which has not started yet. Returns its number; 0 if a session is in progress. */
static uint64_t open_session(struct ops_recording *recording, uint64_t max_bytes)
{
	uint64_t session = 0;

	pthread_mutex_lock(&ops_recorder.lock);
	if (!ops_recorder.session) {
		session = ++ops_recorder.last_session;
		recording->epoch = session;
		ops_recorder.session = session;
		ops_recorder.recording = recording;
		ops_recorder.max_bytes = max_bytes;
		ops_recorder.last_block = ops_recorder.observer_blocks = 0;
		ops_recorder.bytes = ops_recorder_sweep() * OPS_BLOCK_BYTES;
		__atomic_store_n(&ops_recorder.full, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&ops_recorder.lost_nowhere, 0, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	return session;
}

/* Stops all recording of threads. The lock must be held. */
static void end_recording(struct ops_recording *recording)
{
	__atomic_store_n(&ops_recorder_epoch, 0, __ATOMIC_RELEASE);
	if (recording->stop.ticks == 0)
		recording->stop = ops_clock_pair_now();
}

/* Collects the records of all threads; the lock must be held. Returns false if out of memory; the next call collects the rest. */
static bool collect_all(void)
{
	bool complete = true;

	for (struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next)
		complete = ops_recorder_collect(thread, false) && complete;
	return complete;
}

/* Ends the session in progress, of which everything has been collected; the lock must be held. Returns its recording, which the
 * caller owns. */
static struct ops_recording *close_session(void)
{
	struct ops_recording *recording = ops_recorder.recording;

	for (struct ops_share *share = recording->shares; share; share = share->next)
		if (!share->named) /* the thread ended before it was named */
			session_read_name(share);
	recording->lost += __atomic_load_n(&ops_recorder.lost_nowhere, __ATOMIC_RELAXED);
	if (ops_recorder.ring)
		ops_ring_finish(ops_recorder.ring, recording);
	ops_recorder_drop_ring();
	ops_recorder_forget_names();
	ops_recorder_sweep();
	ops_recorder.session = 0;
	ops_recorder.recording = NULL;
	ops_spill_stop(recording->spill);
	return recording;
}

/* Returns false if out of memory. */
static bool session_start_spill(struct ops_recording *recording, const struct ops_record_options *options)
{
	recording->spill = ops_spill_new(&(struct ops_spill_options){
		.path = options->spill_path,
		.keep = options->keep_spill,
		.is_ring = options->ring,
		.args_are_inputs = recording->args_are_inputs,
		.session = recording->epoch,
		.start = recording->start,
	});
	return recording->spill != NULL;
}

/* Makes the session keep only its last part. Returns false if out of memory. */
static bool session_start_ring(uint64_t session, uint64_t keep_ns)
{
	struct ops_ring *ring = ops_ring_new(keep_ns);

	pthread_mutex_lock(&ops_recorder.lock);
	ops_recorder.ring = ring;
	__atomic_store_n(&ops_recorder.ring_session, ring ? session : 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&ops_recorder.lock);
	return ring != NULL;
}

enum ops_code ops_session_spill_problem(const struct ops_session *session, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	pthread_mutex_lock(&ops_recorder.lock);
	if (is_current(session))
		code = ops_spill_problem(ops_recorder.recording->spill, error);
	pthread_mutex_unlock(&ops_recorder.lock);
	return code;
}

enum ops_code ops_recorder_open_reader(const struct ops_session *session, int *ret_fd, struct ops_error *error)
{
	enum ops_code code;

	pthread_mutex_lock(&ops_recorder.lock);
	if (is_current(session))
		code = ops_spill_open_reader(ops_recorder.recording->spill, ret_fd, error);
	else
		code = ops_fault(error, OPS_STATE, "the session is not running: it was stopped, or belongs to the parent process");
	pthread_mutex_unlock(&ops_recorder.lock);
	return code;
}

enum ops_code ops_session_start(const struct ops_record_options *options, struct ops_session **ret_session,
                                struct ops_error *error)
{
	struct ops_record_options given;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);
	uint64_t max_bytes = given.max_bytes ? given.max_bytes : ops_usable_memory() / 4;
	struct ops_recording *recording;
	uint64_t session;

	if (code)
		return code;
	if (!ops_recorder_init())
		return ops_fault(error, OPS_STATE, "cannot start a session: all thread keys of the process are in use");
	recording = ops_alloc_zeroed(1, sizeof(*recording));
	if (!recording)
		return ops_fault_memory(error);
	session = open_session(recording, max_bytes);
	if (!session) {
		ops_free(recording);
		return ops_fault(error, OPS_BUSY, "cannot start a session: another one is recording");
	}
	recording->args_are_inputs = given.args_are_inputs;
	recording->start = ops_clock_pair_now();
	if (((given.spill_path || given.ring) && !session_start_spill(recording, &given)) ||
	    (given.ring && !session_start_ring(session, given.ring_ns))) {
		ops_session_discard(handle_of(session));
		return ops_fault_memory(error);
	}
	if (given.prefault_bytes && !ops_pool_prefault(given.prefault_bytes < max_bytes ? given.prefault_bytes : max_bytes)) {
		ops_session_discard(handle_of(session));
		return ops_fault_memory(error);
	}
	recording->start = ops_clock_pair_now();
	*ret_session = handle_of(session);
	ops_session_resume(*ret_session);
	return OPS_OK;
}

static void set_recording(const struct ops_session *handle, bool on)
{
	pthread_mutex_lock(&ops_recorder.lock);
	if (is_current(handle) && !(on && ops_recorder.recording->stop.ticks)) /* pairs with the acquire load in ops_collector_epoch */
		__atomic_store_n(&ops_recorder_epoch, on ? ops_recorder.session : 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ops_recorder.lock);
}

void ops_session_pause(struct ops_session *session)
{
	set_recording(session, false);
}

void ops_session_resume(struct ops_session *session)
{
	set_recording(session, true);
}

void ops_session_end_window(struct ops_session *session)
{
	pthread_mutex_lock(&ops_recorder.lock);
	if (is_current(session) && ops_recorder.recording->stop.ticks == 0)
		ops_recorder.recording->stop = ops_clock_pair_now();
	pthread_mutex_unlock(&ops_recorder.lock);
}

enum ops_code ops_session_stop(struct ops_session *session, struct ops_recording **ret_recording, struct ops_error *error)
{
	struct ops_recording *recording = NULL;
	bool current, complete = true;

	pthread_mutex_lock(&ops_recorder.lock);
	current = is_current(session);
	if (current) {
		end_recording(ops_recorder.recording);
		complete = ops_recording_has_memory(ops_recorder.bytes * 2) && collect_all();
	}
	if (current && complete) {
		recording = close_session();
		ops_pool_trim();
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	if (!complete)
		return ops_fault_context(error, ops_fault_memory(error), "cannot stop the session");
	if (!recording)
		return ops_fault(error, OPS_STATE, "the session is not running: it was stopped, or belongs to the parent process");
	*ret_recording = recording;
	return OPS_OK;
}

void ops_session_discard(struct ops_session *session)
{
	struct ops_recording *recording = NULL;

	pthread_mutex_lock(&ops_recorder.lock);
	if (is_current(session)) {
		end_recording(ops_recorder.recording);
		for (struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next)
			hand_over(thread); /* without its current block, which the thread keeps */
		recording = close_session();
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	ops_recording_free(recording);
}

void ops_thread_name(int64_t tid, const char *bytes, size_t size)
{
	struct recorder_name **link, *name, *old = NULL;

	if (size > SIZE_MAX - sizeof(*name) || !(name = ops_alloc(sizeof(*name) + size)))
		return; /* the thread keeps the system's name */
	name->tid = tid ? tid : syscall(SYS_gettid);
	name->size = size;
	if (size)
		memcpy(name->bytes, bytes, size);
	pthread_mutex_lock(&ops_recorder.lock);
	if (ops_recorder.session) {
		link = session_find_name(name->tid);
		old = *link;
		name->next = old ? old->next : NULL;
		if (!old || old->size != size || memcmp(old->bytes, bytes, size) != 0)
			ops_spill_thread_name(ops_recorder.session, name->tid, (struct ops_string){bytes, size});
		*link = name;
		name = NULL;
	}
	pthread_mutex_unlock(&ops_recorder.lock);
	ops_free(old);
	ops_free(name);
}

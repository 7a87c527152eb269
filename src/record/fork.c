/* SPDX-License-Identifier: Apache-2.0
 *
 * fork() during a recording. The parent is not affected. The child has only the forking thread: the session, its records and the
 * other threads are dropped, and the child can start another session. Ranges that are open at the fork may be closed in the
 * child, so their blocks are kept in limbo; blocks in the parent's recording file are replaced by copies.
 */
#include "record/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "record/pool.h"
#include "record/spill.h"

/* Ensures that no other thread is changing the recorder's data at the moment of the fork. */
static void fork_before(void)
{
	pthread_mutex_lock(&ops_recorder.lock);
	for (struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next)
		pthread_mutex_lock(&thread->names_lock);
	ops_spill_lock();
	ops_pool_lock();
}

static void unlock_all(void)
{
	ops_pool_unlock();
	ops_spill_unlock();
	for (struct recorder_thread *thread = ops_recorder.threads; thread; thread = thread->next)
		pthread_mutex_unlock(&thread->names_lock);
	pthread_mutex_unlock(&ops_recorder.lock);
}

/* Moves all blocks to limbo. Whether they have open slots is checked later, because the child may be about to exec. */
static void drop_share(struct ops_share *share)
{
	if (!share)
		return;
	ops_share_join_held(share);
	if (share->last) {
		share->last->next = ops_recorder.limbo;
		ops_recorder.limbo = share->blocks;
	}
	ops_share_free(share);
}

static void drop_thread(struct recorder_thread *thread)
{
	struct ops_block *block = thread->hot.block;

	if (block) {
		block->next = ops_recorder.limbo;
		ops_recorder.limbo = block;
	}
	ops_recorder_unlink(thread);
	ops_free(thread);
}

static void fork_drop_session(void)
{
	struct ops_recording *recording = ops_recorder.recording;
	struct ops_share *share;

	ops_recorder.session = 0;
	ops_recorder.recording = NULL;
	ops_recorder_forget_names();
	ops_recorder_drop_ring();
	while (recording && (share = recording->shares)) {
		recording->shares = share->next;
		drop_share(share);
	}
	if (recording)
		ops_spill_forget(recording->spill);
	ops_free(recording);
}

static void in_child(void)
{
	struct recorder_thread *self = ops_this_thread;
	struct recorder_thread *next;

	ops_pool_leave_files();
	unlock_all();
	__atomic_store_n(&ops_recorder_epoch, 0, __ATOMIC_RELEASE);
	for (struct recorder_thread *thread = ops_recorder.threads; thread; thread = next) {
		next = thread->next;
		drop_share(thread->share);
		thread->share = NULL;
		if (thread != self)
			drop_thread(thread);
	}
	if (self)
		self->tid = syscall(SYS_gettid);
	fork_drop_session();
}

int ops_recorder_at_fork(void)
{
	return pthread_atfork(fork_before, unlock_all, in_child);
}

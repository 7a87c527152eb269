/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder's one state, shared by session.c (its life), thread.c (the threads that record) and fork.c.
 *
 *     recorder ── threads ─▶ recorder_thread ─ hot.block ─▶ the block being filled; stays the thread's over sessions
 *        │                        └─ share ─▶ names and filled blocks of the session in progress
 *        ├── recording ─▶ shares of threads that ended already; at the stop all shares move here
 *        └── limbo ─▶ unneeded blocks that still have an open slot
 *
 * A thread writes to its block without a lock at any time, also just after a stop that it has not seen. So no other
 * thread ever removes a thread's current block: the stop copies its published part.
 */
#ifndef OPS_RECORD_RECORDER_H
#define OPS_RECORD_RECORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

#include "record/recording.h"

struct recorder_thread {
	struct ops_thread hot; /* first: a pointer to it is a pointer to this */
	struct recorder_thread *previous;
	struct recorder_thread *next;
	int64_t tid;
	uint32_t noted_torch_number; /* in the session's recording file */
	bool joined;                /* a share was made for hot.epoch; only the thread itself looks */
	bool collected;             /* what it recorded in hot.epoch was collected; with recorder.lock */
	struct ops_share *share;    /* NULL unless part of the session in progress */
	pthread_mutex_t names_lock; /* what interning changes in the share; inside recorder.lock or alone */
};

/* A name given with ops_thread_name. There may be as many as threads have started while a session records. */
#define OPS_NAME_LISTS 256u
struct recorder_name {
	struct recorder_name *next;
	int64_t tid;
	size_t size;
	char bytes[];
};

struct recorder {
	pthread_mutex_t lock; /* for all below but the last three; taken before a names_lock and before the pool's */
	uint64_t session;     /* number of the session in progress, paused ones too; 0 none */
	uint64_t last_session;
	uint64_t max_bytes;
	uint64_t bytes; /* blocks and texts of the session in progress */
	struct ops_recording *recording; /* of the session in progress; its stop is set once recording has ended */
	struct recorder_name *names[OPS_NAME_LISTS]; /* each by the low bits of its thread id */
	struct recorder_thread *threads;
	struct ops_block *limbo;
	struct ops_ring *ring; /* of a session that keeps its last part alone (ring.h); else NULL */
	uint32_t last_thread;
	uint32_t last_block; /* that threads began to fill in the session in progress */
	/* Relaxed atomics that order nothing. */
	uint64_t full;         /* the session that has no room for another block, 0 none: saves the lock */
	uint64_t ring_session; /* the session in progress if it has a ring, else 0 */
	uint64_t lost_nowhere; /* records of threads that could not be registered */
};
extern struct recorder ops_recorder;

/* The number of the session being recorded at this moment, else 0: what ops_collector.epoch points to. Release stores
 * under the lock; alone in its cache line, for every thread reads it all the time. */
extern uint64_t ops_recorder_epoch;

/* Done once, by whoever comes first; false when the system has no thread key left. */
bool ops_recorder_init(void);

/* What ops_collector_get gives; `tsc` is known once a session has started. */
extern struct ops_collector ops_recorder_collector;

/* The calling thread, NULL when it is not registered. */
extern __thread struct recorder_thread *ops_this_thread;

/* Registers the calling thread. NULL when memory is out, which counts one lost record. */
struct ops_thread *ops_recorder_register(void);

static inline struct ops_thread *ops_recorder_thread(void)
{
	return OPS_LIKELY(ops_this_thread) ? &ops_this_thread->hot : ops_recorder_register();
}

/* A descriptor of the running session's recording file, for a reader, who closes it. OPS_STATE if the session does not run or has no
 * file. */
enum ops_code ops_recorder_open_reader(const struct ops_session *session, int *ret_fd, struct ops_error *error);

/* With recorder.lock held: */

/* Takes `bytes` from the session's budget; false when that passes the ceiling. */
bool ops_recorder_charge(uint64_t bytes);
void ops_recorder_refund(uint64_t bytes);
/* Moves what the thread recorded in the session in progress to the recording. A thread that is `leaving` may lose its
 * block with it, and then has none. False, and nothing moved, when memory is out, which cannot happen to one that leaves. */
bool ops_recorder_collect(struct recorder_thread *thread, bool leaving);
/* Adds a block that its thread has filled to the share, and to the ring if there is one. */
void ops_recorder_append(struct ops_share *share, struct ops_block *block);
/* Gives a block to the pool, or to limbo while a slot in it is open. NULL is allowed. */
void ops_recorder_retire(struct ops_block *block);
/* Gives the blocks in limbo whose slots are closed by now to the pool. The number of those left. */
size_t ops_recorder_sweep(void);
/* Frees the ring. */
void ops_recorder_drop_ring(void);
void ops_recorder_unlink(struct recorder_thread *thread);
void ops_recorder_forget_names(void);

/* live.c, with recorder.lock held: a ring has put the block, of the session in progress, out of its place among its share's; or it is
 * about to be used again. */
void ops_live_move_block(const struct ops_block *block);
void ops_live_drop_block(const struct ops_block *block);

/* fork.c: prepares for fork(); 0 or an errno. */
int ops_recorder_at_fork(void);

/* share.c */
void ops_share_append(struct ops_share *share, struct ops_block *block);
/* Frees the share; its blocks are somebody else's by now. */
void ops_share_free(struct ops_share *share);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the recorder, shared by session.c (sessions), thread.c (recording threads) and fork.c.
 *
 *     recorder ── threads ─▶ recorder_thread ─ hot.block ─▶ the block being filled; the thread keeps it across sessions
 *        │                        └─ share ─▶ names and filled blocks of the session in progress
 *        ├── recording ─▶ shares of threads that ended already; at the stop all shares move here
 *        └── limbo ─▶ unneeded blocks that still have an open slot
 *
 * A thread writes to its block without a lock at any time, even just after a stop that it has not seen. So no other thread ever
 * removes a thread's current block: the stop copies its published part.
 */
#ifndef OPS_RECORD_RECORDER_H
#define OPS_RECORD_RECORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>

#include "record/recording.h"

struct recorder_thread {
	struct ops_thread hot; /* first member, so that a pointer to it is a pointer to the struct */
	struct recorder_thread *previous;
	struct recorder_thread *next;
	int64_t tid;
	uint32_t noted_torch_number; /* as written to the session's recording file */
	bool joined;                /* a share was created for hot.epoch; used only by the thread itself */
	bool is_observer;           /* its records do not count as progress; protected by recorder.lock */
	bool collected;             /* the thread's records of hot.epoch were collected; protected by recorder.lock */
	struct ops_share *share;    /* NULL unless the thread is part of the session in progress */
	pthread_mutex_t names_lock; /* protects what interning changes in the share; taken inside recorder.lock or alone */
};

/* A name set with ops_thread_name. There may be as many as threads have started during the session. */
#define OPS_NAME_LISTS 256u
struct recorder_name {
	struct recorder_name *next;
	int64_t tid;
	size_t size;
	char bytes[];
};

struct recorder {
	pthread_mutex_t lock; /* protects the following members, except for the last three; taken before a names_lock and before
	                       * the pool's lock */
	uint64_t session;     /* number of the session in progress, running or paused; 0: none */
	uint64_t last_session;
	uint64_t max_bytes;
	uint64_t bytes; /* size of blocks and texts of the session in progress */
	struct ops_recording *recording; /* of the session in progress; its stop is set when recording has ended */
	struct recorder_name *names[OPS_NAME_LISTS]; /* indexed by the low bits of the thread id */
	struct recorder_thread *threads;
	struct ops_block *limbo;
	struct ops_ring *ring; /* of a session that keeps only its last part (ring.h); else NULL */
	uint32_t last_thread;
	uint32_t last_block; /* number of the last block that a thread began to fill in the session in progress */
	uint32_t observer_blocks; /* blocks among them that observers began to fill */
	/* Relaxed atomics that order nothing. */
	uint64_t full;         /* the session that has no room for another block, 0: none; avoids taking the lock */
	uint64_t ring_session; /* the session in progress if it has a ring, else 0 */
	uint64_t lost_nowhere; /* records of threads that could not be registered */
};
extern struct recorder ops_recorder;

/* The number of the session being recorded now, else 0: the target of ops_collector.epoch. Release stores under the lock. Alone
 * in its cache line, because every thread reads it continually. */
extern uint64_t ops_recorder_epoch;

/* Initialises the recorder once, on the first call. Returns false if the system has no thread key left. */
bool ops_recorder_init(void);

/* The result of ops_collector_get; `tsc` is known once a session has started. */
extern struct ops_collector ops_recorder_collector;

/* The calling thread; NULL if it is not registered. */
extern __thread struct recorder_thread *ops_this_thread;

/* Registers the calling thread. Returns NULL if out of memory, which counts one lost record. */
struct ops_thread *ops_recorder_register(void);

static inline struct ops_thread *ops_recorder_thread(void)
{
	return OPS_LIKELY(ops_this_thread) ? &ops_this_thread->hot : ops_recorder_register();
}

/* Returns a descriptor of the running session's recording file, which the caller closes. OPS_STATE if the session is not running
 * or has no file. */
enum ops_code ops_recorder_open_reader(const struct ops_session *session, int *ret_fd, struct ops_error *error);

/* The following functions require recorder.lock: */

/* Takes `bytes` from the session's budget. Returns false if that exceeds the limit. */
bool ops_recorder_charge(uint64_t bytes);
void ops_recorder_refund(uint64_t bytes);
/* Moves what the thread recorded in the session in progress to the recording. The block of a `leaving` thread may be moved with
 * them; then the thread has none. Returns false, with nothing moved, if out of memory, which cannot happen for a leaving thread. */
bool ops_recorder_collect(struct recorder_thread *thread, bool leaving);
/* Appends a block that its thread has filled to the share, and to the ring if there is one. */
void ops_recorder_append(struct ops_share *share, struct ops_block *block);
/* Returns a block to the pool, or moves it to limbo while it has an open slot. NULL is allowed. */
void ops_recorder_retire(struct ops_block *block);
/* Returns blocks in limbo whose slots have been closed to the pool. Returns the number of remaining ones. */
size_t ops_recorder_sweep(void);
/* Frees the ring. */
void ops_recorder_drop_ring(void);
void ops_recorder_unlink(struct recorder_thread *thread);
void ops_recorder_forget_names(void);

/* live.c, with recorder.lock held: a ring has moved the block, of the session in progress, out of the order of its share, or is
 * about to reuse it. */
void ops_live_move_block(const struct ops_block *block);
void ops_live_drop_block(const struct ops_block *block);

/* fork.c: prepares for fork(). Returns 0 or an errno. */
int ops_recorder_at_fork(void);

/* share.c */
void ops_share_append(struct ops_share *share, struct ops_block *block);
/* Frees the share, but not its blocks, which have other owners by now. */
void ops_share_free(struct ops_share *share);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The recording file of a session: its blocks lie in a shared mapping of the file, and what explains them is written to a log
 * there as it becomes known, so that a process that is killed leaves a recording behind (docs/reference/recording-format.md).
 *
 * Writing costs nothing where a slot is written: blocks come from another place, and the log is for what is met for the first
 * time. A file that cannot be made or cannot grow is not a failure of the recording, which goes on in memory: the problem is
 * kept for those who ask.
 *
 * The log may be written from any thread, under one lock, which is taken inside recorder.lock and outside the pool's.
 */
#ifndef OPS_RECORD_SPILL_H
#define OPS_RECORD_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>

#include "base/clock.h"

struct ops_spill;

struct ops_spill_options {
	const char *path;
	bool keep; /* the file stays when the recording is freed */
	bool args_are_inputs;
	bool is_ring; /* the file is used again from its beginning where it cannot grow; without a path it has no name */
	uint64_t session;
	struct ops_clock_pair start;
};

/* Makes the file, and lets blocks come from it and the functions below write to it. NULL when memory is out. */
struct ops_spill *ops_spill_new(const struct ops_spill_options *options);
/* The session has stopped: the file does not change any more. */
void ops_spill_stop(struct ops_spill *spill);
/* Frees it and, unless it is to be kept, removes the file. NULL is allowed. */
void ops_spill_free(struct ops_spill *spill);
/* The same in a child of fork, to which the file does not belong. */
void ops_spill_forget(struct ops_spill *spill);
/* A descriptor of the file, for a reader, who closes it. OPS_STATE without a file. */
enum ops_code ops_spill_open_reader(const struct ops_spill *spill, int *ret_fd, struct ops_error *error);
/* OPS_OK, or why the file does not have all that was recorded. */
enum ops_code ops_spill_problem(const struct ops_spill *spill, struct ops_error *error);

/* The session whose file is being written, 0 none. */
extern uint64_t ops_spill_session;
static inline uint64_t ops_spill_current(void)
{
	return __atomic_load_n(&ops_spill_session, __ATOMIC_RELAXED);
}
static inline bool ops_spill_is_on(uint64_t session)
{
	return session && ops_spill_current() == session;
}

/* The machine's boot, as text; empty when it is unknown. */
void ops_spill_boot_id(char out[40]);

/* The following write to the log if that is the session whose file is being written, else they do nothing. */

void ops_spill_thread(uint64_t session, uint32_t number, uint32_t torch_number, int64_t tid, struct ops_string name);
void ops_spill_thread_name(uint64_t session, int64_t tid, struct ops_string name);
/* `second` has no bytes (NULL) if there is none. */
void ops_spill_name(uint64_t session, uint32_t thread, uint32_t id, struct ops_string first, struct ops_string second);
/* A thread has begun to fill the block: notes it if that is none of the file's, and from time to time the clocks, in case they
 * drift apart. */
void ops_spill_block(uint64_t session, const struct ops_block *block);

/* A ring has used a block again: its window begins here, and `dropped` records are gone. NULL is allowed. */
void ops_spill_window(struct ops_spill *spill, uint64_t window_ticks, uint64_t dropped);

/* Around fork. */
void ops_spill_lock(void);
void ops_spill_unlock(void);

#endif

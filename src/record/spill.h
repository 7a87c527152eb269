/* SPDX-License-Identifier: Apache-2.0
 *
 * The recording file of a session: its blocks are in a shared mapping of the file, and the data needed to interpret them are
 * written to a log in it as they become known, so that a killed process leaves a recording behind
 * (docs/reference/recording-format.md).
 *
 * Writing a slot costs no more than without a file: only the source of blocks differs, and the log is written when something
 * occurs for the first time. If the file cannot be created or cannot grow, recording continues in memory, and ops_spill_problem
 * returns the reason.
 *
 * Any thread may write to the log, under one lock, which is taken inside recorder.lock and outside the pool's lock.
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
	bool keep; /* keep the file when the recording is freed */
	bool args_are_inputs;
	bool is_ring; /* the file is reused from its beginning if it cannot grow; without a path it has no name */
	uint64_t session;
	struct ops_clock_pair start;
};

/* Creates the file, makes it the source of blocks, and enables the functions below. Returns NULL if out of memory. */
struct ops_spill *ops_spill_new(const struct ops_spill_options *options);
/* Called after the session has stopped: the file does not change any more. */
void ops_spill_stop(struct ops_spill *spill);
/* Frees the object and removes the file, unless it is kept. NULL is allowed. */
void ops_spill_free(struct ops_spill *spill);
/* Frees the object in a forked child, to which the file does not belong. */
void ops_spill_forget(struct ops_spill *spill);
/* Returns a descriptor of the file, which the caller closes. OPS_STATE without a file. */
enum ops_code ops_spill_open_reader(const struct ops_spill *spill, int *ret_fd, struct ops_error *error);
/* Returns OPS_OK, or why the file does not contain the complete recording. */
enum ops_code ops_spill_problem(const struct ops_spill *spill, struct ops_error *error);

/* The session whose file is being written; 0: none. */
extern uint64_t ops_spill_session;
static inline uint64_t ops_spill_current(void)
{
	return __atomic_load_n(&ops_spill_session, __ATOMIC_RELAXED);
}
static inline bool ops_spill_is_on(uint64_t session)
{
	return session && ops_spill_current() == session;
}

/* Returns the id of the machine's current boot, as text; empty if unknown. */
void ops_spill_boot_id(char out[40]);

/* The following functions write to the log if `session` is the one whose file is being written; else they do nothing. */

void ops_spill_thread(uint64_t session, uint32_t number, uint32_t torch_number, int64_t tid, struct ops_string name);
void ops_spill_thread_name(uint64_t session, int64_t tid, struct ops_string name);
/* `second.bytes` is NULL if there is no second text. */
void ops_spill_name(uint64_t session, uint32_t thread, uint32_t id, struct ops_string first, struct ops_string second);
/* Called when a thread has begun to fill the block. Records a block that is not in the file and, from time to time, the clocks,
 * in case they drift apart. */
void ops_spill_block(uint64_t session, const struct ops_block *block);

/* Called when a ring has reused a block: its window begins at `window_ticks`, and `dropped` records are gone. NULL is allowed. */
void ops_spill_window(struct ops_spill *spill, uint64_t window_ticks, uint64_t dropped);

/* Called around fork. */
void ops_spill_lock(void);
void ops_spill_unlock(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/record.h: records ranges, counters and instants of a C or C++ program. Python and torch record through the same
 * session.
 *
 *     ops_session_start(NULL, &session, &error);
 *     struct ops_range range = ops_range_begin("load", 4);
 *     …
 *     ops_range_end(range);
 *     ops_session_stop(session, &recording, &error);
 *     ops_trace_from_recording(recording, &trace, &error);     // opstrobe/read.h; frees the recording
 *     ops_write_chrome_json(trace, "trace.json", NULL, &error); // opstrobe/write.h
 *
 * One session at a time records in a process. All functions may be called on any thread. Ranges, counters and instants may be
 * recorded at any time: without a session each costs a load and a branch. A child of fork() starts without a session.
 */
#ifndef OPSTROBE_RECORD_H
#define OPSTROBE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ops_session;
struct ops_recording;
struct ops_slot;

/* Zero values select the defaults, except for `size`. */
struct ops_record_options {
	size_t size;        /* sizeof(struct ops_record_options) */
	uint64_t max_bytes; /* limit of the recording's memory. Records beyond it are counted as lost. Default: a quarter of the
	                     * memory of the machine or control group, or of the remaining address space. Threads allocate 64 KiB
	                     * at a time */
	uint64_t prefault_bytes; /* memory to touch before the first record, so that recording causes no page faults; default 0 */
	/* A recording file to write during recording, which ops_trace_recover (opstrobe/read.h) reads if the process is killed.
	 * NULL: none. It is removed when the recording is freed, discarded or made into a trace. If it cannot be created or
	 * cannot grow, recording continues without it: see ops_session_spill_problem. */
	const char *spill_path;
	bool keep_spill;         /* keep the file */
	bool args_are_inputs;    /* also record the argument text of a range as one of its inputs, of unknown shape, as torch
	                          * shows it */
	/* Keep only the last part of the recording: when its memory is used up, new records replace the oldest ones, 64 KiB at a
	 * time. Records older than `ring_ns` nanoseconds are dropped earlier; 0: no limit of age. The records are in a recording
	 * file, which has no name if no path is given. */
	uint64_t ring_ns;
	bool ring;
};

/* Starts recording. `options` may be NULL. OPS_BUSY if a session is running or paused, OPS_STATE if the process has no thread key
 * left, OPS_NO_MEMORY. Handles are never reused: calls with the handle of an ended session do nothing or fail. */
enum ops_code ops_session_start(const struct ops_record_options *options, struct ops_session **ret_session,
                                struct ops_error *error);

/* Returns OPS_OK, or the reason that the recording file is incomplete: it could not be created, or the disk is full. Returns
 * OPS_OK for a session that has no file or has stopped. */
enum ops_code ops_session_spill_problem(const struct ops_session *session, struct ops_error *error);

/* Pauses and resumes recording. Idempotent. Open ranges can end while the session is paused. */
void ops_session_pause(struct ops_session *session);
void ops_session_resume(struct ops_session *session);

/* Ends recording and returns what was recorded; other threads may record meanwhile. The caller owns `*ret_recording`. OPS_STATE
 * if the session was stopped before or belongs to the parent process. OPS_NO_MEMORY: recording has ended, but nothing is lost;
 * call again when memory is available, or call ops_session_discard. */
enum ops_code ops_session_stop(struct ops_session *session, struct ops_recording **ret_recording, struct ops_error *error);

/* Ends recording and frees what was recorded. Does nothing if the session is not running. Requires no memory. */
void ops_session_discard(struct ops_session *session);

/* Frees a recording that was not passed to ops_trace_from_recording. NULL is allowed. */
void ops_recording_free(struct ops_recording *recording);

/* An open range. All members zero: nothing is recorded. */
struct ops_range {
	struct ops_slot *slot;
};

/* Begins a range on the calling thread. The name is copied; it may contain any bytes. */
struct ops_range ops_range_begin(const char *name, size_t name_bytes);
/* Like ops_range_begin, with an argument text that viewers show with the range. */
struct ops_range ops_range_begin_args(const char *name, size_t name_bytes, const char *args, size_t args_bytes);
/* Ends a range, on any thread, even after its session has stopped. Call it exactly once for each range. A range that is open when
 * its session stops is recorded as unfinished and ends with the session. */
void ops_range_end(struct ops_range range);

/* Records an instant, or a value that viewers draw as a curve. Names are copied. */
void ops_instant(const char *name, size_t name_bytes);
void ops_counter(const char *name, size_t name_bytes, double value);

/* Names a thread in the trace of the session. `tid` is a Linux thread id of this process, or 0 for the calling thread. The name is
 * copied. Does nothing without a session. */
void ops_thread_name(int64_t tid, const char *name, size_t name_bytes);

/* Returns the clock of the records: "tsc", or "monotonic: " and the reason that the TSC is not used. Static. */
const char *ops_recording_clock(void);

/* Returns whether a session is recording now. */
bool ops_recording_active(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/record.h: record a program's own ranges, counters and instants. For C and C++ programs; Python and torch
 * record through the same session.
 *
 *     struct ops_session *session = NULL;
 *     struct ops_recording *recording = NULL;
 *     ops_session_start(NULL, &session, &error);
 *     struct ops_range r = ops_range_begin("load", 4);
 *     …
 *     ops_range_end(r);
 *     ops_session_stop(session, &recording, &error);
 *     ops_trace_from_recording(recording, &trace, &error);     // opstrobe/read.h; frees the recording
 *     ops_write_chrome_json(trace, "trace.json", NULL, &error); // opstrobe/write.h
 *
 * One session records at a time in a process; start answers OPS_BUSY while another does. A session may be started,
 * paused and stopped from any thread. Ranges, counters and instants may be recorded from any thread at any time: with
 * no session they cost a load and a branch. A child of fork() starts with no session.
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

/* Zero means default everywhere. */
struct ops_record_options {
	uint64_t max_bytes; /* ceiling of all blocks and names together; default a quarter of the memory of the machine or
	                     * control group, or of the address space left. Past it records are counted as lost. A thread takes 64 KiB at a time. */
	uint64_t prefault_bytes; /* memory to have ready before the first record; default 0 */
	/* A file to make, which holds the recording while it is made, so that a process that is killed leaves it behind for
	 * ops_trace_recover (opstrobe/read.h). NULL: none. It is removed when the recording is freed, read into a trace or
	 * discarded. A file that cannot be made or cannot grow leaves the recording as it is without: ops_session_spill_problem. */
	const char *spill_path;
	bool keep_spill;         /* the file stays: it is the caller's to remove */
	bool args_are_inputs;    /* the argument text of a range is also an input of it, of unknown shape, as torch shows it;
	                          * default no */
};

/* Starts recording. `options` may be NULL. OPS_BUSY when a session runs, paused ones included; OPS_NO_MEMORY; OPS_STATE
 * when the process has no thread key left. The handle is never reused: what is done with one that is over does nothing
 * or fails. */
enum ops_code ops_session_start(const struct ops_record_options *options, struct ops_session **ret_session,
                                struct ops_error *error);

/* OPS_OK, or why the file of the session does not have all that was recorded: it could not be made, or the disk is full. OPS_OK also
 * for a session without a file and one that has stopped. */
enum ops_code ops_session_spill_problem(const struct ops_session *session, struct ops_error *error);

/* Suspends and resumes recording; idempotent, any thread. Open ranges close normally meanwhile. */
void ops_session_pause(struct ops_session *session);
void ops_session_resume(struct ops_session *session);

/* Ends recording, from any thread, while others record or not, and gives all that was recorded. OPS_STATE when that session was
 * stopped before, or belongs to the parent of this process. OPS_NO_MEMORY: recording has ended and nothing of it is lost; call
 * it again when there is memory, or ops_session_discard. The caller owns `*ret_recording`. */
enum ops_code ops_session_stop(struct ops_session *session, struct ops_recording **ret_recording, struct ops_error *error);

/* Ends recording and drops what was recorded. Does nothing with a session that is not running. Needs no memory. */
void ops_session_discard(struct ops_session *session);

/* Frees a recording that was not handed to ops_trace_from_recording. NULL is allowed. */
void ops_recording_free(struct ops_recording *recording);

/* An open range: what ops_range_begin gives and ops_range_end takes. All zero: nothing was recorded. */
struct ops_range {
	struct ops_slot *slot;
};

/* Opens a range named by `name_bytes` bytes (any bytes) on the calling thread; copied. */
struct ops_range ops_range_begin(const char *name, size_t name_bytes);
/* The same with an argument text, shown with the range. */
struct ops_range ops_range_begin_args(const char *name, size_t name_bytes, const char *args, size_t args_bytes);
/* Closes it, from any thread, also after the session stopped. Exactly once. A range not closed by the end of its session
 * is recorded as unfinished, ending with the session. */
void ops_range_end(struct ops_range range);

void ops_instant(const char *name, size_t name_bytes);
void ops_counter(const char *name, size_t name_bytes, double value);

/* Names a thread of this process (Linux thread id, 0 for the caller) in the session's trace; copied. Ignored while no
 * session runs. */
void ops_thread_name(int64_t tid, const char *name, size_t name_bytes);

/* Which clock times the records: "tsc", or "monotonic: " and why not the TSC. Static text. */
const char *ops_recording_clock(void);

/* Whether a session is recording at this moment. */
bool ops_recording_active(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

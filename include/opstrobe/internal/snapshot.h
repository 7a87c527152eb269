/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/snapshot.h: the last part of a recording of this or another process, even while it continues.
 *
 * A snapshot reads the recording file. It takes the recorder's lock only to find the file, so that recording threads never wait
 * for it, and it needs no Python.
 */
#ifndef OPSTROBE_SNAPSHOT_H
#define OPSTROBE_SNAPSHOT_H

#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#define OPS_RECORDING_SUFFIX ".oprec" /* file name suffix of recording files */

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a trace of what a running session recorded in the last `last_ns` nanoseconds before its last event, and since then (0: of
 * everything that it keeps), so that of a program that hangs it has what led to that. All threads end at the time of the call, and
 * events that are open then are unfinished. Events that were open at the start of the window start there (OPS_EVENT_CUT), and
 * allocations that existed then are listed first. Any thread. The caller owns one reference to `*ret_trace`. OPS_STATE if the session
 * is not running or has no recording file; OPS_BUSY if its ring is overwritten faster than it can be read. */
enum ops_code ops_session_snapshot(const struct ops_session *session, uint64_t last_ns, struct ops_trace **ret_trace,
                                   struct ops_error *error);

/* Like ops_trace_recover, but only for the last `last_ns` nanoseconds of the recording; 0: all. */
enum ops_code ops_trace_recover_last(const char *path, uint64_t last_ns, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error);

/* What a copy of a recording file holds. */
struct ops_recording_copy {
	uint64_t records; /* events and memory records */
	uint64_t dropped; /* older ones that a ring overwrote as intended */
	double seconds;   /* length of the recording in it; 0 if its process had ended */
	char black_box[416]; /* overhead of the black box as JSON, like the metadata `black_box`; empty: none */
};

/* Copies the recording file of a process, which may go on, so that ops_trace_read() of the copy returns what
 * ops_trace_recover() would return now. Much faster than writing a trace: nothing is decoded. OPS_BUSY as for
 * ops_session_snapshot(). */
enum ops_code ops_recording_copy(const char *path, const char *output, struct ops_recording_copy *ret_copy, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif

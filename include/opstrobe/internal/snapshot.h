/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/snapshot.h: the last part of a recording, also of one that goes on: of this process or of another one.
 *
 * A snapshot reads the recording file. It needs no lock of the recorder but to find the file, so that threads that record never wait
 * for it, and it needs no Python.
 */
#ifndef OPSTROBE_SNAPSHOT_H
#define OPSTROBE_SNAPSHOT_H

#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#define OPS_RECORDING_SUFFIX ".oprec" /* of the names of recording files */

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a trace of what a running session recorded in the last `last_ns` nanoseconds, 0: of all that it keeps. All threads end at the
 * moment of the call, and what was open then is unfinished. What was open when the window began is cut there (OPS_EVENT_CUT), and
 * allocations that lived then are listed first. Any thread. The caller owns one reference to `*ret_trace`. OPS_STATE if the session
 * does not run or has no recording file; OPS_BUSY if its ring is written over faster than it can be read. */
enum ops_code ops_session_snapshot(const struct ops_session *session, uint64_t last_ns, struct ops_trace **ret_trace,
                                   struct ops_error *error);

/* Like ops_trace_recover, of the last `last_ns` nanoseconds of the recording alone; 0: of all. */
enum ops_code ops_trace_recover_last(const char *path, uint64_t last_ns, struct ops_trace **ret_trace,
                                     struct ops_recovery *ret_recovery, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif

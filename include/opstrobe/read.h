/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/read.h: everything that makes a trace. Recordings now; trace files join here.
 */
#ifndef OPSTROBE_READ_H
#define OPSTROBE_READ_H

#include <opstrobe/error.h>
#include <opstrobe/record.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Builds the trace of a recording: converts ticks, sorts, interns, builds tree and links. Takes the recording and frees
 * it in every case, block by block while it goes, so that the peak stays near one copy. On OPS_NO_MEMORY nothing is
 * left behind. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_from_recording(struct ops_recording *take_recording, struct ops_trace **ret_trace,
                                       struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/read.h: everything that makes a trace: recordings, and trace files.
 */
#ifndef OPSTROBE_READ_H
#define OPSTROBE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/record.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Builds the trace of a recording: converts ticks, sorts, interns, builds tree and links. Frees the recording, block by block
 * while it goes, so that the peak stays near one copy. The caller owns one reference to `*ret_trace`.
 *
 * OPS_NO_MEMORY: the recording stays the caller's, who tries again when there is memory, or frees it. Nothing of it is lost: the
 * next attempt continues where this one failed. */
enum ops_code ops_trace_from_recording(struct ops_recording *recording, struct ops_trace **ret_trace, struct ops_error *error);

/* What a recording file says about the end of the recording. */
struct ops_recovery {
	int64_t pid;     /* of the process that recorded */
	bool is_running; /* it still does: the trace ends at this moment */
	bool is_stopped; /* the recording had come to its end */
	bool is_torn;    /* a part is missing or makes no sense: the file was cut short or written over */
	int end_errno;   /* why the file could not hold all of the recording, such as ENOSPC; 0: it does */
};

/* Reads a recording file (ops_record_options.spill_path), which a process left behind that was killed: every event whose end was
 * recorded, and those that were open as unfinished. The file stays as it is. OPS_CORRUPT if it is not a recording file, OPS_UNSUPPORTED
 * for one of another version or machine, OPS_IO with errno when it cannot be read. `ret_recovery` may be NULL. The caller owns one
 * reference to `*ret_trace`. */
enum ops_code ops_trace_recover(const char *path, struct ops_trace **ret_trace, struct ops_recovery *ret_recovery,
                                struct ops_error *error);

/* How far reading has come. */
struct ops_read_progress {
	uint64_t bytes; /* of the file, compressed as they may be */
	uint64_t bytes_total; /* 0: unknown, as of a pipe. When all are read, the events are yet to be put in order */
	uint64_t events;
	uint64_t notes; /* of what is not as it should be */
};

/* Zero means default. */
struct ops_read_options {
	/* Called from time to time; a non-zero answer cancels (OPS_STATE). NULL: never. */
	int (*progress)(void *context, const struct ops_read_progress *progress);
	void *progress_context;
};

/* Reads a trace file: Chrome JSON as torch.profiler of any age and Opstrobe write it, an object or the bare array of its
 * events, plain, gzip or (where the build has libzstd) zstd, told by its content. What is not as it should be and can be understood all the same is read, and
 * noted (ops_trace_notes); else OPS_CORRUPT names the file, the byte of the (uncompressed) text, and what is wrong there.
 * OPS_IO with errno when the file cannot be read. Memory beyond the trace is bounded.
 *
 * Events come in the order of their start and know their place in the file (`index`). Times are exact to the nanosecond.
 * Of a file that Opstrobe wrote of a recording, what comes out is what was recorded. Not kept: what tells about the file
 * (traceName, displayTimeUnit) or only its order (Ev Idx, thread_sort_index), and names of arrows.
 *
 * `options` may be NULL. The caller owns one reference to `*ret_trace`. */
enum ops_code ops_trace_read(const char *path, const struct ops_read_options *options, struct ops_trace **ret_trace,
                             struct ops_error *error);
/* The same from memory, which is borrowed for the time of the call. */
enum ops_code ops_trace_read_memory(const char *bytes, size_t size, const struct ops_read_options *options,
                                    struct ops_trace **ret_trace, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

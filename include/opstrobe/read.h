/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/read.h: makes traces of recordings and trace files.
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

/* Makes the trace of a recording, and frees the recording block by block, so that peak memory stays near that of one copy. The
 * caller owns one reference to `*ret_trace`.
 *
 * OPS_NO_MEMORY: the caller still owns the recording and nothing of it is lost. Call again when there is memory, or call
 * ops_recording_free. */
enum ops_code ops_trace_from_recording(struct ops_recording *recording, struct ops_trace **ret_trace, struct ops_error *error);

/* What a recording file says about the end of the recording. */
struct ops_recovery {
	int64_t pid;     /* of the process that recorded */
	bool is_running; /* it still does: the trace ends at this moment */
	bool is_stopped; /* the recording had come to its end */
	bool is_torn;    /* a part is missing or makes no sense: the file was cut short or written over */
	uint64_t dropped; /* records of a ring from before the trace, which are gone as intended; they are not lost */
	int end_errno;   /* why the file could not hold all of the recording, such as ENOSPC; 0: it does */
};

/* Reads a recording file (ops_record_options.spill_path), which a process left behind that was killed: every event whose end was
 * recorded, and those that were open as unfinished. The file stays as it is. OPS_CORRUPT if it is not a recording file, OPS_UNSUPPORTED
 * for one of another version or machine, OPS_IO with errno when it cannot be read. `ret_recovery` may be NULL. The caller owns one
 * reference to `*ret_trace`. */
enum ops_code ops_trace_recover(const char *path, struct ops_trace **ret_trace, struct ops_recovery *ret_recovery,
                                struct ops_error *error);

struct ops_read_progress {
	uint64_t bytes;       /* of the file that are read; it may be compressed */
	uint64_t bytes_total; /* 0: unknown, as of a pipe. After the last byte the events are sorted */
	uint64_t events;
	uint64_t notes;       /* problems found so far, see ops_trace_notes */
};

/* Zero means default, except for `size`. */
struct ops_read_options {
	size_t size; /* sizeof(struct ops_read_options) */
	/* Called from time to time. A result that is not zero cancels reading (OPS_STATE). NULL: not called. */
	int (*progress)(void *context, const struct ops_read_progress *progress);
	void *progress_context;
};

/* Reads a trace file: Chrome JSON as all versions of torch.profiler and Opstrobe write it, an object or an array of events; Perfetto's
 * own format; a memory snapshot of torch.cuda.memory; a dump of torch's flight recorder; a profile of XLA (XSpace); a profile of stacks
 * (speedscope, folded stacks, pprof, perf script); or an SQLite export of Nsight Systems, which
 * must be a file that is not compressed and needs libsqlite3 (OPS_UNSUPPORTED). The content decides which, and whether it is plain, gzip or zstd (if the library
 * was built with libzstd). `options` may be NULL. The caller owns one reference to `*ret_trace`.
 *
 * Problems of the file that leave it readable are counted (ops_trace_notes). OPS_CORRUPT: others, with the file, the byte of the
 * uncompressed text and the reason. OPS_IO with errno: the file cannot be read.
 *
 * Events are sorted by start and have their place in the file (`index`). Times are exact to the nanosecond. A recording that was written
 * by Opstrobe is read back unchanged, except for members that describe the file (traceName, displayTimeUnit), its order (Ev Idx,
 * thread_sort_index), and names of flows. */
enum ops_code ops_trace_read(const char *path, const struct ops_read_options *options, struct ops_trace **ret_trace,
                             struct ops_error *error);
/* Like ops_trace_read, from memory that is borrowed during the call. */
enum ops_code ops_trace_read_memory(const char *bytes, size_t size, const struct ops_read_options *options,
                                    struct ops_trace **ret_trace, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/read.h: makes traces from recordings and trace files.
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

/* Makes a trace from a recording. Frees the recording block by block, so that peak memory is close to that of one copy. The
 * caller owns one reference to `*ret_trace`.
 *
 * OPS_NO_MEMORY: the caller still owns the complete recording. Call again when memory is available, or call ops_recording_free. */
enum ops_code ops_trace_from_recording(struct ops_recording *recording, struct ops_trace **ret_trace, struct ops_error *error);

/* What a recording file says about the end of the recording. */
struct ops_recovery {
	int64_t pid;     /* of the recorded process */
	bool is_running; /* the process still runs; the trace ends at this moment */
	bool is_stopped; /* the recording was stopped normally */
	bool is_torn;    /* a part is missing or invalid: the file was truncated or overwritten */
	uint64_t dropped; /* older records that a ring overwrote as intended; they do not count as lost */
	int end_errno;   /* error that kept the file from holding the complete recording, such as ENOSPC; 0: none */
};

/* Reads the recording file (ops_record_options.spill_path) of a process that was killed: all events, with those that were still
 * open marked as unfinished. Does not change the file. OPS_CORRUPT if it is not a recording file, OPS_UNSUPPORTED for one of
 * another version or machine, OPS_IO with errno if it cannot be read. `ret_recovery` may be NULL. The caller owns one reference
 * to `*ret_trace`. */
enum ops_code ops_trace_recover(const char *path, struct ops_trace **ret_trace, struct ops_recovery *ret_recovery,
                                struct ops_error *error);

struct ops_read_progress {
	uint64_t bytes;       /* bytes of the file read so far, as stored (perhaps compressed) */
	uint64_t bytes_total; /* 0: unknown, as for a pipe. Events are sorted after the last byte */
	uint64_t events;
	uint64_t notes;       /* number of problems found so far, see ops_trace_notes */
};

/* Zero values select the defaults, except for `size`. */
struct ops_read_options {
	size_t size; /* sizeof(struct ops_read_options) */
	/* Called from time to time. A nonzero result cancels reading (OPS_STATE). May be NULL. */
	int (*progress)(void *context, const struct ops_read_progress *progress);
	void *progress_context;
};

/* Reads a trace file: Chrome JSON as all versions of torch.profiler and Opstrobe write it, an object or an array of events;
 * Perfetto's own format; a recording file; a memory snapshot of torch.cuda.memory; a dump of torch's flight recorder; a profile of XLA (XSpace); a
 * profile of stacks (speedscope, folded stacks, pprof, perf script); or an SQLite export of Nsight Systems, which must be an
 * uncompressed file and requires libsqlite3 (OPS_UNSUPPORTED). The format and the compression, gzip or zstd (if the library was
 * built with libzstd), are detected from the content. `options` may be NULL. The caller owns one reference to `*ret_trace`.
 *
 * Problems that leave the file readable are counted (ops_trace_notes). OPS_CORRUPT: other problems; the error names the file, the
 * byte of the uncompressed text and the reason. OPS_IO with errno: the file cannot be read.
 *
 * Events are sorted by start, and `index` is their position in the file. Times are exact to the nanosecond. A recording written
 * by Opstrobe is read back unchanged, except for members that describe the file (traceName, displayTimeUnit), its order (Ev Idx,
 * thread_sort_index), and names of flows. */
enum ops_code ops_trace_read(const char *path, const struct ops_read_options *options, struct ops_trace **ret_trace,
                             struct ops_error *error);
/* Like ops_trace_read, but reads from memory, which is borrowed during the call. */
enum ops_code ops_trace_read_memory(const char *bytes, size_t size, const struct ops_read_options *options,
                                    struct ops_trace **ret_trace, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/write.h: a trace as a file. One function a format; all write beside the target and rename, so that a failed
 * write leaves the old file whole, and may be called as often as wanted.
 */
#ifndef OPSTROBE_WRITE_H
#define OPSTROBE_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/analyze.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Zero means default. */
struct ops_chrome_json_options {
	int compression_level; /* gzip level 1–9 when the path ends in ".gz"; default 4 */
	/* Called from time to time with bytes of JSON made so far; a non-zero answer cancels (OPS_STATE). NULL: never. */
	int (*progress)(void *context, uint64_t bytes);
	void *progress_context;
	/* Writes the Python functions around each event into its arguments as text ("Call stack", spec 3.6), for tools that do
	 * not look at the rows above. Of a recording; of what was read, each row says what its file said. */
	bool call_stacks;
	bool no_forward_backward; /* leaves out the flows from forward operators to backward nodes; readers can derive them */
};

/* Chrome trace JSON in Kineto's conventions (spec 3). A path that ends in ".gz" is compressed while it is written.
 * OPS_IO with errno on any failure of the file system. `options` may be NULL. */
enum ops_code ops_write_chrome_json(const struct ops_trace *trace, const char *path,
                                    const struct ops_chrome_json_options *options, struct ops_error *error);

/* A flame graph's data; the end of the path's name says the form:
 *   .speedscope.json  what speedscope.app reads
 *   .svg              the flame graph itself, a picture
 *   anything else     collapsed stacks for flamegraph.pl and its like: frames with ';' between, a space, whole nanoseconds
 * Only stacks with time of their own are written. Collapsed stacks repeat all frames in every line, so a stack that is deeper
 * than a limit has that many of its outermost frames, "[truncated]", and its own frame. The limit is OPS_COLLAPSED_DEPTH; where
 * the lines would have more than OPS_COLLAPSED_FRAMES together it is halved until they do not, to OPS_COLLAPSED_LEAST at the
 * least. `*ret_cut` says what was cut like that; NULL is allowed. OPS_IO with errno on any failure of the file system. */
#define OPS_COLLAPSED_DEPTH 2000
#define OPS_COLLAPSED_LEAST 125
#define OPS_COLLAPSED_FRAMES 8000000
struct ops_flame_cut {
	size_t stacks;  /* cut short */
	uint32_t depth; /* the limit */
};
enum ops_code ops_write_flame(const struct ops_flame *flame, const char *path, struct ops_flame_cut *ret_cut,
                              struct ops_error *error);

/* Zero means default. */
struct ops_pftrace_options {
	int compression_level; /* as above */
	int (*progress)(void *context, uint64_t bytes);
	void *progress_context;
};

/* Perfetto's own format, which its viewer and its trace processor read: events with their arguments, threads, arrows,
 * memory and counters as curves. Times are ns since the epoch. As above otherwise. */
enum ops_code ops_write_pftrace(const struct ops_trace *trace, const char *path, const struct ops_pftrace_options *options,
                                struct ops_error *error);

/* A text that is made already, such as a report. */
enum ops_code ops_write_text(const char *text, size_t size, const char *path, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

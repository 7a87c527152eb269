/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/write.h: a trace as a file. One function a format; all write beside the target and rename, so that a failed
 * write leaves the old file whole, and may be called as often as wanted.
 */
#ifndef OPSTROBE_WRITE_H
#define OPSTROBE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Zero means default. */
struct ops_flame_options {
	bool device_time; /* stacks with the time of the device work that they launched; default: CPU time */
};

/* What was shortened in a file of collapsed stacks. */
struct ops_flame_cut {
	size_t stacks;  /* cut short */
	uint32_t depth; /* frames that a stack keeps */
};

/* The self time of events under the frames around them: Python functions, ranges and operators. Backward nodes are below what
 * called their forward operator. The end of the file's name selects the format:
 *   .speedscope.json  speedscope.app
 *   .svg              a picture of the flame graph
 *   anything else     collapsed stacks for flamegraph.pl: frames separated by ';', a space, and nanoseconds
 *
 * Collapsed stacks repeat all frames in every line. A stack deeper than OPS_COLLAPSED_DEPTH keeps its outermost frames,
 * "[truncated]" and its innermost frame. That depth is halved, down to OPS_COLLAPSED_LEAST, until the lines together have at most
 * OPS_COLLAPSED_FRAMES frames. `*ret_cut`, which may be NULL, receives how many stacks were shortened. */
#define OPS_COLLAPSED_DEPTH 2000
#define OPS_COLLAPSED_LEAST 125
#define OPS_COLLAPSED_FRAMES 8000000
enum ops_code ops_write_flame(const struct ops_trace *trace, const char *path, const struct ops_flame_options *options,
                              struct ops_flame_cut *ret_cut, struct ops_error *error);

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

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

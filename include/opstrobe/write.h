/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/write.h: writes a trace as a file. Functions write to a temporary file in the same directory and rename it, so that a failure
 * leaves the old file unchanged: OPS_IO with errno. `options` may be NULL.
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

/* Zero means default, except for `size`. */
struct ops_chrome_json_options {
	size_t size;           /* sizeof(struct ops_chrome_json_options) */
	int compression_level; /* of gzip, 1–9; default 4 */
	/* Called from time to time with the number of bytes of JSON so far. A result that is not zero cancels (OPS_STATE). NULL: not
	 * called. */
	int (*progress)(void *context, uint64_t bytes);
	void *progress_context;
	bool call_stacks; /* also write the Python functions around each event of a recording as text, in the argument "Call stack", for
	                   * tools that do not look at the events around it. Events that were read from a file keep their own text */
	bool no_forward_backward; /* omit the flows from forward operators to backward nodes; readers can derive them */
};

/* Writes Chrome JSON with the conventions of Kineto. A file whose name ends in ".gz" is compressed. */
enum ops_code ops_write_chrome_json(const struct ops_trace *trace, const char *path,
                                    const struct ops_chrome_json_options *options, struct ops_error *error);

/* Zero means default, except for `size`. */
struct ops_flame_options {
	size_t size;      /* sizeof(struct ops_flame_options) */
	bool device_time; /* stacks with the time of the device work that they launched; default: CPU time */
	/* Compares with this trace, in time per step of each: the picture is that of the trace, red where it takes longer than `base`
	 * and blue where shorter; lines of collapsed stacks have the time of `base`, then that of the trace. Events outside of
	 * steps are left out; traces without steps are compared by their totals. OPS_INVALID for speedscope's format. */
	const struct ops_trace *base;
	bool keep_wrappers; /* default: calls of libraries that only pass on to one other call have no frames; their caller has their self time */
};

/* What was shortened in a file of collapsed stacks. */
struct ops_flame_cut {
	size_t stacks;  /* cut short */
	uint32_t depth; /* frames that a stack keeps */
};

/* Writes the self time of events under the frames around them: Python functions, ranges and operators. Backward nodes are below what
 * called their forward operator. The end of the file's name selects the format:
 *   .speedscope.json  speedscope.app
 *   .svg              a picture of the flame graph
 *   .pb.gz, .pb       a profile of pprof; of a difference, the time of the trace less that of the base
 *   anything else     collapsed stacks for flamegraph.pl: frames separated by ';', a space, and nanoseconds
 *
 * Collapsed stacks repeat all frames in every line. A stack deeper than OPS_COLLAPSED_DEPTH keeps its outermost frames,
 * "[truncated]" and its innermost frame. That depth is halved, down to OPS_COLLAPSED_LEAST, until the lines together have at most
 * OPS_COLLAPSED_FRAMES frames. Profiles of pprof repeat them, too: a deeper stack keeps its innermost frames. `*ret_cut`, which may be NULL, receives how many stacks were shortened. */
#define OPS_COLLAPSED_DEPTH 2000
#define OPS_COLLAPSED_LEAST 125
#define OPS_COLLAPSED_FRAMES 8000000
enum ops_code ops_write_flame(const struct ops_trace *trace, const char *path, const struct ops_flame_options *options,
                              struct ops_flame_cut *ret_cut, struct ops_error *error);

/* Zero means default, except for `size`. */
struct ops_pftrace_options {
	size_t size;           /* sizeof(struct ops_pftrace_options) */
	int compression_level; /* as above */
	int (*progress)(void *context, uint64_t bytes);
	void *progress_context;
};

/* Writes Perfetto's native format: events with arguments, threads, flows, memory and counters. A file whose name ends in ".gz" is
 * compressed. */
enum ops_code ops_write_pftrace(const struct ops_trace *trace, const char *path, const struct ops_pftrace_options *options,
                                struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

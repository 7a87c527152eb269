/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/write.h: writes a trace to a file. The functions write to a temporary file in the same directory and rename it, so
 * that a failure (OPS_IO with errno) leaves an existing file unchanged. `options` may be NULL.
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

/* Zero values select the defaults, except for `size`. */
struct ops_chrome_json_options {
	size_t size;           /* sizeof(struct ops_chrome_json_options) */
	int compression_level; /* gzip level, 1–9; default 4 */
	/* Called from time to time with the number of bytes of JSON written so far. A nonzero result cancels (OPS_STATE). May be
	 * NULL. */
	int (*progress)(void *context, uint64_t bytes);
	void *progress_context;
	bool call_stacks; /* also write the Python functions around each event of a recording as text, in the argument "Call
	                   * stack", for tools that do not evaluate enclosing events. Events that were read from a file keep their
	                   * own text */
	bool no_forward_backward; /* omit the flows from forward operators to backward nodes; readers can derive them */
	unsigned compression_threads; /* that compress a file; default: the calling thread */
};

/* Writes Chrome JSON with the conventions of Kineto. A file whose name ends in ".gz" is compressed. */
enum ops_code ops_write_chrome_json(const struct ops_trace *trace, const char *path,
                                    const struct ops_chrome_json_options *options, struct ops_error *error);

/* Zero values select the defaults, except for `size`. */
struct ops_flame_options {
	size_t size;      /* sizeof(struct ops_flame_options) */
	bool device_time; /* weigh stacks by the time of the device work that they launched; default: CPU time */
	/* Compares with this trace, in time per step of each. The picture shows the trace, red where it takes longer than `base`
	 * and blue where it takes less time; lines of collapsed stacks have the time of `base`, then that of the trace. Events
	 * outside of steps are left out; traces without steps are compared by their totals. OPS_INVALID for the speedscope
	 * format. */
	const struct ops_trace *base;
	bool keep_wrappers; /* default: library calls that only pass on to one other call have no frame; their caller gets their
	                     * self time */
	bool sampled; /* the sampled Python stacks of a black box, in wall-clock time, without events. OPS_INVALID if there are
	               * none, or with `base` */
	bool keep_waits; /* default: the time in which helper threads only wait is left out */
};

/* What a file of stacks does not have. */
struct ops_flame_cut {
	size_t stacks;  /* number of stacks that collapsed stacks have shortened */
	uint32_t depth; /* number of frames that a stack keeps */
	int64_t waits_ns; /* time in which helper threads wait; of a difference, per step of the trace */
};

/* Writes the self time of events under the frames around them: Python functions, ranges and operators. Backward nodes are below
 * the caller of their forward operator. The end of the file's name selects the format:
 *   .speedscope.json  speedscope.app
 *   .svg              a picture of the flame graph
 *   .pb.gz, .pb       a pprof profile; with `base`, the time of the trace minus that of `base`
 *   anything else     collapsed stacks for flamegraph.pl: frames separated by ';', a space, and nanoseconds
 *
 * Collapsed stacks repeat all frames in every line. A stack deeper than OPS_COLLAPSED_DEPTH keeps its outermost frames,
 * "[truncated]" and its innermost frame. That depth is halved, down to OPS_COLLAPSED_LEAST, until the lines together have at most
 * OPS_COLLAPSED_FRAMES frames. Profiles of pprof repeat them, too: there a deeper stack keeps its innermost frames. `*ret_cut`,
 * which may be NULL, receives the number of shortened stacks. */
#define OPS_COLLAPSED_DEPTH 2000
#define OPS_COLLAPSED_LEAST 125
#define OPS_COLLAPSED_FRAMES 8000000
enum ops_code ops_write_flame(const struct ops_trace *trace, const char *path, const struct ops_flame_options *options,
                              struct ops_flame_cut *ret_cut, struct ops_error *error);

/* Zero values select the defaults, except for `size`. */
struct ops_pftrace_options {
	size_t size;           /* sizeof(struct ops_pftrace_options) */
	int compression_level; /* gzip level, 1–9; default 4 */
	int (*progress)(void *context, uint64_t bytes);
	void *progress_context;
	unsigned compression_threads; /* that compress a file; default: the calling thread */
};

/* Writes Perfetto's native format: events with arguments, threads, flows, memory and counters. A file whose name ends in ".gz" is
 * compressed. */
enum ops_code ops_write_pftrace(const struct ops_trace *trace, const char *path, const struct ops_pftrace_options *options,
                                struct ops_error *error);

/* Writes a profile for the Firefox Profiler (profiler.firefox.com): stacks of open events over time for each thread and stream, annotations
 * and instants as markers. Arguments, flows, memory and counters are omitted. A file whose name ends in ".gz" is compressed. */
enum ops_code ops_write_firefox(const struct ops_trace *trace, const char *path, struct ops_error *error);

/* Writes an execution trace of MLCommons Chakra: operators, annotations and device work with their dependencies, inputs and times in
 * microseconds. Other events, memory and counters are omitted. */
enum ops_code ops_write_chakra(const struct ops_trace *trace, const char *path, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

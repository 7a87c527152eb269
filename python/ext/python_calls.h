/* SPDX-License-Identifier: Apache-2.0
 *
 * Python calls become records of the core: python_calls.c keeps, for each thread, the calls that are open; the hooks of
 * python_monitoring.c (CPython 3.12 and later) or python_profile.c (before) tell it what begins and ends.
 */
#ifndef OPS_EXT_PYTHON_CALLS_H
#define OPS_EXT_PYTHON_CALLS_H

#include "frames.h"

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/record.h>

#include "python_functions.h"

struct ops_python_options {
	struct ops_python_filter filter; /* handed over at the start */
	uint64_t min_duration_ns;        /* shorter calls are dropped */
	uint64_t library_min_duration_ns; /* shorter calls between functions of libraries are dropped, if nothing was recorded in them */
	uint32_t max_depth;              /* calls below so many others are dropped; 0 no limit */
	bool record_gc;                  /* collections, as calls of "Python GC" */
};

/* Begins to record the Python calls of all threads into the session that records, which started at `start_ticks`. Takes
 * the filter. 0, or -1 with an exception set. */
int ops_python_calls_start(struct ops_python_options *options, uint64_t start_ticks);
/* Ends it, after the session's stop, and adds the calls' names to the recording, which may be NULL; calls whose name memory
 * was out for count as lost. Does nothing if it was not begun. Leaves exceptions as they are. */
void ops_python_calls_stop(struct ops_recording *recording);

/* --- for the hooks, with the GIL ------------------------------------------------------------------------------------- */

/* A frame begins to run, or to run again. */
void ops_python_enter(ops_frame *frame, PyCodeObject *code);
/* A frame ends, or yields. */
void ops_python_leave(ops_frame *frame);
/* A frame calls `callable`, perhaps a C function; it comes back. */
void ops_python_call(ops_frame *frame, PyObject *callable);
void ops_python_return(ops_frame *frame);

/* Lets the interpreter call these on every thread. 0, or -1 with an exception set. */
int ops_python_hooks_install(void);
/* No more, and everything is as it was. Leaves no exception. */
void ops_python_hooks_remove(void);
/* Whether another profiler took their place on some thread since they were installed. */
bool ops_python_hooks_displaced(void);

#endif

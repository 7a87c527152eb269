/* SPDX-License-Identifier: Apache-2.0
 *
 * Records Python calls: python_calls.c keeps the open calls of each thread; the hooks of python_monitoring.c (CPython 3.12 and
 * later) or python_profile.c (earlier versions) report begins and ends.
 */
#ifndef OPS_EXT_PYTHON_CALLS_H
#define OPS_EXT_PYTHON_CALLS_H

#include "frames.h"

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/record.h>

#include "python_functions.h"

struct ops_python_options {
	struct ops_python_filter filter; /* transferred at the start */
	uint64_t min_duration_ns;        /* shorter calls are dropped */
	uint64_t library_min_duration_ns; /* shorter calls between functions of libraries are dropped, if nothing was recorded in them */
	uint32_t max_depth;              /* calls nested more deeply are dropped; 0: no limit */
	bool record_gc;                  /* garbage collections, as calls of "Python GC" */
};

/* Starts recording the Python calls of all threads into the session in progress, which started at `start_ticks`. Takes ownership
 * of the filter. Returns 0, or -1 with an exception set. */
int ops_python_calls_start(struct ops_python_options *options, uint64_t start_ticks);
/* Ends recording, after the session's stop, and adds the functions to the recording, which may be NULL. Calls whose functions
 * could not be stored for lack of memory count as lost. Does nothing if recording was not started. Preserves exceptions. */
void ops_python_calls_stop(struct ops_recording *recording);

/* --- called by the hooks, with the GIL ------------------------------------------------------------------------------- */

/* A frame starts or resumes. */
void ops_python_enter(ops_frame *frame, PyCodeObject *code);
/* A frame ends or yields. */
void ops_python_leave(ops_frame *frame);
/* A frame calls `callable`, perhaps a C function; the call has returned. */
void ops_python_call(ops_frame *frame, PyObject *callable);
void ops_python_return(ops_frame *frame);

/* Installs the hooks on every thread. Returns 0, or -1 with an exception set. */
int ops_python_hooks_install(void);
/* Removes the hooks and restores the previous state. Leaves no exception. */
void ops_python_hooks_remove(void);
/* Returns whether another profiler replaced the hooks on some thread since they were installed. */
bool ops_python_hooks_displaced(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The extent of a trace, from its origin to its end (opstrobe/trace.h), and its threads.
 */
#ifndef OPS_DERIVE_EXTENT_H
#define OPS_DERIVE_EXTENT_H

#include <opstrobe/trace.h>

#include "base/intervals.h"

struct ops_interval ops_extent_of(const struct ops_trace *trace);

/* Returns the number of threads. Tracks of coroutines are none, and neither are those that only have the profiler's own span and
 * marks, as "Spans" and "Traces" in torch's files. */
size_t ops_thread_count(const struct ops_trace *trace);
/* Returns the track with the most work, by track, of the process of the recording if that works at all: not a worker of a pool that the
 * program starts. Returns the first track if none works. */
size_t ops_busiest_track(const struct ops_trace *trace, const int64_t *work_ns);
/* The same by the time in operators, or in all rows. OPS_NONE: nothing works. Returns false if out of memory. */
bool ops_busiest_thread(const struct ops_trace *trace, bool of_operators, uint32_t *ret_track);

#endif

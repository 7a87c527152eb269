/* SPDX-License-Identifier: Apache-2.0
 *
 * The extent of a trace, from its origin to its end (opstrobe/trace.h), and the number of threads.
 */
#ifndef OPS_DERIVE_EXTENT_H
#define OPS_DERIVE_EXTENT_H

#include <opstrobe/trace.h>

#include "base/intervals.h"

struct ops_interval ops_extent_of(const struct ops_trace *trace);

/* Returns the number of threads. Tracks of coroutines are none, and neither are those that only have the profiler's own span and
 * marks, as "Spans" and "Traces" in torch's files. */
size_t ops_thread_count(const struct ops_trace *trace);

#endif

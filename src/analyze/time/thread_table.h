/* SPDX-License-Identifier: Apache-2.0
 *
 * The activity of each thread: how long it ran, and what it waited for.
 */
#ifndef OPS_ANALYZE_THREAD_TABLE_H
#define OPS_ANALYZE_THREAD_TABLE_H

#include "analyze/run_trace.h"

/* Adds the threads of a trace that were active longest to table_threads; none if the trace has no thread states. */
run_fill threads_fill;

#endif

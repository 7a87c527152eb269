/* SPDX-License-Identifier: Apache-2.0
 *
 * The activity of each thread: how long it ran, and what it waited for.
 */
#ifndef OPS_ANALYZE_THREAD_TABLE_H
#define OPS_ANALYZE_THREAD_TABLE_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "analyze/result.h"

/* Adds the threads of a trace that were active longest to a table, at most `rows_max` (0: all). Adds none if the trace
 * has no thread states. With a worker the first column names it. The first call adds the columns. Returns false if out
 * of memory. */
bool thread_table_fill(struct result_table *table, const struct ops_trace *trace, const char *worker, size_t rows_max);

#endif

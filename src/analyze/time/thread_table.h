/* SPDX-License-Identifier: Apache-2.0
 *
 * What each thread did: how long it ran, and what it waited for.
 */
#ifndef OPS_ANALYZE_THREAD_TABLE_H
#define OPS_ANALYZE_THREAD_TABLE_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "analyze/result.h"

/* Adds the threads of a trace that were active longest first, at most `rows_max` (0: all), to a table; none if the trace does not
 * say what they waited for. With a worker the first column names it. The first call adds the columns. Returns false if memory is
 * out. */
bool thread_table_fill(struct result_table *table, const struct ops_trace *trace, const char *worker, size_t rows_max);

#endif

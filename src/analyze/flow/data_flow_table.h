/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operators and the uses of their results.
 */
#ifndef OPS_ANALYZE_DATA_FLOW_TABLE_H
#define OPS_ANALYZE_DATA_FLOW_TABLE_H

#include "analyze/result.h"

/* Adds the operators of a trace by name and line, those with the most unread bytes first, at most `rows_max` (0: all).
 * With a worker the first column names it. The first call adds the columns. Returns false if out of memory. */
bool data_flow_table_fill(struct result_table *table, const struct ops_trace *trace, const char *worker, size_t rows_max);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operators and the uses of their results.
 */
#ifndef OPS_ANALYZE_DATA_FLOW_TABLE_H
#define OPS_ANALYZE_DATA_FLOW_TABLE_H

#include "analyze/run_trace.h"

/* Adds the operators of a trace by name and line to table_data_flow, those with the most unread bytes first. */
run_fill data_flow_fill;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a trace to a file of records (records.h): what CUPTI would have sent for its rows of devices and calls, in the
 * structures of 12.9, with its operators and annotations as host ranges. So traces that torch wrote on GPUs can be replayed.
 */
#ifndef OPS_TESTS_GPU_TRACE_RECORDS_H
#define OPS_TESTS_GPU_TRACE_RECORDS_H

#include <stdio.h>

#include <opstrobe/trace.h>

void write_trace_records(FILE *file, const struct ops_trace *trace);

#endif

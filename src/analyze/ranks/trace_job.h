/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trace says about its job; see opstrobe/internal/trace_job.h.
 */
#ifndef OPS_ANALYZE_TRACE_JOB_H
#define OPS_ANALYZE_TRACE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/trace_job.h>
#include <opstrobe/trace.h>

/* Clocks of hosts differ, and ranks do not start to record at the same time. */
#define TRACE_JOB_START_NS INT64_C(10000000000)

/* Finds a member of an object in the metadata. Returns false if it is absent. */
bool trace_find_member(const struct ops_trace *trace, const char *key, const char *name, struct ops_string *ret_value);

/* Reads the job of a trace. `path` is its file, whose name may contain the rank; NULL: unknown. */
void trace_job_read(const struct ops_trace *trace, const char *path, struct ops_trace_job *job);

#endif

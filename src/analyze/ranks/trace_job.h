/* SPDX-License-Identifier: Apache-2.0
 *
 * Which traces belong to one job: processes that were started together, each with a rank
 * (docs/reference/definitions.md).
 */
#ifndef OPS_ANALYZE_TRACE_JOB_H
#define OPS_ANALYZE_TRACE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#define TRACE_JOB_NAME_MAX 127
/* Clocks of hosts differ, and ranks do not start to record at the same time. */
#define TRACE_JOB_START_NS INT64_C(10000000000)

/* What a trace says about its process. */
struct trace_job {
	int64_t rank;       /* -1: unknown */
	int64_t world_size; /* -1: unknown */
	int64_t start_ns;   /* start of the recording */
	int64_t end_ns;
	char name[TRACE_JOB_NAME_MAX + 1]; /* name of the job, given by its launcher; "": unknown */
};

/* Finds a member of an object in the metadata. Returns false if it is absent. */
bool trace_find_member(const struct ops_trace *trace, const char *key, const char *name, struct ops_string *ret_value);

/* Reads the job of a trace. `path` is its file, whose name may contain the rank; NULL: unknown. */
void trace_job_read(const struct ops_trace *trace, const char *path, struct trace_job *job);

/* Returns true if two traces are from two ranks of one job. `same_folder`: their files are in one directory. */
bool trace_job_is_shared(const struct trace_job *a, const struct trace_job *b, bool same_folder);

#endif

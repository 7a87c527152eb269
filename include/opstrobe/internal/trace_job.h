/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/trace_job.h: which traces belong to one job: processes that were started together, each with a rank
 * (docs/reference/definitions.md).
 */
#ifndef OPSTROBE_INTERNAL_TRACE_JOB_H
#define OPSTROBE_INTERNAL_TRACE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_TRACE_JOB_NAME_MAX 127

/* What a trace says about its process. */
struct ops_trace_job {
	int64_t rank;       /* -1: unknown */
	int64_t world_size; /* -1: unknown */
	int64_t start_ns;   /* start of the recording */
	int64_t end_ns;
	char name[OPS_TRACE_JOB_NAME_MAX + 1]; /* name of the job, given by its launcher; "": unknown */
};

/* Returns true if two traces are from two ranks of one job. `same_folder`: their files are in one directory. */
bool ops_trace_job_is_shared(const struct ops_trace_job *a, const struct ops_trace_job *b, bool same_folder);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * See trace_job.h.
 */
#include "analyze/ranks/trace_job.h"

#include <string.h>

#include <opstrobe/internal/analyses.h>

#include "base/json.h"
#include "base/json_walk.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/extent.h"

bool trace_find_member(const struct ops_trace *trace, const char *key, const char *name, struct ops_string *ret_value)
{
	struct ops_string json;

	return ops_trace_find_metadata(trace, key, &json) && json.size && json.bytes[0] == '{' &&
	       ops_json_find_member(json, name, ret_value);
}

/* Names are only compared, so their undecoded JSON text suffices. A longer name counts as unknown. */
static void read_job_name(const struct ops_trace *trace, struct ops_trace_job *job)
{
	struct ops_string text;

	if (!ops_trace_find_metadata(trace, "job", &text) || text.size > OPS_TRACE_JOB_NAME_MAX)
		return;
	memcpy(job->name, text.bytes, text.size);
	job->name[text.size] = '\0';
}

void trace_job_read(const struct ops_trace *trace, const char *path, struct ops_trace_job *job)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_string text;

	*job = (struct ops_trace_job){.rank = ops_trace_rank(trace, path), .world_size = -1};
	if (trace_find_member(trace, "distributedInfo", "world_size", &text) && !ops_json_parse_integer(text, &job->world_size))
		job->world_size = -1;
	job->start_ns = events->count ? events->start_ns[0] : 0;
	job->end_ns = events->count ? ops_extent_of(trace).end_ns : 0;
	read_job_name(trace, job);
}

static bool is_rank(const struct ops_trace_job *job)
{
	return job->rank >= 0 && job->world_size != 1;
}

static bool were_together(const struct ops_trace_job *a, const struct ops_trace_job *b)
{
	int64_t apart_ns = ops_difference(a->start_ns, b->start_ns);

	return (a->start_ns <= b->end_ns && b->start_ns <= a->end_ns) ||
	       (apart_ns <= TRACE_JOB_START_NS && apart_ns >= -TRACE_JOB_START_NS);
}

bool ops_trace_job_is_shared(const struct ops_trace_job *a, const struct ops_trace_job *b, bool same_folder)
{
	bool named = *a->name && *b->name;

	if (!is_rank(a) || !is_rank(b) || a->rank == b->rank || !were_together(a, b))
		return false;
	if (a->world_size >= 0 && b->world_size >= 0 && a->world_size != b->world_size)
		return false;
	return named ? !strcmp(a->name, b->name) : same_folder;
}

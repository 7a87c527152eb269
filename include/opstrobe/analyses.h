/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/analyses.h: questions put to the traces of a run, each known by an id: where the time of each GPU goes, why it is
 * idle, how long launches take, what is on the critical path, … Ids, options and columns are those of Holistic Trace
 * Analysis, its flaws put right.
 *
 *     struct ops_rank ranks[] = {{.trace = trace, .rank = 0}};
 *     ops_analyze("temporal_breakdown", ranks, 1, NULL, &text, &size, &error);
 *
 * Traces are finished and stay as they are. The text has a NUL behind and is freed with ops_free. Any thread may
 * call these.
 */
#ifndef OPSTROBE_ANALYSES_H
#define OPSTROBE_ANALYSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What an analysis has to know of all ranks before it looks at any; opaque. */
struct ops_rank_facts;

/* The trace of one process of a run. Analyses use the rank, the path and the facts; views and advice use the name and the span. */
struct ops_rank {
	const struct ops_trace *trace; /* NULL: from the source of the call; or a file that is not a trace, for analyses of
	                                * other files */
	int64_t rank;     /* no two are equal; of two traces that are compared it says nothing */
	const char *path; /* where it was read from; NULL when from nowhere */
	const char *name; /* of the worker: "host_1234"; "node_0" is process 0 of a node */
	int64_t span;     /* which of the worker's profiling cycles, from 1; 0: it has but one */
	const struct ops_rank_facts *facts; /* NULL: the trace is asked for them, which takes it from the source once more */
};

enum ops_analysis_inputs {
	OPS_ANALYSIS_RANKS, /* traces of one run */
	OPS_ANALYSIS_PAIR,  /* two traces: control and test */
	OPS_ANALYSIS_FILES, /* paths: what it reads besides traces */
};

/* An option: its name, the value it has when not set, as JSON, and what it is. */
struct ops_analysis_option {
	const char *name;
	const char *otherwise;
	const char *summary;
};

struct ops_analysis {
	const char *id;
	const char *summary;
	enum ops_analysis_inputs inputs;
	const struct ops_analysis_option *options; /* ended by a NULL name */
};

/* All analyses. Static. */
const struct ops_analysis *ops_analyses(size_t *ret_count);
/* NULL when there is none of that id. */
const struct ops_analysis *ops_analysis_find(const char *id);

/* Zero means default. */
struct ops_analyze_options {
	enum ops_format format; /* JSON is {"table": {"columns": […], "rows": […]}} or {"value": …}; times in microseconds */
	bool round_to_us; /* shrink every event to whole microseconds, as the reference does, if its file has finer times */
	const char *args; /* a JSON object of options by name; NULL: none */
	const struct ops_trace_source *source; /* of ranks without a trace, for analyses of ranks; NULL: all have one */
	unsigned columns; /* of the terminal that text is to fit, if it can; 0: nothing is left out or cut */
};

/* OPS_INVALID for an unknown id, an unknown option, or one with a value that makes no sense. `options` may be NULL. */
enum ops_code ops_analyze(const char *id, const struct ops_rank *ranks, size_t count,
                          const struct ops_analyze_options *options, char **ret_text, size_t *ret_size,
                          struct ops_error *error);

/* The facts of a rank, to be looked at while its trace is there; `round_to_us` as it will be asked for. They point at
 * nothing of the trace. OPS_NO_MEMORY. NULL may be freed. */
enum ops_code ops_rank_facts_new(const struct ops_trace *trace, bool round_to_us, struct ops_rank_facts **ret_facts,
                                 struct ops_error *error);
void ops_rank_facts_free(struct ops_rank_facts *facts);

/* The rank that a trace says it is of ("distributedInfo"), or else the name of its file ("rank-3", "rank3_", "_3.");
 * -1 when neither does. `path` may be NULL. */
int64_t ops_trace_rank(const struct ops_trace *trace, const char *path);
/* Makes it say so; the rest of "distributedInfo" stays. OPS_INVALID for a rank below 0. As ops_trace_set_metadata: nobody may read it meanwhile. */
enum ops_code ops_trace_set_rank(struct ops_trace *trace, int64_t rank, struct ops_error *error);
/* Gives each of a run's traces the rank that it says (without a trace `rank` is that; -1: none); of those that say none, or one that is taken, the lowest that is
 * left, in the order given. Then sorts them by rank. */
void ops_number_ranks(struct ops_rank *ranks, size_t count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/query.h: tables about the traces of a run, by name: steps, kernels, modules, memory, idle time, advice, …
 *
 *     struct ops_rank ranks[] = {{.trace = trace}};
 *     struct ops_run run = {.ranks = ranks, .count = 1};
 *     struct ops_query_options options = {.size = sizeof(options), .format = OPS_FORMAT_TEXT, .args = "{\"limit\": 20}"};
 *
 *     if (ops_query(&run, "kernels", &options, &text, &size, &error) == OPS_OK)
 *             fwrite(text, 1, size, stdout);
 *     ops_free(text);
 *
 * Queries read traces and do not change them. All functions but ops_number_ranks and ops_trace_set_rank may be called on any
 * thread at any time, also for the same run.
 */
#ifndef OPSTROBE_QUERY_H
#define OPSTROBE_QUERY_H

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

/* --- runs --------------------------------------------------------------------------------------------------------- */

struct ops_rank_facts;

/* The trace of one process of a run. Everything is borrowed; unknown members are zero. */
struct ops_rank {
	const struct ops_trace *trace; /* NULL: the trace comes from the source of the run, or the file is not a trace */
	int64_t rank;     /* unique in the run */
	const char *path; /* of the file; NULL: no file */
	const char *name; /* of the worker, "host_1234"; NULL: taken from the path or the rank */
	int64_t span;     /* number of the worker's profiling cycle, from 1; 0: it has only one */
	const struct ops_rank_facts *facts; /* used by the opstrobe command only; NULL */
};

/* The traces of a run, sorted by rank; or two traces to compare. */
struct ops_run {
	const struct ops_rank *ranks;
	size_t count;
	const struct ops_trace_source *source; /* source of the traces of ranks without one, for runs that do not fit into memory.
	                                        * It must return trace `i` of `ranks` as often as a query needs it. NULL: all
	                                        * ranks have a trace */
};

/* Returns the rank that a trace states ("distributedInfo") or, failing that, the rank in its file name ("rank-3", "rank3_",
 * "_3."). Returns -1 if neither states one. `path` may be NULL. */
int64_t ops_trace_rank(const struct ops_trace *trace, const char *path);
/* Stores a rank in a trace's "distributedInfo". OPS_INVALID if the rank is negative. No other thread may read the trace meanwhile. */
enum ops_code ops_trace_set_rank(struct ops_trace *trace, int64_t rank, struct ops_error *error);
/* Sets `rank` of each trace of a run to the rank that ops_trace_rank finds. Traces without a rank, or with a rank that an earlier
 * trace has, get the lowest free numbers in the given order. Then sorts by rank. If an item has no trace, its `rank` is used as
 * the rank that it states (-1: none). */
void ops_number_ranks(struct ops_rank *ranks, size_t count);

/* --- queries ------------------------------------------------------------------------------------------------------ */

/* The traces that a query requires. */
enum ops_query_inputs {
	OPS_QUERY_RANKS,   /* one or more traces of a run */
	OPS_QUERY_PAIR,    /* two traces: control and test, or before and after */
	OPS_QUERY_FILES,   /* files, which need not be traces */
	OPS_QUERY_NOTHING, /* no traces */
};

struct ops_query_option {
	const char *name;
	const char *default_value; /* in JSON */
	const char *summary;
};

struct ops_query_info {
	const char *id;
	const char *summary;
	enum ops_query_inputs inputs;
	const struct ops_query_option *options; /* terminated by an item whose name is NULL */
};

/* Returns all queries. Static. docs/manual/analyze.md explains them, docs/reference/tables.md has the columns of their tables. */
const struct ops_query_info *ops_queries(size_t *ret_count);
/* Returns the query with this id, or NULL. */
const struct ops_query_info *ops_query_find(const char *id);

/* Zero values select the defaults. */
struct ops_query_options {
	size_t size;            /* sizeof(struct ops_query_options) */
	enum ops_format format;
	unsigned columns;       /* terminal width that text should fit; 0: unlimited */
	const char *args;       /* options of the query by name, as a JSON object; NULL: none. All tables have the option `limit`,
	                         * the maximum number of rows */
	bool round_to_us;       /* rounds times inward to whole microseconds, as Holistic Trace Analysis does */
};

/* Answers a query. If `options` is NULL, the answer is JSON. The caller frees `*ret_text` with ops_free.
 *
 * JSON is {"table": {"columns": […], "rows": [[…], …]}}, or {"value": …} for an answer of several tables. "views", "diff" and
 * "advise" have the objects of docs/openapi.yaml (Views, Diff, Advice). Times in JSON and CSV are in microseconds.
 *
 * OPS_INVALID: an unknown query or option, an invalid value, a format that the query does not have, or too few or too many
 * traces. */
enum ops_code ops_query(const struct ops_run *run, const char *id, const struct ops_query_options *options, char **ret_text,
                        size_t *ret_size, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/analyses.h: the queries of `opstrobe analyze`, whose ids, options and columns are those of Holistic Trace
 * Analysis, and functions that the command needs for runs that do not fit into memory.
 */
#ifndef OPSTROBE_INTERNAL_ANALYSES_H
#define OPSTROBE_INTERNAL_ANALYSES_H

#include <opstrobe/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns all analyses. Static. */
const struct ops_query_info *ops_analyses(size_t *ret_count);
/* Returns NULL for an unknown id. */
const struct ops_query_info *ops_analysis_find(const char *id);
/* Returns whether the analysis is about device work, so that traces without it have no results. */
bool ops_analysis_needs_device_work(const struct ops_query_info *analysis);
/* Returns whether the analysis is about files other than traces, such as memory timelines. */
bool ops_analysis_reads_other_files(const struct ops_query_info *analysis);

/* Zero values select the defaults. */
struct ops_analyze_options {
	enum ops_format format;
	bool round_to_us;
	const char *args;
	const struct ops_trace_source *source;
	unsigned columns;
};

/* Like ops_query. */
enum ops_code ops_analyze(const char *id, const struct ops_rank *ranks, size_t count,
                          const struct ops_analyze_options *options, char **ret_text, size_t *ret_size,
                          struct ops_error *error);

/* What analyses need to know of all ranks before they read any. Kept in `facts` of a rank, it saves reading each trace from the
 * source once more. Does not refer to the trace. `round_to_us` as in the query. OPS_NO_MEMORY. */
struct ops_rank_facts;
enum ops_code ops_rank_facts_new(const struct ops_trace *trace, bool round_to_us, struct ops_rank_facts **ret_facts,
                                 struct ops_error *error);
void ops_rank_facts_free(struct ops_rank_facts *facts); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif

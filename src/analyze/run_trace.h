/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a run, which a source loads on demand.
 */
#ifndef OPS_ANALYZE_RUN_TRACE_H
#define OPS_ANALYZE_RUN_TRACE_H

#include <opstrobe/query.h>

/* Gets trace `i` of a run, from the run or its source, with a reference for the caller. The trace is NULL for a file
 * that is not a trace. */
static inline enum ops_code ops_run_trace(const struct ops_rank *ranks, const struct ops_trace_source *source, size_t i,
                                          struct ops_trace **ret_trace, struct ops_error *error)
{
	if (!ranks[i].trace)
		return source->take(source->context, i, ret_trace, error);
	*ret_trace = ops_trace_ref((struct ops_trace *)ranks[i].trace);
	return OPS_OK;
}

#endif

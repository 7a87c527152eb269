/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a run, which a source loads on demand.
 */
#ifndef OPS_ANALYZE_RUN_TRACE_H
#define OPS_ANALYZE_RUN_TRACE_H

#include <opstrobe/internal/rules.h>
#include <opstrobe/query.h>

#include "analyze/result.h"
#include "base/text.h"

/* Gets trace `i` of a run, from the run or its source, with a reference for the caller. The trace is NULL for a file
 * that is not a trace. */
static inline enum ops_code ops_run_trace(const struct ops_rank *ranks, const struct ops_trace_source *source, size_t i,
                                          struct ops_trace **ret_trace, struct ops_error *error)
{
	if (!ranks[i].trace)
		return source->get(source->context, i, ret_trace, error);
	*ret_trace = ops_trace_ref((struct ops_trace *)ranks[i].trace);
	return OPS_OK;
}

/* Where the rows of one trace go: into a table of all traces of a run, whose first column names the worker if there are
 * several. */
struct run_rows {
	struct result_table *table;
	const char *worker; /* NULL: there is only one */
	size_t limit;       /* maximum number of rows of a trace, or of each part of it */
	enum ops_rules rules; /* for tables made from views */
	bool as_text;       /* cells name things as text does, not as data: "Optimizer state", not OPTIMIZER_STATE */
};

static inline void run_rows_add(const struct run_rows *rows, const void *row)
{
	if (rows->worker)
		result_text(rows->table, ops_string_of(rows->worker));
	result_add(rows->table, row);
}

/* Adds the rows of a trace. */
typedef enum ops_code run_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                               struct ops_error *error);

#endif

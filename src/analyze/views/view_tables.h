/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of views, for functions that fill tables.
 */
#ifndef OPS_ANALYZE_VIEWS_VIEW_TABLES_H
#define OPS_ANALYZE_VIEWS_VIEW_TABLES_H

#include "analyze/run_trace.h"
#include "analyze/views/views.h"

struct view_kernel_row {
	struct ops_string name;
	bool by_operator; /* the next three members are set */
	struct ops_string operator;
	struct ops_string grid;
	struct ops_string block;
	uint64_t calls;
	int64_t total_ns;
	int64_t min_ns;
	int64_t max_ns;
	double share;         /* share of the time of all kernels */
	double step_ns;       /* per step; NAN: the trace has no steps; also for the next member */
	double step_calls;
	double blocks_per_sm; /* NAN: unknown; also for the next member */
	double occupancy_pct;
	bool tensor_cores;
};

struct view_operator_row {
	struct ops_string name;
	uint64_t calls;
	int64_t host_total_ns;
	int64_t host_self_ns;
	int64_t device_total_ns;
	int64_t device_self_ns;
	int64_t flops; /* 0: unknown */
	uint32_t longest; /* row of the trace: the call with the longest self time */
};

/* Visits the first `most` operators by name, those with most device time, else host time, first. Returns false if out
 * of memory. */
bool view_each_operator(const struct ops_views *views, size_t most,
                        void (*visit)(void *context, const struct view_operator_row *row), void *context);

/* Visits the first `most` rows of the table of kernels, longest first. Returns false if out of memory. */
bool view_each_kernel(const struct ops_views *views, bool by_operator, size_t most,
                      void (*visit)(void *context, const struct view_kernel_row *row), void *context);

struct view_category_row {
	const char *category; /* ops_category_name() */
	uint64_t calls;
	int64_t total_ns;
	double share;      /* of all device work */
	double step_ns;    /* per step; NAN: the trace has no steps; also for the next member */
	double step_calls;
};

/* Visits the first `most` categories of device work that occur, longest first. */
void view_each_category(const struct ops_views *views, size_t most,
                        void (*visit)(void *context, const struct view_category_row *row), void *context);

#define VIEW_BY_OPERATOR 1u /* option of table_kernels */

/* Fill the tables of these names (analyze/tables.h). */
run_fill overview_fill;
run_fill kernels_fill;           /* the longest first; the context is a bool: by operator and launch properties */
run_fill kernel_categories_fill;
run_fill modules_fill;           /* below the module that contains each; the context is a bool: classes instead */
run_fill memory_fill;            /* the context is a time relative to ops_trace_origin; NULL: the peak */

#endif

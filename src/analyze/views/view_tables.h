/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of views, for functions that fill tables.
 */
#ifndef OPS_ANALYZE_VIEWS_VIEW_TABLES_H
#define OPS_ANALYZE_VIEWS_VIEW_TABLES_H

#include <opstrobe/query.h>

#include "analyze/result.h"
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
                        void (*take)(void *context, const struct view_operator_row *row), void *context);

/* Visits the first `most` rows of the table of kernels, longest first. Returns false if out of memory. */
bool view_each_kernel(const struct ops_views *views, bool by_operator, size_t most,
                      void (*take)(void *context, const struct view_kernel_row *row), void *context);

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
                        void (*take)(void *context, const struct view_category_row *row), void *context);

enum view_table {
	VIEW_TABLE_OVERVIEW, /* the parts of an average step, and rows for each step, operator and kernel */
	VIEW_TABLE_KERNELS, /* one row per name, longest first */
	VIEW_TABLE_KERNELS_BY_OPERATOR, /* one row per name, operator and launch properties */
	VIEW_TABLE_KERNELS_BY_CATEGORY, /* one row per category of device work */
	VIEW_TABLE_MODULES, /* one row per module, below the module that contains it */
	VIEW_TABLE_MODULE_CLASSES,
	VIEW_TABLE_MEMORY, /* what holds memory at the peak of a device */
	VIEW_TABLE_COUNT
};

/* Zero means default. */
struct view_table_options {
	size_t rows_max; /* limit per worker, and per part of the tables of memory and overview; 0: none */
	const struct ops_trace_source *source; /* source of workers without a trace */
	const int64_t *memory_at_ns; /* time relative to ops_trace_origin; NULL: the peak */
};

/* Fills an empty table with rows of all workers, and adds a column for the worker if there are several. */
enum ops_code view_table_fill(struct result_table *table, const struct ops_rank *workers, size_t count, enum view_table which,
                              const struct view_table_options *options, struct ops_error *error);

#endif

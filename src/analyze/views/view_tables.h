/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of views for those who make tables of them.
 */
#ifndef OPS_ANALYZE_VIEWS_VIEW_TABLES_H
#define OPS_ANALYZE_VIEWS_VIEW_TABLES_H

#include <opstrobe/query.h>

#include "analyze/result.h"
#include "analyze/views/views.h"

struct view_kernel_row {
	struct ops_string name;
	bool by_operator; /* the next three are there */
	struct ops_string operator;
	struct ops_string grid;
	struct ops_string block;
	uint64_t calls;
	int64_t total_ns;
	int64_t min_ns;
	int64_t max_ns;
	double share;         /* of the time of all */
	double blocks_per_sm; /* NAN: not said, and so the next */
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
	uint32_t longest; /* row of the trace: the call that takes most itself */
};

/* The first `most` operators by name, those that take most of the device's time, else of the host's, first. False when memory is out. */
bool view_each_operator(const struct ops_views *views, size_t most,
                        void (*take)(void *context, const struct view_operator_row *row), void *context);

/* The first `most` rows of the table of kernels, longest first. False when memory is out. */
bool view_each_kernel(const struct ops_views *views, bool by_operator, size_t most,
                      void (*take)(void *context, const struct view_kernel_row *row), void *context);

enum view_table {
	VIEW_TABLE_OVERVIEW, /* what an average step is made of, each step, operator and kernel */
	VIEW_TABLE_KERNELS, /* a row a name, longest first */
	VIEW_TABLE_KERNELS_BY_OPERATOR, /* a row a name, operator and launch */
	VIEW_TABLE_MODULES, /* a row a module, each below the one that holds it */
	VIEW_TABLE_MODULE_CLASSES,
	VIEW_TABLE_MEMORY, /* who holds what when most memory of a device is held */
};

/* Zero means default. */
struct view_table_options {
	size_t rows_max; /* of each worker, and of each part of the tables of memory and of all; 0: all */
	const struct ops_trace_source *source; /* of workers without a trace */
	const int64_t *memory_at_ns; /* the moment, since ops_trace_origin; NULL: the peak */
};

/* Fills an empty table with rows of all workers, with a column for the worker if there are several. */
enum ops_code view_table_fill(struct result_table *table, const struct ops_rank *workers, size_t count, enum view_table which,
                              const struct view_table_options *options, struct ops_error *error);

#endif

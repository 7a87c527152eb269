/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of views, for functions that fill tables.
 */
#ifndef OPS_ANALYZE_VIEWS_VIEW_TABLES_H
#define OPS_ANALYZE_VIEWS_VIEW_TABLES_H

#include "analyze/run_trace.h"
#include "analyze/views/views.h"
#include "derive/categories.h"

/* The kernels of a name or, by operator, of a name, operator and launch properties. */
struct view_kernel_row {
	struct ops_string name;
	struct ops_string operator, grid, block; /* only by operator; what launched it, "(no operator)" if unknown */
	uint32_t kernel;      /* index into views->kernels of one with these properties */
	bool eligible;        /* an operator that could use tensor cores launched it */
	bool tensor_cores;
	uint64_t calls;
	int64_t total_ns;
	int64_t min_ns;
	int64_t max_ns;
	double share;         /* share of the time of all kernels */
	double step_ns;       /* mean per step; NAN: the trace has no steps; also for the next member */
	double step_calls;
	double blocks_per_sm; /* mean weighted by duration; 0 without a duration; NAN: no kernel has it; also for the next member */
	double occupancy_pct;
};
typedef OPS_ARRAY(struct view_kernel_row) view_kernel_list;

/* The calls of an operator's name or, by shapes, of a name and input shapes. */
struct view_operator_row {
	struct ops_string name;
	struct ops_string shapes; /* text, "" if not by shapes */
	uint64_t calls;
	int64_t host_total_ns;
	int64_t host_self_ns;
	int64_t host_min_ns; /* shortest call, as counted in the total */
	int64_t host_max_ns;
	int64_t device_total_ns;
	int64_t device_self_ns;
	double step_self_ns; /* mean per step, on devices if they work, or else on the host; NAN: the trace has no steps; also for the next
	                      * member */
	double step_calls;
	int64_t tensor_self_ns;
	int64_t tensor_total_ns;
	int64_t cpu_memory; /* bytes allocated minus bytes freed by the calls themselves, as in tables of averages */
	int64_t device_memory;
	int64_t flops;      /* 0: unknown */
	int64_t line_self_ns; /* of the calls at the line with most of it, on devices or else on the host */
	uint32_t line_call;   /* row of the trace: a call at that line; OPS_NONE: no line is known */
	uint32_t lines;       /* number of lines that call it */
	bool eligible;
};
typedef OPS_ARRAY(struct view_operator_row) view_operator_list;

struct view_category_row {
	enum ops_category number;
	const char *category; /* its name */
	uint64_t calls;
	int64_t total_ns;
	double share;      /* of all device work */
	double step_ns;    /* mean per step; NAN: the trace has no steps; also for the next member */
	double step_calls;
};

/* Finds the rows of the table of kernels, longest first. This and the next function return false if out of memory; the caller
 * must release the list in any case. */
bool view_kernels_find(const struct ops_views *views, bool by_operator, view_kernel_list *list);
/* Finds operators by name, without memory. Those with most device time, else host time, come first. */
bool view_operators_find(const struct ops_views *views, view_operator_list *list);
/* Finds the categories of device work that occur, longest first. Returns their number. */
size_t view_categories_find(const struct ops_views *views, struct view_category_row rows[OPS_CATEGORY_COUNT]);

#define VIEW_BY_OPERATOR 1u /* option of table_kernels */

/* Fill the tables of these names (analyze/tables.h). */
run_fill overview_fill;
run_fill kernels_fill;           /* the longest first; the context is a bool: by operator and launch properties */
run_fill kernel_categories_fill;
run_fill modules_fill;           /* below the module that contains each; the context is a bool: classes instead */
run_fill memory_fill;            /* the context is a time relative to ops_trace_origin; NULL: the peak */

/* Appends the line of the program that makes a call, "train.py:22"; nothing if it is unknown or `row` is OPS_NONE. */
void view_append_line(const struct ops_views *views, uint32_t row, struct ops_buffer *out);

#endif

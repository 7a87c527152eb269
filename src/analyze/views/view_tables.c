/* SPDX-License-Identifier: Apache-2.0
 *
 * Views as tables of typed columns, for spreadsheets, reports and programs: the overview, kernels, modules, and memory
 * at its peak. With several workers each row has its worker.
 */
#include "analyze/views/view_tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/modules.h>

#include "analyze/module_columns.h"
#include "analyze/tables.h"
#include "analyze/views/view_step_stats.h"
#include "base/fault.h"
#include "base/sum.h"
#include "base/text.h"

/* Returns the views of a trace, which are not kept if it is one of several. */
static const struct ops_views *open_views(const struct run_rows *rows, const struct ops_trace *trace, struct ops_views *own)
{
	return ops_views_open(own, trace, rows->rules, !rows->worker);
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

RESULT_GETTER(get_kernel_percent, struct view_kernel_row, number, result_round(100 * row->share, PERCENT_DECIMALS))
RESULT_GETTER(get_kernel_mean, struct view_kernel_row, integer, row->calls ? llround((double)row->total_ns / (double)row->calls) : 0)
RESULT_GETTER(get_blocks_per_sm, struct view_kernel_row, number, row->total_ns > 0 ? result_round(row->blocks_per_sm, 2) : (double)NAN)
RESULT_GETTER(get_occupancy, struct view_kernel_row, number, row->total_ns > 0 ? result_round(row->occupancy_pct, PERCENT_DECIMALS) : (double)NAN)
RESULT_GETTER(get_tensor_cores, struct view_kernel_row, text, ops_string_of(row->tensor_cores ? "yes" : "no"))

RESULT_OPTIONAL(get_kernel_step, struct view_kernel_row, isnan(row->step_ns), llround(row->step_ns))
RESULT_GETTER(get_kernel_step_calls, struct view_kernel_row, number, result_round(row->step_calls, 2))

/* For rows that have both as numbers. */
#define PER_STEP_COLUMNS(get_time, get_calls) \
	{.name = "step_us", .type = RESULT_TIME, .title = "Per step", .about = "Mean over the steps of what they launch; null without steps", \
	 .nullable = true, .get = (get_time)}, \
	{.name = "step_calls", .type = RESULT_NUMBER, .priority = RESULT_MINOR, .title = "Calls per step", \
	 .about = "The same for the calls", .nullable = true, .get = (get_calls)}

#define BY_OPERATOR_ONLY .option = VIEW_BY_OPERATOR, .when = "with --by-operator"
#define KERNEL_FIELD(member) RESULT_FIELD(struct view_kernel_row, member)
static const struct result_column kernel_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "Kernel", .about = "Name of the kernel", KERNEL_FIELD(name)},
	{.name = "operator", .type = RESULT_TEXT, .title = "Operator", .about = "Operator whose call launched it", BY_OPERATOR_ONLY,
	 KERNEL_FIELD(operator)},
	{.name = "grid", .type = RESULT_TEXT, .priority = RESULT_MINOR, .title = "Grid", .about = "Blocks in each direction",
	 BY_OPERATOR_ONLY, KERNEL_FIELD(grid)},
	{.name = "block", .type = RESULT_TEXT, .priority = RESULT_MINOR, .title = "Block",
	 .about = "Threads of a block in each direction", BY_OPERATOR_ONLY, KERNEL_FIELD(block)},
	{.name = "calls", .type = RESULT_COUNT, .title = "Calls", .about = "Number of launches", KERNEL_FIELD(calls)},
	{.name = "total_us", .type = RESULT_TIME, .title = "Total", .about = "Sum of the durations", KERNEL_FIELD(total_ns)},
	{.name = "percent", .type = RESULT_PERCENT, .title = "Of kernels", .about = "Share of the time of all kernels",
	 .get = get_kernel_percent},
	PER_STEP_COLUMNS(get_kernel_step, get_kernel_step_calls),
	{.name = "mean_us", .type = RESULT_TIME, .title = "Mean", .about = "Mean duration", .get = get_kernel_mean},
	{.name = "min_us", .type = RESULT_TIME, .title = "Shortest", .about = "Shortest duration", KERNEL_FIELD(min_ns)},
	{.name = "max_us", .type = RESULT_TIME, .title = "Longest", .about = "Longest duration", KERNEL_FIELD(max_ns)},
	{.name = "blocks_per_sm", .type = RESULT_NUMBER, .title = "Blocks per SM",
	 .about = "Blocks of the grid for each multiprocessor of the device; less than 1 leaves multiprocessors idle",
	 .get = get_blocks_per_sm},
	{.name = "occupancy_percent", .type = RESULT_PERCENT, .unbounded = true, .title = "Occupancy",
	 .about = "Active warps of those possible, estimated from the launch", .get = get_occupancy},
	{.name = "tensor_cores", .type = RESULT_TEXT, .title = "Tensor cores",
	 .about = "Whether the kernel uses tensor cores, by its name", .get = get_tensor_cores},
};
const struct result_declaration table_kernels = RESULT_DECLARATION("kernels", "The kernels of a name, or of a launch", kernel_columns);

enum ops_code kernels_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                           struct ops_error *error)
{
	struct ops_views own;
	const struct ops_views *views = open_views(rows, trace, &own);
	view_kernel_list list = {0};
	bool done = views && view_kernels_find(views, *(const bool *)context, &list);

	for (size_t i = 0; done && i < list.count && i < rows->limit; i++)
		run_rows_add(rows, &list.items[i]);
	OPS_ARRAY_RELEASE(&list);
	ops_views_release(&own);
	return done ? OPS_OK : ops_fault_memory(error);
}

RESULT_GETTER(get_category_percent, struct view_category_row, number, result_round(100 * row->share, PERCENT_DECIMALS))
RESULT_GETTER(get_category_step_calls, struct view_category_row, number, result_round(row->step_calls, 2))
RESULT_OPTIONAL(get_category_step, struct view_category_row, isnan(row->step_ns), llround(row->step_ns))

#define CATEGORY_FIELD(member) RESULT_FIELD(struct view_category_row, member)
static const struct result_column category_columns[] = {
	{.name = "category", .type = RESULT_TEXT, .title = "Category",
	 .about = "What the device work computes, by its name: kernels, memory copies and memory sets", CATEGORY_FIELD(category)},
	{.name = "calls", .type = RESULT_COUNT, .title = "Calls", .about = "Number of kernels, memory copies and memory sets", CATEGORY_FIELD(calls)},
	{.name = "total_us", .type = RESULT_TIME, .title = "Total", .about = "Sum of the durations", CATEGORY_FIELD(total_ns)},
	{.name = "percent", .type = RESULT_PERCENT, .title = "Of device work", .about = "Share of the time of all device work",
	 .get = get_category_percent},
	PER_STEP_COLUMNS(get_category_step, get_category_step_calls),
};
const struct result_declaration table_kernel_categories =
	RESULT_DECLARATION("kernel_categories", "The device work of a category", category_columns);

enum ops_code kernel_categories_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                                     struct ops_error *error)
{
	struct ops_views own;
	const struct ops_views *views = open_views(rows, trace, &own);
	struct view_category_row found[OPS_CATEGORY_COUNT];
	size_t count = views ? view_categories_find(views, found) : 0;

	(void)context;
	for (size_t i = 0; i < count && i < rows->limit; i++)
		run_rows_add(rows, &found[i]);
	ops_views_release(&own);
	return views ? OPS_OK : ops_fault_memory(error);
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

static const struct result_column module_columns[] = {
	{.name = "path", .type = RESULT_TEXT, .title = "Path", .about = "Names from the root module on, joined by dots",
	 RESULT_FIELD(struct ops_module_row, path)},
	{.name = "class", .type = RESULT_TEXT, .title = "Class", .about = "Name of the class",
	 RESULT_FIELD(struct ops_module_row, class_name)},
	{.name = "depth", .type = RESULT_INTEGER, .title = "Depth", .about = "0 for root modules",
	 RESULT_FIELD(struct ops_module_row, depth)},
	MODULE_FIGURES,
};
const struct result_declaration table_modules = RESULT_DECLARATION("modules", "A module, or a class of modules", module_columns);

enum ops_code modules_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                           struct ops_error *error)
{
	struct ops_module_tree *tree;
	const struct ops_module_row *modules;
	size_t count;
	enum ops_code code = ops_module_tree_new(trace, &tree, error);

	if (code)
		return code;
	modules = *(const bool *)context ? ops_module_tree_classes(tree, &count) : ops_module_tree_rows(tree, &count);
	for (size_t i = 0; i < count && i < rows->limit; i++)
		run_rows_add(rows, &modules[i]);
	ops_module_tree_free(tree);
	return OPS_OK;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

struct share_row {
	struct ops_string device, held_by;
	const struct ops_memory_peak *peak;
	struct ops_memory_share share;
};

RESULT_OPTIONAL(get_share_line, struct share_row, !row->share.line, row->share.line)
RESULT_OPTIONAL(get_share_blocks, struct share_row, !row->share.blocks, row->share.blocks)

static double view_tables_percent_of(int64_t bytes, int64_t all)
{
	return all > 0 ? result_round(100 * (double)bytes / (double)all, PERCENT_DECIMALS) : (double)NAN;
}

RESULT_GETTER(get_share_percent, struct share_row, number, view_tables_percent_of(row->share.bytes, row->peak->bytes))

static const struct result_column memory_columns[] = {
	{.name = "device", .type = RESULT_TEXT, .title = "Device", .about = "Device of the memory", RESULT_FIELD(struct share_row, device)},
	{.name = "held_by", .type = RESULT_TEXT, .title = "Held by",
	 .about = "What the row sums up: all, a category, an operator, a module or a line", RESULT_FIELD(struct share_row, held_by)},
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the category, operator or module, or path of the file",
	 RESULT_FIELD(struct share_row, share.name)},
	{.name = "line", .type = RESULT_INTEGER, .title = "Line", .about = "Line of the file", .get = get_share_line},
	{.name = "bytes", .type = RESULT_BYTES, .title = "Size", .about = "Live bytes at the peak of the device",
	 RESULT_FIELD(struct share_row, share.bytes)},
	{.name = "percent", .type = RESULT_PERCENT, .title = "Share", .about = "Share of the peak", .get = get_share_percent},
	{.name = "blocks", .type = RESULT_COUNT, .title = "Blocks", .about = "Allocations that are live at the peak",
	 .get = get_share_blocks},
};
const struct result_declaration table_memory = RESULT_DECLARATION("memory", "What holds memory at the peak of a device", memory_columns);

static void put_share(const struct run_rows *rows, const struct ops_memory_peak *peak, const char *by,
                      struct ops_memory_share share)
{
	char device[OPS_MEMORY_DEVICE_ROOM];

	(rows->as_text ? ops_memory_device_title : ops_memory_device_name)(peak->device, device);
	run_rows_add(rows, &(struct share_row){ops_string_of(device), ops_string_of(by), peak, share});
}

static void put_shares(const struct run_rows *rows, const struct ops_memory_peak *peak, const char *by,
                       const struct ops_memory_share *shares, size_t count)
{
	for (size_t i = 0; i < count && i < rows->limit; i++)
		put_share(rows, peak, by, shares[i]);
}

static bool view_tables_put_peak(void *context, const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak)
{
	const struct run_rows *rows = context;

	(void)timeline;
	put_share(rows, peak, "all", (struct ops_memory_share){peak->bytes, {"", 0}, 0, (uint32_t)peak->block_count});
	for (int category = 0; category < OPS_MEMORY_CATEGORY_COUNT; category++)
		if (peak->by_category[category])
			put_share(rows, peak, "category",
			          (struct ops_memory_share){.bytes = peak->by_category[category],
			                                    .name = ops_string_of((rows->as_text ? ops_memory_category_title : ops_memory_category_name)(category))});
	put_shares(rows, peak, "operator", peak->operators, peak->operator_count);
	put_shares(rows, peak, "module", peak->modules, peak->module_count);
	put_shares(rows, peak, "line", peak->lines, peak->line_count);
	put_shares(rows, peak, "shape", peak->shapes, peak->shape_count);
	return true;
}

enum ops_code memory_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                          struct ops_error *error)
{
	return ops_memory_each_peak(trace, context, view_tables_put_peak, (void *)rows, error);
}

/* --- overview ------------------------------------------------------------------------------------------------------- */

struct overview_row {
	const char *view;
	struct ops_string name;
	uint64_t calls;
	int64_t total_ns, self_ns, device_ns;
};

#define OVERVIEW_FIELD(member) RESULT_FIELD(struct overview_row, member)
static const struct result_column overview_columns[] = {
	{.name = "view", .type = RESULT_TEXT, .title = "View",
	 .about = "What the row is of: a part of the average step, a step, all steps, a phase of the average step, an operator or a kernel; without steps, the whole recording instead",
	 OVERVIEW_FIELD(view)},
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Its name", OVERVIEW_FIELD(name)},
	{.name = "calls", .type = RESULT_COUNT, .title = "Calls", .about = "Number of steps, calls or launches", OVERVIEW_FIELD(calls)},
	{.name = "total_us", .type = RESULT_TIME, .title = "Total", .about = "Its time", OVERVIEW_FIELD(total_ns)},
	{.name = "self_us", .type = RESULT_TIME, .title = "Self", .about = "Time without that of other operators inside",
	 OVERVIEW_FIELD(self_ns)},
	{.name = "device_us", .type = RESULT_TIME, .title = "Device", .about = "Time of the device work that it started",
	 OVERVIEW_FIELD(device_ns)},
};
const struct result_declaration table_overview = RESULT_DECLARATION("overview", "A part of what takes most time", overview_columns);

/* Returns the number of steps that the means cover. */
static size_t view_tables_averaged(const struct ops_views *views)
{
	return views->steps.count - view_averaged_from(views);
}

static void view_tables_put_steps(const struct run_rows *rows, const struct ops_views *views)
{
	for (int category = 0; views->steps.count && category <= VIEW_TIME_COUNT; category++) {
		double average_ns = view_step_shown_average_ns(views, (enum view_category)category);
		const char *name = view_category_name((enum view_category)category);

		run_rows_add(rows, &(struct overview_row){views->unmarked ? "whole recording" : "average step", ops_string_of(name), view_tables_averaged(views),
		                                                   llround(average_ns), RESULT_NULL, RESULT_NULL});
	}
	for (size_t i = 0; !views->unmarked && i < views->steps.count && i < rows->limit; i++) {
		const struct view_step *step = &views->steps.items[i];

		run_rows_add(rows, &(struct overview_row){"step", step->name, 1, step->end_ns - step->start_ns,
		                                                   RESULT_NULL, step->time_ns[VIEW_TIME_KERNEL]});
	}
}

/* Writes the comparison of the steps, and the phases of the average step on the host. */
static void put_step_stats(const struct run_rows *rows, const struct ops_views *views, const struct view_step_phases *phases,
                           const struct view_step_stats *stats)
{
	size_t count = view_tables_averaged(views);

	if (!views->unmarked) {
		run_rows_add(rows, &(struct overview_row){"steps", ops_string_of("median"), count, llround(stats->median_ns), RESULT_NULL, RESULT_NULL});
		run_rows_add(rows, &(struct overview_row){"steps", ops_string_of("p95"), count, llround(stats->p95_ns), RESULT_NULL, RESULT_NULL});
	}
	for (int kind = OPS_ITERATION_NONE + 1; kind < OPS_ITERATION_KIND_COUNT; kind++) {
		const struct view_step_kind *of = &stats->kinds[kind];
		const char *name = ops_iteration_kind_name((enum ops_iteration_kind)kind);

		if (!of->count)
			continue;
		run_rows_add(rows, &(struct overview_row){name, ops_string_of("median"), of->count, llround(of->median_ns),
		                                                   RESULT_NULL, RESULT_NULL});
		run_rows_add(rows, &(struct overview_row){name, ops_string_of("p95"), of->count, llround(of->p95_ns),
		                                                   RESULT_NULL, RESULT_NULL});
	}
	if (stats->has_waits)
		run_rows_add(rows,
		                    &(struct overview_row){views->unmarked ? "whole recording" : "steps", ops_string_of("waited_for_cpu"), stats->waited_steps,
		                                           llround(stats->waited_average_ns), RESULT_NULL, RESULT_NULL});
	for (int phase = 0; phases->known && phase < OPS_PHASE_COUNT; phase++)
		run_rows_add(rows,
		                    &(struct overview_row){"phase", ops_string_of(ops_phase_name((enum ops_phase)phase)), count,
		                                           llround(phases->host_ns[phase]), RESULT_NULL,
		                                           llround(phases->device_ns[phase])});
}

static bool view_tables_put_phases(const struct run_rows *rows, const struct ops_views *views)
{
	struct view_step_stats stats = {0};
	struct view_step_phases phases;
	bool done = view_phases_find(views, &phases) && view_step_stats_find(views, &phases, &stats);

	if (done && views->steps.count)
		put_step_stats(rows, views, &phases, &stats);
	view_step_stats_release(&stats);
	view_phases_release(&phases);
	return done;
}

static bool view_tables_put_operators(const struct run_rows *rows, const struct ops_views *views)
{
	view_operator_list list;
	bool done = view_operators_find(views, &list);

	for (size_t i = 0; done && i < list.count && i < rows->limit; i++) {
		const struct view_operator_row *row = &list.items[i];

		run_rows_add(rows, &(struct overview_row){"operator", row->name, row->calls, row->host_total_ns, row->host_self_ns,
		                                          row->device_total_ns});
	}
	OPS_ARRAY_RELEASE(&list);
	return done;
}

static bool view_tables_put_kernels(const struct run_rows *rows, const struct ops_views *views)
{
	view_kernel_list list;
	bool done = view_kernels_find(views, false, &list);

	for (size_t i = 0; done && i < list.count && i < rows->limit; i++) {
		const struct view_kernel_row *row = &list.items[i];

		run_rows_add(rows, &(struct overview_row){"kernel", row->name, row->calls, row->total_ns, row->total_ns, row->total_ns});
	}
	OPS_ARRAY_RELEASE(&list);
	return done;
}

enum ops_code overview_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                            struct ops_error *error)
{
	struct ops_views own;
	const struct ops_views *views = open_views(rows, trace, &own);
	bool done = views != NULL;

	(void)context;
	if (done)
		view_tables_put_steps(rows, views);
	done = done && view_tables_put_phases(rows, views) && view_tables_put_operators(rows, views) && view_tables_put_kernels(rows, views);
	ops_views_release(&own);
	return done ? OPS_OK : ops_fault_memory(error);
}

void view_append_line(const struct ops_views *views, uint32_t row, struct ops_buffer *out)
{
	uint32_t line;
	struct ops_string file = row == OPS_NONE ? (struct ops_string){0} : ops_event_line(views->trace, row, &line);

	if (file.size)
		ops_buffer_printf(out, "%.*s:%" PRIu32, (int)file.size, file.bytes, line);
}

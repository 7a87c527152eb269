/* SPDX-License-Identifier: Apache-2.0
 *
 * Views as tables of typed columns, for spreadsheets, reports and programs: the overview, kernels, modules, and memory
 * at its peak. With several workers each row has its worker.
 */
#include "analyze/views/view_tables.h"

#include <math.h>
#include <string.h>

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/modules.h>

#include "analyze/module_columns.h"
#include "analyze/run_trace.h"
#include "analyze/sum.h"
#include "analyze/tables.h"
#include "analyze/views/view_step_stats.h"
#include "base/fault.h"
#include "base/text.h"

struct filler {
	struct result_table *table;
	const struct ops_rank *worker; /* NULL: there is only one worker */
	size_t rows_max;                 /* rows per worker */
	const int64_t *memory_at_ns;     /* NULL: at the peak */
};

static void view_tables_put_row(const struct filler *filler, const void *row)
{
	if (filler->worker)
		result_text(filler->table, ops_string_of(filler->worker->name));
	result_add(filler->table, row);
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

RESULT_GETTER(get_kernel_percent, struct view_kernel_row, number, result_round(100 * row->share, 2))
RESULT_GETTER(get_kernel_mean, struct view_kernel_row, integer, row->calls ? llround((double)row->total_ns / (double)row->calls) : 0)
RESULT_GETTER(get_blocks_per_sm, struct view_kernel_row, number, result_round(row->blocks_per_sm, 2))
RESULT_GETTER(get_occupancy, struct view_kernel_row, number, result_round(row->occupancy_pct, 2))
RESULT_GETTER(get_tensor_cores, struct view_kernel_row, text, ops_string_of(row->tensor_cores ? "yes" : "no"))

#define BY_OPERATOR 1u
#define BY_OPERATOR_ONLY .option = BY_OPERATOR, .when = "with --by-operator"
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
	{.name = "percent", .type = RESULT_PERCENT, .title = "Share", .about = "Share of the time of all kernels",
	 .get = get_kernel_percent},
	{.name = "mean_us", .type = RESULT_TIME, .title = "Mean", .about = "Mean duration", .get = get_kernel_mean},
	{.name = "min_us", .type = RESULT_TIME, .title = "Shortest", .about = "Shortest duration", KERNEL_FIELD(min_ns)},
	{.name = "max_us", .type = RESULT_TIME, .title = "Longest", .about = "Longest duration", KERNEL_FIELD(max_ns)},
	{.name = "blocks_per_sm", .type = RESULT_NUMBER, .title = "Blocks per SM",
	 .about = "Blocks of the grid for each multiprocessor of the device; less than 1 leaves multiprocessors idle",
	 .get = get_blocks_per_sm},
	{.name = "occupancy_percent", .type = RESULT_PERCENT, .title = "Occupancy",
	 .about = "Active warps of those possible, estimated from the launch", .get = get_occupancy},
	{.name = "tensor_cores", .type = RESULT_TEXT, .title = "Tensor cores",
	 .about = "Whether the kernel uses tensor cores, by its name", .get = get_tensor_cores},
};
const struct result_declaration table_kernels = RESULT_DECLARATION("kernels", "The kernels of a name, or of a launch", kernel_columns);

static void put_kernel(void *context, const struct view_kernel_row *row)
{
	view_tables_put_row(context, row);
}

static bool fill_kernels(const struct filler *filler, const struct ops_trace *trace, bool by_operator)
{
	struct ops_views own;
	const struct ops_views *views = ops_views_open(&own, trace, !filler->worker);
	bool done = views && view_each_kernel(views, by_operator, filler->rows_max, put_kernel, (void *)filler);

	ops_views_release(&own);
	return done;
}

RESULT_GETTER(get_category_percent, struct view_category_row, number, result_round(100 * row->share, 2))
RESULT_GETTER(get_category_step_calls, struct view_category_row, number, result_round(row->step_calls, 2))

static void get_category_step(const void *any_row, struct result_cell *cell)
{
	const struct view_category_row *row = any_row;

	cell->is_null = isnan(row->step_ns);
	cell->integer = cell->is_null ? 0 : llround(row->step_ns);
}

#define CATEGORY_FIELD(member) RESULT_FIELD(struct view_category_row, member)
static const struct result_column category_columns[] = {
	{.name = "category", .type = RESULT_TEXT, .title = "Category",
	 .about = "What the device work computes, by its name: kernels, copies and fills", CATEGORY_FIELD(category)},
	{.name = "calls", .type = RESULT_COUNT, .title = "Calls", .about = "Number of kernels, copies and fills", CATEGORY_FIELD(calls)},
	{.name = "total_us", .type = RESULT_TIME, .title = "Total", .about = "Sum of the durations", CATEGORY_FIELD(total_ns)},
	{.name = "percent", .type = RESULT_PERCENT, .title = "Share", .about = "Share of the time of all device work",
	 .get = get_category_percent},
	{.name = "step_us", .type = RESULT_TIME, .title = "Per step", .about = "Total over the number of steps; null without steps",
	 .nullable = true, .get = get_category_step},
	{.name = "step_calls", .type = RESULT_NUMBER, .title = "Calls per step",
	 .about = "Calls over the number of steps; null without steps", .nullable = true, .get = get_category_step_calls},
};
const struct result_declaration table_kernel_categories =
	RESULT_DECLARATION("kernel_categories", "The device work of a category", category_columns);

static void put_category(void *context, const struct view_category_row *row)
{
	view_tables_put_row(context, row);
}

static bool fill_kernel_categories(const struct filler *filler, const struct ops_trace *trace)
{
	struct ops_views own;
	const struct ops_views *views = ops_views_open(&own, trace, !filler->worker);

	if (views)
		view_each_category(views, filler->rows_max, put_category, (void *)filler);
	ops_views_release(&own);
	return views != NULL;
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

static bool fill_modules(const struct filler *filler, const struct ops_trace *trace, bool by_class)
{
	struct ops_module_tree *tree;
	const struct ops_module_row *rows;
	size_t count;

	if (ops_module_tree_new(trace, &tree, NULL))
		return false;
	rows = by_class ? ops_module_tree_classes(tree, &count) : ops_module_tree_rows(tree, &count);
	for (size_t i = 0; i < count && i < filler->rows_max; i++)
		view_tables_put_row(filler, &rows[i]);
	ops_module_tree_free(tree);
	return true;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

struct share_row {
	struct ops_string device, held_by;
	const struct ops_memory_peak *peak;
	struct ops_memory_share share;
};

static void get_share_line(const void *any_row, struct result_cell *cell)
{
	const struct share_row *row = any_row;

	*cell = (struct result_cell){.is_null = !row->share.line, .integer = row->share.line};
}

static void get_share_blocks(const void *any_row, struct result_cell *cell)
{
	const struct share_row *row = any_row;

	*cell = (struct result_cell){.is_null = !row->share.blocks, .integer = row->share.blocks};
}

static double view_tables_percent_of(int64_t bytes, int64_t all)
{
	return all > 0 ? result_round(100 * (double)bytes / (double)all, 2) : (double)NAN;
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

static void put_share(const struct filler *filler, const struct ops_memory_peak *peak, const char *by,
                      struct ops_memory_share share)
{
	char device[OPS_MEMORY_DEVICE_ROOM];

	ops_memory_device_name(peak->device, device);
	view_tables_put_row(filler, &(struct share_row){ops_string_of(device), ops_string_of(by), peak, share});
}

static void put_shares(const struct filler *filler, const struct ops_memory_peak *peak, const char *by,
                       const struct ops_memory_share *shares, size_t count)
{
	for (size_t i = 0; i < count && i < filler->rows_max; i++)
		put_share(filler, peak, by, shares[i]);
}

static bool view_tables_put_peak(void *context, const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak)
{
	const struct filler *filler = context;

	(void)timeline;
	put_share(filler, peak, "all", (struct ops_memory_share){peak->bytes, {"", 0}, 0, (uint32_t)peak->block_count});
	for (int category = 0; category < OPS_MEMORY_CATEGORY_COUNT; category++)
		if (peak->by_category[category])
			put_share(filler, peak, "category",
			          (struct ops_memory_share){.bytes = peak->by_category[category],
			                                    .name = ops_string_of(ops_memory_category_name(category))});
	put_shares(filler, peak, "operator", peak->operators, peak->operator_count);
	put_shares(filler, peak, "module", peak->modules, peak->module_count);
	put_shares(filler, peak, "line", peak->lines, peak->line_count);
	put_shares(filler, peak, "shape", peak->shapes, peak->shape_count);
	return true;
}

static bool fill_memory(const struct filler *filler, const struct ops_trace *trace)
{
	return ops_memory_each_peak(trace, filler->memory_at_ns, view_tables_put_peak, (void *)filler, NULL) == OPS_OK;
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
	 .about = "What the row is of: a part of the average step, a step, all steps, a phase of the average step, an operator or a kernel",
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

static void view_tables_put_steps(const struct filler *filler, const struct ops_views *views)
{
	for (int category = 0; views->steps.count && category <= VIEW_TIME_COUNT; category++) {
		double average_ns = view_step_shown_average_ns(views, (enum view_category)category);
		const char *name = view_category_name((enum view_category)category);

		view_tables_put_row(filler, &(struct overview_row){"average step", ops_string_of(name), views->steps.count,
		                                                   llround(average_ns), RESULT_NULL, RESULT_NULL});
	}
	for (size_t i = 0; i < views->steps.count && i < filler->rows_max; i++) {
		const struct view_step *step = &views->steps.items[i];

		view_tables_put_row(filler, &(struct overview_row){"step", step->name, 1, step->end_ns - step->start_ns,
		                                                   RESULT_NULL, step->time_ns[VIEW_TIME_KERNEL]});
	}
}

/* Writes the comparison of the steps, and the phases of the average step on the host. */
static void put_step_stats(const struct filler *filler, const struct ops_views *views, const struct view_step_phases *phases,
                           const struct view_step_stats *stats)
{
	size_t count = views->steps.count;

	view_tables_put_row(filler, &(struct overview_row){"steps", ops_string_of("median"), count, llround(stats->median_ns),
	                                                   RESULT_NULL, RESULT_NULL});
	view_tables_put_row(filler, &(struct overview_row){"steps", ops_string_of("p95"), count, llround(stats->p95_ns),
	                                                   RESULT_NULL, RESULT_NULL});
	for (int kind = OPS_ITERATION_NONE + 1; kind < OPS_ITERATION_KIND_COUNT; kind++) {
		const struct view_step_kind *of = &stats->kinds[kind];
		const char *name = ops_iteration_kind_name((enum ops_iteration_kind)kind);

		if (!of->count)
			continue;
		view_tables_put_row(filler, &(struct overview_row){name, ops_string_of("median"), of->count, llround(of->median_ns),
		                                                   RESULT_NULL, RESULT_NULL});
		view_tables_put_row(filler, &(struct overview_row){name, ops_string_of("p95"), of->count, llround(of->p95_ns),
		                                                   RESULT_NULL, RESULT_NULL});
	}
	if (stats->has_waits)
		view_tables_put_row(filler,
		                    &(struct overview_row){"steps", ops_string_of("waited_for_cpu"), count,
		                                           llround(stats->waited_average_ns), RESULT_NULL, RESULT_NULL});
	for (int phase = 0; phases->known && phase < OPS_PHASE_COUNT; phase++)
		view_tables_put_row(filler,
		                    &(struct overview_row){"phase", ops_string_of(ops_phase_name((enum ops_phase)phase)), count,
		                                           llround(phases->host_ns[phase]), RESULT_NULL,
		                                           llround(phases->device_ns[phase])});
}

static bool view_tables_put_phases(const struct filler *filler, const struct ops_views *views)
{
	struct view_step_stats stats = {0};
	struct view_step_phases phases;
	bool done = view_phases_find(views, &phases) && view_step_stats_find(views, &phases, &stats);

	if (done && views->steps.count)
		put_step_stats(filler, views, &phases, &stats);
	view_step_stats_release(&stats);
	view_phases_release(&phases);
	return done;
}

static void put_overview_operator(void *context, const struct view_operator_row *row)
{
	view_tables_put_row(context, &(struct overview_row){"operator", row->name, row->calls, row->host_total_ns,
	                                                    row->host_self_ns, row->device_total_ns});
}

static void put_overview_kernel(void *context, const struct view_kernel_row *row)
{
	view_tables_put_row(
		context, &(struct overview_row){"kernel", row->name, row->calls, row->total_ns, row->total_ns, row->total_ns});
}

static bool fill_overview(const struct filler *filler, const struct ops_trace *trace)
{
	struct ops_views own;
	const struct ops_views *views = ops_views_open(&own, trace, !filler->worker);
	bool done = views != NULL;

	if (done)
		view_tables_put_steps(filler, views);
	done = done && view_tables_put_phases(filler, views) &&
	       view_each_operator(views, filler->rows_max, put_overview_operator, (void *)filler) &&
	       view_each_kernel(views, false, filler->rows_max, put_overview_kernel, (void *)filler);
	ops_views_release(&own);
	return done;
}

/* --- all tables ----------------------------------------------------------------------------------------------------- */

static void add_columns(struct result_table *table, enum view_table which)
{
	static const char *const empty[VIEW_TABLE_COUNT] = {
		[VIEW_TABLE_KERNELS] = "no kernels in the trace",
		[VIEW_TABLE_KERNELS_BY_CATEGORY] = "no kernels: the trace has no device work",
	};
	static const struct result_declaration *const declarations[] = {
		[VIEW_TABLE_OVERVIEW] = &table_overview, [VIEW_TABLE_MEMORY] = &table_memory,
		[VIEW_TABLE_MODULES] = &table_modules, [VIEW_TABLE_MODULE_CLASSES] = &table_modules,
		[VIEW_TABLE_KERNELS] = &table_kernels, [VIEW_TABLE_KERNELS_BY_OPERATOR] = &table_kernels,
		[VIEW_TABLE_KERNELS_BY_CATEGORY] = &table_kernel_categories,
	};

	result_declare(table, declarations[which], which == VIEW_TABLE_KERNELS_BY_OPERATOR ? BY_OPERATOR : 0);
	table->empty = empty[which];
}

static bool view_tables_fill(const struct filler *filler, const struct ops_trace *trace, enum view_table which)
{
	if (which == VIEW_TABLE_OVERVIEW)
		return fill_overview(filler, trace);
	if (which == VIEW_TABLE_MEMORY)
		return fill_memory(filler, trace);
	if (which == VIEW_TABLE_MODULES || which == VIEW_TABLE_MODULE_CLASSES)
		return fill_modules(filler, trace, which == VIEW_TABLE_MODULE_CLASSES);
	if (which == VIEW_TABLE_KERNELS_BY_CATEGORY)
		return fill_kernel_categories(filler, trace);
	return fill_kernels(filler, trace, which == VIEW_TABLE_KERNELS_BY_OPERATOR);
}

static enum ops_code fill_worker(const struct ops_trace_source *source, const struct filler *filler,
                                 const struct ops_rank *workers, size_t i, enum view_table which,
                                 struct ops_error *error)
{
	struct ops_trace *trace = NULL;
	enum ops_code code = ops_run_trace(workers, source, i, &trace, error);

	if (!code && !view_tables_fill(filler, trace, which))
		code = ops_fault_memory(error);
	ops_trace_unref(trace);
	return code;
}

enum ops_code view_table_fill(struct result_table *table, const struct ops_rank *workers, size_t count, enum view_table which,
                              const struct view_table_options *options, struct ops_error *error)
{
	size_t rows_max = options->rows_max ? options->rows_max : SIZE_MAX;
	enum ops_code code = OPS_OK;

	if (count > 1)
		result_columns(table, &(struct result_column){.name = "worker", .type = RESULT_TEXT, .title = "Worker"}, 1);
	add_columns(table, which);
	table->copies = true;
	for (size_t i = 0; !code && i < count; i++) {
		struct filler filler = {table, count > 1 ? &workers[i] : NULL, rows_max, options->memory_at_ns};

		code = fill_worker(options->source, &filler, workers, i, which, error);
	}
	return code;
}

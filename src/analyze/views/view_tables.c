/* SPDX-License-Identifier: Apache-2.0
 *
 * Views as tables of typed columns, for spreadsheets, reports and programs: all that matters most, kernels, modules, and who
 * holds memory when most is held. Of several workers each row says whose it is.
 */
#include <opstrobe/views.h>

#include <math.h>
#include <string.h>

#include <opstrobe/memory.h>
#include <opstrobe/modules.h>

#include "analyze/module_columns.h"
#include "analyze/result.h"
#include "analyze/sum.h"
#include "analyze/views/view_step_stats.h"
#include "analyze/views/view_tables.h"
#include "base/fault.h"

/* Upper bound on devices. A corrupt file could list more, and each costs a pass over all blocks. */
#define DEVICES_MAX 256

struct filler {
	struct result_table *table;
	const struct ops_rank *worker; /* NULL: there is but one */
	size_t rows_max;                 /* of a worker */
	const int64_t *memory_at_ns;     /* NULL: at the peak */
};

static struct ops_string string_of(const char *text)
{
	return (struct ops_string){text, strlen(text)};
}

static void put_row(const struct filler *filler, const void *row)
{
	if (filler->worker)
		result_text(filler->table, string_of(filler->worker->name));
	result_add(filler->table, row);
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

RESULT_GETTER(get_kernel, struct view_kernel_row, text, row->name)
RESULT_GETTER(get_operator, struct view_kernel_row, text, row->operator)
RESULT_GETTER(get_grid, struct view_kernel_row, text, row->grid)
RESULT_GETTER(get_block, struct view_kernel_row, text, row->block)
RESULT_GETTER(get_kernel_calls, struct view_kernel_row, integer, (int64_t)row->calls)
RESULT_GETTER(get_kernel_total, struct view_kernel_row, integer, row->total_ns)
RESULT_GETTER(get_kernel_percent, struct view_kernel_row, number, result_round(100 * row->share, 2))
RESULT_GETTER(get_kernel_mean, struct view_kernel_row, integer, row->calls ? row->total_ns / (int64_t)row->calls : 0)
RESULT_GETTER(get_kernel_min, struct view_kernel_row, integer, row->min_ns)
RESULT_GETTER(get_kernel_max, struct view_kernel_row, integer, row->max_ns)
RESULT_GETTER(get_blocks_per_sm, struct view_kernel_row, number, result_round(row->blocks_per_sm, 2))
RESULT_GETTER(get_occupancy, struct view_kernel_row, number, result_round(row->occupancy_pct, 2))
RESULT_GETTER(get_tensor_cores, struct view_kernel_row, text, string_of(row->tensor_cores ? "yes" : "no"))

static const struct result_column kernel_names[] = {
	{.name = "name", .type = RESULT_TEXT, .get = get_kernel},
};
static const struct result_column launch_columns[] = {
	{.name = "operator", .type = RESULT_TEXT, .about = "The operator whose call launched it", .get = get_operator},
	{.name = "grid", .type = RESULT_TEXT, .priority = RESULT_MINOR, .about = "Blocks in each direction", .get = get_grid},
	{.name = "block", .type = RESULT_TEXT, .priority = RESULT_MINOR, .about = "Threads of a block in each direction",
	 .get = get_block},
};
static const struct result_column kernel_columns[] = {
	{.name = "calls", .type = RESULT_COUNT, .get = get_kernel_calls},
	{.name = "total_us", .type = RESULT_TIME, .get = get_kernel_total},
	{.name = "percent", .type = RESULT_PERCENT, .about = "Share of the time of all kernels", .get = get_kernel_percent},
	{.name = "mean_us", .type = RESULT_TIME, .get = get_kernel_mean},
	{.name = "min_us", .type = RESULT_TIME, .get = get_kernel_min},
	{.name = "max_us", .type = RESULT_TIME, .get = get_kernel_max},
	{.name = "blocks_per_sm", .type = RESULT_NUMBER, .about = "Blocks of the grid for each multiprocessor of the device",
	 .get = get_blocks_per_sm},
	{.name = "occupancy_percent", .type = RESULT_PERCENT, .about = "Achieved occupancy, estimated from the launch",
	 .get = get_occupancy},
	{.name = "tensor_cores", .type = RESULT_TEXT, .about = "Whether the kernel uses tensor cores, by its name",
	 .get = get_tensor_cores},
};

static void put_kernel(void *context, const struct view_kernel_row *row)
{
	put_row(context, row);
}

static bool fill_kernels(const struct filler *filler, const struct ops_trace *trace, bool by_operator)
{
	struct ops_views own;
	const struct ops_views *views = ops_views_open(&own, trace, !filler->worker);
	bool done = views && view_each_kernel(views, by_operator, filler->rows_max, put_kernel, (void *)filler);

	ops_views_release(&own);
	return done;
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

RESULT_GETTER(get_path, struct ops_module_row, text, row->path)
RESULT_GETTER(get_class, struct ops_module_row, text, row->class_name)
RESULT_GETTER(get_depth, struct ops_module_row, integer, row->depth)

static const struct result_column module_names[] = {
	{.name = "path", .type = RESULT_TEXT, .about = "Names from the root module on, joined by dots", .get = get_path},
	{.name = "class", .type = RESULT_TEXT, .get = get_class},
	{.name = "depth", .type = RESULT_INTEGER, .about = "0 for root modules", .get = get_depth},
};

static bool fill_modules(const struct filler *filler, const struct ops_trace *trace, bool by_class)
{
	struct ops_module_tree *tree;
	const struct ops_module_row *rows;
	size_t count;

	if (ops_module_tree_new(trace, &tree, NULL))
		return false;
	rows = by_class ? ops_module_tree_classes(tree, &count) : ops_module_tree_rows(tree, &count);
	for (size_t i = 0; i < count && i < filler->rows_max; i++)
		put_row(filler, &rows[i]);
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

static double percent_of(int64_t bytes, int64_t all)
{
	return all > 0 ? result_round(100 * (double)bytes / (double)all, 2) : (double)NAN;
}

RESULT_GETTER(get_share_device, struct share_row, text, row->device)
RESULT_GETTER(get_held_by, struct share_row, text, row->held_by)
RESULT_GETTER(get_share_name, struct share_row, text, row->share.name)
RESULT_GETTER(get_share_bytes, struct share_row, integer, row->share.bytes)
RESULT_GETTER(get_share_percent, struct share_row, number, percent_of(row->share.bytes, row->peak->bytes))

static const struct result_column memory_columns[] = {
	{.name = "device", .type = RESULT_TEXT, .get = get_share_device},
	{.name = "held_by", .type = RESULT_TEXT, .about = "What the row sums up: all, a category, an operator, a module or a line",
	 .get = get_held_by},
	{.name = "name", .type = RESULT_TEXT, .get = get_share_name},
	{.name = "line", .type = RESULT_INTEGER, .get = get_share_line},
	{.name = "bytes", .type = RESULT_BYTES, .about = "Live bytes at the peak of the device", .get = get_share_bytes},
	{.name = "percent", .type = RESULT_PERCENT, .about = "Share of the peak", .get = get_share_percent},
	{.name = "blocks", .type = RESULT_COUNT, .about = "Allocations that are live at the peak", .get = get_share_blocks},
};

static void put_share(const struct filler *filler, const struct ops_memory_peak *peak, const char *by,
                      struct ops_memory_share share)
{
	char device[OPS_MEMORY_DEVICE_ROOM];

	ops_memory_device_name(peak->device, device);
	put_row(filler, &(struct share_row){string_of(device), string_of(by), peak, share});
}

static void put_shares(const struct filler *filler, const struct ops_memory_peak *peak, const char *by,
                       const struct ops_memory_share *shares, size_t count)
{
	for (size_t i = 0; i < count && i < filler->rows_max; i++)
		put_share(filler, peak, by, shares[i]);
}

static void put_peak(const struct filler *filler, const struct ops_memory_peak *peak)
{
	put_share(filler, peak, "all", (struct ops_memory_share){peak->bytes, {"", 0}, 0, (uint32_t)peak->block_count});
	for (int category = 0; category < OPS_MEMORY_CATEGORY_COUNT; category++)
		if (peak->by_category[category])
			put_share(filler, peak, "category",
			          (struct ops_memory_share){.bytes = peak->by_category[category],
			                                    .name = string_of(ops_memory_category_name(category))});
	put_shares(filler, peak, "operator", peak->operators, peak->operator_count);
	put_shares(filler, peak, "module", peak->modules, peak->module_count);
	put_shares(filler, peak, "line", peak->lines, peak->line_count);
	put_shares(filler, peak, "shape", peak->shapes, peak->shape_count);
}

static bool fill_memory(const struct filler *filler, const struct ops_trace *trace)
{
	struct ops_memory_timeline *timeline;
	struct ops_memory_device device;
	int64_t at_ns = filler->memory_at_ns ? ops_sum(ops_trace_origin(trace), *filler->memory_at_ns) : 0;
	bool done = true, more;

	if (ops_memory_timeline_new((struct ops_trace *)trace, &timeline, NULL))
		return false;
	more = ops_memory_next_device(timeline, NULL, &device);
	for (int i = 0; done && more && i < DEVICES_MAX; i++) {
		struct ops_memory_peak peak = {0};

		done = !(filler->memory_at_ns ? ops_memory_peak_within(timeline, device, at_ns, at_ns, &peak, NULL)
		                              : ops_memory_peak_of(timeline, device, &peak, NULL));
		if (done)
			put_peak(filler, &peak);
		ops_memory_peak_release(&peak);
		more = ops_memory_next_device(timeline, &device, &device);
	}
	ops_memory_timeline_free(timeline);
	return done;
}

/* --- what matters most ---------------------------------------------------------------------------------------------- */

#define NO_TIME INT64_MIN /* null */

struct overview_row {
	const char *view;
	struct ops_string name;
	uint64_t calls;
	int64_t total_ns, self_ns, device_ns;
};

static struct result_cell time_cell(int64_t ns)
{
	return (struct result_cell){.is_null = ns == NO_TIME, .integer = ns};
}

static void get_overview_self(const void *any_row, struct result_cell *cell)
{
	*cell = time_cell(((const struct overview_row *)any_row)->self_ns);
}

static void get_overview_device(const void *any_row, struct result_cell *cell)
{
	*cell = time_cell(((const struct overview_row *)any_row)->device_ns);
}

RESULT_GETTER(get_view, struct overview_row, text, string_of(row->view))
RESULT_GETTER(get_overview_name, struct overview_row, text, row->name)
RESULT_GETTER(get_overview_calls, struct overview_row, integer, (int64_t)row->calls)
RESULT_GETTER(get_overview_total, struct overview_row, integer, row->total_ns)

static const struct result_column overview_columns[] = {
	{.name = "view", .type = RESULT_TEXT, .about = "What the row is of: a part of the average step, a step, all steps, a phase of the average step, an operator or a kernel",
	 .get = get_view},
	{.name = "name", .type = RESULT_TEXT, .get = get_overview_name},
	{.name = "calls", .type = RESULT_COUNT, .get = get_overview_calls},
	{.name = "total_us", .type = RESULT_TIME, .get = get_overview_total},
	{.name = "self_us", .type = RESULT_TIME, .about = "Time without that of other operators inside", .get = get_overview_self},
	{.name = "device_us", .type = RESULT_TIME, .about = "Time of the device work that it started", .get = get_overview_device},
};

static void put_steps(const struct filler *filler, const struct ops_views *views)
{
	for (int category = 0; views->steps.count && category <= VIEW_TIME_COUNT; category++) {
		double average_ns = view_step_shown_average_ns(views, (enum view_category)category);
		const char *name = view_category_name((enum view_category)category);

		put_row(filler, &(struct overview_row){"average step", string_of(name), views->steps.count, (int64_t)average_ns,
		                                       NO_TIME, NO_TIME});
	}
	for (size_t i = 0; i < views->steps.count && i < filler->rows_max; i++) {
		const struct view_step *step = &views->steps.items[i];

		put_row(filler, &(struct overview_row){"step", step->name, 1, step->end_ns - step->start_ns, NO_TIME,
		                                       step->time_ns[VIEW_TIME_KERNEL]});
	}
}

/* What compares the steps, and the phases of the host's part of the average step. */
static void put_step_stats(const struct filler *filler, const struct ops_views *views, const struct view_step_phases *phases,
                           const struct view_step_stats *stats)
{
	size_t count = views->steps.count;

	put_row(filler, &(struct overview_row){"steps", string_of("median"), count, (int64_t)stats->median_ns, NO_TIME, NO_TIME});
	put_row(filler, &(struct overview_row){"steps", string_of("p95"), count, (int64_t)stats->p95_ns, NO_TIME, NO_TIME});
	if (stats->has_waits)
		put_row(filler, &(struct overview_row){"steps", string_of("waited_for_cpu"), count, (int64_t)stats->waited_average_ns, NO_TIME,
		                                       NO_TIME});
	for (int phase = 0; phases->known && phase < OPS_PHASE_COUNT; phase++)
		put_row(filler, &(struct overview_row){"phase", string_of(ops_phase_name((enum ops_phase)phase)), count,
		                                       (int64_t)phases->host_ns[phase], NO_TIME, (int64_t)phases->device_ns[phase]});
}

static bool put_phases(const struct filler *filler, const struct ops_views *views)
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
	put_row(context, &(struct overview_row){"operator", row->name, row->calls, row->host_total_ns, row->host_self_ns,
	                                        row->device_total_ns});
}

static void put_overview_kernel(void *context, const struct view_kernel_row *row)
{
	put_row(context, &(struct overview_row){"kernel", row->name, row->calls, row->total_ns, row->total_ns, row->total_ns});
}

static bool fill_overview(const struct filler *filler, const struct ops_trace *trace)
{
	struct ops_views own;
	const struct ops_views *views = ops_views_open(&own, trace, !filler->worker);
	bool done = views != NULL;

	if (done)
		put_steps(filler, views);
	done = done && put_phases(filler, views) && view_each_operator(views, filler->rows_max, put_overview_operator, (void *)filler) &&
	       view_each_kernel(views, false, filler->rows_max, put_overview_kernel, (void *)filler);
	ops_views_release(&own);
	return done;
}

/* --- all of them ---------------------------------------------------------------------------------------------------- */

static void add_columns(struct result_table *table, enum ops_view_table which)
{
	switch (which) {
	case OPS_VIEW_OVERVIEW:
		RESULT_DECLARED(table, overview_columns);
		return;
	case OPS_VIEW_MEMORY:
		RESULT_DECLARED(table, memory_columns);
		return;
	case OPS_VIEW_MODULES:
	case OPS_VIEW_MODULE_CLASSES:
		RESULT_DECLARED(table, module_names);
		RESULT_DECLARED(table, module_columns);
		return;
	case OPS_VIEW_KERNELS:
	case OPS_VIEW_KERNELS_BY_OPERATOR:
		RESULT_DECLARED(table, kernel_names);
		if (which == OPS_VIEW_KERNELS_BY_OPERATOR)
			RESULT_DECLARED(table, launch_columns);
		RESULT_DECLARED(table, kernel_columns);
		return;
	}
}

static bool fill(const struct filler *filler, const struct ops_trace *trace, enum ops_view_table which)
{
	if (which == OPS_VIEW_OVERVIEW)
		return fill_overview(filler, trace);
	if (which == OPS_VIEW_MEMORY)
		return fill_memory(filler, trace);
	if (which == OPS_VIEW_MODULES || which == OPS_VIEW_MODULE_CLASSES)
		return fill_modules(filler, trace, which == OPS_VIEW_MODULE_CLASSES);
	return fill_kernels(filler, trace, which == OPS_VIEW_KERNELS_BY_OPERATOR);
}

static enum ops_code fill_worker(const struct ops_trace_source *source, const struct filler *filler,
                                 const struct ops_rank *worker, size_t i, enum ops_view_table which,
                                 struct ops_error *error)
{
	struct ops_trace *taken = NULL;
	enum ops_code code = worker->trace ? OPS_OK : source->take(source->context, i, &taken, error);

	if (!code && !fill(filler, worker->trace ? worker->trace : taken, which))
		code = ops_fault_memory(error);
	ops_trace_unref(taken);
	return code;
}

enum ops_code ops_view_table_of(const struct ops_rank *workers, size_t count, enum ops_view_table which,
                                const struct ops_view_table_options *options, char **ret_text, size_t *ret_size,
                                struct ops_error *error)
{
	size_t rows_max = options->rows_max ? options->rows_max : SIZE_MAX;
	struct ops_buffer out = {0};
	struct result result;
	enum ops_code code = OPS_OK;

	result_init(&result);
	result.room = options->columns;
	if (count > 1)
		result_column(&result.table, "worker", RESULT_TEXT);
	add_columns(&result.table, which);
	result.table.copies = true;
	for (size_t i = 0; !code && i < count; i++) {
		struct filler filler = {&result.table, count > 1 ? &workers[i] : NULL, rows_max, options->memory_at_ns};

		code = fill_worker(options->source, &filler, &workers[i], i, which, error);
	}
	out.failed = !code && !result_write(&result, options->format, &out);
	result_release(&result);
	return ops_buffer_give(&out, code, ret_text, ret_size, error);
}

enum ops_code ops_view_table(const struct ops_rank *workers, size_t count, enum ops_view_table which,
                             enum ops_format format, size_t rows_max, char **ret_text, size_t *ret_size,
                             struct ops_error *error)
{
	const struct ops_view_table_options options = {.format = format, .rows_max = rows_max};

	return ops_view_table_of(workers, count, which, &options, ret_text, ret_size, error);
}

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

#include "analyze/result.h"
#include "analyze/views/view_tables.h"
#include "base/fault.h"

/* More devices than any machine has are those of a file without sense, and each takes a walk over all blocks. */
#define DEVICES_MAX 256

struct filler {
	struct result_table *table;
	const struct ops_worker *worker; /* NULL: there is but one */
	size_t rows_max;                 /* of a worker */
};

static struct ops_string string_of(const char *text)
{
	return (struct ops_string){text, strlen(text)};
}

static void put_worker(const struct filler *filler)
{
	if (filler->worker)
		result_text(filler->table, string_of(filler->worker->name));
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

static void name_kernel_columns(struct result_table *table, bool by_operator)
{
	result_column(table, "name", RESULT_TEXT);
	if (by_operator) {
		RESULT_COLUMNS(table, {"operator", RESULT_TEXT}, {"grid", RESULT_TEXT}, {"block", RESULT_TEXT});
	}
	RESULT_COLUMNS(table, {"calls", RESULT_COUNT}, {"total_us", RESULT_TIME}, {"percent", RESULT_PERCENT},
	               {"mean_us", RESULT_TIME}, {"min_us", RESULT_TIME}, {"max_us", RESULT_TIME},
	               {"blocks_per_sm", RESULT_NUMBER}, {"occupancy_percent", RESULT_PERCENT},
	               {"tensor_cores", RESULT_TEXT});
	table->minor = result_bit(table, "grid") | result_bit(table, "block");
}

static void put_kernel(void *context, const struct view_kernel_row *row)
{
	const struct filler *filler = context;
	struct result_table *table = filler->table;

	put_worker(filler);
	result_text_copy(table, row->name.bytes, row->name.size);
	if (row->by_operator) {
		result_text_copy(table, row->operator.bytes, row->operator.size);
		result_text_copy(table, row->grid.bytes, row->grid.size);
		result_text_copy(table, row->block.bytes, row->block.size);
	}
	result_integer(table, (int64_t)row->calls);
	result_time(table, row->total_ns);
	result_number(table, result_round(100 * row->share, 2));
	result_time(table, row->calls ? row->total_ns / (int64_t)row->calls : 0);
	result_time(table, row->min_ns);
	result_time(table, row->max_ns);
	result_number(table, result_round(row->blocks_per_sm, 2));
	result_number(table, result_round(row->occupancy_pct, 2));
	result_text(table, string_of(row->tensor_cores ? "yes" : "no"));
}

static bool fill_kernels(const struct filler *filler, const struct ops_trace *trace, bool by_operator)
{
	struct ops_views views;
	bool done = ops_views_init(&views, trace) &&
	            view_each_kernel(&views, by_operator, filler->rows_max, put_kernel, (void *)filler);

	ops_views_release(&views);
	return done;
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

static void name_module_columns(struct result_table *table)
{
	RESULT_COLUMNS(table, {"path", RESULT_TEXT}, {"class", RESULT_TEXT}, {"depth", RESULT_INTEGER},
	               {"calls", RESULT_COUNT}, {"parameters", RESULT_COUNT}, {"host_us", RESULT_TIME},
	               {"backward_us", RESULT_TIME}, {"device_us", RESULT_TIME}, {"backward_device_us", RESULT_TIME},
	               {"self_host_us", RESULT_TIME}, {"self_device_us", RESULT_TIME}, {"flops", RESULT_COUNT},
	               {"cpu_memory_bytes", RESULT_BYTES}, {"device_memory_bytes", RESULT_BYTES},
	               {"cpu_allocated_bytes", RESULT_BYTES}, {"cpu_peak_bytes", RESULT_BYTES},
	               {"device_allocated_bytes", RESULT_BYTES}, {"device_peak_bytes", RESULT_BYTES});
}

static void put_module(const struct filler *filler, const struct ops_module_row *row)
{
	struct result_table *table = filler->table;

	put_worker(filler);
	result_text_copy(table, row->path.bytes, row->path.size);
	result_text_copy(table, row->class_name.bytes, row->class_name.size);
	result_integer(table, row->depth);
	result_integer(table, (int64_t)row->calls);
	result_integer(table, (int64_t)row->parameter_count);
	for (int metric = OPS_MODULE_HOST; metric <= OPS_MODULE_BACKWARD_DEVICE; metric++)
		result_time(table, row->total[metric]);
	result_time(table, row->self[OPS_MODULE_HOST]);
	result_time(table, row->self[OPS_MODULE_DEVICE]);
	result_integer(table, row->total[OPS_MODULE_FLOPS]);
	result_integer(table, row->total[OPS_MODULE_CPU_MEMORY]);
	result_integer(table, row->total[OPS_MODULE_DEVICE_MEMORY]);
	result_integer(table, row->total[OPS_MODULE_CPU_ALLOCATED]);
	result_integer(table, row->cpu_peak_bytes);
	result_integer(table, row->total[OPS_MODULE_DEVICE_ALLOCATED]);
	result_integer(table, row->device_peak_bytes);
}

static bool fill_modules(const struct filler *filler, const struct ops_trace *trace, bool by_class)
{
	struct ops_module_tree *tree;
	const struct ops_module_row *rows;
	size_t count;

	if (ops_module_tree_new(trace, &tree, NULL))
		return false;
	rows = by_class ? ops_module_tree_classes(tree, &count) : ops_module_tree_rows(tree, &count);
	for (size_t i = 0; i < count && i < filler->rows_max; i++)
		put_module(filler, &rows[i]);
	ops_module_tree_free(tree);
	return true;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static void name_memory_columns(struct result_table *table)
{
	RESULT_COLUMNS(table, {"device", RESULT_TEXT}, {"held_by", RESULT_TEXT}, {"name", RESULT_TEXT},
	               {"line", RESULT_INTEGER}, {"bytes", RESULT_BYTES}, {"percent", RESULT_PERCENT},
	               {"blocks", RESULT_COUNT});
}

static void put_share(const struct filler *filler, const struct ops_memory_peak *peak, const char *by,
                      struct ops_memory_share share)
{
	struct result_table *table = filler->table;
	char device[OPS_MEMORY_DEVICE_ROOM];

	ops_memory_device_name(peak->device, device);
	put_worker(filler);
	result_text_copy(table, device, strlen(device));
	result_text(table, string_of(by));
	result_text_copy(table, share.name.bytes, share.name.size);
	if (share.line)
		result_integer(table, share.line);
	else
		result_null(table);
	result_integer(table, share.bytes);
	result_number(table, peak->bytes > 0 ? result_round(100 * (double)share.bytes / (double)peak->bytes, 2) : (double)NAN);
	if (share.blocks)
		result_integer(table, share.blocks);
	else
		result_null(table);
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
}

static bool fill_memory(const struct filler *filler, const struct ops_trace *trace)
{
	struct ops_memory_timeline *timeline;
	struct ops_memory_device device;
	bool done = true, more;

	if (ops_memory_timeline_new((struct ops_trace *)trace, &timeline, NULL))
		return false;
	more = ops_memory_next_device(timeline, NULL, &device);
	for (int i = 0; done && more && i < DEVICES_MAX; i++) {
		struct ops_memory_peak peak = {0};

		done = !ops_memory_peak_of(timeline, device, &peak, NULL);
		if (done)
			put_peak(filler, &peak);
		ops_memory_peak_release(&peak);
		more = ops_memory_next_device(timeline, &device, &device);
	}
	ops_memory_timeline_free(timeline);
	return done;
}

/* --- what matters most ---------------------------------------------------------------------------------------------- */

static void name_overview_columns(struct result_table *table)
{
	RESULT_COLUMNS(table, {"view", RESULT_TEXT}, {"name", RESULT_TEXT}, {"calls", RESULT_COUNT},
	               {"total_us", RESULT_TIME}, {"self_us", RESULT_TIME}, {"device_us", RESULT_TIME});
}

static void put_overview(const struct filler *filler, const char *view, struct ops_string name, uint64_t calls,
                         int64_t total_ns)
{
	put_worker(filler);
	result_text(filler->table, string_of(view));
	result_text_copy(filler->table, name.bytes, name.size);
	result_integer(filler->table, (int64_t)calls);
	result_time(filler->table, total_ns);
}

static void put_steps(const struct filler *filler, const struct ops_views *views)
{
	for (int category = 0; views->steps.count && category <= VIEW_TIME_COUNT; category++) {
		double average_ns = view_step_shown_average_ns(views, (enum view_category)category);

		put_overview(filler, "average step", string_of(view_category_name((enum view_category)category)),
		             views->steps.count, (int64_t)average_ns);
		result_null(filler->table);
		result_null(filler->table);
	}
	for (size_t i = 0; i < views->steps.count && i < filler->rows_max; i++) {
		const struct view_step *step = &views->steps.items[i];

		put_overview(filler, "step", step->name, 1, step->end_ns - step->start_ns);
		result_null(filler->table);
		result_time(filler->table, step->time_ns[VIEW_TIME_KERNEL]);
	}
}

static void put_overview_operator(void *context, const struct view_operator_row *row)
{
	const struct filler *filler = context;

	put_overview(filler, "operator", row->name, row->calls, row->host_total_ns);
	result_time(filler->table, row->host_self_ns);
	result_time(filler->table, row->device_total_ns);
}

static void put_overview_kernel(void *context, const struct view_kernel_row *row)
{
	const struct filler *filler = context;

	put_overview(filler, "kernel", row->name, row->calls, row->total_ns);
	result_time(filler->table, row->total_ns);
	result_time(filler->table, row->total_ns);
}

static bool fill_overview(const struct filler *filler, const struct ops_trace *trace)
{
	struct ops_views views;
	bool done = ops_views_init(&views, trace);

	if (done)
		put_steps(filler, &views);
	done = done && view_each_operator(&views, filler->rows_max, put_overview_operator, (void *)filler) &&
	       view_each_kernel(&views, false, filler->rows_max, put_overview_kernel, (void *)filler);
	ops_views_release(&views);
	return done;
}

/* --- all of them ---------------------------------------------------------------------------------------------------- */

static void name_columns(struct result_table *table, enum ops_view_table which)
{
	if (which == OPS_VIEW_OVERVIEW)
		name_overview_columns(table);
	else if (which == OPS_VIEW_MEMORY)
		name_memory_columns(table);
	else if (which == OPS_VIEW_MODULES || which == OPS_VIEW_MODULE_CLASSES)
		name_module_columns(table);
	else
		name_kernel_columns(table, which == OPS_VIEW_KERNELS_BY_OPERATOR);
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
                                 const struct ops_worker *worker, size_t i, enum ops_view_table which,
                                 struct ops_error *error)
{
	struct ops_trace *taken = NULL;
	enum ops_code code = worker->trace ? OPS_OK : source->take(source->context, i, &taken, error);

	if (!code && !fill(filler, worker->trace ? worker->trace : taken, which))
		code = ops_fault_memory(error);
	ops_trace_unref(taken);
	return code;
}

enum ops_code ops_view_table_of(const struct ops_worker *workers, size_t count, enum ops_view_table which,
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
	name_columns(&result.table, which);
	for (size_t i = 0; !code && i < count; i++) {
		struct filler filler = {&result.table, count > 1 ? &workers[i] : NULL, rows_max};

		code = fill_worker(options->source, &filler, &workers[i], i, which, error);
	}
	out.failed = !code && !result_write(&result, options->format, &out);
	result_release(&result);
	return ops_buffer_give(&out, code, ret_text, ret_size, error);
}

enum ops_code ops_view_table(const struct ops_worker *workers, size_t count, enum ops_view_table which,
                             enum ops_format format, size_t rows_max, char **ret_text, size_t *ret_size,
                             struct ops_error *error)
{
	const struct ops_view_table_options options = {.format = format, .rows_max = rows_max};

	return ops_view_table_of(workers, count, which, &options, ret_text, ret_size, error);
}

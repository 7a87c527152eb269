/* SPDX-License-Identifier: Apache-2.0
 *
 * The page for a terminal, continued: the operators, kernels and modules that take most of the time, and the peak of
 * memory.
 */
#include "analyze/views/view_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/modules.h>

#include "analyze/compare/short_name.h"
#include "analyze/device.h"
#include "analyze/format.h"
#include "analyze/views/view_communication.h"
#include "analyze/views/view_tables.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"

#define TWO_TIMES 1u
#define WITH_LINES 2u
#define PER_STEP 4u
#define WITH_SPEED 8u
static const struct result_column list_columns[] = {
	{.name = "name", .type = RESULT_TEXT, PAGE_FIELD(name)},
	{.name = "calls", .type = RESULT_COUNT, PAGE_FIELD(calls)},
	{.name = "first", .type = RESULT_TIME, PAGE_FIELD(first_ns)},
	{.name = "self device", .type = RESULT_TIME, .option = TWO_TIMES, PAGE_FIELD(second_ns)},
	{.name = "mean", .type = RESULT_FIGURE, .priority = RESULT_MINOR, PAGE_FIELD(mean)},
	{.name = "per step", .type = RESULT_TIME, .priority = RESULT_MINOR, .option = PER_STEP, PAGE_FIELD(step_ns)},
	{.name = "flops_per_s", .type = RESULT_COUNT, .priority = RESULT_MINOR, .title = "FLOP/s", .option = WITH_SPEED,
	 PAGE_FIELD(flops_per_s)},
	{.name = "share", .type = RESULT_PERCENT, PAGE_FIELD(percent)},
	{.name = "bar", .type = RESULT_BAR, .title = "", PAGE_FIELD(bar)},
	{.name = "where", .type = RESULT_TEXT, .priority = RESULT_BELOW, .option = WITH_LINES, PAGE_FIELD(where)},
};
#define FIRST_TIME 2
#define SHARE 7 /* before it, columns may be left out */
static const struct result_declaration list_table = RESULT_DECLARATION("list", "What takes most time", list_columns);

/* The first rows of a table, and the sums over all rows. */
struct shown {
	struct page_row rows[PAGE_ROWS];
	struct ops_figure means[PAGE_ROWS];
	uint32_t calls_at[PAGE_ROWS]; /* rows of the trace whose lines are shown; OPS_NONE: none */
	uint32_t lines[PAGE_ROWS];    /* number of lines, of which that one has the most time */
	size_t count; /* number of all rows */
	double first_ns, second_ns;
};

/* `total_ns` is the time of all calls, including inner calls. */
static void add_row(struct shown *shown, struct page_row row, int64_t total_ns, uint32_t call, uint32_t lines)
{
	if (shown->count < PAGE_ROWS) {
		struct ops_figure *mean = &shown->means[shown->count];

		*mean = ops_figure_of_duration(row.calls ? (double)total_ns / (double)row.calls : 0);
		row.mean = (struct ops_string){mean->text, strlen(mean->text)};
		shown->rows[shown->count] = row;
		shown->calls_at[shown->count] = call;
		shown->lines[shown->count] = lines;
	}
	shown->count++;
	shown->first_ns += (double)row.first_ns;
	shown->second_ns += (double)row.second_ns;
}

/* Shares refer to the last column of times. The longest bar is full. `base` is what shares are shares of. */
static void put_list(struct page *page, const char *title, const char *first, const char *base, unsigned options, struct shown *shown)
{
	bool two = options & TWO_TIMES;
	double sum_ns = two ? shown->second_ns : shown->first_ns, most = 0;
	struct result_table table = {.copies = true};
	struct ops_buffer where = {0};

	for (size_t i = 0; i < shown->count && i < PAGE_ROWS; i++)
		options |= shown->rows[i].flops_per_s > 0 ? WITH_SPEED : 0;
	result_declare(&table, &list_table, options);
	if (table.columns.count > FIRST_TIME)
		table.columns.items[FIRST_TIME].title = first;
	for (size_t i = 0; i < table.columns.count; i++)
		if (table.columns.items[i].name == list_columns[SHARE].name)
			table.columns.items[i].title = base;
	for (size_t i = 0; i < shown->count && i < PAGE_ROWS; i++) {
		struct page_row *row = &shown->rows[i];
		int64_t ns = two ? row->second_ns : row->first_ns;
		double share = sum_ns > 0 ? (double)ns / sum_ns : 0;

		most = share > most ? share : most;
		row->percent = 100 * share;
		row->bar = most > 0 ? share / most : 0;
		row->where = page_line(page, shown->calls_at[i], &where);
		if (shown->lines[i] > 1) {
			ops_buffer_printf(&where, ", %" PRIu32 " more", shown->lines[i] - 1);
			row->where = (struct ops_string){ops_buffer_text(&where), where.size};
		}
		result_add(&table, row);
	}
	page->out.failed |= where.failed;
	ops_buffer_release(&where);
	page_table(page, title, &table, shown->count);
}

/* Returns the option for lists whose rows have the mean per step. */
static unsigned per_step(const struct page *page)
{
	return view_step_divisor(page->views) > 1 ? PER_STEP : 0;
}

static int64_t page_step_ns(double step_ns)
{
	return isnan(step_ns) ? RESULT_NULL : llround(step_ns);
}

/* --- operators ------------------------------------------------------------------------------------------------------ */

/* Returns FLOPs per second of the total time, on the device if there is one, as in the viewer. */
static int64_t speed_of(const struct view_operator_row *row)
{
	int64_t ns = row->device_total_ns > 0 ? row->device_total_ns : row->host_total_ns;

	return row->flops > 0 && ns > 0 ? llround((double)row->flops / (double)ns * 1e9) : RESULT_NULL;
}

bool page_operators(struct page *page)
{
	struct shown shown = {.count = 0};
	view_operator_list list;
	bool done = view_operators_find(page->views, &list), works = view_has_device_times(page->views);

	for (size_t i = 0; done && i < list.count; i++) {
		const struct view_operator_row *row = &list.items[i];

		add_row(&shown, (struct page_row){.name = row->name, .calls = row->calls, .first_ns = row->host_self_ns,
		                                  .second_ns = row->device_self_ns, .step_ns = page_step_ns(row->step_self_ns), .flops_per_s = speed_of(row)},
		        row->host_total_ns, row->line_call, row->lines);
	}
	if (done && shown.count)
		put_list(page, "operators", "self CPU", "of operators",
		         WITH_LINES | (works == (shown.second_ns > 0) ? per_step(page) : 0) | (shown.second_ns > 0 ? TWO_TIMES : 0), &shown);
	OPS_ARRAY_RELEASE(&list);
	return done;
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

/* Replaces the names by readable ones. */
static bool name_kernels(struct shown *shown, struct ops_arena *arena)
{
	size_t count = shown->count < PAGE_ROWS ? shown->count : PAGE_ROWS;
	struct ops_string names[PAGE_ROWS];

	for (size_t i = 0; i < count; i++)
		names[i] = shown->rows[i].name;
	if (!readable_names(names, count, arena))
		return false;
	for (size_t i = 0; i < count; i++)
		shown->rows[i].name = names[i];
	return true;
}

bool page_kernels(struct page *page)
{
	struct shown shown = {.count = 0};
	struct ops_arena arena = {0};
	view_kernel_list list;
	bool done = view_kernels_find(page->views, false, &list);

	for (size_t i = 0; done && i < list.count; i++)
		add_row(&shown, (struct page_row){.name = list.items[i].name, .calls = list.items[i].calls, .first_ns = list.items[i].total_ns, .step_ns = page_step_ns(list.items[i].step_ns)},
		        list.items[i].total_ns, OPS_NONE, 0);
	if (done && shown.count) {
		page->out.failed |= !name_kernels(&shown, &arena);
		put_list(page, "kernels", "time", "of kernels", per_step(page), &shown);
	}
	OPS_ARRAY_RELEASE(&list);
	ops_arena_release(&arena);
	return done;
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

static int64_t view_text_lists_own_ns(const struct ops_module_row *row, bool device)
{
	return device ? ops_sum(row->self[OPS_MODULE_DEVICE], row->self[OPS_MODULE_BACKWARD_DEVICE])
	              : ops_sum(row->self[OPS_MODULE_HOST], row->self[OPS_MODULE_BACKWARD]);
}

struct module_entry {
	const struct ops_module_row *row;
	int64_t own_ns;
};

OPS_ORDER(compare_modules, struct module_entry, OPS_DOWN(own_ns) OPS_UP(row))

/* Returns the time of all calls, forward and backward. */
static int64_t calls_ns(const struct ops_module_row *row, bool device)
{
	return device ? ops_sum(row->total[OPS_MODULE_DEVICE], row->total[OPS_MODULE_BACKWARD_DEVICE])
	              : ops_sum(row->total[OPS_MODULE_HOST], row->total[OPS_MODULE_BACKWARD]);
}

static struct ops_string view_text_lists_module_name(const struct ops_module_row *row)
{
	return row->path.size ? row->path : row->class_name;
}

/* Writes forward and backward together, without modules that take no time. */
static bool put_modules(struct page *page, const struct ops_module_row *rows, size_t count)
{
	struct module_entry *entries = ops_realloc_array(NULL, count + 1, sizeof(*entries));
	struct shown shown = {.count = 0};
	bool device = false, backward = false;

	if (!entries)
		return false;
	for (size_t i = 0; i < count; i++) {
		device |= view_text_lists_own_ns(&rows[i], true) > 0;
		backward |= rows[i].total[OPS_MODULE_BACKWARD] > 0;
	}
	for (size_t i = 0; i < count; i++)
		entries[i] = (struct module_entry){&rows[i], view_text_lists_own_ns(&rows[i], device)};
	qsort(entries, count, sizeof(*entries), compare_modules);
	for (size_t i = 0; i < count && entries[i].own_ns > 0; i++)
		add_row(&shown, (struct page_row){.name = view_text_lists_module_name(entries[i].row), .calls = entries[i].row->calls,
		                                  .first_ns = entries[i].own_ns}, calls_ns(entries[i].row, device), OPS_NONE, 0);
	put_list(page, backward ? "modules with backward" : "modules", device ? "self device" : "self CPU",
	         "of modules", 0, &shown);
	ops_free(entries);
	return true;
}

bool page_modules(struct page *page)
{
	struct ops_module_tree *tree;
	const struct ops_module_row *rows;
	size_t count, calls;
	bool done;

	if (!page->views->has_modules)
		return true;
	if (ops_module_tree_new(page->views->trace, &tree, NULL))
		return false;
	rows = ops_module_tree_rows(tree, &count);
	ops_module_tree_calls(tree, &calls);
	done = !calls || put_modules(page, rows, count);
	ops_module_tree_free(tree);
	return done;
}

/* --- communication -------------------------------------------------------------------------------------------------- */

static const struct result_column communication_columns[] = {
	{.name = "name", .type = RESULT_TEXT, PAGE_FIELD(name)},
	{.name = "calls", .type = RESULT_COUNT, PAGE_FIELD(calls)},
	{.name = "time", .type = RESULT_TIME, PAGE_FIELD(first_ns)},
	{.name = "size", .type = RESULT_BYTES, PAGE_FIELD(bytes)},
};

bool page_communication(struct page *page)
{
	struct result_table table = {.copies = true};
	view_operation_list list;

	if (!page->views->collectives.count)
		return true;
	RESULT_DECLARED(&table, communication_columns);
	table.failed = !view_operations_find(page->views, &list);
	for (size_t i = 0; !table.failed && i < list.count; i++)
		result_add(&table, &(struct page_row){.name = list.items[i].name, .calls = list.items[i].calls, .bytes = list.items[i].bytes,
		                                      .first_ns = ops_intervals_length(&list.items[i].ranges)});
	view_operations_release(&list);
	page_table(page, "communication", &table, 0);
	return true;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static const struct result_column peak_columns[] = {
	{.name = "device", .type = RESULT_TEXT, PAGE_FIELD(name)},
	{.name = "peak", .type = RESULT_BYTES, PAGE_FIELD(bytes)},
	{.name = "at", .type = RESULT_FIGURE, PAGE_FIELD(at)},
	{.name = "in", .type = RESULT_TEXT, PAGE_FIELD(event)},
	{.name = "where", .type = RESULT_TEXT, .priority = RESULT_BELOW, PAGE_FIELD(where)},
};

struct peaks {
	struct page *page;
	struct result_table table;
	size_t count;
};

static bool view_text_lists_put_peak(void *context, const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak)
{
	struct peaks *peaks = context;
	struct page *page = peaks->page;
	struct ops_buffer where = {0};
	char device[OPS_MEMORY_DEVICE_ROOM], at[OPS_FORMAT_ROOM];

	(void)timeline;
	if (peaks->count++ >= PAGE_ROWS)
		return true;
	ops_memory_device_title(peak->device, device);
	result_add(&peaks->table, &(struct page_row){
		.name = ops_string_of(device), .bytes = peak->bytes,
		.at = peak->time_ns >= 0 ? page_at(ops_trace_origin(page->views->trace), peak->time_ns, at) : (struct ops_string){0},
		.event = peak->row == OPS_NONE ? (struct ops_string){0} : view_row_name(page->views, peak->row),
		.where = page_line(page, peak->row, &where)});
	page->out.failed |= where.failed;
	ops_buffer_release(&where);
	return true;
}

/* Writes the same peaks as `opstrobe memory`. */
bool page_memory(struct page *page)
{
	struct peaks peaks = {.page = page, .table = {.copies = true}};
	bool done;

	ops_trace_memory(page->views->trace, &peaks.count);
	if (!peaks.count)
		return true;
	peaks.count = 0;
	RESULT_DECLARED(&peaks.table, peak_columns);
	done = !ops_memory_each_peak(page->views->trace, NULL, view_text_lists_put_peak, &peaks, NULL);
	page_table(page, "most memory held", &peaks.table, peaks.count > PAGE_ROWS ? peaks.count : 0);
	return done;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The page for a terminal, continued: the operators, kernels and modules that take most of the time, and the peak of
 * memory.
 */
#include "analyze/views/view_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/modules.h>

#include "analyze/device.h"
#include "analyze/views/view_communication.h"
#include "analyze/views/view_tables.h"
#include "base/alloc.h"

#define BESIDE_A_TIME 34 /* columns of a row of communication that are not for its name */

/* The first rows of a table, and the sums of all. */
struct shown {
	struct page_row rows[PAGE_ROWS];
	size_t count; /* of all */
	double first_ns, second_ns;
};

static void add_row(struct shown *shown, const struct page_row *row)
{
	if (shown->count < PAGE_ROWS)
		shown->rows[shown->count] = *row;
	shown->count++;
	shown->first_ns += row->first_ns;
	shown->second_ns += row->second_ns;
}

/* Shares are those of the last time. */
static void put_list(struct page *page, struct page_list *list, struct shown *shown)
{
	size_t count = shown->count < PAGE_ROWS ? shown->count : PAGE_ROWS;
	double sum_ns = list->second ? shown->second_ns : shown->first_ns;

	for (size_t i = 0; i < count; i++)
		page_list_measure(list, shown->rows[i].name);
	page_list(page, list);
	for (size_t i = 0; i < count; i++)
		page_list_expect(page, list, shown->rows[i].name);
	for (size_t i = 0; i < count; i++) {
		struct page_row *row = &shown->rows[i];

		row->share = sum_ns > 0 ? (list->second ? row->second_ns : row->first_ns) / sum_ns : 0;
		page_list_row(page, list, row);
	}
	page_list_rest(page, shown->count);
}

/* --- operators ------------------------------------------------------------------------------------------------------ */

static void add_operator(void *context, const struct view_operator_row *row)
{
	add_row(context, &(struct page_row){.name = row->name, .calls = row->calls, .first_ns = (double)row->host_self_ns,
	                                    .second_ns = (double)row->device_self_ns, .total_ns = (double)row->host_total_ns,
	                                    .row = row->longest});
}

bool page_operators(struct page *page)
{
	struct page_list list = {.title = "operators", .first = "self CPU", .has_lines = true};
	struct shown shown = {.count = 0};

	if (!view_each_operator(page->views, SIZE_MAX, add_operator, &shown))
		return false;
	list.second = shown.second_ns > 0 ? "self device" : NULL;
	if (shown.count)
		put_list(page, &list, &shown);
	return true;
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

static void add_kernel(void *context, const struct view_kernel_row *row)
{
	add_row(context, &(struct page_row){.name = row->name, .calls = row->calls, .first_ns = (double)row->total_ns,
	                                    .total_ns = (double)row->total_ns, .row = OPS_NONE});
}

bool page_kernels(struct page *page)
{
	struct page_list list = {.title = "kernels", .first = "time"};
	struct shown shown = {.count = 0};

	if (!page->views->has_kernels)
		return true;
	if (!view_each_kernel(page->views, false, SIZE_MAX, add_kernel, &shown))
		return false;
	put_list(page, &list, &shown);
	return true;
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

static int compare_modules(const void *a, const void *b)
{
	const struct module_entry *left = a, *right = b;

	if (left->own_ns != right->own_ns)
		return left->own_ns < right->own_ns ? 1 : -1;
	return (left->row > right->row) - (left->row < right->row);
}

static struct ops_string view_text_lists_module_name(const struct ops_module_row *row)
{
	return row->path.size ? row->path : row->class_name;
}

/* Forward and backward together, those that take no time left out. */
static bool put_modules(struct page *page, const struct ops_module_row *rows, size_t count)
{
	struct module_entry *entries = ops_realloc_array(NULL, count + 1, sizeof(*entries));
	struct page_list list = {.title = "modules"};
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
		add_row(&shown, &(struct page_row){.name = view_text_lists_module_name(entries[i].row), .calls = entries[i].row->calls,
		                                   .first_ns = (double)entries[i].own_ns,
		                                   .total_ns = (double)entries[i].row->total[OPS_MODULE_HOST], .row = OPS_NONE});
	list.first = device ? "self device" : "self CPU";
	if (backward)
		list.title = "modules with backward";
	put_list(page, &list, &shown);
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

static void put_operation(void *context, const struct view_operation *operation)
{
	struct page *page = context;

	ops_buffer_append_text(&page->out, page->markdown ? "| " : "");
	page_name(page, operation->name, page->columns - BESIDE_A_TIME, true);
	ops_buffer_printf(&page->out, page->markdown ? " | %" PRIu64 " | " : " %7" PRIu64 "  ", operation->calls);
	page_time(page, (double)operation->latency_ns);
	ops_buffer_append_text(&page->out, page->markdown ? " | " : " ");
	page_bytes(page, operation->bytes);
	ops_buffer_append_text(&page->out, page->markdown ? " |\n" : "\n");
}

bool page_communication(struct page *page)
{
	if (!page->views->collectives.count)
		return true;
	fit_names_release(&page->names);
	page_title(page, "communication");
	if (page->markdown)
		ops_buffer_append_text(&page->out, "| | calls | time | size |\n|---|--:|--:|--:|\n");
	else
		ops_buffer_printf(&page->out, "%*s %7s %11s size\n",
		                  (int)(page->columns - BESIDE_A_TIME - strlen("communication")), "", "calls", "time");
	return view_each_operation(page->views, put_operation, page);
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

struct peaks {
	struct page *page;
	size_t count;
};

static bool view_text_lists_put_peak(void *context, const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak)
{
	struct peaks *peaks = context;
	struct page *page = peaks->page;
	char device[OPS_MEMORY_DEVICE_ROOM];

	(void)timeline;
	if (peaks->count++ >= PAGE_ROWS)
		return true;
	ops_memory_device_name(peak->device, device);
	ops_buffer_append_text(&page->out, page->markdown ? "- " : "");
	if (ops_device_is_host(peak->device.type))
		ops_buffer_append_text(&page->out, "CPU: ");
	else if (peak->device.type == OPS_DEVICE_CUDA)
		ops_buffer_printf(&page->out, "device %d: ", peak->device.index);
	else
		ops_buffer_printf(&page->out, "%s: ", device);
	page_bytes(page, peak->bytes);
	if (peak->time_ns >= 0)
		ops_buffer_printf(&page->out, " at %.3f ms", ((double)peak->time_ns - (double)ops_trace_origin(page->views->trace)) / 1e6);
	if (peak->row != OPS_NONE)
		page_place(page, peak->row);
	ops_buffer_append_text(&page->out, "\n");
	return true;
}

/* The same peaks as `opstrobe memory` has. */
bool page_memory(struct page *page)
{
	struct peaks peaks = {.page = page};
	size_t count;

	ops_trace_memory(page->views->trace, &count);
	if (!count)
		return true;
	page_title(page, page->markdown ? "most memory held" : "most memory held\n");
	return !ops_memory_each_peak(page->views->trace, NULL, view_text_lists_put_peak, &peaks, NULL);
}

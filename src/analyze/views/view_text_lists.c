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
#include "base/alloc.h"

#define BESIDE_A_TIME 34 /* columns of a row of communication that are not for its name */

struct entry {
	uint32_t name;
	uint32_t row; /* the one that took longest itself */
	uint64_t calls;
	int64_t host_self_ns;
	int64_t device_self_ns;
	int64_t most_ns;
};

static int view_text_lists_compare(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->device_self_ns != right->device_self_ns)
		return left->device_self_ns < right->device_self_ns ? 1 : -1;
	if (left->host_self_ns != right->host_self_ns)
		return left->host_self_ns < right->host_self_ns ? 1 : -1;
	return (left->name > right->name) - (left->name < right->name);
}

/* Makes a list of the names that occur, in order of what they take. */
static size_t view_text_lists_finalize(struct entry *entries, size_t strings)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < strings; i++) {
		if (!entries[i].calls)
			continue;
		entries[kept] = entries[i];
		entries[kept++].name = i;
	}
	qsort(entries, kept, sizeof(*entries), view_text_lists_compare);
	return kept;
}

/* The row goes to the name's entry, with what it takes itself. */
static void view_text_lists_add(struct entry *entry, uint32_t row, int64_t host_self_ns, int64_t device_self_ns)
{
	int64_t taken_ns = device_self_ns ? device_self_ns : host_self_ns;

	if (!entry->calls++ || taken_ns > entry->most_ns) {
		entry->row = row;
		entry->most_ns = taken_ns;
	}
	view_add(&entry->host_self_ns, host_self_ns);
	view_add(&entry->device_self_ns, device_self_ns);
}

static struct ops_string view_text_lists_name_of(const struct page *page, const struct entry *entry)
{
	return ops_trace_string(page->views->trace, entry->name);
}

static void open_list(struct page *page, struct page_list *list, const struct entry *entries, size_t count)
{
	for (size_t i = 0; i < count && i < PAGE_ROWS; i++)
		page_list_measure(list, view_text_lists_name_of(page, &entries[i]));
	page_list(page, list);
	for (size_t i = 0; i < count && i < PAGE_ROWS; i++)
		page_list_expect(page, list, view_text_lists_name_of(page, &entries[i]));
}

/* --- operators ------------------------------------------------------------------------------------------------------ */

static void put_operators(struct page *page, const struct entry *entries, size_t count)
{
	struct page_list list = {.title = "operators", .first = "self CPU", .has_lines = true};
	bool device = false;
	double sum_ns = 0;

	for (size_t i = 0; i < count; i++)
		device |= entries[i].device_self_ns > 0;
	for (size_t i = 0; i < count; i++)
		sum_ns += (double)(device ? entries[i].device_self_ns : entries[i].host_self_ns);
	list.second = device ? "self device" : NULL;
	open_list(page, &list, entries, count);
	for (size_t i = 0; i < count && i < PAGE_ROWS; i++) {
		const struct entry *entry = &entries[i];
		double taken_ns = (double)(device ? entry->device_self_ns : entry->host_self_ns);

		page_list_row(page, &list,
		              &(struct page_row){view_text_lists_name_of(page, entry), entry->calls,
		                                 (double)entry->host_self_ns, (double)entry->device_self_ns,
		                                 sum_ns > 0 ? taken_ns / sum_ns : 0, entry->row});
	}
	page_list_rest(page, count);
}

bool page_operators(struct page *page)
{
	const struct ops_views *views = page->views;
	size_t strings = ops_trace_string_count(views->trace), count;
	struct entry *entries = ops_alloc_zeroed(strings + 1, sizeof(*entries));

	if (!entries)
		return false;
	for (size_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->kept == i && view_is_operator(views, node))
			view_text_lists_add(&entries[views->events->name[node->row]], node->row, view_host_self_ns(views, node),
			                    node->device_self_ns);
	}
	count = view_text_lists_finalize(entries, strings);
	if (count)
		put_operators(page, entries, count);
	ops_free(entries);
	return true;
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

bool page_kernels(struct page *page)
{
	const struct ops_views *views = page->views;
	size_t strings = ops_trace_string_count(views->trace), count;
	struct page_list list = {.title = "kernels", .first = "time"};
	struct entry *entries = views->has_kernels ? ops_alloc_zeroed(strings + 1, sizeof(*entries)) : NULL;
	double sum_ns = 0;

	if (!entries)
		return !views->has_kernels;
	for (size_t i = 0; i < views->device_events.count; i++) {
		uint32_t row = views->device_events.items[i].row;

		if (views->device_events.items[i].part == VIEW_KERNEL)
			view_text_lists_add(&entries[views->events->name[row]], row, 0, view_duration(views, row));
	}
	count = view_text_lists_finalize(entries, strings);
	for (size_t i = 0; i < count; i++)
		sum_ns += (double)entries[i].device_self_ns;
	open_list(page, &list, entries, count);
	for (size_t i = 0; i < count && i < PAGE_ROWS; i++) {
		double taken_ns = (double)entries[i].device_self_ns;

		page_list_row(page, &list,
		              &(struct page_row){.name = view_text_lists_name_of(page, &entries[i]),
		                                 .calls = entries[i].calls,
		                                 .first_ns = taken_ns,
		                                 .share = sum_ns > 0 ? taken_ns / sum_ns : 0});
	}
	page_list_rest(page, count);
	ops_free(entries);
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

/* Forward and backward together. */
static bool put_modules(struct page *page, const struct ops_module_row *rows, size_t count)
{
	struct module_entry *entries = ops_realloc_array(NULL, count + 1, sizeof(*entries));
	struct page_list list = {.title = "modules"};
	bool device = false;
	double sum_ns = 0;

	if (!entries)
		return false;
	for (size_t i = 0; i < count; i++)
		device |= view_text_lists_own_ns(&rows[i], true) > 0;
	for (size_t i = 0; i < count; i++) {
		entries[i] = (struct module_entry){&rows[i], view_text_lists_own_ns(&rows[i], device)};
		sum_ns += (double)entries[i].own_ns;
	}
	qsort(entries, count, sizeof(*entries), compare_modules);
	list.first = device ? "self device" : "self CPU";
	for (size_t i = 0; i < count && i < PAGE_ROWS && entries[i].own_ns > 0; i++)
		page_list_measure(&list, view_text_lists_module_name(entries[i].row));
	page_list(page, &list);
	for (size_t i = 0; i < count && i < PAGE_ROWS && entries[i].own_ns > 0; i++)
		page_list_expect(page, &list, view_text_lists_module_name(entries[i].row));
	for (size_t i = 0; i < count && i < PAGE_ROWS && entries[i].own_ns > 0; i++) {
		const struct ops_module_row *row = entries[i].row;
		double taken_ns = (double)entries[i].own_ns;

		page_list_row(page, &list,
		              &(struct page_row){.name = view_text_lists_module_name(row),
		                                 .calls = row->calls,
		                                 .first_ns = taken_ns,
		                                 .share = sum_ns > 0 ? taken_ns / sum_ns : 0});
	}
	page_list_rest(page, count);
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

static void view_text_lists_put_peak(struct page *page, const struct ops_memory_peak *peak)
{
	char device[OPS_MEMORY_DEVICE_ROOM];

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
}

/* The same peaks as `opstrobe memory` has. False when memory is out. */
static bool put_peaks(struct page *page, const struct ops_memory_timeline *timeline)
{
	struct ops_memory_device device;
	struct ops_error error;
	bool more = ops_memory_next_device(timeline, NULL, &device), done = true;

	for (int i = 0; done && more && i < PAGE_ROWS; i++) {
		struct ops_memory_peak peak = {0};

		done = !ops_memory_peak_of(timeline, device, &peak, &error);
		if (done)
			view_text_lists_put_peak(page, &peak);
		ops_memory_peak_release(&peak);
		more = ops_memory_next_device(timeline, &device, &device);
	}
	return done;
}

bool page_memory(struct page *page)
{
	struct ops_memory_timeline *timeline;
	struct ops_error error;
	size_t count;
	bool done;

	ops_trace_memory(page->views->trace, &count);
	if (!count)
		return true;
	if (ops_memory_timeline_new((struct ops_trace *)page->views->trace, &timeline, &error))
		return false;
	page_title(page, page->markdown ? "most memory held" : "most memory held\n");
	done = put_peaks(page, timeline);
	ops_memory_timeline_free(timeline);
	return done;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of each side of a diff; see view_diff_sums.h.
 */
#include "analyze/views/view_diff_sums.h"

#include <string.h>

#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/modules.h"

#define OTHER_PARTS ((struct ops_string){"other parts", strlen("other parts")})

bool view_diff_rows_add(struct view_diff_rows *rows, int which, struct ops_string name, const int64_t ns[VIEW_DIFF_TIMES])
{
	uint32_t at = ops_intern_add(&rows->names, name.bytes, name.size);
	struct view_diff_row *row = OPS_ARRAY_AT(rows, at);
	struct view_diff_sum *sum;

	if (!row)
		return false;
	row->name = ops_intern_text(&rows->names, at);
	sum = &row->sides[which];
	sum->calls++;
	for (int i = 0; i < VIEW_DIFF_TIMES; i++)
		view_add(&sum->ns[i], ns[i]);
	return true;
}

static bool view_diff_sums_add(struct view_diff_rows *rows, int which, struct ops_string name, int64_t host_ns, int64_t device_ns)
{
	return view_diff_rows_add(rows, which, name,
	                          (int64_t[VIEW_DIFF_TIMES]){[VIEW_DIFF_HOST] = host_ns, [VIEW_DIFF_DEVICE] = device_ns,
	                                                     [VIEW_DIFF_TOTAL] = device_ns ? device_ns : host_ns});
}

OPS_ORDER(view_diff_sums_by_name, struct view_diff_row, OPS_BY_TEXT(name))

void view_diff_rows_sort(struct view_diff_rows *rows)
{
	OPS_ARRAY_SORT(rows, view_diff_sums_by_name);
}

void view_diff_rows_release(struct view_diff_rows *rows)
{
	OPS_ARRAY_RELEASE(rows);
	ops_intern_release(&rows->names);
}

/* --- parts ---------------------------------------------------------------------------------------------------------- */

/* Removes the uninformative part of a name: "Linear_0" for "nn.Module: Linear_0", "Optimizer.step" for
 * "Optimizer.step#SGD.step". */
static struct ops_string short_name(struct ops_string name)
{
	static const char *const prefixes[] = {"enumerate(DataLoader)#", "enumerate(DataPipe)#"};
	const char *class_name = NULL;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (ops_string_starts(name, prefixes[i]))
			return (struct ops_string){name.bytes + strlen(prefixes[i]), name.size - strlen(prefixes[i])};
	if (ops_string_starts(name, "Optimizer."))
		class_name = memchr(name.bytes, '#', name.size);
	return class_name ? (struct ops_string){name.bytes, (size_t)(class_name - name.bytes)} : ops_module_path(name);
}

bool view_diff_add_parts(struct view_diff *diff, int which, const struct view_diff_tree *tree, const uint32_t *places, size_t count)
{
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		struct ops_string name = tree->keys[places[i]] == OPS_NONE ? OTHER_PARTS : short_name(view_diff_name(tree, places[i]));

		done = name.bytes && view_diff_sums_add(&diff->parts, which, name, view_diff_host_ns(tree, places[i]),
		                                        view_diff_device_ns(tree, places[i]));
	}
	return done;
}

void view_diff_finish_parts(struct view_diff *diff)
{
	if (diff->parts.count == 1 && ops_string_equals(diff->parts.items[0].name, OTHER_PARTS))
		view_diff_rows_release(&diff->parts);
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

bool view_diff_add_modules(struct view_diff *diff, int which, const struct view_diff_tree *tree)
{
	const struct ops_views *views = tree->views;
	bool done = true;

	for (uint32_t i = 0; done && i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->part == VIEW_MODULE && view_averages(tree->views, view_start(views, node->row)))
			done = view_diff_sums_add(&diff->modules, which, ops_module_path(view_diff_module_name(tree, i)),
			                          view_duration(views, node->row), node->device_total_ns);
	}
	for (size_t i = 0; done && i < tree->backwards.items.count; i++) {
		const struct view_backward *backward = &tree->backwards.items.items[i];
		struct ops_string name = ops_module_path(view_diff_module_name(tree, backward->module));
		struct ops_buffer text = {0};

		if (!view_averages(tree->views, backward->start_ns))
			continue;
		ops_buffer_append(&text, name.bytes, name.size);
		ops_buffer_append_text(&text, ", backward");
		done = !text.failed && view_diff_sums_add(&diff->modules, which, (struct ops_string){text.bytes, text.size},
		                                          backward->host_total_ns, backward->device_total_ns);
		ops_buffer_release(&text);
	}
	return done;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static struct view_diff_memory *view_diff_sums_find_device(struct view_diff *diff, struct ops_memory_device device)
{
	struct view_diff_memory *memory;

	for (size_t i = 0; i < diff->memory.count; i++)
		if (diff->memory.items[i].device.type == device.type && diff->memory.items[i].device.index == device.index)
			return &diff->memory.items[i];
	memory = OPS_ARRAY_PUSH(&diff->memory);
	if (memory)
		*memory = (struct view_diff_memory){.device = device};
	return memory;
}

struct memory_side {
	struct view_diff *diff;
	const struct view_diff_tree *tree;
	int which;
};

static bool view_diff_sums_add_device(void *context, const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak)
{
	const struct memory_side *side = context;
	struct ops_memory_device device = peak->device;
	struct view_diff_memory *memory;
	const struct ops_memory_record *records;
	size_t count;

	memory = view_diff_sums_find_device(side->diff, device);
	if (!memory)
		return false;
	memory->peak_bytes[side->which] = peak->bytes;
	records = ops_trace_memory(timeline->trace, &count);
	for (size_t i = 0; i < count; i++)
		if (records[i].bytes > 0 && !records[i].out_of_memory && records[i].device_type == device.type &&
		    records[i].device_index == device.index && view_averages(side->tree->views, records[i].time_ns))
			view_add(&memory->allocated_bytes[side->which], records[i].bytes);
	return true;
}

bool view_diff_add_memory(struct view_diff *diff, int which, const struct view_diff_tree *tree)
{
	struct memory_side side = {diff, tree, which};
	size_t records;

	ops_trace_memory(tree->views->trace, &records);
	return !records || !ops_memory_each_peak(tree->views->trace, NULL, view_diff_sums_add_device, &side, NULL);
}

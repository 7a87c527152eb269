/* SPDX-License-Identifier: Apache-2.0
 *
 * The most important of all views, to be read on a terminal of 80 columns.
 */
#include <opstrobe/views.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/fault.h"

#define ROWS_MAX 10
#define NAME_WIDTH 38

struct entry {
	uint32_t name;
	uint64_t calls;
	int64_t host_self_ns;
	int64_t device_self_ns;
};

static int compare(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->device_self_ns != right->device_self_ns)
		return left->device_self_ns < right->device_self_ns ? 1 : -1;
	if (left->host_self_ns != right->host_self_ns)
		return left->host_self_ns < right->host_self_ns ? 1 : -1;
	return (left->name > right->name) - (left->name < right->name);
}

static void append_name(struct ops_buffer *out, struct ops_string name)
{
	size_t shown = name.size > NAME_WIDTH ? NAME_WIDTH - 1 : name.size;

	for (size_t i = 0; i < NAME_WIDTH; i++) {
		char c = i < shown ? name.bytes[i] : i == shown && shown < name.size ? '~' : ' ';

		if ((unsigned char)c < ' ')
			c = ' ';
		ops_buffer_append(out, &c, 1);
	}
}

static void append_steps(const struct ops_views *views, struct ops_buffer *out)
{
	static const char *const names[] = {"kernels", "copies", "fills", "communication", "launch calls",
	                                    "data loading", "CPU", "other"};
	double total_ns = view_step_average_ns(views, VIEW_TIME_COUNT);

	if (!views->steps.count)
		return;
	ops_buffer_printf(out, "%zu step%s, %.3f ms each\n", views->steps.count, views->steps.count == 1 ? "" : "s",
	                  total_ns / 1e6);
	for (int category = 0; category < VIEW_TIME_COUNT; category++) {
		double time_ns = view_step_average_ns(views, (enum view_category)category);

		if (time_ns > 0)
			ops_buffer_printf(out, "  %-14s %11.3f ms %5.1f %%\n", names[category], time_ns / 1e6,
			                  100 * time_ns / total_ns);
	}
}

static bool append_gpus(struct ops_views *views, struct ops_buffer *out)
{
	for (size_t i = 0; i < views->gpus.count; i++) {
		struct view_gpu_figures figures;

		if (!view_gpu_figures(views, views->gpus.items[i], &figures))
			return false;
		ops_buffer_printf(out, "%sGPU %lld: busy %.1f %%", i ? "" : "\n", (long long)views->gpus.items[i],
		                  100 * figures.utilization_ratio);
		if (!isnan(figures.sm_efficiency_ratio))
			ops_buffer_printf(out, ", multiprocessors %.1f %%", 100 * figures.sm_efficiency_ratio);
		if (!isnan(figures.occupancy_pct))
			ops_buffer_printf(out, ", occupancy %.1f %%", figures.occupancy_pct);
		ops_buffer_append_text(out, "\n");
	}
	return true;
}

static bool append_operators(const struct ops_views *views, struct ops_buffer *out)
{
	size_t strings = ops_trace_string_count(views->trace), kept = 0;
	struct entry *entries = ops_alloc_zeroed(strings + 1, sizeof(*entries));

	if (!entries)
		return false;
	for (size_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];
		struct entry *entry = &entries[views->events->name[node->row]];

		if (node->kept != i || !view_is_operator(views, node))
			continue;
		entry->calls++;
		view_add(&entry->host_self_ns, view_host_self_ns(views, node));
		view_add(&entry->device_self_ns, node->device_self_ns);
	}
	for (uint32_t i = 0; i < strings; i++) {
		if (!entries[i].calls)
			continue;
		entries[kept] = entries[i];
		entries[kept++].name = i;
	}
	qsort(entries, kept, sizeof(*entries), compare);
	if (kept)
		ops_buffer_printf(out, "\n%-*s %8s %14s %14s\n", NAME_WIDTH, "operator", "calls", "self CPU ms",
		                  "self device ms");
	for (size_t i = 0; i < kept && i < ROWS_MAX; i++) {
		append_name(out, ops_trace_string(views->trace, entries[i].name));
		ops_buffer_printf(out, " %8llu %14.3f %14.3f\n", (unsigned long long)entries[i].calls,
		                  (double)entries[i].host_self_ns / 1e6, (double)entries[i].device_self_ns / 1e6);
	}
	if (kept > ROWS_MAX)
		ops_buffer_printf(out, "and %zu more\n", kept - ROWS_MAX);
	ops_free(entries);
	return true;
}

enum ops_code ops_views_text(const struct ops_trace *trace, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_views views;
	bool done = ops_views_init(&views, trace);

	if (done) {
		uint64_t lost = ops_trace_info(trace)->lost;

		ops_buffer_printf(&out, "%zu events\n", ops_trace_events(trace)->count);
		if (lost)
			ops_buffer_printf(&out, "%llu events were lost\n", (unsigned long long)lost);
		append_steps(&views, &out);
		done = append_gpus(&views, &out) && append_operators(&views, &out);
	}
	ops_buffer_append(&out, "", 1);
	ops_views_release(&views);
	if (!done || out.failed) {
		ops_buffer_release(&out);
		return ops_fault_memory(error);
	}
	*ret_text = out.bytes;
	*ret_size = out.size - 1;
	return OPS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Summary of a trace: marks, views that have contents, devices.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/views/views.h"

#define DAY_NS INT64_C(86400000000000)

static void write_flags(const struct ops_views *views, struct ops_json_writer *json)
{
	ops_json_member_open(json, "flags", '{');
	ops_json_member_bool(json, "has_runtime", views->has_launches);
	ops_json_member_bool(json, "has_kernel", views->has_kernels);
	ops_json_member_bool(json, "has_memcpy_or_memset", views->has_copies);
	ops_json_member_bool(json, "has_communication", views->has_collectives);
	ops_json_member_open(json, "comm_libs", '[');
	if (views->has_gloo)
		ops_json_word(json, "Gloo");
	if (views->has_nccl)
		ops_json_word(json, "Nccl");
	ops_json_close(json, ']');
	ops_json_member_bool(json, "uses_dp", views->has_dp);
	ops_json_member_bool(json, "uses_ddp", views->has_ddp);
	OPS_JSON_LIST(json, "used_devices", i, views->used.count, ops_json_integer(json, views->used.items[i]));
	ops_json_member_bool(json, "lightning", views->modules == OPS_MODULES_LIGHTNING);
	ops_json_close(json, '}');
}

static void view_overview_write_names(const struct ops_views *views, struct ops_json_writer *json)
{
	size_t records;

	ops_trace_memory(views->trace, &records);
	ops_json_member_open(json, "views", '[');
	ops_json_word(json, "Overview");
	ops_json_word(json, "Operator");
	if (views->has_kernels)
		ops_json_word(json, "Kernel");
	ops_json_word(json, "Trace");
	if (records)
		ops_json_word(json, "Memory");
	if (views->has_modules)
		ops_json_word(json, views->modules == OPS_MODULES_LIGHTNING ? "Lightning" : "Module");
	ops_json_close(json, ']');
}

static void view_overview_write_devices(const struct ops_views *views, struct ops_json_writer *json)
{
	ops_json_member_open(json, "devices", '[');
	for (size_t i = 0; i < views->devices.count; i++) {
		const struct view_device *device = &views->devices.items[i];
		char capability[48];

		ops_json_open(json, '{');
		ops_json_member_or_null(json, "id", device->id);
		ops_json_member_raw(json, "name", device->name_json);
		ops_json_member_or_null(json, "total_memory", device->memory_bytes);
		ops_json_key(json, "compute_capability");
		snprintf(capability, sizeof(capability), "%lld.%lld", (long long)device->major, (long long)device->minor);
		if (device->major >= 0 && device->minor >= 0)
			ops_json_word(json, capability);
		else
			ops_json_null(json);
		ops_json_member_or_null(json, "sm_count", device->sm_count);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* Counts marks to ignore: if a mark places the window's end more than a day after the last iteration began, a clock was
 * wrong. (The TensorBoard plugin intended a day, but its limit is 86 s.) */
static uint64_t stray_marks(const struct ops_views *views)
{
	const struct ops_events *events = views->events;
	int64_t start_ns = INT64_MIN;

	for (uint32_t row = (uint32_t)events->count; row-- > 0;) {
		struct ops_string name;

		if (events->kind[row] != OPS_EVENT_MARK)
			continue;
		name = view_row_name(views, row);
		if (name.size > 16 && memcmp(name.bytes, "Iteration Start:", 16) == 0) {
			start_ns = events->start_ns[row];
			break;
		}
	}
	for (uint32_t row = (uint32_t)events->count; row-- > 0 && start_ns != INT64_MIN;) {
		struct ops_string name = view_row_name(views, row);

		if (events->kind[row] == OPS_EVENT_MARK && name.size == strlen("Record Window End") &&
		    memcmp(name.bytes, "Record Window End", name.size) == 0)
			return events->start_ns[row] - start_ns > DAY_NS;
	}
	return 0;
}

bool view_write_overview(const struct ops_views *views, struct ops_json_writer *json)
{
	const struct ops_trace_info *info = ops_trace_info(views->trace);
	struct view_origins origins;
	bool done = view_origins_find(views, &origins);
	size_t records;

	ops_trace_memory(views->trace, &records);
	ops_json_member(json, "trace_events",
	                (int64_t)(info->file_events ? info->file_events - stray_marks(views) : views->events->count + records));
	ops_json_member(json, "parsed_events", (int64_t)views->parsed);
	ops_json_member(json, "lost_events", (int64_t)info->lost);
	ops_json_member_us_if(json, "profiler_start_ts", views->parsed, ops_difference(views->first_ns, views->base_ns));
	write_flags(views, json);
	view_overview_write_names(views, json);
	view_overview_write_devices(views, json);
	ops_json_member_open(json, "queued_before", '{');
	ops_json_member(json, "count", (int64_t)origins.queued);
	ops_json_member_us(json, "time", origins.queued_ns);
	ops_json_close(json, '}');
	ops_json_member_open(json, "graph_work", '{');
	ops_json_member(json, "count", (int64_t)origins.replayed);
	ops_json_member(json, "with_capture", (int64_t)origins.captured);
	ops_json_close(json, '}');
	return done;
}

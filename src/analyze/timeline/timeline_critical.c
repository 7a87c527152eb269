/* SPDX-License-Identifier: Apache-2.0
 *
 * The critical path of a region (analyze/graph/critical_path.h) as ranges of the timeline.
 */
#include <string.h>

#include "analyze/graph/critical_path.h"
#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/sum.h"
#include "base/text.h"

#define STEP "ProfilerStep"

struct region {
	struct ops_string name;
	int64_t start_ns; /* in the time base of the event table */
	int64_t end_ns;
};

/* Finds an instance of a name. Without a name, and without steps, the region is the entire trace. */
static bool timeline_critical_find_region(const struct event_table *table, struct ops_string part, uint32_t instance,
                                          struct region *ret_region)
{
	bool any = !part.size;

	if (any)
		part = (struct ops_string){STEP, strlen(STEP)};
	for (size_t i = 0; i < table->count; i++) {
		const struct event_row *row = &table->rows[i];
		struct ops_string name = event_name(table, row);

		if (row->kind == OPS_EVENT_GPU_USER_ANNOTATION || !memmem(name.bytes, name.size, part.bytes, part.size) || instance--)
			continue;
		*ret_region = (struct region){name, row->ts_ns, event_end(row)};
		return true;
	}
	*ret_region = (struct region){{"", 0}, INT64_MIN, INT64_MAX};
	return any;
}

static int64_t node_time(const struct ops_timeline *timeline, const struct critical_path *path, uint32_t node)
{
	uint32_t row = critical_row(path, node / 2)->source;

	return node % 2 ? timeline_end(timeline, row) : timeline_start(timeline, row);
}

static void write_segment(const struct ops_timeline *timeline, const struct critical_path *path,
                          const struct critical_edge *edge, struct ops_json_writer *json)
{
	uint32_t row = edge->event == OPS_NONE ? OPS_NONE : critical_row(path, edge->event)->source;

	ops_json_open(json, '{');
	ops_json_member(json, "start_ns", node_time(timeline, path, edge->from));
	ops_json_member(json, "end_ns", node_time(timeline, path, edge->to));
	ops_json_member_string_or_null(json, "kind", ops_string_of(critical_edge_type_name(edge->type)));
	ops_json_member_string_or_null(json, "bound", ops_string_of(critical_bound_name(critical_bound_of(path, edge))));
	timeline_write_number(json, "row", row);
	timeline_write_number(json, "track", row == OPS_NONE ? OPS_NONE : timeline_track_of(timeline, row));
	timeline_write_depths(timeline, json, row);
	ops_json_close(json, '}');
}

/* Writes the shares of the path's time. */
static void timeline_critical_write_bounds(const struct critical_path *path, struct ops_json_writer *json)
{
	int64_t sums[CRITICAL_BOUND_COUNT] = {0}, total = 0;

	for (size_t i = 0; i < path->path.count; i++) {
		const struct critical_edge *edge = &path->edges.items[path->path.items[i]];
		int64_t weight_ns = edge->weight_ns > 0 ? edge->weight_ns : 0;
		int64_t *sum = &sums[critical_bound_of(path, edge)];

		*sum = ops_sum(*sum, weight_ns);
		total = ops_sum(total, weight_ns);
	}
	ops_json_member_open(json, "bounds", '{');
	for (int bound = 1; bound < CRITICAL_BOUND_COUNT; bound++) {
		if (!sums[bound])
			continue;
		ops_json_member_number(json, critical_bound_name((enum critical_bound)bound), (double)sums[bound] / (double)total);
	}
	ops_json_close(json, '}');
}

static void timeline_critical_write_path(const struct ops_timeline *timeline, const struct critical_path *path,
                                         struct ops_string region, struct ops_json_writer *json)
{
	bool any = path->path_start != OPS_NONE;

	ops_json_open(json, '{');
	ops_json_member_string(json, "region", region);
	ops_json_member(json, "start_ns", any ? node_time(timeline, path, path->path_start) : 0);
	ops_json_member(json, "end_ns", any ? node_time(timeline, path, path->path_end) : 0);
	OPS_JSON_LIST(json, "segments", i, path->path.count,
	              write_segment(timeline, path, &path->edges.items[path->path.items[i]], json));
	timeline_critical_write_bounds(path, json);
	ops_json_close(json, '}');
}

enum ops_code ops_timeline_critical_path(const struct ops_timeline *timeline, struct ops_string annotation, uint32_t instance,
                                         char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const struct ops_rank rank = {.trace = timeline->trace};
	const struct ops_analyze_options as_usual = {0};
	const struct critical_options options = {0};
	const struct event_table *table = NULL;
	struct event_set set = {0};
	struct critical_path path = {0};
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code = event_set_init(&set, &rank, 1, &as_usual, true, OPS_RULES_OPSTROBE, error);
	struct region region;

	if (!code) {
		table = event_set_table(&set, 0);
		code = table ? OPS_OK : ops_fault_memory(error);
	}
	if (code)
		; /* already reported */
	else if (!timeline_critical_find_region(table, annotation, instance, &region))
		code = ops_fault(error, OPS_INVALID, "the trace has no such annotation or instance");
	else if (!critical_path_init(&path, table, region.start_ns, region.end_ns, &options))
		code = ops_fault_memory(error);
	else
		timeline_critical_write_path(timeline, &path, region.name, &json);
	critical_path_release(&path);
	event_set_release(&set);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

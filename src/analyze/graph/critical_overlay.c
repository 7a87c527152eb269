/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks and arrows of the critical path.
 */
#include "analyze/graph/critical_overlay.h"

#include <string.h>

#include "analyze/overlay.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_writer.h"

enum mark { MARK_OTHER, MARK_SPAN, MARK_CRITICAL };

struct drawing {
	const struct critical_path *path;
	const struct critical_overlay *what;
	uint8_t *marks; /* enum mark by position in the file */
	size_t mark_count;
	uint8_t *on_path; /* by edge */
	OPS_ARRAY(uint32_t) arrows; /* edges to draw */
};

/* Only spans may be left out. */
static bool mark_events(struct drawing *d)
{
	const struct critical_path *path = d->path;
	const struct event_table *table = path->table;

	d->mark_count = overlay_positions(table);
	d->marks = ops_alloc_zeroed(d->mark_count + 1, 1);
	if (!d->marks)
		return false;
	for (size_t i = 0; i < table->count; i++) {
		const struct event_row *row = &table->rows[i];

		if (row->index != OPS_NONE && row->kind != OPS_EVENT_USER_ANNOTATION &&
		    row->kind != OPS_EVENT_PYTHON_FUNCTION)
			d->marks[row->index] = MARK_SPAN;
	}
	for (size_t i = 0; i < path->path.count; i++) {
		const struct critical_edge *edge = &path->edges.items[path->path.items[i]];
		uint32_t ends[] = {critical_row(path, edge->from / 2)->index, critical_row(path, edge->to / 2)->index};

		for (int end = 0; end < 2; end++)
			if (ends[end] != OPS_NONE)
				d->marks[ends[end]] = MARK_CRITICAL;
	}
	return true;
}

/* Selects the parts of the path that are not already visible as an event or a stream. */
static bool choose_arrows(struct drawing *d)
{
	const struct critical_path *path = d->path;

	d->on_path = ops_alloc_zeroed(path->edges.count + 1, 1);
	if (!d->on_path || !OPS_ARRAY_RESERVE(&d->arrows, path->edges.count + 1))
		return false;
	for (size_t i = 0; i < path->path.count; i++)
		d->on_path[path->path.items[i]] = 1;
	for (uint32_t e = 0; e < path->edges.count; e++) {
		const struct critical_edge *edge = &path->edges.items[e];
		bool drawn = edge->type == CRITICAL_DEPENDENCY || edge->type == CRITICAL_LAUNCH || edge->type == CRITICAL_SYNC;

		if (edge->type == CRITICAL_LAUNCH && edge->weight_ns == 0)
			continue;
		if (d->what->all_edges || (d->on_path[e] && drawn))
			d->arrows.items[d->arrows.count++] = e;
	}
	return true;
}

static enum overlay_action critical_overlay_mark_event(void *context, uint32_t index, struct ops_buffer *marks)
{
	const struct drawing *d = context;
	uint8_t mark = index < d->mark_count ? d->marks[index] : MARK_OTHER;

	if (mark != MARK_CRITICAL)
		return mark == MARK_SPAN && d->what->only_critical ? OVERLAY_LEAVE_OUT : OVERLAY_KEEP;
	ops_buffer_append_text(marks, "\"critical\":1");
	return OVERLAY_MARK;
}

static void critical_overlay_write_id(struct ops_json_writer *json, const char *key, const struct ops_trace *trace, int64_t id,
                                      bool is_text)
{
	struct ops_string text;

	ops_json_key(json, key);
	if (!is_text) {
		ops_json_integer(json, id);
		return;
	}
	text = ops_trace_string(trace, (uint32_t)id);
	ops_json_text(json, text.bytes, text.size);
}

/* An arrow's end on a device lies inside its event so that viewers attach it. */
static int64_t arrow_ns(const struct critical_path *path, uint32_t node)
{
	const struct event_row *row = critical_row(path, node / 2);

	if (node % 2 == 0 || row->stream == -1)
		return critical_node_ns(path, node);
	return event_end(row) - (row->dur_ns < 1000 ? row->dur_ns : 1000);
}

static bool add_arrow_end(void *context, size_t i, struct ops_buffer *event)
{
	const struct drawing *d = context;
	const struct critical_path *path = d->path;
	struct ops_json_writer json = {.out = event};
	const struct critical_edge *edge;
	const struct ops_track *track;
	size_t count;
	uint32_t node;

	if (i / 2 >= d->arrows.count)
		return false;
	edge = &path->edges.items[d->arrows.items[i / 2]];
	node = i % 2 ? edge->to : edge->from;
	track = &ops_trace_tracks(path->table->trace, &count)[critical_row(path, node / 2)->track];
	ops_json_open(&json, '{');
	ops_json_key(&json, "ph");
	ops_json_text(&json, i % 2 ? "f" : "s", 1);
	ops_json_member(&json, "id", (int64_t)(i / 2));
	critical_overlay_write_id(&json, "pid", path->table->trace, track->pid, track->flags & OPS_TRACK_PID_TEXT);
	critical_overlay_write_id(&json, "tid", path->table->trace, track->tid, track->flags & OPS_TRACK_TID_TEXT);
	ops_json_member_us(&json, "ts", arrow_ns(path, node));
	ops_json_member_text(&json, "cat", "critical_path");
	ops_json_member_text(&json, "name", "critical_path");
	ops_json_member_open(&json, "args", '{');
	ops_json_member_us(&json, "weight", edge->weight_ns);
	ops_json_member_bool(&json, "critical", d->on_path[d->arrows.items[i / 2]]);
	ops_json_member_text(&json, "type", critical_edge_type_name(edge->type));
	ops_json_close(&json, '}');
	if (i % 2) {
		ops_json_member_text(&json, "bp", "e");
	}
	ops_json_close(&json, '}');
	return true;
}

enum ops_code critical_overlay_write(const struct critical_path *path, const struct critical_overlay *what,
                                     struct ops_buffer *ret_path, struct ops_error *error)
{
	struct drawing d = {.path = path, .what = what};
	const struct overlay overlay = {.event = critical_overlay_mark_event, .add = add_arrow_end, .context = &d,
	                                .prefix = "overlaid_critical_path_"};
	enum ops_code code = mark_events(&d) && choose_arrows(&d)
	                             ? overlay_write(what->rank, what->directory, &overlay, ret_path, error)
	                             : ops_fault_memory(error);

	ops_free(d.marks);
	ops_free(d.on_path);
	OPS_ARRAY_RELEASE(&d.arrows);
	return code;
}

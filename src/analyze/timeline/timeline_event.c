/* SPDX-License-Identifier: Apache-2.0
 *
 * All details of one event.
 */
#include <string.h>

#include "analyze/timeline/timeline.h"
#include "base/fault.h"
#include "base/text.h"
#include "trace/inputs.h"

#define FRAMES_MAX 256
#define LINKS_MAX 1000

/* --- arguments ------------------------------------------------------------------------------------------------------ */

/* Writes an argument that is stored in a column, unless it is empty. */
static void write_integer(struct ops_json_writer *json, const char *key, int64_t value, int64_t none)
{
	if (value != none)
		ops_json_member(json, key, value);
}

static void timeline_event_write_id(struct ops_json_writer *json, const char *key, const uint32_t *column, uint32_t row)
{
	if (column && column[row] != OPS_NONE)
		ops_json_member(json, key, column[row]);
}

static void timeline_event_write_text(const struct ops_timeline *timeline, struct ops_json_writer *json, const char *key,
                                      const uint32_t *column, uint32_t row)
{
	if (column && column[row] != OPS_NONE && ops_trace_string(timeline->trace, column[row]).size)
		timeline_write_string(timeline, json, key, column[row]);
}

/* Writes the members of an object, given as text without the braces. */
static void timeline_event_write_members(struct ops_json_writer *json, const char *text, size_t size)
{
	if (!size)
		return;
	if (json->comma)
		ops_buffer_append_text(json->out, ",");
	ops_buffer_append(json->out, text, size);
	json->comma = true;
}

static void write_inputs(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	struct ops_buffer text = {0};

	if (timeline->events->inputs[row] == OPS_NONE)
		return;
	ops_inputs_json_args(&text, ops_trace_inputs(timeline->trace, timeline->events->inputs[row]));
	json->out->failed |= text.failed;
	timeline_event_write_members(json, text.bytes, text.size);
	ops_buffer_release(&text);
}

static void write_args(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	const struct ops_events *e = timeline->events;

	ops_json_member_open(json, "args", '{');
	write_integer(json, "External id", e->id ? (int64_t)e->id[row] : row + 1, 0);
	write_integer(json, "correlation", e->correlation ? e->correlation[row] : -1, -1);
	write_integer(json, "Sequence number", e->sequence_nr[row], -1);
	write_integer(json, "Fwd thread id", e->forward_thread[row], 0);
	timeline_event_write_text(timeline, json, "Overload Name", e->overload, row);
	timeline_event_write_text(timeline, json, "Args", e->args, row);
	timeline_event_write_id(json, "Python id", e->python_id, row);
	timeline_event_write_id(json, "Python parent id", e->python_parent, row);
	timeline_event_write_id(json, "Python module id", e->python_module, row);
	if (e->flags[row] & OPS_EVENT_UNFINISHED) {
		ops_json_member_bool(json, "finished", false);
	}
	if (e->flags[row] & OPS_EVENT_CUT) {
		ops_json_key(json, "cut");
		ops_json_bool(json, true);
	}
	write_inputs(timeline, json, row);
	if (e->extra && e->extra[row] != OPS_NONE) {
		struct ops_string extra = ops_trace_string(timeline->trace, e->extra[row]);

		timeline_event_write_members(json, extra.bytes, extra.size);
	}
	ops_json_close(json, '}');
}

/* --- stack ---------------------------------------------------------------------------------------------------------- */

static void timeline_event_write_line(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	uint32_t line;
	struct ops_string file = ops_event_line(timeline->trace, row, &line);

	ops_json_member_string_or_null(json, "file", file);
	ops_json_member_or_null(json, "line", file.size ? (int64_t)line : -1);
}

/* Returns the forward operator of a backward node, or OPS_NONE. */
static uint32_t forward_of(const struct ops_timeline *timeline, uint32_t row)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(timeline->trace, &count);

	for (size_t i = timeline_links_to(timeline, row); i < count && links[timeline->links_to[i]].to == row; i++)
		if (links[timeline->links_to[i]].kind == OPS_LINK_FORWARD_BACKWARD)
			return links[timeline->links_to[i]].from;
	return OPS_NONE;
}

/* Writes frames from a text in which each frame is followed by ';'. */
static void write_text_frames(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t string)
{
	struct ops_string text = ops_trace_string(timeline->trace, string);
	const char *at = text.bytes, *end = ops_string_end(text);

	for (int frames = 0; at < end && frames < FRAMES_MAX; frames++) {
		const char *stop = memchr(at, ';', (size_t)(end - at));

		stop = stop ? stop : end;
		ops_json_text(json, at, (size_t)(stop - at));
		at = stop + 1;
	}
}

/* Writes the functions around an event and, for backward nodes, around the forward operator. Each iteration leads to a
 * lower row. */
static void timeline_event_write_stack(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	const struct ops_events *e = timeline->events;
	uint32_t at = row;
	int frames = 0;

	ops_json_member_open(json, "stack", '[');
	if (e->call_stack && e->call_stack[row] != OPS_NONE) {
		write_text_frames(timeline, json, e->call_stack[row]);
		at = OPS_NONE;
	}
	while (at != OPS_NONE && frames < FRAMES_MAX) {
		uint32_t forward = frames ? OPS_NONE : forward_of(timeline, at);

		at = forward != OPS_NONE && forward < at ? forward : e->parent[at];
		if (at != OPS_NONE && e->kind[at] == OPS_EVENT_PYTHON_FUNCTION) {
			struct ops_string name = ops_trace_string(timeline->trace, e->name[at]);

			ops_json_text(json, name.bytes, name.size);
			frames++;
		}
	}
	ops_json_close(json, ']');
}

/* --- wrappers ------------------------------------------------------------------------------------------------------- */

/* Writes the calls around an event that fold into it, outermost last, and the call that it folds into itself. */
static void write_wrappers(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	const struct ops_events *e = timeline->events;
	const uint32_t *into = timeline->wrappers->into;
	uint32_t at = e->parent[row];
	int frames = 0;

	timeline_write_number(json, "folds_into", into ? into[row] : OPS_NONE);
	ops_json_member_open(json, "wrappers", '[');
	for (; into && at != OPS_NONE && into[at] == row && frames < FRAMES_MAX; at = e->parent[at], frames++) {
		ops_json_open(json, '{');
		ops_json_member(json, "row", at);
		timeline_write_string(timeline, json, "name", e->name[at]);
		ops_json_member(json, "duration_ns", timeline_end(timeline, at) - timeline_start(timeline, at));
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* --- arrows --------------------------------------------------------------------------------------------------------- */

static void timeline_event_write_links(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	size_t count, written = 0, i;
	const struct ops_link *links = ops_trace_links(timeline->trace, &count);

	ops_json_member_open(json, "links", '[');
	for (i = timeline_links_from(timeline, row); i < count && links[i].from == row && written < LINKS_MAX; i++, written++)
		timeline_write_flow(timeline, json, &links[i]);
	for (i = timeline_links_to(timeline, row); i < count && written < LINKS_MAX; i++, written++) {
		const struct ops_link *link = &links[timeline->links_to[i]];

		if (link->to != row)
			break;
		if (link->from != row)
			timeline_write_flow(timeline, json, link);
	}
	ops_json_close(json, ']');
}

/* --- result --------------------------------------------------------------------------------------------------------- */

/* Events inside it begin before it ends. */
static int64_t count_children(const struct ops_timeline *timeline, uint32_t row)
{
	const struct ops_events *e = timeline->events;
	int64_t children = 0;

	for (size_t i = (size_t)row + 1; i < e->count && e->start_ns[i] <= e->end_ns[row]; i++)
		children += e->parent[i] == row;
	return children;
}

static void timeline_event_write_event(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	const struct ops_events *e = timeline->events;
	struct ops_string category = ops_event_category(timeline->trace, row);
	const char *kind = timeline_kind_name(e->kind[row]);

	ops_json_open(json, '{');
	ops_json_member(json, "row", row);
	timeline_write_string(timeline, json, "name", e->name[row]);
	ops_json_member_text(json, "kind", kind);
	ops_json_member_string(json, "category", category);
	timeline_write_number(json, "track", timeline_track_of(timeline, row));
	timeline_write_depths(timeline, json, row);
	ops_json_member(json, "start_ns", timeline_start(timeline, row));
	ops_json_member(json, "duration_ns", timeline_end(timeline, row) - timeline_start(timeline, row));
	ops_json_member(json, "self_ns", e->self_ns[row]);
	timeline_write_number(json, "parent", e->parent[row]);
	ops_json_member(json, "children", count_children(timeline, row));
	write_args(timeline, json, row);
	timeline_event_write_line(timeline, json, row);
	timeline_event_write_stack(timeline, json, row);
	write_wrappers(timeline, json, row);
	timeline_event_write_links(timeline, json, row);
	ops_json_close(json, '}');
}

enum ops_code ops_timeline_event(const struct ops_timeline *timeline, uint32_t row, char **ret_text, size_t *ret_size,
                                 struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};

	if (row >= timeline->events->count)
		return ops_fault(error, OPS_INVALID, "row %u does not exist", row);
	timeline_event_write_event(timeline, &json, row);
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

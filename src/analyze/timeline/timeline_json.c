/* SPDX-License-Identifier: Apache-2.0
 *
 * The structure of a timeline without its events; and functions that several answers share.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include "analyze/events/event_table.h"
#include "analyze/timeline/timeline.h"
#include "base/fault.h"
#include "base/sum.h"
#include "derive/steps.h"

#define MARGIN_SHARE 20 /* a twentieth of the range on each side */

const char *timeline_kind_name(int kind)
{
	const char *category = ops_event_kind_category((enum ops_event_kind)kind);

	return *category ? category : kind == OPS_EVENT_MARK ? "mark" : "other";
}

/* --- shared functions ----------------------------------------------------------------------------------------------- */

void timeline_write_number(struct ops_json_writer *json, const char *key, uint32_t value)
{
	ops_json_member_or_null(json, key, value == OPS_NONE ? -1 : (int64_t)value);
}

void timeline_write_string(const struct ops_timeline *timeline, struct ops_json_writer *json, const char *key, uint32_t id)
{
	struct ops_string text = ops_trace_string(timeline->trace, id);

	ops_json_member_string(json, key, text);
}

void timeline_write_depths(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row)
{
	timeline_write_number(json, "depth", row == OPS_NONE ? OPS_NONE : timeline_depth(timeline, row, false));
	timeline_write_number(json, "folded_depth", row == OPS_NONE ? OPS_NONE : timeline_depth(timeline, row, true));
}

void timeline_write_place(const struct ops_timeline *timeline, struct ops_json_writer *json, const char *key, uint32_t row)
{
	if (key)
		ops_json_key(json, key);
	ops_json_open(json, '{');
	ops_json_member(json, "row", row);
	ops_json_member(json, "name", timeline->events->name[row]);
	timeline_write_number(json, "track", timeline_track_of(timeline, row));
	timeline_write_depths(timeline, json, row);
	ops_json_member(json, "start_ns", timeline_start(timeline, row));
	ops_json_member(json, "end_ns", timeline_end(timeline, row));
	ops_json_close(json, '}');
}

void timeline_write_flow(const struct ops_timeline *timeline, struct ops_json_writer *json, const struct ops_link *link)
{
	static const char *const kinds[] = {
		[OPS_LINK_FORWARD_BACKWARD] = "forward_backward", [OPS_LINK_LAUNCH] = "launch", [OPS_LINK_OTHER] = "other",
		[OPS_LINK_DEPENDENCY] = "dependency"};

	ops_json_open(json, '{');
	ops_json_member_text(json, "kind", kinds[link->kind]);
	timeline_write_place(timeline, json, "from", link->from);
	timeline_write_place(timeline, json, "to", link->to);
	ops_json_close(json, '}');
}

/* --- timeline ------------------------------------------------------------------------------------------------------- */

static void timeline_json_write_steps(const struct ops_timeline *timeline, struct ops_json_writer *json)
{
	const struct ops_steps *steps = ops_steps_of(timeline->trace);

	json->out->failed |= !steps;
	ops_json_member_open(json, "steps", '[');
	for (size_t i = 0; steps && i < steps->list.count; i++) {
		const struct ops_step *step = &steps->list.items[i];
		char name[40];
		int size = snprintf(name, sizeof(name), "ProfilerStep#%s", step->text);

		ops_json_open(json, '{');
		if (step->row == OPS_NONE) {
			ops_json_key(json, "name");
			ops_json_text(json, name, (size_t)size);
			ops_json_key(json, "row");
			ops_json_raw(json, "null", 4);
		} else {
			timeline_write_string(timeline, json, "name", timeline->events->name[step->row]);
			ops_json_member(json, "row", step->row);
		}
		ops_json_member(json, "number", step->number);
		ops_json_member(json, "start_ns", timeline_since(timeline, step->start_ns));
		ops_json_member(json, "end_ns", timeline_since(timeline, step->end_ns));
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* Writes what views open on: the steps, unless they are nearly all of the trace. Views over time have a margin around them. */
static void timeline_json_write_opening(const struct ops_timeline *timeline, struct ops_json_writer *json)
{
	int64_t from_ns, to_ns, margin_ns;
	uint64_t first, last;
	char numbers[48];

	if (!ops_trace_opening(timeline->trace, &first, &last) || !ops_trace_steps(timeline->trace, first, last, &from_ns, &to_ns)) {
		ops_json_key(json, "opening");
		ops_json_raw(json, "null", 4);
		return;
	}
	margin_ns = ops_difference(to_ns, from_ns) / MARGIN_SHARE;
	margin_ns += !margin_ns;
	from_ns = ops_difference(timeline_since(timeline, from_ns), margin_ns);
	to_ns = ops_difference(timeline_since(timeline, to_ns), -margin_ns);
	ops_json_member_open(json, "opening", '{');
	ops_json_key(json, "steps");
	ops_json_text(json, numbers, (size_t)snprintf(numbers, sizeof(numbers), first < last ? "%" PRIu64 ":%" PRIu64 : "%" PRIu64, first, last));
	ops_json_member(json, "from_ns", from_ns > 0 ? from_ns : 0);
	ops_json_member(json, "to_ns", to_ns < timeline->duration_ns ? to_ns : timeline->duration_ns);
	ops_json_close(json, '}');
}

static void timeline_json_write_extent(const struct ops_timeline *timeline, struct ops_json_writer *json)
{
	uint64_t lost = ops_trace_info(timeline->trace)->lost;
	char origin[24];
	int size = snprintf(origin, sizeof(origin), "%" PRId64, timeline->origin_ns);

	ops_json_key(json, "origin_ns");
	ops_json_text(json, origin, (size_t)size);
	ops_json_member(json, "duration_ns", timeline->duration_ns);
	ops_json_member(json, "events", (int64_t)timeline->events->count);
	ops_json_member(json, "lost", ops_clamped(lost));
	ops_json_member(json, "wrappers", timeline->folded_depths ? (int64_t)timeline->wrappers->count : 0);
	ops_json_member(json, "tile_bins", OPS_TILE_BINS);
	ops_json_member(json, "band_depths", OPS_TILE_BAND_DEPTHS);
	ops_json_member(json, "level_min", OPS_TILE_LEVEL_MIN);
	ops_json_member(json, "level_max", timeline->level_max);
}

enum ops_code ops_timeline_json(const struct ops_timeline *timeline, char **ret_text, size_t *ret_size,
                                struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};

	ops_json_open(&json, '{');
	timeline_json_write_extent(timeline, &json);
	OPS_JSON_LIST(&json, "kinds", kind, OPS_EVENT_KIND_COUNT,
	              ops_json_word(&json, timeline_kind_name(kind)));
	timeline_tracks_write(timeline, &json);
	timeline_counters_write(timeline, &json);
	timeline_json_write_steps(timeline, &json);
	timeline_json_write_opening(timeline, &json);
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}

enum ops_code ops_timeline_strings(const struct ops_timeline *timeline, const uint32_t *ids, size_t count, char **ret_text,
                                   size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code = OPS_OK;

	ops_json_open(&json, '{');
	ops_json_member_open(&json, "strings", '[');
	for (size_t i = 0; !code && i < count; i++) {
		struct ops_string text = {"", 0};

		if (ids[i] < ops_trace_string_count(timeline->trace))
			text = ops_trace_string(timeline->trace, ids[i]);
		else
			code = ops_fault(error, OPS_INVALID, "string %u does not exist", ids[i]);
		ops_json_text(&json, text.bytes, text.size);
	}
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks in display order: the threads of each process, each followed by its asynchronous events, then the streams of
 * each device, then everything else.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/order.h"

/* A track of the trace, nested or asynchronous, that has rows. */
struct place {
	const struct ops_track *track;
	uint32_t place;
	enum timeline_group_kind group;
	bool own_process; /* the process that recorded the trace */
};

static enum timeline_group_kind group_kind(const struct ops_track *track)
{
	if (track->flags & OPS_TRACK_PID_TEXT)
		return TIMELINE_OTHER_GROUP;
	return track->kind == OPS_TRACK_STREAM ? TIMELINE_DEVICE : TIMELINE_PROCESS;
}

static bool is_main_thread(const struct place *place)
{
	return place->group == TIMELINE_PROCESS && place->track->tid == place->track->pid;
}

static int64_t thread_number(const struct place *place)
{
	return place->group == TIMELINE_PROCESS ? (int64_t)place->track->number : 0;
}

/* Orders threads: the first thread of the process first, then by torch's numbers. */
OPS_ORDER(timeline_tracks_compare_places, struct place,
          OPS_UP(group) OPS_DOWN(own_process) OPS_UP(track->pid) OPS_UP(track->flags) OPS_DOWN_OF(is_main_thread)
          OPS_UP_OF(thread_number) OPS_UP(track->tid) OPS_UP(place))

static enum timeline_track_kind track_kind(const struct place *place)
{
	if (place->place & 1)
		return TIMELINE_ASYNC;
	if (place->track->flags)
		return TIMELINE_OTHER;
	return place->track->kind == OPS_TRACK_STREAM ? TIMELINE_STREAM : TIMELINE_THREAD;
}

/* --- construction --------------------------------------------------------------------------------------------------- */

static struct place *list_places(const struct ops_timeline *timeline, const uint32_t *lanes, size_t *ret_count)
{
	size_t tracks, count = 0;
	const struct ops_track *track = ops_trace_tracks(timeline->trace, &tracks);
	struct place *places = ops_realloc_array(NULL, tracks * 2 + 1, sizeof(*places));
	int64_t pid = ops_trace_info(timeline->trace)->pid;

	for (size_t place = 0; places && place < tracks * 2; place++) {
		const struct ops_track *of = &track[place / 2];

		if (lanes[place])
			places[count++] = (struct place){of, (uint32_t)place, group_kind(of), of->pid == pid};
	}
	*ret_count = count;
	return places;
}

struct process_key {
	int64_t pid;
	uint32_t flags;
	uint32_t process;
};

OPS_ORDER(compare_processes, struct process_key, OPS_UP(pid) OPS_UP(flags))

/* Sets the names of the groups' processes and devices from the file. */
static bool name_groups(struct ops_timeline *timeline)
{
	size_t count;
	const struct ops_process *processes = ops_trace_processes(timeline->trace, &count);
	struct process_key *keys = ops_realloc_array(NULL, count + 1, sizeof(*keys));

	if (!keys)
		return false;
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct process_key){processes[i].pid, processes[i].flags & OPS_TRACK_PID_TEXT, (uint32_t)i};
	qsort(keys, count, sizeof(*keys), compare_processes);
	for (size_t i = 0; i < timeline->groups.count; i++) {
		struct timeline_group *group = &timeline->groups.items[i];
		struct process_key wanted = {group->pid, group->kind == TIMELINE_OTHER_GROUP ? OPS_TRACK_PID_TEXT : 0, 0};
		const struct process_key *found = bsearch(&wanted, keys, count, sizeof(*keys), compare_processes);

		group->process = found ? found->process : OPS_NONE;
	}
	ops_free(keys);
	return true;
}

static bool timeline_tracks_add_track(struct ops_timeline *timeline, const struct place *place, uint32_t lanes,
                                      uint32_t folded_lanes)
{
	struct timeline_group *group = timeline->groups.count ? &timeline->groups.items[timeline->groups.count - 1] : NULL;
	struct timeline_track *track = OPS_ARRAY_PUSH(&timeline->tracks);

	if (!group || group->kind != place->group || group->pid != place->track->pid) {
		if (!OPS_ARRAY_APPEND(&timeline->groups, (struct timeline_group){.kind = place->group, .pid = place->track->pid}))
			return false;
	}
	if (!track)
		return false;
	*track = (struct timeline_track){
		.kind = track_kind(place),
		.source = place->place / 2,
		.group = (uint32_t)(timeline->groups.count - 1),
		.first_lane = (uint32_t)timeline->lane_count,
		.depths = lanes,
		.folded_lane = folded_lanes ? (uint32_t)timeline->all_lanes : (uint32_t)timeline->lane_count,
		.folded_depths = folded_lanes ? folded_lanes : lanes,
		.start_ns = INT64_MAX,
	};
	timeline->lane_count += lanes;
	timeline->all_lanes += folded_lanes;
	timeline->track_of[place->place] = (uint32_t)(timeline->tracks.count - 1);
	return true;
}

static void timeline_tracks_measure(struct ops_timeline *timeline)
{
	for (size_t row = 0; row < timeline->events->count; row++) {
		uint32_t id = timeline_track_of(timeline, (uint32_t)row);
		struct timeline_track *track = &timeline->tracks.items[id == OPS_NONE ? 0 : id];
		int64_t start_ns, end_ns;

		if (id == OPS_NONE)
			continue;
		start_ns = timeline_start(timeline, (uint32_t)row);
		end_ns = timeline_end(timeline, (uint32_t)row);
		track->events++;
		track->start_ns = start_ns < track->start_ns ? start_ns : track->start_ns;
		track->end_ns = end_ns > track->end_ns ? end_ns : track->end_ns;
	}
}

bool timeline_tracks_build(struct ops_timeline *timeline, const uint32_t *lanes, const uint32_t *folded_lanes)
{
	size_t tracks, count;
	struct place *places = list_places(timeline, lanes, &count);
	bool done;

	ops_trace_tracks(timeline->trace, &tracks);
	timeline->track_of = ops_alloc_none(tracks * 2 + 1);
	done = places && timeline->track_of;
	if (done)
		qsort(places, count, sizeof(*places), timeline_tracks_compare_places);
	for (size_t i = 0; done && i < count; i++)
		timeline->all_lanes += lanes[places[i].place];
	for (size_t i = 0; done && i < count; i++)
		done = timeline_tracks_add_track(timeline, &places[i], lanes[places[i].place], folded_lanes[places[i].place]);
	ops_free(places);
	if (done)
		timeline_tracks_measure(timeline);
	return done && name_groups(timeline);
}

uint32_t timeline_find_group(const struct ops_timeline *timeline, enum timeline_group_kind kind, int64_t pid)
{
	for (size_t i = 0; i < timeline->groups.count; i++)
		if (timeline->groups.items[i].kind == kind && timeline->groups.items[i].pid == pid)
			return (uint32_t)i;
	return OPS_NONE;
}

/* --- writing -------------------------------------------------------------------------------------------------------- */

/* Appends a string of the trace; nothing if there is none. */
static void append_string(const struct ops_timeline *timeline, struct ops_buffer *text, uint32_t id)
{
	if (id != OPS_NONE) {
		struct ops_string string = ops_trace_string(timeline->trace, id);

		ops_buffer_append(text, string.bytes, string.size);
	}
}

static void group_label(const struct ops_timeline *timeline, const struct timeline_group *group, struct ops_buffer *text)
{
	size_t count;
	const struct ops_process *process = group->process == OPS_NONE ? NULL
	                                        : &ops_trace_processes(timeline->trace, &count)[group->process];

	if (group->kind == TIMELINE_OTHER_GROUP) {
		append_string(timeline, text, (uint32_t)group->pid);
		return;
	}
	if (process && group->kind == TIMELINE_DEVICE)
		append_string(timeline, text, process->labels);
	else if (process)
		append_string(timeline, text, process->name);
	else if (group->kind == TIMELINE_PROCESS && group->pid == ops_trace_info(timeline->trace)->pid)
		ops_buffer_append_text(text, ops_trace_info(timeline->trace)->process_name);
	if (group->kind == TIMELINE_PROCESS)
		ops_buffer_printf(text, text->size ? " (%" PRId64 ")" : "process %" PRId64, group->pid);
	else if (!text->size)
		ops_buffer_printf(text, "GPU %" PRId64, group->pid);
}

static void track_label(const struct ops_timeline *timeline, const struct timeline_track *track, struct ops_buffer *text)
{
	size_t count;
	const struct ops_track *source = &ops_trace_tracks(timeline->trace, &count)[track->source];

	if (source->flags & OPS_TRACK_TID_TEXT)
		append_string(timeline, text, (uint32_t)source->tid);
	else if (ops_trace_string(timeline->trace, source->name).size)
		append_string(timeline, text, source->name);
	else
		ops_buffer_printf(text, source->kind == OPS_TRACK_STREAM ? "stream %" PRId64 : "thread %" PRId64, source->tid);
}

static void write_label(struct ops_json_writer *json, struct ops_buffer *label)
{
	json->out->failed |= label->failed;
	ops_json_member_string(json, "label", (struct ops_string){label->bytes, label->size});
	label->size = 0;
}

static void write_kind(struct ops_json_writer *json, const char *const *names, int kind)
{
	ops_json_member_text(json, "kind", names[kind]);
}

static void write_track(const struct ops_timeline *timeline, struct ops_json_writer *json, size_t id, struct ops_buffer *label)
{
	static const char *const kinds[] = {"thread", "stream", "async", "other"};
	const struct timeline_track *track = &timeline->tracks.items[id];
	size_t count;
	const struct ops_track *source = &ops_trace_tracks(timeline->trace, &count)[track->source];

	ops_json_open(json, '{');
	ops_json_member(json, "id", (int64_t)id);
	ops_json_member(json, "group", track->group);
	write_kind(json, kinds, track->kind);
	track_label(timeline, track, label);
	write_label(json, label);
	ops_json_member_if(json, "tid", !(source->flags & OPS_TRACK_TID_TEXT), source->tid);
	ops_json_member(json, "depths", track->depths);
	ops_json_member(json, "folded_depths", track->folded_depths);
	ops_json_member(json, "events", (int64_t)track->events);
	ops_json_member(json, "start_ns", track->start_ns);
	ops_json_member(json, "end_ns", track->end_ns);
	ops_json_close(json, '}');
}

void timeline_tracks_write(const struct ops_timeline *timeline, struct ops_json_writer *json)
{
	static const char *const kinds[] = {"process", "device", "other"};
	struct ops_buffer label = {0};

	ops_json_member_open(json, "groups", '[');
	for (size_t i = 0; i < timeline->groups.count; i++) {
		ops_json_open(json, '{');
		ops_json_member(json, "id", (int64_t)i);
		write_kind(json, kinds, timeline->groups.items[i].kind);
		group_label(timeline, &timeline->groups.items[i], &label);
		write_label(json, &label);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	OPS_JSON_LIST(json, "tracks", i, timeline->tracks.count, write_track(timeline, json, i, &label));
	ops_buffer_release(&label);
}

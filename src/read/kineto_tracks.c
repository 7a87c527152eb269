/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads, streams and processes of a file. A track is identified by its process and thread in the file: numbers, numbers in
 * quotes, "stream 7", or any text.
 */
#include "read/kineto.h"

#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/text.h"

/* --- processes and threads ------------------------------------------------------------------------------------------ */

/* Parses a process or thread: its number, or the id of its text and `text_flag`. `*ret_stream` is set for "stream 7". */
static int64_t kineto_tracks_parse_name(struct kineto_reader *reader, const struct ops_json_member *value, unsigned text_flag,
                                        struct kineto_place *place, bool *ret_stream)
{
	struct ops_json_member number;
	int64_t id;

	if (!value || kineto_integer(value, &id))
		return value ? id : 0;
	number = *value;
	if (ops_begins_with(value->value, value->value_size, "stream ")) {
		number.value += 7;
		number.value_size -= 7;
	}
	number.type = OPS_JSON_NUMBER;
	if (value->type == '"' && kineto_integer(&number, &id)) {
		*ret_stream |= number.value != value->value;
		return id;
	}
	if (value->type != '"')
		return 0;
	place->flags |= text_flag;
	return kineto_string(reader, value);
}

/* Returns the track of a process and thread, added if new. */
static uint32_t place_track(struct kineto_reader *reader, const struct kineto_place *place)
{
	uint32_t lane = OPS_INTERN_NONE;
	struct kineto_track *track;
	uint32_t *index;

	/* Reserves room first, because a known place must have a track. */
	if (OPS_ARRAY_RESERVE(&reader->tracks, 1) && OPS_ARRAY_RESERVE(&reader->lane_tracks, 1))
		lane = ops_intern_add(&reader->lanes, place, sizeof(*place));
	if (lane < reader->lane_tracks.count) {
		reader->last_place = *place;
		return reader->last_lane = reader->lane_tracks.items[lane];
	}
	if (lane == OPS_INTERN_NONE) {
		reader->out_of_memory = true;
		return OPS_NONE;
	}
	track = OPS_ARRAY_PUSH(&reader->tracks);
	index = OPS_ARRAY_PUSH(&reader->lane_tracks);
	*track = (struct kineto_track){
		.track = {.pid = place->pid, .tid = place->tid, .flags = (uint32_t)place->flags},
	};
	*index = (uint32_t)(track - reader->tracks.items);
	reader->last_place = *place;
	return reader->last_lane = *index;
}

uint32_t kineto_track(struct kineto_reader *reader, const struct ops_json_member *pid, const struct ops_json_member *tid)
{
	struct kineto_place place = {0};
	bool stream = false;
	uint32_t track;

	place.pid = kineto_tracks_parse_name(reader, pid, OPS_TRACK_PID_TEXT, &place, &stream);
	place.tid = kineto_tracks_parse_name(reader, tid, OPS_TRACK_TID_TEXT, &place, &stream);
	if (reader->tracks.count && memcmp(&place, &reader->last_place, sizeof(place)) == 0)
		track = reader->last_lane;
	else
		track = place_track(reader, &place);
	if (stream && track != OPS_NONE)
		reader->tracks.items[track].track.kind = OPS_TRACK_STREAM;
	return track;
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

/* Finds the name in "thread 12 (worker)"; "thread 12" and "stream 7 " have none. */
static void kineto_tracks_name_track(struct kineto_reader *reader, struct ops_track *track, const struct ops_json_member *value)
{
	struct ops_json_member name = *value;
	size_t size = name.value_size;
	size_t at = 7;

	if (reader->named_tracks)
		return;
	if (ops_begins_with(name.value, size, "thread ") || ops_begins_with(name.value, size, "stream ")) {
		if (name.value[0] == 's')
			track->kind = OPS_TRACK_STREAM;
		at += at < size && name.value[at] == '-';
		while (at < size && name.value[at] >= '0' && name.value[at] <= '9')
			at++;
		while (at < size && name.value[at] == ' ')
			at++;
		if (at + 1 < size && name.value[at] == '(' && name.value[size - 1] == ')') {
			name.value += at + 1;
			name.value_size = (uint32_t)(size - at - 2);
		} else if (at == size) {
			return;
		}
	}
	track->name = kineto_string(reader, &name);
}

static struct ops_process *find_process(struct kineto_reader *reader, const struct ops_json_member *pid)
{
	struct kineto_place key = {0};
	struct ops_process *process;
	bool stream = false;
	uint32_t index;

	key.pid = kineto_tracks_parse_name(reader, pid, OPS_TRACK_PID_TEXT, &key, &stream);
	index = ops_intern_add(&reader->process_keys, &key, sizeof(key));
	if (index < reader->processes.count)
		return &reader->processes.items[index];
	process = index == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&reader->processes);
	if (process)
		*process = (struct ops_process){.pid = key.pid, .flags = (uint32_t)key.flags, .name = OPS_NONE,
		                                .labels = OPS_NONE};
	return process;
}

static void parse_process_row(struct kineto_reader *reader, const struct ops_json_member *name,
                              const struct ops_json_member *pid)
{
	const struct ops_json_member *text = kineto_find_arg(reader, "name");
	const struct ops_json_member *labels = kineto_find_arg(reader, "labels");
	const struct ops_json_member *sort_index = kineto_find_arg(reader, "sort_index");
	struct ops_process *process = find_process(reader, pid);

	if (!process)
		return;
	if (text && text->type == '"' && KINETO_IS(name->value, name->value_size, "process_name")) {
		process->name = kineto_string(reader, text);
		if (reader->process_name == 0)
			reader->process_name = process->name;
	} else if (labels && labels->type == '"') {
		process->labels = kineto_string(reader, labels);
	} else if (sort_index && kineto_integer(sort_index, &process->sort_index)) {
		process->has_sort_index = true;
	} else {
		kineto_note(reader, OPS_NOTE_BAD_METADATA);
	}
}

void kineto_read_meta(struct kineto_reader *reader, const struct ops_json_member *name,
                      const struct ops_json_member *pid, const struct ops_json_member *tid)
{
	const struct ops_json_member *text = kineto_find_arg(reader, "name");

	if (name && ops_begins_with(name->value, name->value_size, "process_")) {
		parse_process_row(reader, name, pid);
	} else if (name && KINETO_IS(name->value, name->value_size, "thread_name") && text && text->type == '"') {
		uint32_t track = kineto_track(reader, pid, tid);
		if (track != OPS_NONE)
			kineto_tracks_name_track(reader, &reader->tracks.items[track].track, text);
	} else if (!name || !KINETO_IS(name->value, name->value_size, "thread_sort_index")) {
		kineto_note(reader, OPS_NOTE_BAD_METADATA);
	}
}

/* --- tracks of Opstrobe's files ------------------------------------------------------------------------------------- */

static bool parse_own_track(struct kineto_reader *reader, const struct ops_json_member *row)
{
	struct ops_json_cursor cursor = {row->value + 1, row->value + row->value_size, NULL};
	struct ops_json_member kind, pid, tid, shown, number, name;
	struct kineto_place place = {0};
	struct kineto_track *track;
	int64_t kind_number, number_number;
	bool stream = false;
	uint32_t lane;

	if (row->type != '[' || !ops_json_parse_element(&cursor, &kind) || !ops_json_parse_element(&cursor, &pid) ||
	    !ops_json_parse_element(&cursor, &tid) || !ops_json_parse_element(&cursor, &shown) || !ops_json_parse_element(&cursor, &number) ||
	    !ops_json_parse_element(&cursor, &name) || !kineto_integer(&kind, &kind_number) || name.type != '"' ||
	    !kineto_integer(&number, &number_number) || number_number < 0 || number_number > INT32_MAX)
		return false;
	place.pid = kineto_tracks_parse_name(reader, &pid, OPS_TRACK_PID_TEXT, &place, &stream);
	place.tid = kineto_tracks_parse_name(reader, &shown, OPS_TRACK_TID_TEXT, &place, &stream);
	track = OPS_ARRAY_PUSH(&reader->tracks);
	if (!track)
		return false;
	*track = (struct kineto_track){.track = {.kind = kind_number == OPS_TRACK_STREAM ? OPS_TRACK_STREAM : OPS_TRACK_THREAD,
	                                         .pid = place.pid, .tid = place.tid, .flags = (uint32_t)place.flags,
	                                         .number = (uint32_t)number_number}};
	if (kind_number == OPS_OWN_KIND_COROUTINE)
		track->track.flags |= OPS_TRACK_COROUTINE;
	if (!(place.flags & OPS_TRACK_TID_TEXT) && !kineto_integer(&tid, &track->track.tid))
		return false;
	track->track.name = kineto_string(reader, &name);
	/* If several tracks are shown as one, the first is found by process and thread; rows of the others contain their index. */
	lane = ops_intern_add(&reader->lanes, &place, sizeof(place));
	if (lane == reader->lane_tracks.count) {
		uint32_t *index = OPS_ARRAY_PUSH(&reader->lane_tracks);
		if (index)
			*index = (uint32_t)(track - reader->tracks.items);
	}
	return true;
}

void kineto_read_own_tracks(struct kineto_reader *reader, const struct ops_json_member *array)
{
	struct ops_json_cursor cursor = {array->value + 1, array->value + array->value_size, NULL};
	struct ops_json_member row;

	if (reader->tracks.count || array->type != '[')
		return;
	reader->named_tracks = true;
	while (ops_json_parse_element(&cursor, &row) && parse_own_track(reader, &row))
		;
}

static bool parse_function(struct kineto_reader *reader, const struct ops_json_member *row)
{
	struct ops_json_cursor cursor = {row->value + 1, row->value + row->value_size, NULL};
	struct ops_json_member name, file, line;
	struct ops_function function;
	int64_t first;
	uint32_t *index;

	if (row->type != '[' || !ops_json_parse_element(&cursor, &name) || !ops_json_parse_element(&cursor, &file) ||
	    !ops_json_parse_element(&cursor, &line) || name.type != '"' || file.type != '"' || !kineto_integer(&line, &first) ||
	    first < 0 || first > UINT32_MAX)
		return false;
	function.name = kineto_string(reader, &name);
	function.file = kineto_string(reader, &file);
	function.line = (uint32_t)first;
	index = OPS_ARRAY_PUSH(&reader->functions);
	if (!index)
		return false;
	*index = ops_builder_function(reader->builder, &function);
	return true;
}

void kineto_read_functions(struct kineto_reader *reader, const struct ops_json_member *array)
{
	struct ops_json_cursor cursor = {array->value + 1, array->value + array->value_size, NULL};
	struct ops_json_member row;

	if (reader->functions.count || array->type != '[')
		return;
	while (ops_json_parse_element(&cursor, &row) && parse_function(reader, &row))
		;
}

/* --- end ------------------------------------------------------------------------------------------------------------ */

/* Returns whether this is the initial thread of a process, usually torch's number 1. */
static bool is_main(const struct kineto_track *track)
{
	return track->has_events && track->track.pid == track->track.tid && !track->track.flags;
}

/* Numbers in a file are kept if they are unique; then main threads are numbered first, followed by those with events. */
static void kineto_tracks_number_tracks(struct kineto_reader *reader)
{
	struct ops_intern taken = {0};
	uint32_t next = 1;

	for (size_t i = 0; i < reader->tracks.count; i++) {
		struct ops_track *track = &reader->tracks.items[i].track;
		size_t known = taken.count;

		if (track->kind == OPS_TRACK_STREAM)
			track->number = 0;
		if (track->number && ops_intern_add(&taken, &track->number, sizeof(track->number)) != known)
			track->number = 0;
		if (track->number >= next)
			next = track->number + 1;
	}
	ops_intern_release(&taken);
	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < reader->tracks.count; i++) {
			struct kineto_track *track = &reader->tracks.items[i];

			if (track->track.number == 0 && track->track.kind == OPS_TRACK_THREAD &&
			    (pass == 2 || (pass == 0 ? is_main(track) : track->has_events)))
				track->track.number = next++;
		}
	}
}

/* A recording of a single process has no descriptions: the writer adds those of its process and of the profiler. */
static bool kineto_tracks_describe_processes(const struct kineto_reader *reader)
{
	bool others = !reader->recorded;

	for (size_t i = 0; i < reader->processes.count; i++)
		others |= !(reader->processes.items[i].flags & OPS_TRACK_PID_TEXT) && reader->processes.items[i].pid != reader->pid;
	return others;
}

void kineto_end_tracks(struct kineto_reader *reader)
{
	kineto_tracks_number_tracks(reader);
	for (size_t i = 0; i < reader->tracks.count; i++)
		ops_builder_track(reader->builder, &reader->tracks.items[i].track);
	for (size_t i = 0; i < reader->processes.count && kineto_tracks_describe_processes(reader); i++)
		ops_builder_process(reader->builder, &reader->processes.items[i]);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts one event of a file to a row, or passes it to kineto_records.c. Separate begin and end events are joined.
 */
#include "read/kineto.h"

#include <string.h>

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static bool kineto_event_is_instant(uint8_t kind)
{
	return kind == OPS_EVENT_CPU_INSTANT || kind == OPS_EVENT_MARK;
}

/* The phase determines the kind; the category column keeps the original category. */
static void change_kind(struct kineto_reader *reader, struct ops_new_event *event, uint8_t kind)
{
	const char *category = ops_event_kind_category(event->kind);

	if (event->category == OPS_NONE && *category)
		event->category = ops_builder_string(reader->builder, category, strlen(category));
	event->kind = kind;
}

void kineto_extend_span(struct kineto_reader *reader, int64_t start_ns, int64_t end_ns)
{
	if (start_ns < reader->first_ns)
		reader->first_ns = start_ns;
	if (end_ns > reader->last_ns)
		reader->last_ns = end_ns;
}

/* Reads name, track and start. Returns false, with a note, if the event cannot be a row. */
bool kineto_read_place(struct kineto_reader *reader, const struct kineto_event *e, struct ops_new_event *event)
{
	int64_t track;

	if (!e->ts || !kineto_time(e->ts, &event->start_ns)) {
		kineto_note(reader, OPS_NOTE_BAD_TIME);
		reader->lost++;
		return false;
	}
	event->end_ns = event->start_ns;
	event->name = 0;
	if (e->name) {
		if (e->name->flags & (OPS_JSON_HIGH | OPS_JSON_CONTROL))
			kineto_note_text(reader, e->name);
		event->name = kineto_string(reader, e->name);
	}
	event->track = kineto_track(reader, e->pid, e->tid);
	if (reader->own && e->track && kineto_integer(e->track, &track) && track >= 0 &&
	    (uint64_t)track < reader->tracks.count)
		event->track = (uint32_t)track;
	return event->track != OPS_NONE;
}

/* Removes the ".overload" that the writer appended to the name. */
static void cut_overload(struct kineto_reader *reader, const struct kineto_event *e, struct ops_new_event *event)
{
	const struct ops_json_member *overload = kineto_find_arg(reader, "Overload Name");
	struct ops_json_member name;

	if (!overload || !e->name || overload->value_size == 0 || e->name->value_size <= overload->value_size)
		return;
	name = *e->name;
	name.value_size -= overload->value_size + 1;
	if (name.value[name.value_size] == '.' &&
	    memcmp(name.value + name.value_size + 1, overload->value, overload->value_size) == 0)
		event->name = kineto_string(reader, &name);
}

/* Sets the other members. Returns false if reading cannot continue. */
static bool kineto_event_describe(struct kineto_reader *reader, const struct kineto_event *e, struct ops_new_event *event,
                                  struct kineto_own_args *own)
{
	struct kineto_category category = kineto_category_of(reader, e->cat);

	if (category.on_device)
		reader->tracks.items[event->track].track.kind = OPS_TRACK_STREAM;
	event->kind = category.kind;
	event->category = category.id;
	event->index = reader->recorded ? OPS_NONE : reader->index;
	event->scope = category.kind == OPS_EVENT_USER_ANNOTATION ? 7 : 0;
	if (!kineto_read_args(reader, event, own))
		return false;
	if (own->name != OPS_NONE)
		event->name = own->name;
	else if (event->overload)
		cut_overload(reader, e, event);
	if (own->async == 1)
		event->flags |= OPS_EVENT_ASYNC;
	return true;
}

static uint32_t kineto_event_add_row(struct kineto_reader *reader, struct ops_new_event *event)
{
	struct kineto_track *track = &reader->tracks.items[event->track];

	if (event->kind <= OPS_EVENT_PYTHON_FUNCTION)
		track->has_events = true;
	if (!reader->has_pid && event->kind <= OPS_EVENT_PYTHON_FUNCTION && !(track->track.flags & OPS_TRACK_PID_TEXT)) {
		reader->has_pid = true;
		reader->pid = track->track.pid;
	}
	if (reader->row_ids)
		event->id = 0;
	kineto_extend_span(reader, event->start_ns, event->end_ns);
	reader->last_track = event->track;
	reader->last_start_ns = event->start_ns;
	return reader->last_row = ops_builder_event(reader->builder, event);
}

static int64_t parse_duration(struct kineto_reader *reader, const struct ops_json_member *dur)
{
	int64_t duration_ns;

	if (dur && kineto_time(dur, &duration_ns) && duration_ns >= 0)
		return duration_ns;
	kineto_note(reader, OPS_NOTE_BAD_DURATION);
	return 0;
}

/* --- phases --------------------------------------------------------------------------------------------------------- */

/* The frame of a recording in Opstrobe's files is known from their head already. */
static bool is_frame(const struct kineto_reader *reader, const struct kineto_event *e)
{
	return reader->recorded && (!e->cat || KINETO_IS(e->cat->value, e->cat->value_size, "Trace"));
}

/* The first span of a session becomes that of the trace. */
static void set_session(struct kineto_reader *reader, const struct ops_new_event *event)
{
	if (event->kind != OPS_EVENT_TRACE || reader->has_session)
		return;
	reader->has_session = true;
	reader->start_ns = event->start_ns;
	reader->stop_ns = event->end_ns;
}

static bool parse_complete(struct kineto_reader *reader, const struct kineto_event *e)
{
	struct ops_new_event event = {OPS_NEW_EVENT};
	struct kineto_own_args own;
	struct kineto_open *unfinished;
	uint32_t row;

	if (kineto_is_memory(reader, e->name))
		return kineto_read_memory(reader, e);
	if (is_frame(reader, e) || !kineto_read_place(reader, e, &event))
		return true;
	event.end_ns += parse_duration(reader, e->dur);
	if (!kineto_event_describe(reader, e, &event, &own))
		return false;
	if (kineto_event_is_instant(event.kind))
		change_kind(reader, &event, OPS_EVENT_OTHER);
	set_session(reader, &event);
	row = kineto_event_add_row(reader, &event);
	if (!own.unfinished)
		return true;
	unfinished = OPS_ARRAY_PUSH(&reader->unfinished);
	if (!unfinished)
		return false;
	*unfinished = (struct kineto_open){row, 0, event.start_ns};
	return true;
}

static bool parse_instant(struct kineto_reader *reader, const struct kineto_event *e)
{
	struct ops_new_event event = {OPS_NEW_EVENT};
	struct kineto_own_args own;

	if (kineto_is_memory(reader, e->name))
		return kineto_read_memory(reader, e);
	if (is_frame(reader, e) || !kineto_read_place(reader, e, &event))
		return true;
	if (!kineto_event_describe(reader, e, &event, &own))
		return false;
	if (!kineto_event_is_instant(event.kind))
		change_kind(reader, &event, OPS_EVENT_CPU_INSTANT);
	kineto_event_add_row(reader, &event);
	return true;
}

/* Begins an event whose end comes later. */
static bool kineto_event_begin(struct kineto_reader *reader, const struct kineto_event *e, struct kineto_open *ret_open,
                               uint16_t flags, uint32_t *ret_track)
{
	struct ops_new_event event = {OPS_NEW_EVENT, .flags = flags};
	struct kineto_own_args own;

	ret_open->row = OPS_NONE;
	if (!kineto_read_place(reader, e, &event))
		return true;
	if (!kineto_event_describe(reader, e, &event, &own))
		return false;
	if (own.async == 0)
		event.flags &= (uint16_t)~OPS_EVENT_ASYNC;
	if (kineto_event_is_instant(event.kind))
		change_kind(reader, &event, OPS_EVENT_OTHER);
	*ret_open = (struct kineto_open){kineto_event_add_row(reader, &event), 0, event.start_ns};
	*ret_track = event.track;
	if (own.unfinished) {
		struct kineto_open *unfinished = OPS_ARRAY_PUSH(&reader->unfinished);
		if (!unfinished)
			return false;
		*unfinished = *ret_open;
	}
	return true;
}

/* Ends an event that has begun, not before its begin. */
static void kineto_event_end(struct kineto_reader *reader, const struct kineto_event *e, const struct kineto_open *open)
{
	int64_t end_ns;

	if (!e->ts || !kineto_time(e->ts, &end_ns)) {
		kineto_note(reader, OPS_NOTE_BAD_TIME);
		end_ns = open->start_ns;
	} else if (end_ns < open->start_ns) {
		kineto_note(reader, OPS_NOTE_BAD_DURATION);
		end_ns = open->start_ns;
	}
	kineto_extend_span(reader, open->start_ns, end_ns);
	ops_builder_set_end(reader->builder, open->row, end_ns, 0);
}

static bool parse_begin(struct kineto_reader *reader, const struct kineto_event *e)
{
	struct kineto_open open;
	struct kineto_open *pushed;
	uint32_t track;

	if (!kineto_event_begin(reader, e, &open, 0, &track))
		return false;
	if (open.row == OPS_NONE)
		return true;
	open.below = reader->tracks.items[track].open;
	pushed = OPS_ARRAY_PUSH(&reader->opens);
	if (!pushed)
		return false;
	*pushed = open;
	reader->tracks.items[track].open = (uint32_t)reader->opens.count;
	return true;
}

static bool parse_end(struct kineto_reader *reader, const struct kineto_event *e)
{
	uint32_t track = kineto_track(reader, e->pid, e->tid);
	uint32_t open;

	if (track == OPS_NONE)
		return false;
	open = reader->tracks.items[track].open;
	if (open == 0) {
		kineto_note(reader, OPS_NOTE_UNMATCHED_END);
		return true;
	}
	kineto_event_end(reader, e, &reader->opens.items[open - 1]);
	reader->opens.items[open - 1].row = OPS_NONE;
	reader->tracks.items[track].open = reader->opens.items[open - 1].below;
	return true;
}

/* An asynchronous pair is identified by category, id and (for old tools) name. */
static uint32_t kineto_event_pair_of(struct kineto_reader *reader, const struct kineto_event *e)
{
	const struct ops_json_member *parts[] = {e->cat, e->id, e->pid};

	reader->text.size = 0;
	for (int i = 0; i < 3; i++) {
		if (parts[i])
			ops_buffer_append(&reader->text, parts[i]->value, parts[i]->value_size);
		ops_buffer_append(&reader->text, "", 1);
	}
	if (reader->text.failed)
		return OPS_INTERN_NONE;
	return ops_intern_add(&reader->pair_keys, reader->text.bytes, reader->text.size);
}

static bool kineto_event_parse_pair(struct kineto_reader *reader, const struct kineto_event *e, bool begins)
{
	uint32_t pair = kineto_event_pair_of(reader, e);
	struct kineto_open *open;
	uint32_t track;

	if (pair == OPS_INTERN_NONE)
		return false;
	if (pair == reader->pairs.count) {
		open = OPS_ARRAY_PUSH(&reader->pairs);
		if (!open)
			return false;
		*open = (struct kineto_open){.row = OPS_NONE};
	}
	open = &reader->pairs.items[pair];
	if (!begins && open->row != OPS_NONE) {
		kineto_event_end(reader, e, open);
		open->row = OPS_NONE;
		return true;
	}
	if (!begins || open->row != OPS_NONE) {
		kineto_note(reader, begins ? OPS_NOTE_UNMATCHED_BEGIN : OPS_NOTE_UNMATCHED_END);
		if (!begins)
			return true;
	}
	return kineto_event_begin(reader, e, open, OPS_EVENT_ASYNC, &track);
}

/* --- one event ------------------------------------------------------------------------------------------------------ */

static void find_members(const struct ops_json_object *object, struct kineto_event *e)
{
	for (uint32_t i = 0; i < object->count; i++) {
		const struct ops_json_member *member = &object->members[i];
		const char *key = member->key;

		if (member->key_size == 2) {
			if (key[0] == 'p' && key[1] == 'h')
				e->ph = member;
			else if (key[0] == 't' && key[1] == 's')
				e->ts = member;
			else if (key[0] == 'i' && key[1] == 'd')
				e->id = member;
		} else if (member->key_size == 3) {
			if (memcmp(key, "cat", 3) == 0)
				e->cat = member->type == '"' ? member : NULL;
			else if (memcmp(key, "pid", 3) == 0)
				e->pid = member;
			else if (memcmp(key, "tid", 3) == 0)
				e->tid = member;
			else if (memcmp(key, "dur", 3) == 0)
				e->dur = member;
		} else if (member->key_size == 4 && memcmp(key, "name", 4) == 0) {
			e->name = member->type == '"' ? member : NULL;
		} else if (member->key_size == 5 && memcmp(key, "track", 5) == 0) {
			e->track = member;
		}
	}
}

static bool parse_phase(struct kineto_reader *reader, const struct kineto_event *e)
{
	switch (e->ph->value[0]) {
	case 'X':
		return parse_complete(reader, e);
	case 'i':
	case 'I':
		return parse_instant(reader, e);
	case 'B':
		return parse_begin(reader, e);
	case 'E':
		return parse_end(reader, e);
	case 'b':
	case 'e':
		return kineto_event_parse_pair(reader, e, e->ph->value[0] == 'b');
	case 'C':
		return kineto_read_counter(reader, e);
	case 's':
		return kineto_read_flow(reader, e, OPS_FLOW_START);
	case 't':
		return kineto_read_flow(reader, e, OPS_FLOW_STEP);
	case 'f':
		return kineto_read_flow(reader, e, OPS_FLOW_FINISH);
	case 'M':
		kineto_read_meta(reader, e->name, e->pid, e->tid);
		return true;
	default:
		kineto_note(reader, OPS_NOTE_UNKNOWN_PHASE);
		reader->lost++;
		return true;
	}
}

bool kineto_read_event(struct kineto_reader *reader)
{
	struct kineto_event e = {0};

	find_members(reader->object, &e);
	if (!e.ph || e.ph->type != '"' || e.ph->value_size != 1) {
		kineto_note(reader, OPS_NOTE_NOT_AN_EVENT);
		reader->lost++;
		return true;
	}
	return parse_phase(reader, &e) && !reader->out_of_memory && !ops_builder_failed(reader->builder);
}

/* --- end ------------------------------------------------------------------------------------------------------------ */

/* Ends the events without an end together with the session. */
static void end_open(struct kineto_reader *reader, const struct kineto_open *open)
{
	if (open->row == OPS_NONE)
		return;
	kineto_note(reader, OPS_NOTE_UNMATCHED_BEGIN);
	ops_builder_set_end(reader->builder, open->row, reader->stop_ns, OPS_EVENT_UNFINISHED);
}

static bool has_open(const struct kineto_reader *reader)
{
	bool open = false;

	for (size_t i = 0; i < reader->opens.count; i++)
		open |= reader->opens.items[i].row != OPS_NONE;
	for (size_t i = 0; i < reader->pairs.count; i++)
		open |= reader->pairs.items[i].row != OPS_NONE;
	return open;
}

void kineto_end_events(struct kineto_reader *reader)
{
	if (!reader->has_session || (has_open(reader) && reader->last_ns > reader->stop_ns))
		reader->stop_ns = reader->last_ns;
	if (!reader->has_session)
		reader->start_ns = reader->first_ns;
	for (size_t i = 0; i < reader->opens.count; i++)
		end_open(reader, &reader->opens.items[i]);
	for (size_t i = 0; i < reader->pairs.count; i++)
		end_open(reader, &reader->pairs.items[i]);
	for (size_t i = 0; i < reader->unfinished.count; i++)
		if (reader->unfinished.items[i].start_ns <= reader->stop_ns)
			ops_builder_set_end(reader->builder, reader->unfinished.items[i].row, reader->stop_ns,
			                    OPS_EVENT_UNFINISHED);
}

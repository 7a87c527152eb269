/* SPDX-License-Identifier: Apache-2.0
 *
 * One event of a file becomes a row, a memory or counter record, an arrow's end, or a name.
 */
#include "read/kineto.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"

/* The members of an event that are looked at; NULL for those that are not there. */
struct event {
	const struct ops_json_member *ph, *cat, *name, *pid, *tid, *ts, *dur, *id, *track;
};

/* --- values --------------------------------------------------------------------------------------------------------- */

bool kineto_integer(const struct ops_json_member *value, int64_t *ret_value)
{
	const char *at = value->value, *end = at + value->value_size;
	bool negative = at < end && *at == '-';
	uint64_t number = 0;

	at += negative;
	if (value->type != OPS_JSON_NUMBER || at == end || end - at > 18)
		return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return false;
		number = number * 10 + (uint64_t)(*at - '0');
	}
	*ret_value = negative ? -(int64_t)number : (int64_t)number;
	return true;
}

/* Most times have at most three decimals: the rest takes the long way. */
bool kineto_time(const struct ops_json_member *value, int64_t *ret_ns)
{
	static const uint16_t scales[] = {1000, 100, 10, 1};
	const char *at = value->value, *end = at + value->value_size;
	const char *point;
	bool negative = at < end && *at == '-';
	uint64_t number = 0;

	at += negative;
	point = at;
	if (value->type != OPS_JSON_NUMBER)
		return false;
	if (at < end && end - at <= 19 && *at >= '0' && *at <= '9') {
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			number = number * 10 + (uint64_t)(*at - '0');
		point = at;
		if (at < end && *at == '.' && end - at <= 4)
			for (at++; at < end && *at >= '0' && *at <= '9'; at++)
				number = number * 10 + (uint64_t)(*at - '0');
		if (at == end && number <= (uint64_t)KINETO_TIME_MAX / 1000) {
			number *= scales[end > point ? end - point - 1 : 0];
			*ret_ns = negative ? -(int64_t)number : (int64_t)number;
			return true;
		}
	}
	return ops_json_decimal(value->value, value->value_size, 3, KINETO_TIME_MAX, ret_ns);
}

void kineto_note_text(struct kineto_reader *reader, const struct ops_json_member *value)
{
	if (value->flags & OPS_JSON_CONTROL)
		kineto_note(reader, OPS_NOTE_CONTROL_CHARACTER);
	if ((value->flags & OPS_JSON_HIGH) && !ops_utf8_valid(value->value, value->value_size))
		kineto_note(reader, OPS_NOTE_NOT_UTF8);
}

uint32_t kineto_string(struct kineto_reader *reader, const struct ops_json_member *value)
{
	if (!(value->flags & OPS_JSON_ESCAPED))
		return ops_builder_string(reader->builder, value->value, value->value_size);
	reader->scratch.size = 0;
	ops_json_decode(&reader->scratch, value->value, value->value_size);
	return ops_builder_string(reader->builder, reader->scratch.bytes, reader->scratch.size);
}

/* --- categories ----------------------------------------------------------------------------------------------------- */

static const struct {
	const char *category;
	uint8_t kind;
} kinds[] = {
	{"cpu_op", OPS_EVENT_CPU_OP},
	{"operator", OPS_EVENT_CPU_OP},
	{"user_annotation", OPS_EVENT_USER_ANNOTATION},
	{"python_function", OPS_EVENT_PYTHON_FUNCTION},
	{"python", OPS_EVENT_PYTHON_FUNCTION},
	{"cpu_instant_event", OPS_EVENT_CPU_INSTANT},
	{"kernel", OPS_EVENT_KERNEL},
	{"gpu_memcpy", OPS_EVENT_GPU_MEMCPY},
	{"memcpy", OPS_EVENT_GPU_MEMCPY},
	{"gpu_memset", OPS_EVENT_GPU_MEMSET},
	{"memset", OPS_EVENT_GPU_MEMSET},
	{"gpu_user_annotation", OPS_EVENT_GPU_USER_ANNOTATION},
	{"runtime", OPS_EVENT_RUNTIME},
	{"cuda_runtime", OPS_EVENT_RUNTIME},
	{"xpu_runtime", OPS_EVENT_RUNTIME},
	{"mtia_runtime", OPS_EVENT_RUNTIME},
	{"glow_runtime", OPS_EVENT_RUNTIME},
	{"privateuse1_runtime", OPS_EVENT_RUNTIME},
	{"cuda_driver", OPS_EVENT_DRIVER},
	{"xpu_driver", OPS_EVENT_DRIVER},
	{"privateuse1_driver", OPS_EVENT_DRIVER},
	{"cuda_sync", OPS_EVENT_SYNC},
	{"xpu_sync", OPS_EVENT_SYNC},
	{"overhead", OPS_EVENT_OVERHEAD},
	{"trace", OPS_EVENT_TRACE},
};

static const struct {
	const char *category;
	uint8_t kind;
} link_kinds[] = {
	{"fwdbwd", OPS_LINK_FORWARD_BACKWARD},
	{"forward_backward", OPS_LINK_FORWARD_BACKWARD},
	{"ac2g", OPS_LINK_LAUNCH},
	{"async", OPS_LINK_LAUNCH},
	{"async_gpu", OPS_LINK_LAUNCH},
	{"async_cpu_to_gpu", OPS_LINK_LAUNCH},
};

static void classify(struct kineto_reader *reader, const char *text, size_t size, struct kineto_category *category)
{
	const char *own;

	category->kind = size ? OPS_EVENT_OTHER : OPS_EVENT_MARK;
	category->link_kind = OPS_LINK_OTHER;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i].category) == size && strncasecmp(kinds[i].category, text, size) == 0)
			category->kind = kinds[i].kind;
	for (size_t i = 0; i < sizeof(link_kinds) / sizeof(link_kinds[0]); i++)
		if (kineto_is(text, size, link_kinds[i].category, strlen(link_kinds[i].category)))
			category->link_kind = link_kinds[i].kind;
	category->id = ops_builder_string(reader->builder, text, size);
	category->link_id = category->id;
	own = ops_event_kind_category(category->kind);
	if (kineto_is(text, size, own, strlen(own)))
		category->id = OPS_NONE;
	if (KINETO_IS(text, size, "fwdbwd") || KINETO_IS(text, size, "ac2g"))
		category->link_id = OPS_NONE;
}

/* Files have a handful of categories: that of the event before is the likeliest. */
static struct kineto_category category_of(struct kineto_reader *reader, const struct ops_json_member *cat)
{
	const char *text = cat && cat->type == '"' ? cat->value : "";
	size_t size = cat && cat->type == '"' ? cat->value_size : 0;
	struct kineto_category made = {.size = (uint32_t)size};

	for (uint32_t i = 0; i < reader->category_count; i++) {
		uint32_t at = (reader->last_category + i) % reader->category_count;
		const struct kineto_category *known = &reader->categories[at];

		if (kineto_is(text, size, known->text, known->size)) {
			reader->last_category = at;
			return *known;
		}
	}
	classify(reader, text, size, &made);
	if (size <= sizeof(made.text) && reader->category_count < KINETO_CATEGORIES_MAX) {
		memcpy(made.text, text, size);
		reader->categories[reader->last_category = reader->category_count++] = made;
	}
	return made;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static bool is_device(uint8_t kind)
{
	return kind == OPS_EVENT_KERNEL || kind == OPS_EVENT_GPU_MEMCPY || kind == OPS_EVENT_GPU_MEMSET ||
	       kind == OPS_EVENT_GPU_USER_ANNOTATION || kind == OPS_EVENT_SYNC;
}

static bool is_instant(uint8_t kind)
{
	return kind == OPS_EVENT_CPU_INSTANT || kind == OPS_EVENT_MARK;
}

/* The phase says what an event is, the category keeps what it was called. */
static void change_kind(struct kineto_reader *reader, struct ops_new_event *event, uint8_t kind)
{
	const char *category = ops_event_kind_category(event->kind);

	if (event->category == OPS_NONE && *category)
		event->category = ops_builder_string(reader->builder, category, strlen(category));
	event->kind = kind;
}

static void see_time(struct kineto_reader *reader, int64_t start_ns, int64_t end_ns)
{
	if (start_ns < reader->first_ns)
		reader->first_ns = start_ns;
	if (end_ns > reader->last_ns)
		reader->last_ns = end_ns;
}

/* Name, track and start. False, and a note, when it cannot be a row. */
static bool take_place(struct kineto_reader *reader, const struct event *e, struct ops_new_event *event)
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

/* What the writer appended to the name: ".overload". */
static void cut_overload(struct kineto_reader *reader, const struct event *e, struct ops_new_event *event)
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

/* Fills in the rest. False when the reader cannot go on. */
static bool describe(struct kineto_reader *reader, const struct event *e, struct ops_new_event *event,
                     struct kineto_own_args *own)
{
	struct kineto_category category = category_of(reader, e->cat);

	event->kind = category.kind;
	event->category = category.id;
	event->index = reader->recorded ? OPS_NONE : reader->index;
	event->scope = category.kind == OPS_EVENT_USER_ANNOTATION ? 7 : 0;
	if (!kineto_take_args(reader, event, own))
		return false;
	if (own->name != OPS_NONE)
		event->name = own->name;
	else if (event->overload)
		cut_overload(reader, e, event);
	if (own->async == 1)
		event->flags |= OPS_EVENT_ASYNC;
	return true;
}

static uint32_t add_row(struct kineto_reader *reader, struct ops_new_event *event)
{
	struct kineto_track *track = &reader->tracks.items[event->track];

	if (is_device(event->kind))
		track->track.kind = OPS_TRACK_STREAM;
	else if (event->kind <= OPS_EVENT_PYTHON_FUNCTION)
		track->has_events = true;
	if (!reader->has_pid && event->kind <= OPS_EVENT_PYTHON_FUNCTION && !(track->track.flags & OPS_TRACK_PID_TEXT)) {
		reader->has_pid = true;
		reader->pid = track->track.pid;
	}
	if (reader->row_ids)
		event->id = 0;
	see_time(reader, event->start_ns, event->end_ns);
	reader->last_track = event->track;
	reader->last_start_ns = event->start_ns;
	return reader->last_row = ops_builder_event(reader->builder, event);
}

static int64_t take_duration(struct kineto_reader *reader, const struct ops_json_member *dur)
{
	int64_t duration_ns;

	if (dur && kineto_time(dur, &duration_ns) && duration_ns >= 0)
		return duration_ns;
	kineto_note(reader, OPS_NOTE_BAD_DURATION);
	return 0;
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static int64_t number_arg(const struct kineto_reader *reader, const char *key, int64_t otherwise)
{
	const struct ops_json_member *member = kineto_find_arg(reader, key);
	int64_t value;

	if (!member || member->type != OPS_JSON_NUMBER || !ops_json_decimal(member->value, member->value_size, 0,
	                                                                    INT64_MAX, &value))
		return otherwise;
	return value;
}

static bool is_memory(const struct kineto_reader *reader, const struct ops_json_member *name)
{
	return name && (KINETO_IS(name->value, name->value_size, "[memory]") ||
	                KINETO_IS(name->value, name->value_size, "[OutOfMemory]")) &&
	       kineto_find_arg(reader, "Bytes");
}

static bool take_memory(struct kineto_reader *reader, const struct event *e)
{
	struct ops_memory_record record = {.out_of_memory = e->name->value[1] == 'O'};
	struct ops_new_event place = {OPS_NEW_EVENT};

	if (!take_place(reader, e, &place))
		return true;
	see_time(reader, place.start_ns, place.start_ns);
	record.time_ns = place.start_ns;
	record.track = place.track;
	record.address = (uint64_t)number_arg(reader, "Addr", 0);
	record.bytes = number_arg(reader, "Bytes", 0);
	record.total_allocated = (uint64_t)number_arg(reader, "Total Allocated", 0);
	record.total_reserved = (uint64_t)number_arg(reader, "Total Reserved", 0);
	record.device_index = (int16_t)number_arg(reader, "Device Id", -1);
	record.device_type = (uint8_t)number_arg(reader, "Device Type", 0);
	ops_builder_memory(reader->builder, &record);
	return true;
}

/* --- phases --------------------------------------------------------------------------------------------------------- */

/* What frames a recording in an own file is said at its head already. */
static bool is_frame(const struct kineto_reader *reader, const struct event *e)
{
	return reader->recorded && (!e->cat || KINETO_IS(e->cat->value, e->cat->value_size, "Trace"));
}

/* The first span of a session is the trace's. */
static void see_session(struct kineto_reader *reader, const struct ops_new_event *event)
{
	if (event->kind != OPS_EVENT_TRACE || reader->has_session)
		return;
	reader->has_session = true;
	reader->start_ns = event->start_ns;
	reader->stop_ns = event->end_ns;
}

static bool take_complete(struct kineto_reader *reader, const struct event *e)
{
	struct ops_new_event event = {OPS_NEW_EVENT};
	struct kineto_own_args own;
	struct kineto_open *unfinished;
	uint32_t row;

	if (is_memory(reader, e->name))
		return take_memory(reader, e);
	if (is_frame(reader, e) || !take_place(reader, e, &event))
		return true;
	event.end_ns += take_duration(reader, e->dur);
	if (!describe(reader, e, &event, &own))
		return false;
	if (is_instant(event.kind))
		change_kind(reader, &event, OPS_EVENT_OTHER);
	see_session(reader, &event);
	row = add_row(reader, &event);
	if (!own.unfinished)
		return true;
	unfinished = OPS_ARRAY_PUSH(&reader->unfinished);
	if (!unfinished)
		return false;
	*unfinished = (struct kineto_open){row, 0, event.start_ns};
	return true;
}

static bool take_instant(struct kineto_reader *reader, const struct event *e)
{
	struct ops_new_event event = {OPS_NEW_EVENT};
	struct kineto_own_args own;

	if (is_memory(reader, e->name))
		return take_memory(reader, e);
	if (is_frame(reader, e) || !take_place(reader, e, &event))
		return true;
	if (!describe(reader, e, &event, &own))
		return false;
	if (!is_instant(event.kind))
		change_kind(reader, &event, OPS_EVENT_CPU_INSTANT);
	add_row(reader, &event);
	return true;
}

/* Begins an event whose end comes later. */
static bool begin(struct kineto_reader *reader, const struct event *e, struct kineto_open *ret_open, uint16_t flags,
                  uint32_t *ret_track)
{
	struct ops_new_event event = {OPS_NEW_EVENT, .flags = flags};
	struct kineto_own_args own;

	ret_open->row = OPS_NONE;
	if (!take_place(reader, e, &event))
		return true;
	if (!describe(reader, e, &event, &own))
		return false;
	if (own.async == 0)
		event.flags &= (uint16_t)~OPS_EVENT_ASYNC;
	if (is_instant(event.kind))
		change_kind(reader, &event, OPS_EVENT_OTHER);
	*ret_open = (struct kineto_open){add_row(reader, &event), 0, event.start_ns};
	*ret_track = event.track;
	if (own.unfinished) {
		struct kineto_open *unfinished = OPS_ARRAY_PUSH(&reader->unfinished);
		if (!unfinished)
			return false;
		*unfinished = *ret_open;
	}
	return true;
}

/* Ends one that began: not before it did. */
static void end(struct kineto_reader *reader, const struct event *e, const struct kineto_open *open)
{
	int64_t end_ns;

	if (!e->ts || !kineto_time(e->ts, &end_ns)) {
		kineto_note(reader, OPS_NOTE_BAD_TIME);
		end_ns = open->start_ns;
	} else if (end_ns < open->start_ns) {
		kineto_note(reader, OPS_NOTE_BAD_DURATION);
		end_ns = open->start_ns;
	}
	see_time(reader, open->start_ns, end_ns);
	ops_builder_set_end(reader->builder, open->row, end_ns, 0);
}

static bool take_begin(struct kineto_reader *reader, const struct event *e)
{
	struct kineto_open open;
	struct kineto_open *pushed;
	uint32_t track;

	if (!begin(reader, e, &open, 0, &track))
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

static bool take_end(struct kineto_reader *reader, const struct event *e)
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
	end(reader, e, &reader->opens.items[open - 1]);
	reader->opens.items[open - 1].row = OPS_NONE;
	reader->tracks.items[track].open = reader->opens.items[open - 1].below;
	return true;
}

/* An asynchronous pair is known by category, id and (as old tools had it) name. */
static uint32_t pair_of(struct kineto_reader *reader, const struct event *e)
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

static bool take_pair(struct kineto_reader *reader, const struct event *e, bool begins)
{
	uint32_t pair = pair_of(reader, e);
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
		end(reader, e, open);
		open->row = OPS_NONE;
		return true;
	}
	if (!begins || open->row != OPS_NONE) {
		kineto_note(reader, begins ? OPS_NOTE_UNMATCHED_BEGIN : OPS_NOTE_UNMATCHED_END);
		if (!begins)
			return true;
	}
	return begin(reader, e, open, OPS_EVENT_ASYNC, &track);
}

/* --- counters and arrows -------------------------------------------------------------------------------------------- */

static bool take_counter(struct kineto_reader *reader, const struct event *e)
{
	struct ops_new_event place = {OPS_NEW_EVENT};
	const struct ops_json_object *object = reader->object;

	if (!take_place(reader, e, &place))
		return true;
	see_time(reader, place.start_ns, place.start_ns);
	for (uint32_t i = 0; i < object->arg_count; i++) {
		const struct ops_json_member *arg = &object->args[i];
		struct ops_counter_record record = {.time_ns = place.start_ns, .name = place.name, .track = place.track};
		struct ops_json_member key = {.value = arg->key, .value_size = arg->key_size, .type = '"'};

		if ((arg->type != OPS_JSON_NUMBER && arg->type != OPS_JSON_WORD && arg->type != '"') ||
		    !ops_json_double(arg->value, arg->value_size, &record.value)) {
			kineto_note(reader, OPS_NOTE_BAD_VALUE);
			continue;
		}
		if (!KINETO_IS(arg->key, arg->key_size, "value"))
			record.series = kineto_string(reader, &key);
		ops_builder_counter(reader->builder, &record);
	}
	return true;
}

static uint64_t flow_id(const struct ops_json_member *id)
{
	int64_t number;

	if (!id)
		return 0;
	if (kineto_integer(id, &number))
		return (uint64_t)number;
	return ops_hash(id->value, id->value_size);
}

static bool take_flow(struct kineto_reader *reader, const struct event *e, uint8_t phase)
{
	struct kineto_category category = category_of(reader, e->cat);
	struct ops_new_event place = {OPS_NEW_EVENT};
	struct ops_new_flow flow = {.phase = phase, .kind = category.link_kind, .category = category.link_id,
	                            .row = OPS_NONE};
	int64_t row;

	if (reader->recorded) /* those of a recording follow from its sequence numbers */
		return true;
	if (!take_place(reader, e, &place))
		return true;
	flow.time_ns = place.start_ns;
	flow.track = place.track;
	flow.id = flow_id(e->id);
	row = reader->own ? number_arg(reader, "Ev Idx", -1) : -1;
	if (reader->last_row == OPS_NONE)
		flow.row = OPS_NONE;
	else if (row >= 0 && row <= reader->last_row)
		flow.row = (uint32_t)row;
	else if (reader->last_track == flow.track &&
	         reader->last_start_ns == flow.time_ns)
		flow.row = reader->last_row;
	if (flow.kind == OPS_LINK_FORWARD_BACKWARD)
		ops_builder_links_given(reader->builder);
	ops_builder_flow(reader->builder, &flow);
	return true;
}

/* --- one event ------------------------------------------------------------------------------------------------------ */

static void find_members(const struct ops_json_object *object, struct event *e)
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

static bool take_phase(struct kineto_reader *reader, const struct event *e)
{
	switch (e->ph->value[0]) {
	case 'X':
		return take_complete(reader, e);
	case 'i':
	case 'I':
		return take_instant(reader, e);
	case 'B':
		return take_begin(reader, e);
	case 'E':
		return take_end(reader, e);
	case 'b':
	case 'e':
		return take_pair(reader, e, e->ph->value[0] == 'b');
	case 'C':
		return take_counter(reader, e);
	case 's':
		return take_flow(reader, e, OPS_FLOW_START);
	case 't':
		return take_flow(reader, e, OPS_FLOW_STEP);
	case 'f':
		return take_flow(reader, e, OPS_FLOW_FINISH);
	case 'M':
		kineto_take_meta(reader, e->name, e->pid, e->tid);
		return true;
	default:
		kineto_note(reader, OPS_NOTE_UNKNOWN_PHASE);
		reader->lost++;
		return true;
	}
}

bool kineto_take_event(struct kineto_reader *reader)
{
	struct event e = {0};

	find_members(reader->object, &e);
	if (!e.ph || e.ph->type != '"' || e.ph->value_size != 1) {
		kineto_note(reader, OPS_NOTE_NOT_AN_EVENT);
		reader->lost++;
		return true;
	}
	return take_phase(reader, &e) && !ops_builder_failed(reader->builder);
}

/* --- the end -------------------------------------------------------------------------------------------------------- */

/* Ends the events that did not end, with the session. */
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

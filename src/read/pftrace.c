/* SPDX-License-Identifier: Apache-2.0
 *
 * Perfetto's native format, as written by Opstrobe, torch (since 2.15), rocprof and programs with Perfetto's SDK: packets, each a
 * protocol buffer that belongs to the sequence of a writer.
 *
 *     TrackDescriptor      a process, thread or counter, or a child of one; identified by its uuid
 *     TrackEvent           the begin or end of a slice of a track, an instant, the value of a counter; flows by ids
 *     GpuRenderStageEvent  device work
 *     InternedData         names that later packets of the sequence refer to by numbers
 *
 * Packets become Chrome JSON (transcode.h). A slice is written when it ends.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/map.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "read/transcode.h"
#include "trace/pftrace_fields.h"

#define DEPTH_MAX 64 /* nested annotations */
#define NO_TRACK UINT32_MAX

/* An open slice: the position of its text, members of a JSON object without braces. */
struct slice {
	int64_t start_ns;
	size_t from;
	size_t head_size; /* size of category and name, before the arguments */
	bool is_metadata;
};

struct track {
	uint64_t uuid;
	uint64_t parent; /* 0: none */
	int64_t pid;
	int64_t tid;
	uint32_t name; /* in `texts`, like all names; OPS_INTERN_NONE: unknown */
	bool is_described;
	bool is_process;
	bool is_thread;
	bool is_counter;
	bool is_named; /* its name has been written */
	OPS_ARRAY(struct slice) open;
	struct ops_buffer text; /* text of open slices */
};

/* The defaults of the packets of a sequence. */
struct sequence {
	uint32_t id;
	uint32_t clock;
	uint64_t track;
};

struct clock {
	uint32_t sequence; /* 0: of all sequences */
	uint32_t id;
	bool is_incremental;
	uint64_t multiplier; /* ns per tick */
	int64_t last_ns;
	int64_t offset_ns; /* to realtime */
};

/* The start of a flow. */
struct flow_start {
	int64_t time_ns;
	uint32_t track;
};

struct interned_key {
	uint32_t sequence;
	uint32_t table;
	uint64_t id;
};

struct pftrace {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_reading *in;
	struct ops_intern texts;
	struct ops_intern interned; /* struct interned_key */
	OPS_ARRAY(uint32_t) interned_texts; /* by interned key: in `texts` */
	struct ops_map by_uuid;
	OPS_ARRAY(struct track) tracks;
	OPS_ARRAY(struct sequence) sequences;
	OPS_ARRAY(struct clock) clocks;
	struct ops_map flow_starts; /* flow id → index in `flows` */
	OPS_ARRAY(struct flow_start) flows; /* starts of flows */
	struct ops_buffer metadata; /* members of the document */
	struct ops_buffer scratch;
	uint64_t arrows;
	int64_t last_ns;
	uint64_t pairs;
	bool is_own; /* the file was written by Opstrobe */
	bool has_rows;
	bool has_ended;
	bool out_of_memory;
};

/* The current packet. */
struct packet {
	struct sequence *sequence;
	int64_t time_ns;
	uint64_t timestamp;
	uint32_t clock;
	bool has_timestamp;
	struct ops_pb_field event, descriptor, interned, snapshot, defaults, stage;
};

/* A TrackEvent, or the data of an annotation. */
struct track_event {
	uint64_t type;
	uint64_t track;
	struct ops_string category;
	struct ops_string name;
	bool has_value;
	double value;
};

/* --- names ---------------------------------------------------------------------------------------------------------- */

static uint32_t keep_text(struct pftrace *p, struct ops_string text)
{
	uint32_t id = ops_intern_add(&p->texts, text.bytes, text.size);

	p->out_of_memory |= id == OPS_INTERN_NONE;
	return id;
}

static struct ops_string text_of(const struct pftrace *p, uint32_t id)
{
	if (id >= p->texts.count)
		return (struct ops_string){"", 0};
	return (struct ops_string){p->texts.entries[id].bytes, p->texts.entries[id].size};
}

static void pftrace_intern(struct pftrace *p, const struct packet *packet, uint32_t table, uint64_t id, struct ops_string text)
{
	const struct interned_key key = {packet->sequence->id, table, id};
	size_t known = p->interned.count;
	uint32_t number = ops_intern_add(&p->interned, &key, sizeof(key)), kept = keep_text(p, text);
	uint32_t *place = number == known ? OPS_ARRAY_PUSH(&p->interned_texts) : NULL;

	if (number == OPS_INTERN_NONE || (number == known && !place))
		p->out_of_memory = true;
	else
		p->interned_texts.items[number] = kept;
}

static struct ops_string interned(const struct pftrace *p, const struct packet *packet, uint32_t table, uint64_t id)
{
	const struct interned_key key = {packet->sequence->id, table, id};
	uint32_t number = ops_intern_find(&p->interned, &key, sizeof(key));

	return number == OPS_INTERN_NONE ? (struct ops_string){"", 0} : text_of(p, p->interned_texts.items[number]);
}

static void read_interned(struct pftrace *p, const struct packet *packet)
{
	struct ops_pb_message data = ops_pb_inside(&packet->interned);
	struct ops_pb_field entry, field;

	while (ops_pb_next(&data, &entry)) {
		struct ops_pb_message inside = ops_pb_inside(&entry);
		struct ops_string name = {"", 0};
		uint64_t id = 0;

		if (entry.type != OPS_PB_BYTES)
			continue;
		while (ops_pb_next(&inside, &field)) {
			if (field.number == ENTRY_ID)
				id = field.value;
			else if (field.number == ENTRY_NAME || (entry.number == INTERNED_KERNELS && field.number == 3))
				name = field.bytes; /* for a kernel, the demangled name comes later */
		}
		pftrace_intern(p, packet, entry.number, id, name);
		p->is_own |= entry.number == INTERNED_ANNOTATION_NAMES && ops_string_is(name, PFTRACE_MARK);
	}
}

/* --- times ---------------------------------------------------------------------------------------------------------- */

static struct clock *pftrace_find_clock(struct pftrace *p, const struct sequence *sequence, uint64_t id)
{
	bool is_own = id >= FIRST_SEQUENCE_CLOCK && id <= LAST_SEQUENCE_CLOCK;

	for (size_t i = 0; i < p->clocks.count; i++)
		if (p->clocks.items[i].id == id && p->clocks.items[i].sequence == (is_own ? sequence->id : 0))
			return &p->clocks.items[i];
	return NULL;
}

/* Reads clocks at the same moment, and computes the offset of each from realtime. */
static void read_clock_snapshot(struct pftrace *p, const struct packet *packet)
{
	struct clock met[16];
	size_t count = 0;
	int64_t realtime_ns = 0;
	bool has_realtime = false;
	struct ops_pb_message snapshot = ops_pb_inside(&packet->snapshot);
	struct ops_pb_field entry, field;

	while (ops_pb_next(&snapshot, &entry) && count < sizeof(met) / sizeof(met[0])) {
		struct ops_pb_message inside = ops_pb_inside(&entry);
		struct clock clock = {.multiplier = 1};
		uint64_t ticks = 0;

		if (entry.number != SNAPSHOT_CLOCK || entry.type != OPS_PB_BYTES)
			continue;
		while (ops_pb_next(&inside, &field)) {
			if (field.number == CLOCK_ID)
				clock.id = (uint32_t)field.value;
			else if (field.number == CLOCK_TIMESTAMP)
				ticks = field.value;
			else if (field.number == CLOCK_IS_INCREMENTAL)
				clock.is_incremental = field.value;
			else if (field.number == CLOCK_MULTIPLIER && field.value)
				clock.multiplier = field.value;
		}
		clock.last_ns = (int64_t)(ticks * clock.multiplier);
		clock.sequence = clock.id >= FIRST_SEQUENCE_CLOCK && clock.id <= LAST_SEQUENCE_CLOCK ? packet->sequence->id : 0;
		if (clock.id == REALTIME) {
			realtime_ns = clock.last_ns;
			has_realtime = true;
		}
		met[count++] = clock;
	}
	for (size_t i = 0; i < count; i++) {
		struct clock *known = pftrace_find_clock(p, packet->sequence, met[i].id);

		if (!known)
			known = OPS_ARRAY_PUSH(&p->clocks);
		else if (!met[i].is_incremental)
			continue; /* only the first snapshot is used, so that times stay in order */
		p->out_of_memory |= !known;
		if (!known)
			return;
		met[i].offset_ns = has_realtime ? (int64_t)((uint64_t)realtime_ns - (uint64_t)met[i].last_ns) : 0;
		*known = met[i];
	}
}

static int64_t pftrace_time_of(struct pftrace *p, const struct packet *packet)
{
	struct clock *clock = pftrace_find_clock(p, packet->sequence, packet->clock);
	uint64_t ns = packet->timestamp * (clock ? clock->multiplier : 1);

	if (clock && clock->is_incremental)
		ns = (uint64_t)(clock->last_ns += (int64_t)ns);
	return (int64_t)(ns + (clock ? (uint64_t)clock->offset_ns : 0));
}

/* --- tracks --------------------------------------------------------------------------------------------------------- */

/* Returns the index of a track, added if new; NO_TRACK if out of memory. */
static uint32_t pftrace_track_of(struct pftrace *p, uint64_t uuid)
{
	uint32_t *place = ops_map_slot(&p->by_uuid, uuid, NO_TRACK);
	struct track *track;

	if (place && *place != NO_TRACK)
		return *place;
	track = place ? OPS_ARRAY_PUSH(&p->tracks) : NULL;
	p->out_of_memory |= !track;
	if (!track)
		return NO_TRACK;
	*track = (struct track){.uuid = uuid, .name = OPS_INTERN_NONE};
	return *place = (uint32_t)p->tracks.count - 1;
}

static void pftrace_read_thread(struct pftrace *p, struct track *track, const struct ops_pb_field *described)
{
	struct ops_pb_message inside = ops_pb_inside(described);
	struct ops_pb_field field;

	track->is_thread = true;
	while (ops_pb_next(&inside, &field)) {
		if (field.number == THREAD_PID)
			track->pid = (int32_t)field.value;
		else if (field.number == THREAD_TID)
			track->tid = (int64_t)field.value;
		else if (field.number == THREAD_NAME)
			track->name = keep_text(p, field.bytes);
	}
}

static void read_process(struct pftrace *p, struct track *track, const struct ops_pb_field *described)
{
	struct ops_pb_message inside = ops_pb_inside(described);
	struct ops_pb_field field;

	track->is_process = true;
	while (ops_pb_next(&inside, &field)) {
		if (field.number == PROCESS_PID)
			track->pid = (int32_t)field.value;
		else if (field.number == PROCESS_NAME)
			track->name = keep_text(p, field.bytes);
	}
}

static void read_descriptor(struct pftrace *p, const struct packet *packet)
{
	struct ops_pb_message inside = ops_pb_inside(&packet->descriptor);
	struct ops_pb_field field;
	struct track described = {.name = OPS_INTERN_NONE, .is_described = true};
	struct track *track;
	uint32_t place;

	while (ops_pb_next(&inside, &field)) {
		if (field.number == TRACK_UUID)
			described.uuid = field.value;
		else if (field.number == TRACK_PARENT)
			described.parent = field.value;
		else if (field.number == TRACK_NAME && field.type == OPS_PB_BYTES)
			described.name = keep_text(p, field.bytes);
		else if (field.number == TRACK_COUNTER)
			described.is_counter = true;
		else if (field.number == TRACK_PROCESS && field.type == OPS_PB_BYTES)
			read_process(p, &described, &field);
		else if (field.number == TRACK_THREAD && field.type == OPS_PB_BYTES)
			pftrace_read_thread(p, &described, &field);
	}
	place = pftrace_track_of(p, described.uuid);
	if (place == NO_TRACK || p->tracks.items[place].is_described)
		return; /* a repeated description is ignored */
	track = &p->tracks.items[place];
	described.open.items = track->open.items;
	described.open.count = track->open.count;
	described.open.capacity = track->open.capacity;
	described.text = track->text;
	*track = described;
}

static const struct track *parent_of_track(const struct pftrace *p, const struct track *track)
{
	uint32_t place = track->parent ? ops_map_find(&p->by_uuid, track->parent) : OPS_NONE;

	return place == OPS_NONE ? NULL : &p->tracks.items[place];
}

/* Returns the track, or its nearest ancestor, that is a thread; NULL if there is none. */
static const struct track *pftrace_thread_of(const struct pftrace *p, const struct track *track)
{
	for (int depth = 0; track && depth < DEPTH_MAX; depth++) {
		if (track->is_thread)
			return track;
		track = parent_of_track(p, track);
	}
	return NULL;
}

/* Parses the number after a word, as in "stream 7" and "GPU 0 (NVIDIA H100)". Returns false if the name does not begin with the
 * word. */
static bool number_behind(struct ops_string name, const char *word, int64_t *ret_number)
{
	size_t at = strlen(word);

	if (!ops_string_starts(name, word) || at >= name.size || name.bytes[at] < '0' || name.bytes[at] > '9')
		return false;
	*ret_number = 0;
	for (; at < name.size && name.bytes[at] >= '0' && name.bytes[at] <= '9' && *ret_number < INT32_MAX; at++)
		*ret_number = *ret_number * 10 + (name.bytes[at] - '0');
	return true;
}

/* Writes a process, device or thread: its number if it has one, else its name. */
static void put_number_or_name(struct ops_buffer *out, const char *key, struct ops_string name, const char *word)
{
	int64_t number;

	if (number_behind(name, word, &number))
		ops_buffer_printf(out, ",\"%s\":%" PRId64, key, number);
	else
		ops_put_text_member(out, key, name);
}

/* Writes the process and thread of a track. */
static void put_place(const struct pftrace *p, const struct track *track, struct ops_buffer *out)
{
	const struct track *thread = pftrace_thread_of(p, track), *above = parent_of_track(p, track);

	if (thread) {
		ops_buffer_printf(out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64, thread->pid, thread->tid);
		return;
	}
	if ((above && above->is_process) || track->is_process)
		ops_buffer_printf(out, ",\"pid\":%" PRId64, (above && above->is_process ? above : track)->pid);
	else
		put_number_or_name(out, "pid", text_of(p, (above ? above : track)->name), "GPU ");
	put_number_or_name(out, "tid", text_of(p, track->name), "stream ");
}

static void begin_document(struct pftrace *p, struct ops_buffer *out)
{
	ops_buffer_append_text(out, p->is_own ? "{\"opstrobe\":{},\"traceEvents\":[" : "{\"traceEvents\":[");
	p->has_rows = true;
}

/* Begins an element of the list of events. */
static void pftrace_begin_row(struct pftrace *p, struct ops_buffer *out, const char *phase)
{
	if (p->has_rows)
		ops_buffer_append_text(out, ",\n");
	else
		begin_document(p, out);
	ops_buffer_printf(out, "{\"ph\":\"%s\"", phase);
}

static void put_process_name(struct pftrace *p, struct track *process, struct ops_buffer *out)
{
	if (process->is_named || process->name == OPS_INTERN_NONE)
		return;
	process->is_named = true;
	pftrace_begin_row(p, out, "M");
	ops_buffer_printf(out, ",\"name\":\"process_name\",\"pid\":%" PRId64 ",\"args\":{", process->pid);
	ops_put_text_member(out, "name", text_of(p, process->name));
	ops_buffer_append_text(out, "}}");
}

/* Writes the names of a track's process and thread, once. */
static void put_names(struct pftrace *p, struct track *track, struct ops_buffer *out)
{
	const struct track *above = parent_of_track(p, track);

	if (track->is_named || !track->is_described)
		return;
	track->is_named = true;
	if (track->is_thread && track->name != OPS_INTERN_NONE) {
		pftrace_begin_row(p, out, "M");
		ops_buffer_printf(out, ",\"name\":\"thread_name\",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"args\":{", track->pid,
		                  track->tid);
		ops_put_text_member(out, "name", text_of(p, track->name));
		ops_buffer_append_text(out, "}}");
	}
	if (above && above->is_process)
		put_process_name(p, (struct track *)above, out);
}

/* --- arguments ------------------------------------------------------------------------------------------------------ */

static void put_value(struct pftrace *p, const struct packet *packet, struct ops_pb_message annotation, struct ops_buffer *out,
                      int depth);

static struct ops_string annotation_name(struct pftrace *p, const struct packet *packet, struct ops_pb_message annotation)
{
	struct ops_pb_field field;

	while (ops_pb_next(&annotation, &field)) {
		if (field.number == ANNOTATION_NAME)
			return field.bytes;
		if (field.number == ANNOTATION_NAME_ID)
			return interned(p, packet, INTERNED_ANNOTATION_NAMES, field.value);
	}
	return (struct ops_string){"", 0};
}

/* Writes the entries of a dict or array, which are annotations. */
static void put_entries(struct pftrace *p, const struct packet *packet, struct ops_pb_message annotation, uint32_t number,
                        struct ops_buffer *out, int depth)
{
	struct ops_pb_field field;
	bool is_first = true;

	ops_buffer_append(out, number == ANNOTATION_DICT ? "{" : "[", 1);
	while (depth < DEPTH_MAX && ops_pb_next(&annotation, &field)) {
		struct ops_string name;

		if (field.number != number || field.type != OPS_PB_BYTES)
			continue;
		ops_buffer_append_text(out, is_first ? "" : ",");
		is_first = false;
		if (number == ANNOTATION_DICT) {
			name = annotation_name(p, packet, ops_pb_inside(&field));
			ops_json_string(out, name.bytes, name.size);
			ops_buffer_append_text(out, ":");
		}
		put_value(p, packet, ops_pb_inside(&field), out, depth + 1);
	}
	ops_buffer_append(out, number == ANNOTATION_DICT ? "}" : "]", 1);
}

static void pftrace_put_scalar(struct pftrace *p, const struct packet *packet, const struct ops_pb_field *field, struct ops_buffer *out)
{
	char number[40];
	struct ops_string text = field->bytes;

	switch (field->number) {
	case ANNOTATION_BOOL:
		ops_buffer_append_text(out, field->value ? "true" : "false");
		return;
	case ANNOTATION_UINT:
	case ANNOTATION_POINTER:
		ops_buffer_printf(out, "%" PRIu64, field->value);
		return;
	case ANNOTATION_INT:
		ops_buffer_append_int(out, (int64_t)field->value);
		return;
	case ANNOTATION_DOUBLE:
		ops_buffer_append(out, number, (size_t)(ops_json_double_to(number, ops_pb_double_of(field)) - number));
		return;
	case ANNOTATION_JSON:
		if (text.size && !ops_json_validate(text.bytes, text.size, NULL)) {
			ops_buffer_append(out, text.bytes, text.size);
			return;
		}
		break;
	case ANNOTATION_TEXT_ID:
		text = interned(p, packet, INTERNED_TEXTS, field->value);
		break;
	default:
		break;
	}
	ops_json_string(out, text.bytes, text.size);
}

static bool is_scalar(uint32_t number)
{
	return (number >= ANNOTATION_BOOL && number <= ANNOTATION_POINTER) || number == ANNOTATION_JSON || number == ANNOTATION_TEXT_ID;
}

static void put_value(struct pftrace *p, const struct packet *packet, struct ops_pb_message annotation, struct ops_buffer *out,
                      int depth)
{
	struct ops_pb_message rest = annotation;
	struct ops_pb_field field;

	while (ops_pb_next(&rest, &field)) {
		if (is_scalar(field.number)) {
			pftrace_put_scalar(p, packet, &field, out);
			return;
		}
		if (field.number == ANNOTATION_DICT || field.number == ANNOTATION_ARRAY) {
			put_entries(p, packet, annotation, field.number, out, depth);
			return;
		}
	}
	ops_buffer_append_text(out, "null");
}

/* Writes the arguments of an event as members, without braces. */
static void put_arguments(struct pftrace *p, const struct packet *packet, struct ops_buffer *out)
{
	struct ops_pb_message event = ops_pb_inside(&packet->event);
	struct ops_pb_field field;
	bool is_first = true;

	while (ops_pb_next(&event, &field)) {
		struct ops_string name;

		if (field.number != EVENT_ANNOTATION || field.type != OPS_PB_BYTES)
			continue;
		name = annotation_name(p, packet, ops_pb_inside(&field));
		ops_buffer_append_text(out, is_first ? "" : ",");
		is_first = false;
		ops_json_string(out, name.bytes, name.size);
		ops_buffer_append_text(out, ":");
		put_value(p, packet, ops_pb_inside(&field), out, 0);
	}
}

/* --- events --------------------------------------------------------------------------------------------------------- */

static struct track_event read_event(struct pftrace *p, const struct packet *packet)
{
	struct track_event event = {.track = packet->sequence->track, .category = {"", 0}, .name = {"", 0}};
	struct ops_pb_message inside = ops_pb_inside(&packet->event);
	struct ops_pb_field field;

	while (ops_pb_next(&inside, &field)) {
		switch (field.number) {
		case EVENT_TYPE:
			event.type = field.value;
			break;
		case EVENT_TRACK:
			event.track = field.value;
			break;
		case EVENT_CATEGORY_ID:
			if (!event.category.size && field.type == OPS_PB_VARINT)
				event.category = interned(p, packet, INTERNED_CATEGORIES, field.value);
			break;
		case EVENT_CATEGORY:
			event.category = field.bytes;
			break;
		case EVENT_NAME_ID:
			event.name = interned(p, packet, INTERNED_NAMES, field.value);
			break;
		case EVENT_NAME:
			event.name = field.bytes;
			break;
		case EVENT_COUNTER:
			event.has_value = true;
			event.value = (double)(int64_t)field.value;
			break;
		case EVENT_COUNTER_DOUBLE:
			event.has_value = true;
			event.value = ops_pb_double_of(&field);
			break;
		default:
			break;
		}
	}
	return event;
}

static void put_head(struct ops_buffer *out, const struct track_event *event)
{
	ops_buffer_append_text(out, "\"name\":");
	ops_json_string(out, event->name.bytes, event->name.size);
	if (event->category.size) {
		ops_buffer_append_text(out, ",\"cat\":");
		ops_json_string(out, event->category.bytes, event->category.size);
	}
}

static void pftrace_put_args(struct pftrace *p, const struct packet *packet, struct ops_buffer *out)
{
	ops_buffer_append_text(out, ",\"args\":{");
	put_arguments(p, packet, out);
	ops_buffer_append_text(out, "}");
}

/* The span of a recording, the only event of its track, has the metadata of Opstrobe's files as arguments. */
static bool is_recording(const struct pftrace *p, const struct track *track, const struct track_event *event)
{
	return p->is_own && !track->parent && !track->is_thread && ops_string_is(event->category, "Trace");
}

static void begin_slice(struct pftrace *p, const struct packet *packet, struct track *track, const struct track_event *event)
{
	struct slice *slice = OPS_ARRAY_PUSH(&track->open);

	p->out_of_memory |= !slice;
	if (!slice)
		return;
	*slice = (struct slice){.start_ns = packet->time_ns, .from = track->text.size};
	put_head(&track->text, event);
	slice->head_size = track->text.size - slice->from;
	if (is_recording(p, track, event)) {
		size_t before = p->metadata.size;

		slice->is_metadata = ops_string_is(event->name, "Metadata");
		ops_buffer_append_text(&p->metadata, ",");
		put_arguments(p, packet, &p->metadata);
		if (p->metadata.size == before + 1)
			p->metadata.size = before;
	} else {
		pftrace_put_args(p, packet, &track->text);
	}
}

/* Events on a child track of a thread do not nest with those of the thread. In Opstrobe's files, asynchronous events are marked. */
static bool pftrace_stands_apart(const struct pftrace *p, const struct track *track)
{
	return !p->is_own && !track->is_thread && pftrace_thread_of(p, track);
}

static void put_slice(struct pftrace *p, const struct track *track, const struct slice *slice, int64_t end_ns, struct ops_buffer *out)
{
	const char *text = track->text.bytes + slice->from;
	bool apart = pftrace_stands_apart(p, track);

	pftrace_begin_row(p, out, apart ? "b" : "X");
	ops_buffer_append_text(out, ",");
	ops_buffer_append(out, text, track->text.size - slice->from);
	put_place(p, track, out);
	ops_put_time_member(out, "ts", slice->start_ns);
	if (!apart) {
		ops_put_time_member(out, "dur", end_ns - slice->start_ns);
		ops_buffer_append_text(out, "}");
		return;
	}
	ops_buffer_printf(out, ",\"id\":\"p%" PRIu64 "\"}", p->pairs);
	pftrace_begin_row(p, out, "e");
	ops_buffer_printf(out, ",\"id\":\"p%" PRIu64 "\",", p->pairs);
	p->pairs++;
	ops_buffer_append(out, text, slice->head_size);
	put_place(p, track, out);
	ops_put_time_member(out, "ts", end_ns);
	ops_buffer_append_text(out, "}");
}

static void end_slice(struct pftrace *p, struct track *track, int64_t time_ns, struct ops_buffer *out)
{
	const struct slice *slice;

	if (!track->open.count) {
		ops_builder_notes(p->in->builder, OPS_NOTE_UNMATCHED_END, 1, ops_window_offset(&p->in->window, p->in->window.at));
		return;
	}
	slice = &track->open.items[--track->open.count];
	put_names(p, track, out);
	p->out_of_memory |= track->text.failed;
	if (!slice->is_metadata && !p->out_of_memory)
		put_slice(p, track, slice, time_ns > slice->start_ns ? time_ns : slice->start_ns, out);
	track->text.size = slice->from;
}

static void put_instant(struct pftrace *p, const struct packet *packet, struct track *track, const struct track_event *event,
                        struct ops_buffer *out)
{
	put_names(p, track, out);
	pftrace_begin_row(p, out, "i");
	ops_buffer_append_text(out, ",\"s\":\"t\",");
	put_head(out, event);
	put_place(p, track, out);
	ops_put_time_member(out, "ts", packet->time_ns);
	pftrace_put_args(p, packet, out);
	ops_buffer_append_text(out, "}");
}

static void put_counter(struct pftrace *p, const struct packet *packet, const struct track *track, const struct track_event *event,
                        struct ops_buffer *out)
{
	struct ops_string name = text_of(p, track->name);
	char value[40];

	/* Opstrobe writes this counter in addition to the allocator's reports, which contain its values. */
	if (ops_string_is(name, "Total Allocated") && !track->parent)
		return;
	pftrace_begin_row(p, out, "C");
	ops_buffer_append_text(out, ",\"name\":");
	ops_json_string(out, name.bytes, name.size);
	put_place(p, parent_of_track(p, track) ? parent_of_track(p, track) : track, out);
	ops_put_time_member(out, "ts", packet->time_ns);
	ops_buffer_append_text(out, ",\"args\":{\"value\":");
	ops_buffer_append(out, value, (size_t)(ops_json_double_to(value, event->value) - value));
	ops_buffer_append_text(out, "}}");
}

/* --- flows ---------------------------------------------------------------------------------------------------------- */

static void put_point(struct pftrace *p, const char *phase, const char *category, const struct track *track, int64_t time_ns,
                      struct ops_buffer *out)
{
	pftrace_begin_row(p, out, phase);
	ops_buffer_printf(out, ",\"bp\":\"e\",\"cat\":\"%s\",\"name\":\"%s\",\"id\":%" PRIu64, category, category, p->arrows);
	put_place(p, track, out);
	ops_put_time_member(out, "ts", time_ns);
	ops_buffer_append_text(out, "}");
}

/* Perfetto's flows have no category: a flow to device work is that of its launch, any other flow to an operator that of its
 * forward operator. */
static const char *arrow_category(struct ops_string category)
{
	if (ops_string_is(category, "kernel") || ops_string_starts(category, "gpu_"))
		return "ac2g";
	return ops_string_is(category, "cpu_op") ? "fwdbwd" : "flow";
}

static void put_arrow(struct pftrace *p, uint64_t id, uint32_t track, const struct packet *packet, const struct track_event *event,
                      struct ops_buffer *out)
{
	uint32_t *place = ops_map_slot(&p->flow_starts, id, OPS_NONE);
	struct flow_start *start;

	if (place && *place != OPS_NONE) {
		const struct flow_start *from = &p->flows.items[*place];

		p->arrows++;
		put_point(p, "s", arrow_category(event->category), &p->tracks.items[from->track], from->time_ns, out);
		put_point(p, "f", arrow_category(event->category), &p->tracks.items[track], packet->time_ns, out);
	}
	start = place ? OPS_ARRAY_PUSH(&p->flows) : NULL;
	p->out_of_memory |= !start;
	if (!start)
		return;
	*start = (struct flow_start){packet->time_ns, track};
	*place = (uint32_t)p->flows.count - 1;
}

/* Ids are 8-byte numbers, in one field or several. */
static void put_arrows(struct pftrace *p, uint32_t track, const struct packet *packet, const struct track_event *event,
                       struct ops_buffer *out)
{
	struct ops_pb_message inside = ops_pb_inside(&packet->event);
	struct ops_pb_field field;

	while (ops_pb_next(&inside, &field)) {
		if (field.number != EVENT_FLOW && field.number != EVENT_FLOW_END)
			continue;
		if (field.type != OPS_PB_BYTES) {
			put_arrow(p, field.value, track, packet, event, out);
			continue;
		}
		for (struct ops_pb_message packed = ops_pb_inside(&field); ops_pb_parse_fixed(&packed, 8, &field.value);)
			put_arrow(p, field.value, track, packet, event, out);
	}
}

static void transcode_event(struct pftrace *p, const struct packet *packet, struct ops_buffer *out)
{
	struct track_event event = read_event(p, packet);
	uint32_t place = pftrace_track_of(p, event.track);
	struct track *track;

	if (place == NO_TRACK)
		return;
	track = &p->tracks.items[place];
	p->in->events++;
	if (event.type == TYPE_BEGIN)
		begin_slice(p, packet, track, &event);
	else if (event.type == TYPE_END)
		end_slice(p, track, packet->time_ns, out);
	else if (event.type == TYPE_INSTANT)
		put_instant(p, packet, track, &event, out);
	else if (event.type == TYPE_COUNTER && event.has_value)
		put_counter(p, packet, track, &event, out);
	if (event.type == TYPE_BEGIN || event.type == TYPE_INSTANT)
		put_arrows(p, place, packet, &event, out);
}

/* --- device work ---------------------------------------------------------------------------------------------------- */

static const char *stage_category(struct ops_string stage)
{
	if (ops_string_starts(stage, "Memcpy"))
		return "gpu_memcpy";
	if (ops_string_starts(stage, "Memset"))
		return "gpu_memset";
	return ops_string_is(stage, "Annotation") ? "gpu_user_annotation" : "kernel";
}

/* Writes "[…, y, z]", the grid or block of a launch. */
static void put_dimensions(struct ops_buffer *out, const char *key, const struct ops_pb_field *given)
{
	struct ops_pb_message inside = ops_pb_inside(given);
	uint64_t sizes[3] = {1, 1, 1};
	struct ops_pb_field field;

	while (ops_pb_next(&inside, &field))
		if (field.number <= 3)
			sizes[field.number - 1] = field.value;
	ops_buffer_printf(out, ",\"%s\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", key, sizes[0], sizes[1], sizes[2]);
}

static bool is_whole_number(struct ops_string text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.bytes[i] < '0' || text.bytes[i] > '9')
			return false;
	return text.size && text.size < 19 && (text.bytes[0] != '0' || text.size == 1);
}

/* Writes further arguments of a stage. torch spells out the names of these ids. */
static void put_extra(struct ops_buffer *out, const struct ops_pb_field *extra, int64_t *device, int64_t *stream)
{
	struct ops_pb_message inside = ops_pb_inside(extra);
	struct ops_string name = {"", 0}, value = {"", 0};
	struct ops_pb_field field;

	while (ops_pb_next(&inside, &field)) {
		if (field.number == 1)
			name = field.bytes;
		else if (field.number == 2)
			value = field.bytes;
	}
	if (ops_string_is(name, "device id"))
		number_behind(value, "", device);
	if (ops_string_is(name, "stream id"))
		number_behind(value, "", stream);
	if (name.size > 3 && memcmp(name.bytes + name.size - 3, " id", 3) == 0 && !ops_string_starts(name, "graph"))
		name.size -= 3;
	ops_buffer_append_text(out, ",");
	ops_json_string(out, name.bytes, name.size);
	ops_buffer_append_text(out, ":");
	if (is_whole_number(value))
		ops_buffer_append(out, value.bytes, value.size);
	else
		ops_json_string(out, value.bytes, value.size);
}

static void transcode_stage(struct pftrace *p, const struct packet *packet, struct ops_buffer *out)
{
	struct ops_pb_message inside = ops_pb_inside(&packet->stage), launch;
	struct ops_string name = {"", 0}, kernel = {"", 0}, stage = {"", 0}, queue = {"", 0};
	int64_t device = 0, stream = -1;
	uint64_t duration = 0, queue_id = 0;
	struct ops_pb_field field, part;

	p->scratch.size = 0;
	while (ops_pb_next(&inside, &field)) {
		switch (field.number) {
		case STAGE_DURATION:
			duration = field.value;
			break;
		case STAGE_GPU:
			device = (int32_t)field.value;
			break;
		case STAGE_QUEUE:
			queue_id = field.value;
			queue = interned(p, packet, INTERNED_GPU_SPECIFICATIONS, field.value);
			break;
		case STAGE_STAGE:
			stage = interned(p, packet, INTERNED_GPU_SPECIFICATIONS, field.value);
			break;
		case STAGE_NAME:
			name = field.bytes;
			break;
		case STAGE_NAME_ID:
			name = interned(p, packet, INTERNED_NAMES, field.value);
			break;
		case STAGE_KERNEL:
			kernel = interned(p, packet, INTERNED_KERNELS, field.value);
			break;
		case STAGE_EXTRA:
			put_extra(&p->scratch, &field, &device, &stream);
			break;
		case STAGE_LAUNCH:
			launch = ops_pb_inside(&field);
			while (ops_pb_next(&launch, &part))
				if (part.number == LAUNCH_GRID || part.number == LAUNCH_BLOCK)
					put_dimensions(&p->scratch, part.number == LAUNCH_GRID ? "grid" : "block", &part);
			break;
		default:
			break;
		}
	}
	if (stream < 0) {
		struct ops_string number = queue;
		const char *word = memmem(queue.bytes, queue.size, "stream ", 7);

		if (word)
			number = (struct ops_string){word, queue.size - (size_t)(word - queue.bytes)};
		if (!number_behind(number, "stream ", &stream))
			stream = (int64_t)(queue_id & INT32_MAX);
	}
	name = name.size ? name : kernel.size ? kernel : stage;
	p->in->events++;
	pftrace_begin_row(p, out, "X");
	ops_buffer_append_text(out, ",");
	put_head(out, &(struct track_event){.name = name, .category = {stage_category(stage), strlen(stage_category(stage))}});
	ops_buffer_printf(out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64, device, stream);
	ops_put_time_member(out, "ts", packet->time_ns);
	ops_put_time_member(out, "dur", duration < INT64_MAX ? (int64_t)duration : 0);
	ops_buffer_printf(out, ",\"args\":{\"device\":%" PRId64 ",\"stream\":%" PRId64, device, stream);
	ops_buffer_append(out, ops_buffer_text(&p->scratch), p->scratch.size);
	out->failed |= p->scratch.failed;
	ops_buffer_append_text(out, "}}");
}

/* --- packets -------------------------------------------------------------------------------------------------------- */

static struct sequence *sequence_of(struct pftrace *p, uint32_t id)
{
	struct sequence *added;

	for (size_t i = 0; i < p->sequences.count; i++)
		if (p->sequences.items[i].id == id)
			return &p->sequences.items[i];
	added = OPS_ARRAY_PUSH(&p->sequences);
	p->out_of_memory |= !added;
	if (added)
		*added = (struct sequence){.id = id, .clock = BOOTTIME};
	return added;
}

static void read_defaults(struct packet *packet)
{
	struct ops_pb_message inside = ops_pb_inside(&packet->defaults), event;
	struct ops_pb_field field, part;

	while (ops_pb_next(&inside, &field)) {
		if (field.number == PACKET_CLOCK)
			packet->sequence->clock = (uint32_t)field.value;
		event = ops_pb_inside(&field);
		while (field.number == DEFAULTS_TRACK_EVENT && field.type == OPS_PB_BYTES && ops_pb_next(&event, &part))
			if (part.number == EVENT_TRACK)
				packet->sequence->track = part.value;
	}
}

/* Returns false if the packet is malformed. */
static bool read_packet(struct pftrace *p, struct ops_pb_message message, struct packet *packet)
{
	struct ops_pb_field field;
	uint32_t sequence = 0;
	uint64_t clock = 0;

	*packet = (struct packet){0};
	while (ops_pb_next(&message, &field)) {
		struct ops_pb_field *place = NULL;

		switch (field.number) {
		case PACKET_TIMESTAMP:
			packet->timestamp = field.value;
			packet->has_timestamp = true;
			break;
		case PACKET_SEQUENCE:
			sequence = (uint32_t)field.value;
			break;
		case PACKET_CLOCK:
			clock = field.value;
			break;
		case PACKET_TRACK_EVENT:
			place = &packet->event;
			break;
		case PACKET_TRACK_DESCRIPTOR:
			place = &packet->descriptor;
			break;
		case PACKET_INTERNED:
			place = &packet->interned;
			break;
		case PACKET_CLOCK_SNAPSHOT:
			place = &packet->snapshot;
			break;
		case PACKET_DEFAULTS:
			place = &packet->defaults;
			break;
		case PACKET_GPU_STAGE:
			place = &packet->stage;
			break;
		default:
			break;
		}
		if (place && field.type == OPS_PB_BYTES)
			*place = field;
	}
	packet->sequence = sequence_of(p, sequence);
	if (message.malformed || !packet->sequence)
		return false;
	if (packet->defaults.number)
		read_defaults(packet);
	packet->clock = clock ? (uint32_t)clock : packet->sequence->clock;
	return true;
}

static void transcode_packet(struct pftrace *p, struct packet *packet, struct ops_buffer *out)
{
	if (packet->snapshot.number)
		read_clock_snapshot(p, packet);
	if (packet->interned.number)
		read_interned(p, packet);
	if (packet->descriptor.number)
		read_descriptor(p, packet);
	if (!packet->event.number && !packet->stage.number)
		return;
	packet->time_ns = pftrace_time_of(p, packet);
	p->last_ns = packet->time_ns > p->last_ns ? packet->time_ns : p->last_ns;
	if (packet->event.number)
		transcode_event(p, packet, out);
	if (packet->stage.number)
		transcode_stage(p, packet, out);
}

/* Ensures that a complete packet is in the window. `*ret_message` is empty at the end of the file, or at a truncated packet. */
static enum ops_code next_packet(struct pftrace *p, struct ops_pb_message *ret_message)
{
	struct ops_window *window = &p->in->window;

	for (;;) {
		const char *at = window->at;
		uint64_t size;
		enum ops_code code;

		*ret_message = (struct ops_pb_message){0};
		if (at == window->end && window->last)
			return OPS_OK;
		if (at < window->end && (uint8_t)*at != (TRACE_PACKET << 3 | OPS_PB_BYTES))
			return ops_reading_fault(p->in, at, "a packet is expected");
		if (at < window->end && ops_pb_parse_varint((at++, &at), window->end, &size) && size <= (uint64_t)(window->end - at)) {
			*ret_message = (struct ops_pb_message){.at = at, .end = at + size};
			window->at = (char *)at + size;
			return OPS_OK;
		}
		if (window->last) {
			ops_builder_notes(p->in->builder, OPS_NOTE_TRUNCATED, 1, ops_window_offset(window, window->at));
			window->at = window->end;
			return OPS_OK;
		}
		code = ops_reading_more(p->in);
		if (code)
			return code;
	}
}

/* Ends open events together with the file. */
static void put_end(struct pftrace *p, struct ops_buffer *out)
{
	for (size_t i = 0; i < p->tracks.count; i++) {
		while (p->tracks.items[i].open.count) {
			ops_builder_notes(p->in->builder, OPS_NOTE_UNMATCHED_BEGIN, 1, 0);
			end_slice(p, &p->tracks.items[i], p->last_ns, out);
		}
	}
	/* The tracks of threads do not refer to those of their processes. */
	for (size_t i = 0; i < p->tracks.count; i++)
		if (p->tracks.items[i].is_process)
			put_process_name(p, &p->tracks.items[i], out);
	if (!p->has_rows)
		begin_document(p, out);
	ops_buffer_append_text(out, "]");
	ops_buffer_append(out, ops_buffer_text(&p->metadata), p->metadata.size);
	ops_buffer_append_text(out, "}\n");
	out->failed |= p->metadata.failed;
	p->has_ended = true;
}

static enum ops_code pftrace_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct pftrace *p = (struct pftrace *)(void *)transcoder;
	struct ops_pb_message message;
	struct packet packet;
	enum ops_code code = OPS_OK;

	while (!code && !p->has_ended && !text->failed && text->size < OPS_TRANSCODED_BYTES) {
		code = next_packet(p, &message);
		if (code)
			break;
		if (!message.at)
			put_end(p, text);
		else if (read_packet(p, message, &packet))
			transcode_packet(p, &packet, text);
		else if (!p->out_of_memory)
			ops_builder_notes(p->in->builder, OPS_NOTE_NOT_AN_EVENT, 1, ops_window_offset(&p->in->window, message.at));
		text->failed |= p->out_of_memory;
	}
	return code;
}

enum ops_code ops_read_pftrace(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct pftrace p = {.transcoder = {pftrace_next}, .in = reading};
	enum ops_code code = ops_read_transcoded(reading, &p.transcoder, ret_trace);

	for (size_t i = 0; i < p.tracks.count; i++) {
		OPS_ARRAY_RELEASE(&p.tracks.items[i].open);
		ops_buffer_release(&p.tracks.items[i].text);
	}
	ops_intern_release(&p.texts);
	ops_intern_release(&p.interned);
	OPS_ARRAY_RELEASE(&p.interned_texts);
	ops_map_release(&p.by_uuid);
	OPS_ARRAY_RELEASE(&p.tracks);
	OPS_ARRAY_RELEASE(&p.sequences);
	OPS_ARRAY_RELEASE(&p.clocks);
	ops_map_release(&p.flow_starts);
	OPS_ARRAY_RELEASE(&p.flows);
	ops_buffer_release(&p.metadata);
	ops_buffer_release(&p.scratch);
	return code;
}

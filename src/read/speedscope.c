/* SPDX-License-Identifier: Apache-2.0
 *
 * The file format of speedscope, which py-spy, rbspy and others write: {"shared": {"frames": […]}, "profiles": […]}. A profile is
 * a thread:
 *
 *     sampled   {"samples": [[0, 1], [0, 2]], "weights": [10, 20]}: stacks, each with its duration
 *     evented   {"events": [{"type": "O", "frame": 0, "at": 5}, …]}: begin and end of calls
 *
 * The complete text is validated and kept in memory, because frames may come after the profiles; its events become Chrome JSON
 * (transcode.h) step by step.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "read/stack_rows.h"

#define SPEEDSCOPE_TIME_MAX 4e18 /* ns */

struct speedscope {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_stack_rows rows;
	struct ops_stack_thread thread; /* the current profile */
	struct ops_buffer bytes; /* the file */
	struct ops_buffer text[2]; /* decoded strings */
	OPS_ARRAY(uint32_t) frames;
	OPS_ARRAY(uint32_t) stack;
	struct ops_json_walk profiles; /* the remaining ones */
	struct ops_json_walk events;   /* events or samples of the current profile */
	struct ops_json_walk weights;
	double now;   /* in the unit of the profile */
	double scale; /* unit of the profile in ns */
	bool is_open; /* there is a current profile */
	bool is_evented;
	bool has_ended;
};

static enum ops_code speedscope_fault(const struct speedscope *s, const char *at, const char *why)
{
	return ops_fault(s->rows.in->error, OPS_CORRUPT, "byte %zu: %s", (size_t)(at - s->bytes.bytes), why);
}

static void speedscope_note(const struct speedscope *s, enum ops_note_kind kind, const char *at)
{
	ops_builder_notes(s->rows.in->builder, kind, 1, (uint64_t)(at - s->bytes.bytes));
}

/* Returns a member's text, decoded into one of the buffers; empty if there is none. */
static struct ops_string speedscope_text(struct speedscope *s, struct ops_string object, const char *name, int buffer)
{
	struct ops_buffer *text = &s->text[buffer];
	struct ops_string value;

	text->size = 0;
	if (ops_json_find_member(object, name, &value))
		ops_json_decode_value(text, value);
	s->rows.failed |= text->failed;
	return (struct ops_string){ops_buffer_text(text), text->size};
}

/* --- frames --------------------------------------------------------------------------------------------------------- */

static enum ops_code speedscope_read_frames(struct speedscope *s, struct ops_string file)
{
	struct ops_string shared, list, frame;
	struct ops_json_walk walk;

	if (!ops_json_find_typed(file, "shared", '{', &shared) || !ops_json_find_typed(shared, "frames", '[', &list))
		return speedscope_fault(s, s->bytes.bytes, "the file has no 'shared.frames'");
	walk = ops_json_walk(list.bytes, list.size);
	while (ops_json_next_element(&walk, &frame)) {
		struct ops_string name, path;
		int64_t line = frame.bytes[0] == '{' ? ops_json_integer_of(frame, "line", 0) : 0;
		bool has_line = line > 0 && line < INT32_MAX;

		if (frame.bytes[0] != '{')
			return speedscope_fault(s, frame.bytes, "a frame that is not an object");
		name = speedscope_text(s, frame, "name", 0);
		path = speedscope_text(s, frame, "file", 1);
		if (!OPS_ARRAY_APPEND(&s->frames, ops_stack_frame(&s->rows, path, has_line ? (uint32_t)line : 0, name)))
			return ops_fault_memory(s->rows.in->error);
	}
	return OPS_OK;
}

static enum ops_code frame_at(const struct speedscope *s, struct ops_string text, uint32_t *ret_frame)
{
	int64_t index;

	if (!ops_json_parse_integer(text, &index) || index < 0 || (uint64_t)index >= s->frames.count)
		return speedscope_fault(s, text.bytes, "a frame number that is not in the file");
	*ret_frame = s->frames.items[index];
	return OPS_OK;
}

/* --- profiles ------------------------------------------------------------------------------------------------------- */

/* Reads the unit of times; without one, a weight is shown as nanoseconds. */
static enum ops_code read_profile_unit(struct speedscope *s, struct ops_string profile)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}, {"none", 1}};
	struct ops_string unit = speedscope_text(s, profile, "unit", 0);

	if (!s->rows.failed && ops_string_is(unit, "bytes"))
		return speedscope_fault(s, profile.bytes, "a profile of bytes; profiles of times and of numbers of samples can be read");
	s->scale = 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (ops_string_is(unit, units[i].unit))
			s->scale = units[i].ns;
	if (!s->scale || ops_string_is(unit, "none")) {
		s->scale = 1;
		speedscope_note(s, OPS_NOTE_NOT_TIME, profile.bytes);
	}
	return OPS_OK;
}

/* Parses a time in the profile's unit. */
static enum ops_code read_time(const struct speedscope *s, struct ops_string text, double *ret_value)
{
	if (!ops_json_parse_number(text, ret_value) || !(fabs(*ret_value * s->scale) < SPEEDSCOPE_TIME_MAX))
		return speedscope_fault(s, text.bytes, "a time or weight that is not a number, or too large");
	return OPS_OK;
}

static int64_t now_ns(const struct speedscope *s)
{
	return llround(s->now * s->scale);
}

static enum ops_code open_profile(struct speedscope *s, struct ops_string profile, struct ops_buffer *out)
{
	struct ops_string list = {"", 0}, start, name;
	enum ops_code code;

	if (profile.bytes[0] != '{')
		return speedscope_fault(s, profile.bytes, "a profile that is not an object");
	s->thread.tid++;
	s->weights = (struct ops_json_walk){0};
	s->is_evented = ops_json_find_typed(profile, "events", '[', &list);
	if (!s->is_evented && !ops_json_find_typed(profile, "samples", '[', &list))
		return speedscope_fault(s, profile.bytes, "a profile without 'events' and 'samples'");
	s->events = ops_json_walk(list.bytes, list.size);
	if (!s->is_evented && ops_json_find_typed(profile, "weights", '[', &list))
		s->weights = ops_json_walk(list.bytes, list.size);
	code = read_profile_unit(s, profile);
	s->now = 0;
	if (!code && ops_json_find_member(profile, "startValue", &start))
		code = read_time(s, start, &s->now);
	name = speedscope_text(s, profile, "name", 0);
	ops_stack_put_name(&s->rows, &s->thread, "thread_name", name, out);
	s->is_open = true;
	return code;
}

static enum ops_code put_sample_row(struct speedscope *s, struct ops_string sample, struct ops_buffer *out)
{
	struct ops_json_walk walk = ops_json_walk(sample.bytes, sample.size);
	struct ops_string item;
	enum ops_code code = OPS_OK;
	double weight = 0;

	if (sample.bytes[0] != '[')
		return speedscope_fault(s, sample.bytes, "a sample that is not a list");
	s->stack.count = 0;
	while (!code && ops_json_next_element(&walk, &item)) {
		uint32_t *frame = OPS_ARRAY_PUSH(&s->stack);

		code = frame ? frame_at(s, item, frame) : ops_fault_memory(s->rows.in->error);
	}
	if (!code && !ops_json_next_element(&s->weights, &item))
		code = speedscope_fault(s, sample.bytes, "a sample without a weight");
	if (!code)
		code = read_time(s, item, &weight);
	if (!code && weight < 0)
		code = speedscope_fault(s, item.bytes, "a weight below zero");
	if (code)
		return code;
	speedscope_note(s, OPS_NOTE_SAMPLED, sample.bytes);
	ops_stack_set(&s->rows, &s->thread, s->stack.items, s->stack.count, now_ns(s), out);
	s->now += weight;
	return fabs(s->now * s->scale) < SPEEDSCOPE_TIME_MAX ? OPS_OK : speedscope_fault(s, item.bytes, "weights whose sum is too large");
}

static enum ops_code put_event_row(struct speedscope *s, struct ops_string event, struct ops_buffer *out)
{
	struct ops_string type, at_text, frame_text;
	uint32_t frame = OPS_NONE;
	double at;
	enum ops_code code;

	if (event.bytes[0] != '{' || !ops_json_find_typed(event, "type", '"', &type) || !ops_json_find_member(event, "at", &at_text) ||
	    !ops_json_find_member(event, "frame", &frame_text))
		return speedscope_fault(s, event.bytes, "an event without 'type', 'at' or 'frame'");
	code = read_time(s, at_text, &at);
	if (!code)
		code = frame_at(s, frame_text, &frame);
	if (!code && at < s->now)
		code = speedscope_fault(s, at_text.bytes, "an event that is earlier than the event before it");
	if (code)
		return code;
	s->now = at;
	if (ops_string_is(type, "\"O\"")) {
		ops_stack_open(&s->rows, &s->thread, frame, now_ns(s), out);
		return OPS_OK;
	}
	if (!s->thread.open.count || s->thread.open.items[s->thread.open.count - 1] != frame)
		return speedscope_fault(s, event.bytes, "an event that closes a frame which is not the innermost open one");
	ops_stack_close(&s->rows, &s->thread, now_ns(s), out);
	return OPS_OK;
}

/* --- file ----------------------------------------------------------------------------------------------------------- */

static enum ops_code close_profile(struct speedscope *s, struct ops_buffer *out)
{
	if (s->is_evented && s->thread.open.count)
		ops_builder_notes(s->rows.in->builder, OPS_NOTE_UNMATCHED_BEGIN, s->thread.open.count,
		                  (uint64_t)(s->events.at - s->bytes.bytes));
	ops_stack_set(&s->rows, &s->thread, NULL, 0, now_ns(s), out);
	s->is_open = false;
	return OPS_OK;
}

static enum ops_code speedscope_step(struct speedscope *s, struct ops_buffer *out)
{
	struct ops_string item;

	if (s->is_open && ops_json_next_element(&s->events, &item))
		return s->is_evented ? put_event_row(s, item, out) : put_sample_row(s, item, out);
	if (s->is_open)
		return close_profile(s, out);
	if (ops_json_next_element(&s->profiles, &item))
		return open_profile(s, item, out);
	ops_stack_put_end(&s->rows, out);
	s->has_ended = true;
	return OPS_OK;
}

static enum ops_code speedscope_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct speedscope *s = (struct speedscope *)(void *)transcoder;
	enum ops_code code = OPS_OK;

	while (!code && !s->has_ended && !text->failed && text->size < OPS_TRANSCODED_BYTES) {
		code = speedscope_step(s, text);
		text->failed |= s->rows.failed;
	}
	return code;
}

static enum ops_code open_file(struct speedscope *s)
{
	struct ops_string file = {s->bytes.bytes, s->bytes.size}, list;
	struct ops_error wrong;
	enum ops_code code;

	if (ops_json_validate(file.bytes, file.size, &wrong))
		return ops_fault(s->rows.in->error, OPS_CORRUPT, "a profile of speedscope: %s", wrong.text);
	code = speedscope_read_frames(s, file);
	if (code || s->rows.failed)
		return code ? code : ops_fault_memory(s->rows.in->error);
	if (!ops_json_find_typed(file, "profiles", '[', &list))
		return speedscope_fault(s, file.bytes, "the file has no 'profiles'");
	s->profiles = ops_json_walk(list.bytes, list.size);
	return OPS_OK;
}

/* The address of the schema may be at the end of the file. */
bool ops_is_speedscope(const char *head, size_t size)
{
	struct ops_string text = {head, size};

	if (!size || ops_string_contains(text, "\"traceEvents\""))
		return false;
	return ops_string_contains(text, "speedscope.app/file-format-schema.json") ||
	       (head[0] == '{' && ops_string_contains(text, "\"frames\"") && ops_string_contains(text, "\"profiles\"") &&
	        (ops_string_contains(text, "\"sampled\"") || ops_string_contains(text, "\"evented\"")));
}

enum ops_code ops_read_speedscope(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct speedscope s = {.transcoder = {speedscope_next}, .rows = {.in = reading}};
	enum ops_code code = ops_reading_all(reading, &s.bytes);

	if (!code)
		code = open_file(&s);
	if (!code)
		code = ops_read_transcoded(reading, &s.transcoder, ret_trace);
	ops_stack_rows_release(&s.rows);
	OPS_ARRAY_RELEASE(&s.thread.open);
	OPS_ARRAY_RELEASE(&s.frames);
	OPS_ARRAY_RELEASE(&s.stack);
	ops_buffer_release(&s.text[0]);
	ops_buffer_release(&s.text[1]);
	ops_buffer_release(&s.bytes);
	return code;
}

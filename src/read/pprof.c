/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles of pprof (profile.proto of github.com/google/pprof), as Go, Opstrobe and many others write them: samples, each with
 * the numbers of its locations, innermost first, and values. Of several values, the first that is a time is used, else the first
 * that is a count. A location has a line for each function that was inlined into it. Tables may come after the samples, so the
 * complete file is read first.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "read/stack_rows.h"


enum { PPROF_SAMPLE_TYPE = 1, PPROF_SAMPLE = 2, PPROF_LOCATION = 4, PPROF_FUNCTION = 5, PPROF_TEXT = 6, PPROF_LAST_FIELD = 15 };
enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum { LOCATION_NUMBER = 1, LOCATION_ADDRESS = 3, LOCATION_LINES = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_NUMBER = 1, FUNCTION_NAME = 2, FUNCTION_FILE = 4, FUNCTION_START = 5 };

struct function {
	struct ops_string name;
	struct ops_string file;
	uint64_t start_line;
};

/* The frames of a location, innermost first, in `frames`. */
struct location {
	size_t first;
	size_t count;
};

struct pprof_profile {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_stack_rows rows;
	struct ops_stack_thread thread;
	struct ops_buffer bytes; /* the file */
	struct ops_pb_message samples; /* the remaining fields */
	OPS_ARRAY(struct ops_string) texts;
	struct ops_map functions_by_id;
	OPS_ARRAY(struct function) functions;
	struct ops_map locations_by_id;
	OPS_ARRAY(struct location) locations;
	OPS_ARRAY(uint32_t) frames;
	OPS_ARRAY(uint32_t) stack;
	uint64_t value_index; /* index of the shown value of a sample */
	int64_t scale_ns;     /* its unit in ns */
	bool is_time;
	int64_t now_ns;
	bool has_ended;
};

static enum ops_code pprof_fault(const struct pprof_profile *p, const char *at, const char *why)
{
	return ops_fault(p->rows.in->error, OPS_CORRUPT, "byte %zu: %s", (size_t)(at - p->bytes.bytes), why);
}

static enum ops_code pprof_memory(const struct pprof_profile *p)
{
	return ops_fault_memory(p->rows.in->error);
}

static struct ops_string pprof_text(const struct pprof_profile *p, uint64_t id)
{
	return id < p->texts.count ? p->texts.items[id] : (struct ops_string){"", 0};
}

/* --- tables --------------------------------------------------------------------------------------------------------- */

static enum ops_code pprof_add_function(struct pprof_profile *p, const struct ops_pb_field *field)
{
	struct ops_pb_message inside = ops_pb_inside(field);
	struct function function = {.name = {"", 0}, .file = {"", 0}};
	struct ops_pb_field part;
	uint64_t id = 0;

	while (ops_pb_next(&inside, &part)) {
		if (part.number == FUNCTION_NUMBER)
			id = part.value;
		else if (part.number == FUNCTION_NAME)
			function.name = pprof_text(p, part.value);
		else if (part.number == FUNCTION_FILE)
			function.file = pprof_text(p, part.value);
		else if (part.number == FUNCTION_START)
			function.start_line = part.value;
	}
	if (inside.malformed)
		return pprof_fault(p, inside.at, "a function that is not a Function");
	return ops_map_add(&p->functions_by_id, id, (uint32_t)p->functions.count) && OPS_ARRAY_APPEND(&p->functions, function)
	               ? OPS_OK
	               : pprof_memory(p);
}

/* Adds the frame of a line of a location. */
static enum ops_code add_line_frame(struct pprof_profile *p, const struct ops_pb_field *field)
{
	struct ops_pb_message inside = ops_pb_inside(field);
	const struct function *function;
	struct ops_pb_field part;
	uint64_t id = 0, line = 0;
	uint32_t place;

	while (ops_pb_next(&inside, &part)) {
		if (part.number == LINE_FUNCTION)
			id = part.value;
		else if (part.number == LINE_NUMBER)
			line = part.value;
	}
	place = ops_map_find(&p->functions_by_id, id);
	if (inside.malformed || place == OPS_NONE)
		return pprof_fault(p, field->bytes.bytes, "a line of a function that is not in the file");
	function = &p->functions.items[place];
	line = line ? line : function->start_line;
	return OPS_ARRAY_APPEND(&p->frames, ops_stack_frame(&p->rows, function->file, line < INT32_MAX ? (uint32_t)line : 0, function->name))
	               ? OPS_OK
	               : pprof_memory(p);
}

static enum ops_code pprof_add_location(struct pprof_profile *p, const struct ops_pb_field *field)
{
	struct ops_pb_message inside = ops_pb_inside(field);
	struct location location = {.first = p->frames.count};
	enum ops_code code = OPS_OK;
	struct ops_pb_field part;
	uint64_t id = 0, address = 0;
	char name[24];

	while (!code && ops_pb_next(&inside, &part)) {
		if (part.number == LOCATION_NUMBER)
			id = part.value;
		else if (part.number == LOCATION_ADDRESS)
			address = part.value;
		else if (part.number == LOCATION_LINES && part.type == OPS_PB_BYTES)
			code = add_line_frame(p, &part);
	}
	if (!code && inside.malformed)
		code = pprof_fault(p, inside.at, "a location that is not a Location message");
	if (!code && p->frames.count == location.first) { /* no symbols */
		int size = snprintf(name, sizeof(name), "0x%" PRIx64, address);

		if (!OPS_ARRAY_APPEND(&p->frames, ops_stack_frame(&p->rows, (struct ops_string){"", 0}, 0, (struct ops_string){name, (size_t)size})))
			code = pprof_memory(p);
	}
	location.count = p->frames.count - location.first;
	if (!code && !(ops_map_add(&p->locations_by_id, id, (uint32_t)p->locations.count) && OPS_ARRAY_APPEND(&p->locations, location)))
		code = pprof_memory(p);
	return code;
}

/* Returns the nanoseconds of a unit; 0 if it is not a unit of time. */
static int64_t unit_ns(struct ops_string unit)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = {{"nanoseconds", 1}, {"microseconds", 1000}, {"milliseconds", 1000000}, {"seconds", 1000000000}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (ops_string_is(unit, units[i].unit))
			return units[i].ns;
	return 0;
}

/* Chooses the value of samples to show. */
static enum ops_code choose_value(struct pprof_profile *p)
{
	struct ops_pb_message profile = p->samples;
	bool has_count = false;
	uint64_t index = 0;
	struct ops_pb_field field, part;

	while (ops_pb_next(&profile, &field)) {
		struct ops_pb_message inside = ops_pb_inside(&field);
		struct ops_string unit = {"", 0};

		if (field.number != PPROF_SAMPLE_TYPE || field.type != OPS_PB_BYTES)
			continue;
		while (ops_pb_next(&inside, &part))
			if (part.number == TYPE_UNIT)
				unit = pprof_text(p, part.value);
		if (unit_ns(unit) && !p->is_time) {
			p->is_time = true;
			p->scale_ns = unit_ns(unit);
			p->value_index = index;
		} else if (ops_string_is(unit, "count") && !p->is_time && !has_count) {
			has_count = true;
			p->scale_ns = 1;
			p->value_index = index;
		}
		index++;
	}
	if (p->is_time || has_count)
		return OPS_OK;
	return pprof_fault(p, p->bytes.bytes, "a profile whose values are neither times nor counts, such as a profile of bytes");
}

/* Reads one table: walks over its fields in the file. */
static enum ops_code pprof_read_table(struct pprof_profile *p, uint32_t number,
                                      enum ops_code (*add)(struct pprof_profile *p, const struct ops_pb_field *field))
{
	struct ops_pb_message profile = p->samples;
	enum ops_code code = OPS_OK;
	struct ops_pb_field field;

	while (!code && ops_pb_next(&profile, &field))
		if (field.number == number && field.type == OPS_PB_BYTES)
			code = add(p, &field);
	if (!code && profile.malformed)
		code = pprof_fault(p, profile.at, "the file is truncated or not a profile");
	return code;
}

static enum ops_code pprof_add_text(struct pprof_profile *p, const struct ops_pb_field *field)
{
	return OPS_ARRAY_APPEND(&p->texts, field->bytes) ? OPS_OK : pprof_memory(p);
}

static enum ops_code read_tables(struct pprof_profile *p)
{
	enum ops_code code;

	p->samples = (struct ops_pb_message){p->bytes.bytes, p->bytes.bytes + p->bytes.size, false};
	code = pprof_read_table(p, PPROF_TEXT, pprof_add_text);
	if (!code)
		code = pprof_read_table(p, PPROF_FUNCTION, pprof_add_function);
	if (!code)
		code = pprof_read_table(p, PPROF_LOCATION, pprof_add_location);
	return code ? code : choose_value(p);
}

/* --- samples -------------------------------------------------------------------------------------------------------- */

static enum ops_code add_location_frames(struct pprof_profile *p, uint64_t id, const char *at)
{
	uint32_t place = ops_map_find(&p->locations_by_id, id);
	const struct location *location;

	if (place == OPS_NONE)
		return pprof_fault(p, at, "a sample of a location that is not in the file");
	location = &p->locations.items[place];
	for (size_t i = 0; i < location->count; i++)
		if (!OPS_ARRAY_APPEND(&p->stack, p->frames.items[location->first + i]))
			return pprof_memory(p);
	return OPS_OK;
}

/* The current sample. */
struct sample {
	const char *at;
	uint64_t values; /* number of values so far */
	int64_t value;   /* the shown value */
};

static enum ops_code add_number(struct pprof_profile *p, struct sample *sample, uint32_t field, uint64_t number)
{
	if (field == SAMPLE_LOCATION)
		return add_location_frames(p, number, sample->at);
	if (field == SAMPLE_VALUE && sample->values++ == p->value_index)
		sample->value = (int64_t)number;
	return OPS_OK;
}

/* Numbers come one for each field, or packed. */
static enum ops_code read_pprof_sample(struct pprof_profile *p, struct ops_pb_message inside, struct sample *sample)
{
	enum ops_code code = OPS_OK;
	struct ops_pb_field field;
	uint64_t number;

	p->stack.count = 0;
	while (!code && ops_pb_next(&inside, &field)) {
		struct ops_pb_message packed = ops_pb_inside(&field);

		if (field.type == OPS_PB_VARINT)
			code = add_number(p, sample, field.number, field.value);
		while (!code && field.type == OPS_PB_BYTES && field.number <= SAMPLE_VALUE && packed.at < packed.end &&
		       ops_pb_parse_varint(&packed.at, packed.end, &number))
			code = add_number(p, sample, field.number, number);
	}
	return !code && inside.malformed ? pprof_fault(p, inside.at, "a sample that is not a Sample message") : code;
}

static enum ops_code put_pprof_sample(struct pprof_profile *p, const struct ops_pb_field *field, struct ops_buffer *out)
{
	struct sample sample = {.at = field->bytes.bytes};
	uint64_t byte = (uint64_t)(sample.at - p->bytes.bytes);
	enum ops_code code = read_pprof_sample(p, ops_pb_inside(field), &sample);

	if (code)
		return code;
	if (sample.value < 0) { /* of a difference */
		ops_builder_notes(p->rows.in->builder, OPS_NOTE_BAD_DURATION, 1, byte);
		sample.value = 0;
	}
	if (sample.value > (OPS_TIME_MAX_NS - p->now_ns) / p->scale_ns)
		return pprof_fault(p, sample.at, "values whose sum is too large");
	ops_stack_reverse(p->stack.items, p->stack.count);
	ops_stack_report(&p->rows, byte, false, p->is_time);
	ops_stack_set(&p->rows, &p->thread, p->stack.items, p->stack.count, p->now_ns, out);
	p->now_ns += sample.value * p->scale_ns;
	return OPS_OK;
}

static enum ops_code pprof_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct pprof_profile *p = (struct pprof_profile *)(void *)transcoder;
	enum ops_code code = OPS_OK;
	struct ops_pb_field field;

	while (!code && !p->has_ended && !text->failed && text->size < OPS_TRANSCODED_BYTES) {
		if (!ops_pb_next(&p->samples, &field)) {
			ops_stack_set(&p->rows, &p->thread, NULL, 0, p->now_ns, text);
			ops_stack_put_end(&p->rows, text);
			p->has_ended = true;
		} else if (field.number == PPROF_SAMPLE && field.type == OPS_PB_BYTES) {
			code = put_pprof_sample(p, &field, text);
		}
		text->failed |= p->rows.failed;
	}
	return code;
}

/* Returns whether the message consists of two small numbers, like a type of values. */
static bool is_value_type(const struct ops_pb_field *field)
{
	struct ops_pb_message inside = ops_pb_inside(field);
	struct ops_pb_field part;

	while (ops_pb_next(&inside, &part))
		if (part.number > TYPE_UNIT || part.type != OPS_PB_VARINT)
			return false;
	return !inside.malformed && field->bytes.size;
}

/* The file begins with a type of values, unlike Perfetto's traces, or (if written by Opstrobe) with the empty string. */
bool ops_is_pprof(const char *head, size_t size)
{
	struct ops_pb_message profile = {head, head + size, false};
	struct ops_pb_field field;
	uint32_t types = 0, fields = 0;

	while (fields < 64 && ops_pb_next(&profile, &field)) {
		bool is_message = field.number <= PPROF_TEXT || field.number == 11 || field.number == 13;

		if (field.number > PPROF_LAST_FIELD || field.type != (is_message ? OPS_PB_BYTES : OPS_PB_VARINT))
			return false;
		if (field.number == PPROF_SAMPLE_TYPE && !is_value_type(&field))
			return false;
		if (!fields && field.number != PPROF_SAMPLE_TYPE && (field.number != PPROF_TEXT || field.bytes.size))
			return false;
		types += field.number == PPROF_SAMPLE_TYPE;
		fields++;
	}
	return types && fields > 2;
}

enum ops_code ops_read_pprof(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct pprof_profile p = {.transcoder = {pprof_next}, .rows = {.in = reading}, .thread = {.tid = 1}};
	enum ops_code code = ops_reading_all(reading, &p.bytes);

	if (!code)
		code = read_tables(&p);
	if (!code && p.rows.failed)
		code = pprof_memory(&p);
	if (!code)
		code = ops_read_transcoded(reading, &p.transcoder, ret_trace);
	ops_stack_rows_release(&p.rows);
	OPS_ARRAY_RELEASE(&p.thread.open);
	OPS_ARRAY_RELEASE(&p.texts);
	ops_map_release(&p.functions_by_id);
	OPS_ARRAY_RELEASE(&p.functions);
	ops_map_release(&p.locations_by_id);
	OPS_ARRAY_RELEASE(&p.locations);
	OPS_ARRAY_RELEASE(&p.frames);
	OPS_ARRAY_RELEASE(&p.stack);
	ops_buffer_release(&p.bytes);
	return code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Chrome trace JSON, the document: an object with traceEvents and metadata, or just the array of events.
 */
#include "read/kineto.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_walk.h"
#include "read/foreign_file.h"
#include "trace/diagnostics.h"

/* --- reading text --------------------------------------------------------------------------------------------------- */

static bool kineto_fail(struct kineto_reader *reader, const char *at, const char *failure)
{
	reader->code = ops_reading_fault(reader->in, at, failure);
	return false;
}

/* Rejects a file of another tool. Returns false if the file may be a trace. */
static bool refuse_foreign(struct kineto_reader *reader, enum ops_foreign_when when)
{
	if (!reader->foreign || reader->foreign->when != when)
		return false;
	reader->code = ops_fault(reader->in->error, OPS_CORRUPT, "not a PyTorch trace: the file looks like %s",
	                         reader->foreign->what);
	return true;
}

static bool kineto_fail_memory(struct kineto_reader *reader)
{
	reader->code = ops_fault_memory(reader->in->error);
	return false;
}

/* Reads more text into the window. Returns false at the end, or on an error, with its `code`. */
static bool more(struct kineto_reader *reader)
{
	if (reader->in->window.last)
		return false;
	reader->in->events = reader->index;
	reader->code = ops_reading_more(reader->in);
	return reader->code == OPS_OK;
}

/* Returns the next non-whitespace character; 0 at the end of the text. */
static char next_character(struct kineto_reader *reader)
{
	struct ops_window *window = &reader->in->window;

	for (;;) {
		struct ops_json_cursor cursor = {window->at, window->end, NULL};

		ops_json_skip_space(&cursor);
		window->at = (char *)cursor.at;
		if (cursor.at < cursor.end)
			return *cursor.at;
		if (!more(reader))
			return 0;
	}
}

static void note_here(struct kineto_reader *reader, enum ops_note_kind kind, const char *at)
{
	ops_builder_notes(reader->builder, kind, 1, ops_window_offset(&reader->in->window, at));
}

/* Called when the text ends unexpectedly, which is accepted once there are events. */
static bool end_early(struct kineto_reader *reader)
{
	if (reader->code)
		return false;
	if (!reader->has_events)
		return kineto_fail(reader, reader->in->window.end, "the text ends before the events");
	note_here(reader, OPS_NOTE_TRUNCATED, reader->in->window.end);
	return true;
}

/* --- events --------------------------------------------------------------------------------------------------------- */

enum step { STEP_ON, STEP_END, STEP_FAIL };

/* Parses one element of traceEvents; the window is at its first character. */
static enum step parse_element(struct kineto_reader *reader)
{
	struct ops_window *window = &reader->in->window;
	struct ops_json_object *object = reader->object;

	for (;;) {
		struct ops_json_cursor cursor = {window->at, window->end, NULL};
		struct ops_json_member other;
		bool is_event = *cursor.at == '{';
		enum ops_json_result result =
			is_event ? ops_json_parse_object(&cursor, object) : ops_json_parse_value(&cursor, &other);

		if (result == OPS_JSON_BAD)
			return kineto_fail(reader, cursor.at, cursor.failure), STEP_FAIL;
		if (result == OPS_JSON_MORE) {
			if (!more(reader))
				return end_early(reader) ? STEP_END : STEP_FAIL;
			continue;
		}
		reader->byte = ops_window_offset(window, window->at);
		if (!is_event) {
			kineto_note(reader, OPS_NOTE_NOT_AN_EVENT);
		} else {
			if (object->commas)
				ops_builder_notes(reader->builder, OPS_NOTE_COMMA, object->commas,
				                  ops_window_offset(window, object->comma));
			if (!kineto_read_event(reader))
				return reader->failure ? kineto_fail(reader, window->at, reader->failure)
				                       : kineto_fail_memory(reader),
				       STEP_FAIL;
		}
		window->at = (char *)cursor.at;
		reader->index++;
		return STEP_ON;
	}
}

/* Parses the elements up to the closing bracket. Returns false if reading has ended, with or without an error. */
static bool kineto_parse_events(struct kineto_reader *reader)
{
	bool comma = true;

	reader->has_events = true;
	reader->in->window.at++;
	for (;;) {
		char first = next_character(reader);
		enum step step;

		if (first == 0 && reader->in->window.at == reader->in->window.end)
			return end_early(reader), false;
		if (first == ',' || first == ']') {
			if (comma && (first == ',' || reader->index))
				note_here(reader, OPS_NOTE_COMMA, reader->in->window.at);
			comma = true;
			reader->in->window.at++;
			if (first == ']')
				return true;
			continue;
		}
		if (!comma)
			return kineto_fail(reader, reader->in->window.at, "expected ',' or ']' after an event");
		comma = false;
		step = parse_element(reader);
		if (step != STEP_ON)
			return false;
	}
}

/* --- metadata ------------------------------------------------------------------------------------------------------- */

/* Reads the notes of the original file: [kind, count, byte] for each. */
static void read_own_notes(struct kineto_reader *reader, const struct ops_json_member *list)
{
	struct ops_json_walk notes = ops_json_walk(list->value, list->type == '[' ? list->value_size : 0);
	struct ops_string note, name, part;

	while (ops_json_next_element(&notes, &note)) {
		struct ops_json_walk parts = ops_json_walk(note.bytes, note.size);
		int64_t count, byte;
		enum ops_note_kind kind;

		if (ops_json_next_element(&parts, &name) && name.size > 2 &&
		    ops_note_find(name.bytes + 1, name.size - 2, &kind) && ops_json_next_element(&parts, &part) &&
		    ops_json_parse_integer(part, &count) && count > 0 && ops_json_next_element(&parts, &part) &&
		    ops_json_parse_integer(part, &byte) && byte >= 0)
			ops_builder_notes(reader->builder, kind, (uint64_t)count, (uint64_t)byte);
		else
			kineto_note(reader, OPS_NOTE_BAD_METADATA);
	}
}

/* Reads the member "opstrobe" of Opstrobe's own files. */
static void read_own_metadata(struct kineto_reader *reader, const struct ops_json_member *value)
{
	struct ops_json_cursor cursor = {value->value, value->value + value->value_size, NULL};
	struct ops_json_object *object = reader->object;
	int64_t number;

	if (value->type != '{' || reader->index || ops_json_parse_object(&cursor, object) != OPS_JSON_DONE)
		return;
	reader->own = true;
	for (uint32_t i = 0; i < object->count; i++) {
		const struct ops_json_member *member = &object->members[i];
		const char *key = member->key;
		size_t size = member->key_size;

		if (KINETO_IS(key, size, "recorded"))
			reader->recorded = member->value[0] == 't';
		else if (KINETO_IS(key, size, "row_ids"))
			reader->row_ids = member->value[0] == 't';
		else if (KINETO_IS(key, size, "notes"))
			read_own_notes(reader, member);
		else if (KINETO_IS(key, size, "tracks"))
			kineto_read_own_tracks(reader, member);
		else if (KINETO_IS(key, size, "functions"))
			kineto_read_functions(reader, member);
		else if (KINETO_IS(key, size, "modules"))
			kineto_read_own_modules(reader, member);
		else if (KINETO_IS(key, size, "storages"))
			kineto_read_own_storages(reader, member);
		else if (KINETO_IS(key, size, "roles"))
			kineto_read_own_roles(reader, member);
		else if (!kineto_integer(member, &number))
			continue;
		else if ((KINETO_IS(key, size, "lost") || KINETO_IS(key, size, "lost_roles")) && number >= 0)
			reader->lost += (uint64_t)number;
		else if (KINETO_IS(key, size, "pid"))
			reader->pid = number, reader->has_pid = true;
		else if (KINETO_IS(key, size, "start_ns"))
			reader->start_ns = number;
		else if (KINETO_IS(key, size, "stop_ns"))
			reader->stop_ns = number, reader->has_session = true;
	}
	if (!reader->has_session || reader->stop_ns < reader->start_ns)
		reader->has_session = reader->recorded = false;
}

/* Stores the pair until the trace exists. */
static bool kineto_keep_metadata(struct kineto_reader *reader, const struct ops_json_member *member)
{
	struct ops_json_member key = {.value = member->key, .value_size = member->key_size, .flags = OPS_JSON_ESCAPED};
	bool quoted = member->type == '"';
	struct kineto_metadata *kept;
	const char *failure;
	bool words = false;

	if (member->flags & (OPS_JSON_HIGH | OPS_JSON_CONTROL))
		kineto_note_text(reader, member);
	reader->text.size = 0;
	failure = ops_json_clean(&reader->text, member->value - quoted, member->value_size + 2 * quoted, false, &words);
	if (failure)
		return kineto_fail(reader, member->value, failure);
	if (words)
		kineto_note(reader, OPS_NOTE_BARE_WORD);
	if (KINETO_IS(member->key, member->key_size, "deviceProperties") && reader->text.size == 2)
		return true; /* [], which every file without devices has */
	kept = OPS_ARRAY_PUSH(&reader->metadata);
	if (!kept || reader->text.failed)
		return kineto_fail_memory(reader);
	kept->json = ops_builder_string(reader->builder, reader->text.bytes, reader->text.size);
	kept->key = kineto_string(reader, &key);
	return !ops_builder_failed(reader->builder) || kineto_fail_memory(reader);
}

/* Reads a member of the document other than its events. Members that describe the file and not the trace are dropped. */
static bool parse_metadata(struct kineto_reader *reader, const struct ops_json_member *member)
{
	const char *key = member->key;
	size_t size = member->key_size;

	if (KINETO_IS(key, size, "baseTimeNanoseconds")) {
		if (!ops_json_decimal(member->value, member->value_size, 0, KINETO_TIME_MAX, &reader->base_ns))
			kineto_note(reader, OPS_NOTE_BAD_METADATA);
		return true;
	}
	if (KINETO_IS(key, size, "opstrobe")) {
		read_own_metadata(reader, member);
		return !ops_builder_failed(reader->builder) || kineto_fail_memory(reader);
	}
	if (KINETO_IS(key, size, "host_name") && member->type == '"') {
		reader->host_name = kineto_string(reader, member);
		return !ops_builder_failed(reader->builder) || kineto_fail_memory(reader);
	}
	if (KINETO_IS(key, size, "schemaVersion") || KINETO_IS(key, size, "displayTimeUnit") ||
	    KINETO_IS(key, size, "traceName"))
		return true;
	return kineto_keep_metadata(reader, member);
}

/* Returns whether the list of events begins here. If its key is damaged, the first event decides: read as metadata, the list
 * would have to be in memory at once. */
static bool begins_events(struct kineto_reader *reader, const struct ops_json_member *key, struct ops_json_cursor cursor)
{
	if (*cursor.at != '[')
		return false;
	if (KINETO_IS(key->value, key->value_size, "traceEvents"))
		return true;
	cursor.at++;
	ops_json_skip_space(&cursor);
	if (reader->has_events || *cursor.at != '{')
		return false;
	cursor.at++;
	ops_json_skip_space(&cursor);
	if (cursor.end - cursor.at < 4 || memcmp(cursor.at, "\"ph\"", 4) != 0)
		return false;
	kineto_note(reader, OPS_NOTE_BAD_METADATA);
	return true;
}

/* Parses key and value; the window is at the quote. Returns false if reading has ended. */
static bool kineto_parse_member(struct kineto_reader *reader)
{
	struct ops_window *window = &reader->in->window;

	for (;;) {
		struct ops_json_cursor cursor = {window->at, window->end, NULL};
		struct ops_json_member key, member;
		enum ops_json_result result = ops_json_parse_value(&cursor, &key);

		ops_json_skip_space(&cursor);
		if (!result && cursor.at < cursor.end && *cursor.at != ':')
			return kineto_fail(reader, cursor.at, "':' is expected");
		cursor.at++;
		ops_json_skip_space(&cursor);
		if (cursor.at >= cursor.end)
			result = OPS_JSON_MORE;
		reader->byte = ops_window_offset(window, window->at);
		if (!result && *cursor.at == '{' && KINETO_IS(key.value, key.value_size, "traceEvents"))
			return kineto_fail(reader, cursor.at, "traceEvents is not a list");
		if (!result && begins_events(reader, &key, cursor)) {
			window->at = (char *)cursor.at;
			return kineto_parse_events(reader);
		}
		if (!result)
			result = ops_json_parse_value(&cursor, &member);
		if (result == OPS_JSON_BAD)
			return kineto_fail(reader, cursor.at, cursor.failure);
		if (result == OPS_JSON_DONE) {
			member.key = key.value;
			member.key_size = key.value_size;
			if (!parse_metadata(reader, &member))
				return false;
			window->at = (char *)cursor.at;
			return true;
		}
		if (!more(reader))
			return end_early(reader), false;
	}
}

/* --- document ------------------------------------------------------------------------------------------------------- */

static bool kineto_parse_members(struct kineto_reader *reader)
{
	bool comma = true;

	reader->in->window.at++;
	for (size_t count = 0;;) {
		char first = next_character(reader);

		if (first == 0 && reader->in->window.at == reader->in->window.end)
			return end_early(reader), false;
		if (first == ',' || first == '}') {
			if (comma && (first == ',' || count))
				note_here(reader, OPS_NOTE_COMMA, reader->in->window.at);
			comma = true;
			reader->in->window.at++;
			if (first == '}')
				return true;
			continue;
		}
		if (first != '"' || !comma)
			return kineto_fail(reader, reader->in->window.at,
			                   comma ? "expected a name in quotes" : "',' or '}' is expected");
		comma = false;
		count++;
		if (!kineto_parse_member(reader))
			return false;
	}
}

static void kineto_parse_document(struct kineto_reader *reader)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	char first;
	bool whole;

	reader->foreign = ops_find_foreign_file(reader->in->window.at, (size_t)(reader->in->window.end - reader->in->window.at));
	if (refuse_foreign(reader, OPS_FOREIGN_ALWAYS))
		return;
	if (memcmp(reader->in->window.at, byte_order_mark, 3) == 0)
		reader->in->window.at += 3;
	first = next_character(reader);
	if (reader->code)
		return;
	if (first != '{' && first != '[') {
		kineto_fail(reader, reader->in->window.at,
		            first || reader->in->window.at < reader->in->window.end ? "not a trace: neither '{' nor '['"
		                                                            : "the file is empty");
		return;
	}
	whole = first == '{' ? kineto_parse_members(reader) : kineto_parse_events(reader);
	if (!whole)
		return;
	if (!reader->has_events) {
		if (!refuse_foreign(reader, OPS_FOREIGN_WITHOUT_EVENTS))
			kineto_fail(reader, reader->in->window.at, "not a trace: no traceEvents");
	} else if (next_character(reader) || reader->in->window.at < reader->in->window.end) {
		note_here(reader, OPS_NOTE_TRAILING_TEXT, reader->in->window.at);
	}
}

/* The first bytes of the file may show what the categories of its events cannot. */
static void check_categories(struct kineto_reader *reader)
{
	if (!reader->code && reader->has_events && !reader->has_known_category)
		refuse_foreign(reader, OPS_FOREIGN_WITHOUT_CATEGORIES);
}

static void add_info(struct kineto_reader *reader)
{
	int64_t earliest, latest;
	struct ops_trace_info info = {
		.pid = reader->pid,
		.lost = reader->lost,
		.host_name = ops_builder_text(reader->builder, reader->host_name).bytes,
		.process_name = ops_builder_text(reader->builder, reader->process_name).bytes,
	};

	kineto_end_events(reader);
	earliest = reader->first_ns < reader->start_ns ? reader->first_ns : reader->start_ns;
	latest = reader->last_ns > reader->stop_ns ? reader->last_ns : reader->stop_ns;
	/* A base that makes times overflow is ignored. */
	if (__builtin_add_overflow(latest, reader->base_ns, &latest) ||
	    __builtin_add_overflow(earliest, reader->base_ns, &earliest)) {
		kineto_note(reader, OPS_NOTE_BAD_METADATA);
		reader->base_ns = 0;
	}
	ops_builder_shift(reader->builder, reader->base_ns);
	info.start_ns = reader->start_ns + reader->base_ns;
	info.stop_ns = reader->stop_ns + reader->base_ns;
	info.base_ns = reader->base_ns;
	info.file_events = reader->index;
	ops_builder_info(reader->builder, &info);
}

static enum ops_code kineto_finish(struct kineto_reader *reader, struct ops_trace **ret_trace)
{
	struct ops_trace *trace = NULL;
	enum ops_code code = reader->code;

	if (!code && reader->first_ns > reader->last_ns)
		reader->first_ns = reader->last_ns = 0;
	if (code)
		return code;
	add_info(reader);
	kineto_end_tracks(reader);
	code = ops_reading_finish(reader->in, &trace);
	for (size_t i = 0; !code && i < reader->metadata.count; i++) {
		struct ops_string key = ops_trace_string(trace, reader->metadata.items[i].key);
		struct ops_string json = ops_trace_string(trace, reader->metadata.items[i].json);

		code = ops_trace_set_metadata(trace, key.bytes, key.size, json.bytes, json.size, reader->in->error);
	}
	if (code)
		ops_trace_unref(trace);
	else
		*ret_trace = trace;
	return code;
}

static void kineto_release(struct kineto_reader *reader)
{
	ops_free(reader->object);
	ops_intern_release(&reader->lanes);
	ops_intern_release(&reader->process_keys);
	ops_intern_release(&reader->inputs_texts);
	ops_intern_release(&reader->extra_texts);
	ops_intern_release(&reader->pair_keys);
	OPS_ARRAY_RELEASE(&reader->metadata);
	OPS_ARRAY_RELEASE(&reader->lane_tracks);
	OPS_ARRAY_RELEASE(&reader->tracks);
	OPS_ARRAY_RELEASE(&reader->functions);
	OPS_ARRAY_RELEASE(&reader->storages);
	OPS_ARRAY_RELEASE(&reader->processes);
	OPS_ARRAY_RELEASE(&reader->inputs);
	OPS_ARRAY_RELEASE(&reader->extras);
	OPS_ARRAY_RELEASE(&reader->opens);
	OPS_ARRAY_RELEASE(&reader->pairs);
	OPS_ARRAY_RELEASE(&reader->unfinished);
	ops_buffer_release(&reader->scratch);
	ops_buffer_release(&reader->text);
	ops_buffer_release(&reader->list);
	ops_free(reader);
}

enum ops_code ops_read_kineto(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct kineto_reader *reader = ops_alloc_zeroed(1, sizeof(*reader));
	enum ops_code code;

	if (!reader)
		return ops_fault_memory(reading->error);
	*reader = (struct kineto_reader){.in = reading, .builder = reading->builder,
	                                 .object = ops_alloc(sizeof(*reader->object)),
	                                 .first_ns = INT64_MAX, .last_ns = INT64_MIN, .last_row = OPS_NONE};
	kineto_chain_args(&reader->arg_chains);
	code = reader->object ? OPS_OK : ops_fault_memory(reading->error);
	if (!code) {
		kineto_parse_document(reader);
		check_categories(reader);
		code = kineto_finish(reader, ret_trace);
	}
	kineto_release(reader);
	return code;
}

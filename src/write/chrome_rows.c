/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a Chrome trace, see chrome_rows.h. A row is assembled from prepared pieces: constant text, the escaped name, the
 * thread, the rendered inputs, and numbers in between. The pieces come from fragments.h; nothing is formatted in the loop.
 */
#include "write/chrome_rows.h"

#include <math.h>
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/json.h"

#define ROWS_BETWEEN_CHECKS 4096u
#define SCOPE_USER 7 /* at::RecordScope */

/* --- assembling rows ----------------------------------------------------------------------------------------------- */

/* A row fits the sink's room: constant text and numbers take less than 1 KiB, and long fragments are written separately. */
static char *begin_row(struct ops_chrome_rows *rows)
{
	return rows->row = ops_sink_room(rows->sink);
}

static void end_row(struct ops_chrome_rows *rows, const char *at)
{
	ops_sink_advance(rows->sink, (size_t)(at - rows->row));
}

/* Writes a text of any length, without padding, separately from the sink's room. */
static char *put_long(struct ops_chrome_rows *rows, char *at, struct ops_string text)
{
	end_row(rows, at);
	ops_sink_write(rows->sink, text.bytes, text.size);
	return begin_row(rows);
}

static char *put_fragment(struct ops_chrome_rows *rows, char *at, struct ops_string fragment)
{
	if (fragment.size <= OPS_FRAGMENT_KEPT_MAX)
		return ops_fragment_put(at, fragment);
	return put_long(rows, at, fragment);
}

static char *chrome_rows_put_name(struct ops_chrome_rows *rows, char *at, uint32_t string)
{
	return put_fragment(rows, at, ops_fragments_get(&rows->names, string));
}

/* Writes the closing quote of the name, then process, thread and time. */
static char *chrome_rows_put_place(struct ops_chrome_rows *rows, char *at, uint32_t track, int64_t time_ns)
{
	at = ops_fragment_put(at, rows->tracks[track]);
	return ops_json_us_to(at, time_ns - rows->base_ns);
}

/* Returns whether to continue: false if memory or the disk is full, or if the caller cancelled. */
static bool chrome_rows_go_on(struct ops_chrome_rows *rows, size_t row)
{
	const struct ops_chrome_json_options *options = rows->options;

	if (row % ROWS_BETWEEN_CHECKS)
		return true;
	if (ops_chrome_rows_failed(rows) || ops_sink_failed(rows->sink))
		return false;
	if (options->progress)
		rows->cancelled |= options->progress(options->progress_context, ops_sink_total(rows->sink)) != 0;
	return !rows->cancelled;
}

/* --- events -------------------------------------------------------------------------------------------------------- */

#define HEAD_PHASE 9 /* position of the "X" in a head */
static const struct ops_string span_heads[] = {
#define HEAD(category) ",\n{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\""
#define SPAN_HEAD(name, category) {HEAD(category), sizeof(HEAD(category)) - 1},
	OPS_EVENT_KINDS(SPAN_HEAD)
#undef SPAN_HEAD
#undef HEAD
};

static bool has_overload(const struct ops_chrome_rows *rows, size_t row)
{
	const uint32_t *overload = rows->events->overload;

	return overload && ops_trace_string(rows->trace, overload[row]).size;
}

/* Writes phase and category, up to the name. */
static char *chrome_rows_put_category(struct ops_chrome_rows *rows, char *at, size_t row, char phase)
{
	const struct ops_events *events = rows->events;
	struct ops_string head = span_heads[events->kind[row]];
	char *start = at;

	if (events->kind[row] >= OPS_EVENT_MARK || (events->category && events->category[row] != OPS_NONE)) {
		at = OPS_PUT(at, ",\n{\"ph\":\"X\",\"");
		if (events->category && events->category[row] != OPS_NONE) {
			at[-1] = '"';
			at = OPS_PUT(at, "cat\":\"");
			start[HEAD_PHASE] = phase;
			at = chrome_rows_put_name(rows, at, events->category[row]);
			return OPS_PUT(at, "\",\"name\":\"");
		}
		at = OPS_PUT(at, "name\":\"");
	} else {
		memcpy(at, head.bytes, head.size);
		at += head.size;
	}
	start[HEAD_PHASE] = phase;
	return at;
}

/* Writes phase, category, name, thread and time. As in Kineto's files, the overload is appended to the name. */
static char *chrome_rows_put_head(struct ops_chrome_rows *rows, char *at, size_t row, char phase, int64_t time_ns)
{
	const struct ops_events *events = rows->events;

	at = chrome_rows_put_category(rows, at, row, phase);
	at = chrome_rows_put_name(rows, at, events->name[row]);
	if (has_overload(rows, row)) {
		*at++ = '.';
		at = chrome_rows_put_name(rows, at, events->overload[row]);
	}
	return chrome_rows_put_place(rows, at, events->track[row], time_ns);
}

static bool chrome_rows_is_instant(const struct ops_chrome_rows *rows, size_t row)
{
	return rows->events->kind[row] == OPS_EVENT_CPU_INSTANT || rows->events->kind[row] == OPS_EVENT_MARK;
}

/* Returns whether a span is written as a pair: in a recording, if it would not nest; in a trace of a file, if it was a pair
 * there. Steps and other ranges that are not asynchronous are always one row, because readers look for them only among complete
 * events. */
static bool is_pair(const struct ops_chrome_rows *rows, size_t row)
{
	bool async = rows->events->flags[row] & OPS_EVENT_ASYNC;

	if (chrome_rows_is_instant(rows, row))
		return false;
	if (rows->was_read)
		return async;
	return ops_bit(rows->overlaps, row) && (async || rows->events->kind[row] != OPS_EVENT_USER_ANNOTATION);
}

/* Returns whether the arguments stored as text begin with the id that torch assigns if an observer requests it. */
static bool has_record_id(const struct ops_chrome_rows *rows, size_t row)
{
	static const char key[] = "\"Record function id\":";
	const uint32_t *extra = rows->events->extra;
	struct ops_string text;

	if (!extra || extra[row] == OPS_NONE)
		return false;
	text = ops_trace_string(rows->trace, extra[row]);
	return text.size >= sizeof(key) - 1 && memcmp(text.bytes, key, sizeof(key) - 1) == 0;
}

/* Writes the args that only spans have, and not instants. */
static char *put_span_args(struct ops_chrome_rows *rows, char *at, size_t row)
{
	const struct ops_events *events = rows->events;
	bool is_python = events->kind[row] == OPS_EVENT_PYTHON_FUNCTION;
	uint64_t id = events->id ? events->id[row] : rows->was_read || is_python ? 0 : row + 1;

	if (id) {
		at = OPS_PUT(at, "\"External id\":");
		at = ops_json_uint_to(at, id);
		*at++ = ',';
	}
	if (events->sequence_nr[row] >= 0) {
		at = OPS_PUT(at, "\"Sequence number\":");
		at = ops_json_int_to(at, events->sequence_nr[row]);
		at = OPS_PUT(at, ",\"Fwd thread id\":");
		at = ops_json_uint_to(at, events->forward_thread[row]);
		*at++ = ',';
	}
	if (!rows->was_read && events->kind[row] <= OPS_EVENT_USER_ANNOTATION && !has_record_id(rows, row))
		at = OPS_PUT(at, "\"Record function id\":0,");
	if (has_overload(rows, row)) {
		at = OPS_PUT(at, "\"Overload Name\":\"");
		at = chrome_rows_put_name(rows, at, events->overload[row]);
		at = OPS_PUT(at, "\",");
	}
	return at;
}

/* A name with invalid UTF-8 is escaped as in json.h; this writes its bytes, each as the character of that number. */
static char *put_raw_name(struct ops_chrome_rows *rows, char *at, uint32_t string)
{
	struct ops_string name = ops_trace_string(rows->trace, string);
	struct ops_buffer characters = {0};
	struct ops_buffer member = {0};

	for (size_t i = 0; i < name.size; i++) {
		uint8_t byte = (uint8_t)name.bytes[i];
		char wide[2] = {(char)(0xc0 | byte >> 6), (char)(0x80 | (byte & 0x3f))};

		ops_buffer_append(&characters, byte < 0x80 ? &name.bytes[i] : wide, byte < 0x80 ? 1 : 2);
	}
	ops_buffer_append_text(&member, "\"Raw name\":");
	ops_json_string(&member, characters.bytes, characters.size);
	ops_buffer_append_text(&member, ",");
	rows->out_of_memory |= characters.failed || member.failed;
	end_row(rows, at);
	ops_sink_write(rows->sink, member.bytes, member.size);
	ops_buffer_release(&characters);
	ops_buffer_release(&member);
	return begin_row(rows);
}

static char *put_number_arg(char *at, const char *key, uint64_t value)
{
	size_t size = strlen(key);

	memcpy(at, key, size);
	at = ops_json_uint_to(at + size, value);
	*at++ = ',';
	return at;
}

/* Writes where the event was called: the file, as in the caller's name, and the line. What a file states is repeated as text. */
static char *put_call_from(struct ops_chrome_rows *rows, char *at, size_t row)
{
	uint32_t line = rows->events->call_line[row];
	struct ops_function_text function;
	struct ops_string json;
	uint32_t caller;

	if (line == 0 || (rows->was_read && ops_event_arg(rows->trace, (uint32_t)row, "CallFrom", &json)))
		return at;
	at = OPS_PUT(at, "\"CallFrom\":\"");
	caller = ops_event_caller(rows->trace, (uint32_t)row);
	if (caller != OPS_NONE) {
		struct ops_string name = ops_fragments_get(&rows->names, rows->events->name[caller]);

		/* Escaping changes a path in the same way as the name that begins with it. */
		if (ops_function_parse(name, &function))
			at = put_fragment(rows, at, (struct ops_string){name.bytes, function.file.size});
	}
	*at++ = ':';
	at = ops_json_uint_to(at, line);
	return OPS_PUT(at, "\",");
}

/* Writes the args of Python calls. */
static char *chrome_rows_put_python_args(struct ops_chrome_rows *rows, char *at, size_t row)
{
	const struct ops_events *events = rows->events;

	if (events->python_parent && events->python_parent[row] != OPS_NONE)
		at = put_number_arg(at, "\"Python parent id\":", events->python_parent[row]);
	if (events->python_id && events->python_id[row] != OPS_NONE)
		at = put_number_arg(at, "\"Python id\":", events->python_id[row]);
	if (events->python_module && events->python_module[row] != OPS_NONE)
		at = put_number_arg(at, "\"Python module id\":", events->python_module[row]);
	if (events->module && events->module[row] != OPS_NONE)
		at = put_number_arg(at, "\"Module\":", events->module[row]);
	if (events->function && events->function[row] != OPS_NONE)
		at = put_number_arg(at, "\"Function\":", events->function[row]);
	return events->call_line ? put_call_from(rows, at, row) : at;
}

/* Writes frames, each followed by ';', innermost first. There may be thousands, so each one requests new room. */
static char *put_call_stack(struct ops_chrome_rows *rows, char *at, uint32_t caller)
{
	if (caller == OPS_NONE)
		return at;
	at = OPS_PUT(at, "\"Call stack\":\"");
	for (; caller != OPS_NONE; caller = rows->callers[caller]) {
		at = chrome_rows_put_name(rows, at, rows->events->name[caller]);
		*at++ = ';';
		end_row(rows, at);
		at = begin_row(rows);
	}
	return OPS_PUT(at, "\",");
}

/* Writes frames that are stored as a string. */
static char *put_call_stack_text(struct ops_chrome_rows *rows, char *at, uint32_t stack)
{
	at = OPS_PUT(at, "\"Call stack\":\"");
	at = chrome_rows_put_name(rows, at, stack);
	return OPS_PUT(at, "\",");
}

/* Writes the further args of the event's file, and what was recorded as text. */
static char *put_file_args(struct ops_chrome_rows *rows, char *at, size_t row)
{
	const struct ops_events *events = rows->events;

	if (events->correlation && events->correlation[row] >= 0)
		at = put_number_arg(at, "\"correlation\":", (uint64_t)events->correlation[row]);
	if (events->call_stack && events->call_stack[row] != OPS_NONE)
		at = put_call_stack_text(rows, at, events->call_stack[row]);
	else if (rows->callers)
		at = put_call_stack(rows, at, rows->callers[row]);
	if (events->extra && events->extra[row] != OPS_NONE) {
		at = put_long(rows, at, ops_trace_string(rows->trace, events->extra[row]));
		*at++ = ',';
	}
	return at;
}

/* Writes what Kineto's conventions cannot express: that a range is asynchronous or (in a pair) is not, where it ended, and a
 * scope that does not follow from the kind. */
static char *put_own_args(struct ops_chrome_rows *rows, char *at, size_t row)
{
	const struct ops_events *events = rows->events;
	bool async = events->flags[row] & OPS_EVENT_ASYNC;

	if (async != is_pair(rows, row))
		at = async ? OPS_PUT(at, "\"Async\":true,") : OPS_PUT(at, "\"Async\":false,");
	if (events->end_track && events->end_track[row] != events->track[row])
		at = put_number_arg(at, "\"End track\":", events->end_track[row]);
	if (events->scope[row] != (events->kind[row] == OPS_EVENT_USER_ANNOTATION ? SCOPE_USER : 0))
		at = put_number_arg(at, "\"Scope\":", events->scope[row]);
	return at;
}

/* Returns whether the arguments stored as text include the inputs. Then the input list is incomplete. */
static bool has_inputs_text(const struct ops_chrome_rows *rows, size_t row)
{
	static const char *const keys[] = {"\"Input Dims\":", "\"Input dims\":", "\"Input type\":", "\"Input Strides\":",
	                                   "\"Concrete Inputs\":"};
	const uint32_t *extra = rows->events->extra;
	struct ops_string text;

	if (!extra || extra[row] == OPS_NONE)
		return false;
	text = ops_trace_string(rows->trace, extra[row]);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (text.size >= strlen(keys[i]) && memcmp(text.bytes, keys[i], strlen(keys[i])) == 0)
			return true;
	return false;
}

static char *put_args(struct ops_chrome_rows *rows, char *at, size_t row)
{
	const struct ops_events *events = rows->events;

	at = OPS_PUT(at, ",\"args\":{");
	if (rows->was_read || events->kind[row] != OPS_EVENT_CPU_INSTANT)
		at = put_span_args(rows, at, row);
	at = put_own_args(rows, at, row);
	at = chrome_rows_put_python_args(rows, at, row);
	at = put_file_args(rows, at, row);
	if (events->inputs[row] != OPS_NONE && !has_inputs_text(rows, row))
		at = put_fragment(rows, at, ops_fragments_get(&rows->inputs, events->inputs[row]));
	if (events->storages && events->storages[row] != OPS_NONE)
		at = put_long(rows, at, ops_chrome_row_storages(&rows->storages, rows->trace, (uint32_t)row));
	if (events->args && events->args[row] != OPS_NONE) {
		at = OPS_PUT(at, "\"Args\":\"");
		at = chrome_rows_put_name(rows, at, events->args[row]);
		at = OPS_PUT(at, "\",");
	}
	if (rows->ill_formed && ops_bit(rows->ill_formed, events->name[row]))
		at = put_raw_name(rows, at, events->name[row]);
	if (events->flags[row] & OPS_EVENT_UNFINISHED)
		at = OPS_PUT(at, "\"finished\":false,");
	if (events->flags[row] & OPS_EVENT_CUT)
		at = OPS_PUT(at, "\"cut\":true,");
	at = OPS_PUT(at, "\"Ev Idx\":");
	at = ops_json_uint_to(at, row);
	return OPS_PUT(at, "}}");
}

static void chrome_rows_write_span(struct ops_chrome_rows *rows, size_t row)
{
	const struct ops_events *events = rows->events;
	char *at = chrome_rows_put_head(rows, begin_row(rows), row, 'X', events->start_ns[row]);

	at = OPS_PUT(at, ",\"dur\":");
	at = ops_json_us_to(at, events->end_ns[row] - events->start_ns[row]);
	end_row(rows, put_args(rows, at, row));
}

static void write_instant(struct ops_chrome_rows *rows, size_t row)
{
	char *at = chrome_rows_put_head(rows, begin_row(rows), row, 'i', rows->events->start_ns[row]);

	at = rows->events->kind[row] == OPS_EVENT_MARK ? OPS_PUT(at, ",\"s\":\"g\"") : OPS_PUT(at, ",\"s\":\"t\"");
	end_row(rows, put_args(rows, at, row));
}

/* Writes an event that overlaps others of its thread as an asynchronous pair, which viewers show on a separate row. */
static void write_pair(struct ops_chrome_rows *rows, size_t row)
{
	const struct ops_events *events = rows->events;
	char *at = chrome_rows_put_head(rows, begin_row(rows), row, 'b', events->start_ns[row]);

	at = OPS_PUT(at, ",\"id\":");
	at = ops_json_uint_to(at, row + 1);
	end_row(rows, put_args(rows, at, row));
	at = chrome_rows_put_head(rows, begin_row(rows), row, 'e', events->end_ns[row]);
	at = OPS_PUT(at, ",\"id\":");
	at = ops_json_uint_to(at, row + 1);
	end_row(rows, OPS_PUT(at, "}"));
}

static void chrome_rows_write_event(struct ops_chrome_rows *rows, size_t row)
{
	if (chrome_rows_is_instant(rows, row))
		write_instant(rows, row);
	else if (is_pair(rows, row))
		write_pair(rows, row);
	else
		chrome_rows_write_span(rows, row);
}

void ops_chrome_write_events(struct ops_chrome_rows *rows)
{
	for (size_t row = 0; row < rows->events->count && chrome_rows_go_on(rows, row); row++)
		chrome_rows_write_event(rows, row);
}

/* --- memory, counters, flows --------------------------------------------------------------------------------------- */

/* The open events at the current memory record. Records and events are both in order of time. */
struct open_events {
	uint32_t *innermost; /* by track: the innermost open event; OPS_NONE: none */
	size_t next;         /* next row to open */
};

/* Returns the innermost open Python function on a record's track. */
static uint32_t caller_of_record(const struct ops_chrome_rows *rows, struct open_events *open,
                                 const struct ops_memory_record *record)
{
	const struct ops_events *events = rows->events;
	uint32_t row;

	for (; open->next < events->count && events->start_ns[open->next] <= record->time_ns; open->next++)
		if (!(events->flags[open->next] & (OPS_EVENT_ASYNC | OPS_EVENT_HIDDEN)))
			open->innermost[events->track[open->next]] = (uint32_t)open->next;
	row = open->innermost[record->track];
	while (row != OPS_NONE && events->end_ns[row] < record->time_ns)
		row = events->parent[row];
	open->innermost[record->track] = row;
	return row == OPS_NONE || events->kind[row] == OPS_EVENT_PYTHON_FUNCTION ? row : rows->callers[row];
}

static void write_memory_record(struct ops_chrome_rows *rows, const struct ops_memory_record *record, size_t index,
                                uint32_t caller)
{
	const uint32_t *stacks = ops_trace_memory_stacks(rows->trace);
	char *at = begin_row(rows);

	if (record->out_of_memory)
		at = OPS_PUT(at, ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[OutOfMemory]");
	else
		at = OPS_PUT(at, ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]");
	at = chrome_rows_put_place(rows, at, record->track, record->time_ns);
	at = OPS_PUT(at, ",\"args\":{\"Total Reserved\":");
	at = ops_json_uint_to(at, record->total_reserved);
	at = OPS_PUT(at, ",\"Total Allocated\":");
	at = ops_json_uint_to(at, record->total_allocated);
	at = OPS_PUT(at, ",\"Bytes\":");
	at = ops_json_int_to(at, record->bytes);
	at = OPS_PUT(at, ",\"Device Id\":");
	at = ops_json_int_to(at, record->device_index);
	at = OPS_PUT(at, ",\"Device Type\":");
	at = ops_json_uint_to(at, record->device_type);
	if (!record->out_of_memory) {
		at = OPS_PUT(at, ",\"Addr\":");
		at = ops_json_uint_to(at, record->address);
	}
	*at++ = ',';
	if (stacks && stacks[index] != OPS_NONE)
		at = put_call_stack_text(rows, at, stacks[index]);
	else
		at = put_call_stack(rows, at, caller);
	at = OPS_PUT(at, "\"Ev Idx\":");
	at = ops_json_uint_to(at, rows->events->count + index);
	end_row(rows, OPS_PUT(at, "}}"));
}

void ops_chrome_write_memory(struct ops_chrome_rows *rows)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(rows->trace, &count);
	struct open_events open = {0};

	if (rows->callers && count > 0) {
		size_t tracks;

		ops_trace_tracks(rows->trace, &tracks);
		open.innermost = ops_realloc_array(NULL, tracks, sizeof(*open.innermost));
		rows->out_of_memory = rows->out_of_memory || !open.innermost;
		if (open.innermost)
			memset(open.innermost, 0xff, tracks * sizeof(*open.innermost));
	}
	for (size_t i = 0; i < count && chrome_rows_go_on(rows, i); i++)
		write_memory_record(rows, &records[i], i,
		                    open.innermost ? caller_of_record(rows, &open, &records[i]) : OPS_NONE);
	ops_free(open.innermost);
}

/* JSON has no representation for these; viewers and float() accept strings. */
static char *chrome_rows_put_value(char *at, double value)
{
	if (isnan(value))
		return OPS_PUT(at, "\"NaN\"");
	if (isinf(value))
		return value < 0 ? OPS_PUT(at, "\"-Infinity\"") : OPS_PUT(at, "\"Infinity\"");
	return ops_json_double_to(at, value);
}

void ops_chrome_write_counters(struct ops_chrome_rows *rows)
{
	size_t count;
	const struct ops_counter_record *records = ops_trace_counters(rows->trace, &count);

	for (size_t i = 0; i < count && chrome_rows_go_on(rows, i); i++) {
		char *at = OPS_PUT(begin_row(rows), ",\n{\"ph\":\"C\",\"name\":\"");

		at = chrome_rows_put_name(rows, at, records[i].name);
		at = chrome_rows_put_place(rows, at, records[i].track, records[i].time_ns);
		at = OPS_PUT(at, ",\"args\":{\"");
		at = records[i].series ? chrome_rows_put_name(rows, at, records[i].series) : OPS_PUT(at, "value");
		at = OPS_PUT(at, "\":");
		at = chrome_rows_put_value(at, records[i].value);
		end_row(rows, OPS_PUT(at, "}}"));
	}
}

/* A dependency starts at the end of its work, still inside it; others start at the start of their slice, which binds them to it. */
static int64_t arrow_time(const struct ops_chrome_rows *rows, const struct ops_link *link, uint32_t row)
{
	int64_t start_ns = rows->events->start_ns[row], end_ns = rows->events->end_ns[row];

	return link->kind == OPS_LINK_DEPENDENCY && row == link->from && end_ns > start_ns ? end_ns - 1 : start_ns;
}

/* Category and name are the same at both ends. Links of a file, and those to device work, name their event, because it may not be
 * the only one at their time and thread. */
static char *put_arrow_end(struct ops_chrome_rows *rows, char *at, const struct ops_link *link, uint64_t id, uint32_t row)
{
	static const char *const names[] = {"fwdbwd", "ac2g", "", "ac2g"};
	const char *name = names[link->kind];

	at = OPS_PUT(at, ",\"cat\":\"");
	for (int i = 0; i < 2; i++) {
		if (i)
			at = OPS_PUT(at, "\",\"name\":\"");
		if (link->category != OPS_NONE)
			at = chrome_rows_put_name(rows, at, link->category);
		else
			at = (char *)memcpy(at, name, strlen(name)) + strlen(name);
	}
	at = chrome_rows_put_place(rows, at, rows->events->track[row], arrow_time(rows, link, row));
	at = OPS_PUT(at, ",\"id\":");
	at = ops_json_uint_to(at, id);
	if (rows->was_read || link->kind != OPS_LINK_FORWARD_BACKWARD) {
		at = OPS_PUT(at, ",\"args\":{\"Ev Idx\":");
		at = ops_json_uint_to(at, row);
		*at++ = '}';
	}
	return at;
}

/* For example, from forward operators to their backward nodes. */
void ops_chrome_write_links(struct ops_chrome_rows *rows)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(rows->trace, &count);
	uint32_t *numbers = ops_realloc_array(NULL, count + 1, sizeof(*numbers));

	rows->out_of_memory |= !numbers || !ops_trace_number_links(rows->trace, numbers);
	for (size_t i = 0; i < count && !rows->out_of_memory && chrome_rows_go_on(rows, i); i++) {
		char *at;
		uint64_t id = numbers[i] + (links[i].kind == OPS_LINK_DEPENDENCY ? OPS_DEPENDENCY_ARROWS : 0);

		if (links[i].kind == OPS_LINK_FORWARD_BACKWARD && rows->options->no_forward_backward)
			continue;
		at = OPS_PUT(begin_row(rows), ",\n{\"ph\":\"s\"");
		at = put_arrow_end(rows, at, &links[i], id, links[i].from);
		at = OPS_PUT(at, "},\n{\"ph\":\"f\",\"bp\":\"e\"");
		at = put_arrow_end(rows, at, &links[i], id, links[i].to);
		end_row(rows, OPS_PUT(at, "}"));
	}
	ops_free(numbers);
}

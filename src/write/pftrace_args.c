/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of an event as debug annotations of Perfetto, under the names that they have in Chrome traces. Values stored as
 * JSON (inputs, and further arguments of a file) are written as JSON, unless they are numbers or Booleans.
 */
#include "write/pftrace.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "trace/inputs.h"
#include "trace/pftrace_fields.h"
#include "base/protobuf.h"

#define SCOPE_USER 7 /* at::RecordScope */
#define INTEGER_DIGITS_MAX 18

void ops_pf_put_text(struct ops_buffer *out, uint32_t field, struct ops_string text)
{
	const char *at = text.bytes, *end = ops_string_end(text);
	struct ops_buffer fixed = {0};

	if (ops_utf8_valid(text.bytes, text.size)) {
		ops_pb_bytes(out, field, text.bytes, text.size);
		return;
	}
	while (at < end) {
		size_t size = ops_utf8_length(at, end);
		ops_buffer_append(&fixed, size ? at : "\xef\xbf\xbd", size ? size : 3);
		at += size ? size : 1;
	}
	ops_pb_message(out, field, &fixed);
	ops_buffer_release(&fixed);
}

static void put_string(struct ops_buffer *event, struct ops_buffer *scratch, const char *name, struct ops_string text)
{
	ops_pb_text(scratch, ANNOTATION_NAME, name);
	ops_pf_put_text(scratch, ANNOTATION_TEXT, text);
	ops_pb_message(event, EVENT_ANNOTATION, scratch);
}

void ops_pf_put_int(struct ops_buffer *event, struct ops_buffer *scratch, const char *name, int64_t value)
{
	ops_pb_text(scratch, ANNOTATION_NAME, name);
	ops_pb_uint(scratch, ANNOTATION_INT, (uint64_t)value);
	ops_pb_message(event, EVENT_ANNOTATION, scratch);
}

void ops_pf_put_bool(struct ops_buffer *event, struct ops_buffer *scratch, const char *name, bool value)
{
	ops_pb_text(scratch, ANNOTATION_NAME, name);
	ops_pb_uint(scratch, ANNOTATION_BOOL, value);
	ops_pb_message(event, EVENT_ANNOTATION, scratch);
}

static bool is_integer(struct ops_string json)
{
	size_t first = json.size && json.bytes[0] == '-';

	for (size_t i = first; i < json.size; i++)
		if (json.bytes[i] < '0' || json.bytes[i] > '9')
			return false;
	return json.size > first && json.size <= INTEGER_DIGITS_MAX;
}

void ops_pf_put_json(struct ops_buffer *event, struct ops_buffer *scratch, struct ops_string name, struct ops_string json)
{
	char digits[INTEGER_DIGITS_MAX + 1];

	ops_pf_put_text(scratch, ANNOTATION_NAME, name);
	if (is_integer(json)) {
		memcpy(digits, json.bytes, json.size);
		digits[json.size] = '\0';
		ops_pb_uint(scratch, ANNOTATION_INT, (uint64_t)strtoll(digits, NULL, 10));
	} else if (ops_string_is(json, "true") || ops_string_is(json, "false")) {
		ops_pb_uint(scratch, ANNOTATION_BOOL, json.size == strlen("true"));
	} else {
		ops_pf_put_text(scratch, ANNOTATION_JSON, json);
	}
	ops_pb_message(event, EVENT_ANNOTATION, scratch);
}

/* Returns the end of the JSON string that begins at `at`: the position after its quote. */
static const char *pftrace_args_skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\' && at + 1 < end;
	return at < end ? at + 1 : end;
}

/* Returns the end of the JSON value at `at`: the comma before the next member, or `end`. */
static const char *pftrace_args_skip_value(const char *at, const char *end)
{
	int depth = 0;

	while (at < end && (depth > 0 || *at != ',')) {
		if (*at == '"') {
			at = pftrace_args_skip_string(at, end);
			continue;
		}
		depth += *at == '[' || *at == '{';
		depth -= *at == ']' || *at == '}';
		at++;
	}
	return at;
}

/* Appends annotations for the members of a JSON object without its braces; the text must be valid. */
static void put_members(struct ops_buffer *event, struct ops_buffer *scratch, const char *at, size_t size)
{
	const char *end = ops_bytes_end(at, size);

	while (at < end) {
		const char *name = at, *value, *after;

		if (*at != '"') { /* a comma or space */
			at++;
			continue;
		}
		value = pftrace_args_skip_string(at, end);
		while (value < end && *value != ':')
			value++;
		for (value += value < end; value < end && *value == ' ';)
			value++;
		after = pftrace_args_skip_value(value, end);
		ops_pf_put_json(event, scratch,
		                (struct ops_string){name + 1, (size_t)(pftrace_args_skip_string(name, end) - name) - 2},
		                (struct ops_string){value, (size_t)(after - value)});
		at = after;
	}
}

static void pftrace_args_make_inputs(struct ops_buffer *out, const struct ops_trace *trace, uint32_t id)
{
	struct ops_buffer json = {0}, scratch = {0};

	ops_inputs_json_args(&json, ops_trace_inputs(trace, id));
	if (!json.failed)
		put_members(out, &scratch, json.bytes, json.size);
	out->failed |= json.failed;
	ops_buffer_release(&json);
	ops_buffer_release(&scratch);
}

bool ops_pf_args_init(struct ops_pf_args *args, const struct ops_trace *trace)
{
	args->trace = trace;
	args->events = ops_trace_events(trace);
	args->was_read = args->events->index != NULL;
	return ops_fragments_init(&args->inputs, trace, ops_trace_inputs_count(trace), pftrace_args_make_inputs);
}

void ops_pf_args_release(struct ops_pf_args *args)
{
	ops_fragments_release(&args->inputs);
	ops_buffer_release(&args->scratch);
}

static void put_id_column(struct ops_pf_args *args, struct ops_buffer *event, const char *name, const uint32_t *column,
                          uint32_t row)
{
	if (column && column[row] != OPS_NONE)
		ops_pf_put_int(event, &args->scratch, name, column[row]);
}

void ops_pf_put_string_column(struct ops_pf_args *args, struct ops_buffer *event, const char *name, const uint32_t *column,
                              size_t row)
{
	if (column && column[row] != OPS_NONE)
		put_string(event, &args->scratch, name, ops_trace_string(args->trace, column[row]));
}

static void pftrace_args_put_python_args(struct ops_pf_args *args, struct ops_buffer *event, uint32_t row)
{
	const struct ops_events *events = args->events;

	put_id_column(args, event, "Python parent id", events->python_parent, row);
	put_id_column(args, event, "Python id", events->python_id, row);
	put_id_column(args, event, "Python module id", events->python_module, row);
	if (events->call_line && events->call_line[row])
		ops_pf_put_int(event, &args->scratch, "Call line", events->call_line[row]);
}

void ops_pf_put_args(struct ops_pf_args *args, struct ops_buffer *event, uint32_t row)
{
	const struct ops_events *events = args->events;
	bool is_python = events->kind[row] == OPS_EVENT_PYTHON_FUNCTION;
	uint64_t id = events->id ? events->id[row] : args->was_read || is_python ? 0 : row + 1;
	struct ops_string text;

	if (id)
		ops_pf_put_int(event, &args->scratch, "External id", (int64_t)id);
	if (events->sequence_nr[row] >= 0) {
		ops_pf_put_int(event, &args->scratch, "Sequence number", events->sequence_nr[row]);
		ops_pf_put_int(event, &args->scratch, "Fwd thread id", events->forward_thread[row]);
	}
	pftrace_args_put_python_args(args, event, row);
	if (events->correlation && events->correlation[row] >= 0)
		ops_pf_put_int(event, &args->scratch, "correlation", events->correlation[row]);
	ops_pf_put_string_column(args, event, "Call stack", events->call_stack, row);
	ops_pf_put_string_column(args, event, "Args", events->args, row);
	if (events->inputs[row] != OPS_NONE) {
		text = ops_fragments_get(&args->inputs, events->inputs[row]);
		ops_buffer_append(event, text.bytes, text.size);
	}
	if (events->extra && events->extra[row] != OPS_NONE) {
		text = ops_trace_string(args->trace, events->extra[row]);
		put_members(event, &args->scratch, text.bytes, text.size);
	}
	if (events->scope[row] != (events->kind[row] == OPS_EVENT_USER_ANNOTATION ? SCOPE_USER : 0))
		ops_pf_put_int(event, &args->scratch, "Scope", events->scope[row]);
	if (events->flags[row] & OPS_EVENT_UNFINISHED)
		ops_pf_put_bool(event, &args->scratch, "finished", false);
	if (events->flags[row] & OPS_EVENT_CUT)
		ops_pf_put_bool(event, &args->scratch, "cut", true);
}

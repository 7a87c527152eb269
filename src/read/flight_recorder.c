/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps of the flight recorder of torch.distributed (NCCL, Gloo and others; TORCH_FR_BUFFER_SIZE), pickles of a dict whose
 * `entries` are collective operations: {profiling_name, process_group, time_created_ns, time_discovered_completed_ns,
 * duration_ms, state, input_sizes, frames, …}. Each becomes a range of Chrome JSON on the track of its process group, from its
 * enqueuing to the detection of its completion; if that was never detected, the range does not end.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/text.h"
#include "read/frame_text.h"
#include "read/pickle.h"
#include "read/transcode.h"

/* The records that containers become. Numbers are string ids of the builder. */
enum record_type {
	UNKNOWN,
	FRAME, /* "train.py(12): step;" */
	STACK, /* frames one after another */
	LIST,  /* JSON text of a list of integers, texts or lists of them */
	ENTRY,
	DUMP,
};

struct flight_recorder {
	struct pickle_visitor visitor; /* the first member, because its functions receive it */
	struct ops_transcoder transcoder;
	struct ops_reading *in;
	struct ops_buffer rows; /* Chrome JSON */
	struct ops_buffer scratch;
	uint64_t entries;
	bool is_given;
};

static struct ops_string string_of(const struct flight_recorder *f, uint32_t id)
{
	return ops_builder_text(f->in->builder, id);
}

static struct ops_string member_text(const struct pickle_dict *dict, const char *name)
{
	return ops_builder_text(dict->in->builder, pickle_find_text(dict, name));
}

/* Makes the contents of the scratch buffer the record of a container. */
static enum ops_code keep_scratch(struct flight_recorder *f, enum record_type type, struct pickle_value *so_far)
{
	uint32_t id = f->scratch.failed ? OPS_NONE : ops_builder_string(f->in->builder, ops_buffer_text(&f->scratch), f->scratch.size);

	*so_far = (struct pickle_value){.kind = PICKLE_RECORD, .type = type, .number = id};
	return id == OPS_NONE ? ops_fault_memory(f->in->error) : OPS_OK;
}

/* --- lists ---------------------------------------------------------------------------------------------------------- */

static void put_item(struct flight_recorder *f, const struct pickle_value *item)
{
	struct ops_string text;

	if (item->kind == PICKLE_INTEGER) {
		ops_buffer_append_int(&f->scratch, item->integer);
		return;
	}
	text = item->kind == PICKLE_TEXT || (item->kind == PICKLE_RECORD && item->type == LIST) ? string_of(f, item->number)
	                                                                                        : (struct ops_string){"", 0};
	if (item->kind == PICKLE_TEXT)
		ops_json_string(&f->scratch, text.bytes, text.size);
	else if (text.size)
		ops_buffer_append(&f->scratch, text.bytes, text.size);
	else
		ops_buffer_append_text(&f->scratch, "[]");
}

/* Combines a list that comes in parts. */
static enum ops_code flight_on_list(struct pickle_visitor *visitor, const struct pickle_value *items, size_t count,
                                    struct pickle_value *so_far)
{
	struct flight_recorder *f = (struct flight_recorder *)(void *)visitor;
	bool is_stack = count && items[0].kind == PICKLE_RECORD && items[0].type == FRAME;
	struct ops_string before = so_far->type == STACK || so_far->type == LIST ? string_of(f, so_far->number) : (struct ops_string){"", 0};

	f->scratch.size = 0;
	if (is_stack) {
		ops_buffer_append(&f->scratch, before.bytes, before.size);
		for (size_t i = 0; i < count; i++)
			if (items[i].kind == PICKLE_RECORD && items[i].type == FRAME)
				ops_buffer_append(&f->scratch, string_of(f, items[i].number).bytes, string_of(f, items[i].number).size);
		return keep_scratch(f, STACK, so_far);
	}
	if (before.size)
		ops_buffer_append(&f->scratch, before.bytes, before.size - 1);
	else
		ops_buffer_append_text(&f->scratch, "[");
	for (size_t i = 0; i < count; i++) {
		ops_buffer_append_text(&f->scratch, f->scratch.size > 1 ? "," : "");
		put_item(f, &items[i]);
	}
	ops_buffer_append_text(&f->scratch, "]");
	return keep_scratch(f, LIST, so_far);
}

/* --- dicts ---------------------------------------------------------------------------------------------------------- */

static enum ops_code flight_add_frame(struct flight_recorder *f, const struct pickle_dict *dict, struct pickle_value *so_far)
{
	struct ops_string name = member_text(dict, "name"), file = member_text(dict, "filename");
	int64_t line;

	pickle_find_integer(dict, "line", &line);
	f->scratch.size = 0;
	ops_put_frame(&f->scratch, file, line > 0 && line < INT32_MAX ? (uint32_t)line : 0, name);
	ops_buffer_append_text(&f->scratch, ";");
	return keep_scratch(f, FRAME, so_far);
}

static void put_list_arg(struct flight_recorder *f, const struct pickle_dict *dict, const char *name, const char *key)
{
	const struct pickle_value *value = pickle_find(dict, name);

	if (!value || value->kind != PICKLE_RECORD || value->type != LIST)
		return;
	ops_buffer_printf(&f->rows, ",\"%s\":", key);
	ops_buffer_append(&f->rows, string_of(f, value->number).bytes, string_of(f, value->number).size);
}

static void flight_put_args(struct flight_recorder *f, const struct pickle_dict *dict)
{
	static const char *const numbers[] = {"collective_seq_id", "p2p_seq_id", "op_id", "record_id", "timeout_ms"};
	const struct pickle_value *stack = pickle_find(dict, "frames");
	int64_t number;

	ops_buffer_append_text(&f->rows, ",\"args\":{\"state\":");
	ops_json_string(&f->rows, member_text(dict, "state").bytes, member_text(dict, "state").size);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (pickle_find_integer(dict, numbers[i], &number))
			ops_buffer_printf(&f->rows, ",\"%s\":%" PRId64, numbers[i], number);
	put_list_arg(f, dict, "input_sizes", "Input Dims");
	put_list_arg(f, dict, "input_dtypes", "input_dtypes");
	put_list_arg(f, dict, "output_sizes", "output_sizes");
	put_list_arg(f, dict, "process_group", "process_group");
	if (stack && stack->kind == PICKLE_RECORD && stack->type == STACK)
		ops_put_text_member(&f->rows, "Call stack", string_of(f, stack->number));
	ops_buffer_append_text(&f->rows, "}");
}

/* Finds the end of an operation: when it was detected, or from its duration, or (retired) its start. Returns false if it has not
 * ended. */
static bool find_end(const struct pickle_dict *dict, int64_t start_ns, int64_t *ret_end_ns)
{
	const struct pickle_value *duration = pickle_find(dict, "duration_ms"), *retired = pickle_find(dict, "retired");

	*ret_end_ns = start_ns;
	if (duration && duration->kind == PICKLE_REAL && duration->real >= 0 && duration->real < 1e9) {
		*ret_end_ns = start_ns + (int64_t)(duration->real * 1e6);
		return true;
	}
	if (pickle_find_integer(dict, "time_discovered_completed_ns", ret_end_ns))
		return true;
	*ret_end_ns = start_ns;
	return ops_string_is(member_text(dict, "state"), "completed") || (retired && retired->kind == PICKLE_BOOL && retired->integer);
}

static enum ops_code flight_add_entry(struct flight_recorder *f, const struct pickle_dict *dict, struct pickle_value *so_far)
{
	struct ops_string name = member_text(dict, "profiling_name");
	int64_t start_ns, end_ns, group;
	bool ended;

	*so_far = (struct pickle_value){.kind = PICKLE_RECORD, .type = ENTRY};
	pickle_find_integer(dict, "time_created_ns", &start_ns);
	pickle_find_integer(dict, "pg_id", &group);
	if (start_ns < 0 || start_ns > OPS_TIME_MAX_NS)
		return ops_reading_fault(f->in, f->in->window.at, "an invalid time");
	ended = find_end(dict, start_ns, &end_ns);
	ops_buffer_append_text(&f->rows, f->entries++ ? ",\n{\"name\":" : "{\"name\":");
	ops_json_string(&f->rows, name.bytes, name.size);
	ops_buffer_printf(&f->rows, ",\"cat\":\"user_annotation\",\"ph\":\"%s\",\"pid\":0,\"tid\":%" PRId64, ended ? "X" : "B", group);
	ops_put_time_member(&f->rows, "ts", start_ns);
	if (ended)
		ops_put_time_member(&f->rows, "dur", end_ns > start_ns ? end_ns - start_ns : 0);
	flight_put_args(f, dict);
	ops_buffer_append_text(&f->rows, "}");
	f->in->events = f->entries;
	return f->rows.failed ? ops_fault_memory(f->in->error) : OPS_OK;
}

static enum ops_code flight_on_dict(struct pickle_visitor *visitor, const struct pickle_value *pairs, size_t count,
                                    struct pickle_value *so_far)
{
	struct flight_recorder *f = (struct flight_recorder *)(void *)visitor;
	const struct pickle_dict dict = {f->in, pairs, count};

	if (pickle_find(&dict, "profiling_name"))
		return flight_add_entry(f, &dict, so_far);
	if (pickle_find(&dict, "filename"))
		return flight_add_frame(f, &dict, so_far);
	if (pickle_find(&dict, "entries"))
		*so_far = (struct pickle_value){.kind = PICKLE_RECORD, .type = DUMP};
	return OPS_OK;
}

/* Returns all rows at once: dumps are small, because the recorder's buffer is a ring. */
static enum ops_code flight_recorder_write_rows(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct flight_recorder *f = (struct flight_recorder *)(void *)((char *)transcoder - offsetof(struct flight_recorder, transcoder));

	if (f->is_given)
		return OPS_OK;
	f->is_given = true;
	ops_buffer_append_text(text, "{\"traceEvents\":[");
	ops_buffer_append(text, ops_buffer_text(&f->rows), f->rows.size);
	ops_buffer_append_text(text, "]}");
	return OPS_OK;
}

enum ops_code ops_read_flight_recorder(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct flight_recorder f = {.visitor = {flight_on_dict, flight_on_list}, .transcoder = {flight_recorder_write_rows}, .in = reading};
	struct pickle_value top;
	enum ops_code code = pickle_read(reading, &f.visitor, &top);

	if (!code && (top.kind != PICKLE_RECORD || top.type != DUMP))
		code = ops_fault(reading->error, OPS_CORRUPT, "a Python pickle, but not a dump of torch's flight recorder");
	if (!code)
		code = ops_read_transcoded(reading, &f.transcoder, ret_trace);
	ops_buffer_release(&f.rows);
	ops_buffer_release(&f.scratch);
	return code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution traces of MLCommons Chakra (`.et`): protocol buffers, each preceded by its length as a varint. Operators, annotations and
 * device work are nodes, numbered in the order in which they begin:
 *
 *     control dependency     the enclosing node on its thread; of device work, the operator that launched it
 *     data dependency        the node before it on its stream
 *
 * Calls of the runtime, Python functions, memory and counters are omitted. Times are microseconds.
 */
#include <opstrobe/write.h>

#include <string.h>

#include <opstrobe/inputs.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/protobuf.h"
#include "base/sink.h"
#include "base/text.h"
#include "derive/captures.h"
#include "derive/messages.h"
#include "derive/work.h"
#include "trace/chakra_fields.h"
#include "trace/inputs.h"
#include "trace/kinds.h"

#define CHAKRA_FLUSH_BYTES (64 << 10)

struct chakra_writer {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_track *tracks;
	const uint32_t *origins;
	uint32_t *last; /* by track: the last device work; OPS_NONE: none yet */
	bool has_times;
	struct ops_sink *sink;
	struct ops_buffer out, node, part, inner, text;
};

static uint64_t node_id(uint32_t row)
{
	return (uint64_t)row + 1;
}

static bool is_host_row(const struct chakra_writer *w, uint32_t row)
{
	uint8_t kind = w->events->kind[row];

	return (kind == OPS_EVENT_CPU_OP || kind == OPS_EVENT_USER_ANNOTATION) && !(w->events->flags[row] & OPS_EVENT_HIDDEN);
}

/* --- attributes ----------------------------------------------------------------------------------------------------- */

static void chakra_write_number(struct chakra_writer *w, const char *name, uint32_t field, int64_t value)
{
	ops_pb_text(&w->part, ATTRIBUTE_NAME, name);
	ops_pb_uint(&w->part, field, (uint64_t)value);
	ops_pb_message(&w->node, NODE_ATTRIBUTE, &w->part);
}

static void chakra_write_text(struct chakra_writer *w, const char *name, struct ops_string value)
{
	ops_pb_text(&w->part, ATTRIBUTE_NAME, name);
	ops_pb_bytes(&w->part, ATTRIBUTE_TEXT, value.bytes, value.size);
	ops_pb_message(&w->node, NODE_ATTRIBUTE, &w->part);
}

/* Writes arguments of the event under their names in Chakra. */
static void chakra_write_arguments(struct chakra_writer *w, uint32_t row)
{
	static const struct {
		const char *key, *name;
		bool is_text;
	} known[] = {
		{"Record function id", "rf_id", false},
		{"Process Group Name", "pg_name", true},
		{"Process Group Description", "pg_desc", true},
		{"Group size", "pg_size", false},
		{"kernel_backend", "kernel_backend", true},
		{"kernel_file", "kernel_file", true},
	};
	struct ops_string json;
	int64_t number;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!ops_event_arg(w->trace, row, known[i].key, &json))
			continue;
		if (known[i].is_text) {
			w->text.size = 0;
			ops_json_decode_value(&w->text, json);
			chakra_write_text(w, known[i].name, (struct ops_string){w->text.bytes, w->text.size});
		} else if (ops_json_parse_integer(json, &number) && number >= 0) {
			chakra_write_number(w, known[i].name, ATTRIBUTE_UINT64, number);
		}
	}
}

/* --- inputs --------------------------------------------------------------------------------------------------------- */

static const char *scalar_type(uint8_t tag)
{
	return tag == OPS_INPUT_INT ? "Int" : tag == OPS_INPUT_BOOL ? "Bool" : tag == OPS_INPUT_DOUBLE ? "Double" : "None";
}

static void chakra_put_item_type(struct ops_buffer *out, const struct ops_input *item)
{
	if (ops_input_is_tensor(item->tag))
		ops_buffer_printf(out, "Tensor(%s)", ops_input_type_name(item));
	else
		ops_buffer_append_text(out, scalar_type(item->tag));
}

static void chakra_put_input_type(struct ops_buffer *out, const struct ops_input *item)
{
	struct ops_input_cursor cursor = ops_input_items(item);
	struct ops_input inner;
	const char *comma = "";

	if (item->tag != OPS_INPUT_INT_LIST && item->tag != OPS_INPUT_SCALAR_LIST && item->tag != OPS_INPUT_TENSOR_LIST) {
		chakra_put_item_type(out, item);
		return;
	}
	ops_buffer_append_text(out, "GenericList[");
	for (uint16_t i = 0; item->tag == OPS_INPUT_INT_LIST && i < item->n; i++)
		ops_buffer_append_text(out, i ? ",Int" : "Int");
	for (; item->tag != OPS_INPUT_INT_LIST && ops_inputs_next(&cursor, &inner); comma = ",") {
		ops_buffer_append_text(out, comma);
		chakra_put_item_type(out, &inner);
	}
	if (!item->n)
		ops_buffer_append_text(out, "Int");
	ops_buffer_append_text(out, "]");
}

/* Writes a value as torch prints it, with true and false as in JSON. Infinite and complex numbers have no text there. */
static void chakra_put_input_value(struct ops_buffer *out, const struct ops_input *item)
{
	size_t start = out->size;
	bool is_list = item->tag == OPS_INPUT_INT_LIST || item->tag == OPS_INPUT_SCALAR_LIST;

	if (is_list || *scalar_type(item->tag) != 'N')
		ops_input_value_text(out, item);
	for (size_t i = start; i < out->size; i++)
		if (out->bytes[i] == 'T' || out->bytes[i] == 'F')
			out->bytes[i] = (char)(out->bytes[i] + ('a' - 'A'));
	if (out->size == start || memchr(out->bytes + start, 'n', out->size - start) || memchr(out->bytes + start, 'j', out->size - start)) {
		out->size = start;
		ops_buffer_append_text(out, is_list ? "[]" : "null");
	}
}

static void chakra_write_inputs(struct chakra_writer *w, struct ops_string inputs)
{
	struct ops_input_cursor cursor = ops_inputs_open(inputs.bytes, inputs.size);
	struct ops_buffer *values = &w->text, *types = &w->inner;
	struct ops_input item;
	const char *comma = "[";

	values->size = types->size = 0;
	for (; ops_inputs_next(&cursor, &item); comma = ", ") {
		ops_buffer_append_text(values, comma);
		chakra_put_input_value(values, &item);
		ops_buffer_append_text(types, comma);
		ops_buffer_append_text(types, "\"");
		chakra_put_input_type(types, &item);
		ops_buffer_append_text(types, "\"");
	}
	ops_buffer_append_text(values, *comma == '[' ? "[]" : "]");
	ops_buffer_append_text(types, *comma == '[' ? "[]" : "]");
	ops_pb_bytes(&w->part, IO_VALUES, values->bytes, values->size);
	values->size = 0;
	ops_inputs_json_dims(values, inputs);
	ops_pb_bytes(&w->part, IO_SHAPES, values->bytes, values->size);
	ops_pb_bytes(&w->part, IO_TYPES, types->bytes, types->size);
	ops_pb_message(&w->node, NODE_INPUTS, &w->part);
}

/* --- nodes ---------------------------------------------------------------------------------------------------------- */

/* Returns the number of the collective with this name ("_allgather_base"); -1 if Chakra has none for it. */
static int64_t collective_number(struct ops_string name)
{
	static const struct {
		const char *part;
		int type;
	} parts[] = { /* longer names first */
		{"allreduce", 0}, {"all_reduce", 0}, {"reduce_scatter", 7}, {"reduce", 1}, {"allgather", 2}, {"all_gather", 2},
		{"gather", 3}, {"scatter", 4}, {"broadcast", 5}, {"alltoall", 6}, {"all_to_all", 6}, {"barrier", 9},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (ops_string_contains(name, parts[i].part))
			return parts[i].type;
	return -1;
}

static void chakra_write_head(struct chakra_writer *w, uint32_t row, uint64_t type)
{
	struct ops_string name = ops_trace_string(w->trace, w->events->name[row]);

	ops_pb_uint(&w->node, NODE_ID, node_id(row));
	ops_pb_bytes(&w->node, NODE_NAME, name.bytes, name.size);
	ops_pb_uint(&w->node, NODE_TYPE, type);
}

static void chakra_write_times(struct chakra_writer *w, uint32_t row)
{
	/* The end is rounded, not the duration, so that nodes inside others stay inside. */
	uint64_t start_us = (uint64_t)w->events->start_ns[row] / 1000, end_us = (uint64_t)w->events->end_ns[row] / 1000;

	if (!w->has_times || w->events->start_ns[row] < 0)
		return;
	ops_pb_uint(&w->node, NODE_START_US, start_us);
	ops_pb_uint(&w->node, NODE_DURATION_US, end_us - start_us);
}

static void chakra_write_host(struct chakra_writer *w, uint32_t row)
{
	const struct ops_events *events = w->events;
	const struct ops_track *track = &w->tracks[events->track[row]];
	bool is_operator = events->kind[row] == OPS_EVENT_CPU_OP;
	uint32_t parent = events->parent[row];

	while (parent != OPS_NONE && !is_host_row(w, parent))
		parent = events->parent[parent];
	chakra_write_head(w, row, TYPE_COMPUTE);
	if (parent != OPS_NONE)
		ops_pb_uint(&w->node, NODE_CTRL_DEPS, node_id(parent));
	chakra_write_times(w, row);
	if (events->inputs[row] != OPS_NONE)
		chakra_write_inputs(w, ops_trace_inputs(w->trace, events->inputs[row]));
	chakra_write_number(w, "is_cpu_op", ATTRIBUTE_BOOL, 1);
	chakra_write_number(w, "tid", ATTRIBUTE_UINT64, track->flags & OPS_TRACK_TID_TEXT ? 0 : track->tid);
	chakra_write_number(w, "scope", ATTRIBUTE_UINT64,
	                    is_operator ? events->scope[row] == CHAKRA_SCOPE_USER ? 0 : events->scope[row] : CHAKRA_SCOPE_USER);
	if (events->sequence_nr[row] >= 0)
		chakra_write_number(w, "seq_id", ATTRIBUTE_INT64, events->sequence_nr[row]);
	if (events->forward_thread[row])
		chakra_write_number(w, "fw_tid", ATTRIBUTE_UINT64, events->forward_thread[row]);
	chakra_write_arguments(w, row);
}

/* Returns the type of a node of device work. `*ret_collective`: the number of its collective, or -1. */
static uint64_t type_of_work(struct chakra_writer *w, uint32_t row, int64_t *ret_collective)
{
	struct ops_string name = ops_trace_string(w->trace, w->events->name[row]), json;
	enum ops_work work = ops_work_of(w->events->kind[row], name);

	*ret_collective = -1;
	if (work == OPS_WORK_COPY || work == OPS_WORK_SET)
		return ops_string_contains(name, "DtoH") ? TYPE_MEMORY_LOAD : TYPE_MEMORY_STORE;
	if (work != OPS_WORK_COMMUNICATION)
		return TYPE_COMPUTE;
	if (ops_event_arg(w->trace, row, "Collective name", &json)) {
		*ret_collective = collective_number(json);
		if (ops_string_contains(json, "send") || ops_string_contains(json, "recv"))
			return ops_string_contains(json, "send") ? TYPE_SEND : TYPE_RECEIVE;
	}
	return TYPE_COLLECTIVE;
}

static void chakra_write_work(struct chakra_writer *w, uint32_t row)
{
	uint32_t place = w->events->track[row], operator = ops_origin_operator(w->origins, row);
	const struct ops_track *track = &w->tracks[place];
	int64_t collective, bytes = ops_message_bytes(w->trace, row);
	struct ops_string json;

	chakra_write_head(w, row, type_of_work(w, row, &collective));
	if (operator != OPS_NONE && is_host_row(w, operator))
		ops_pb_uint(&w->node, NODE_CTRL_DEPS, node_id(operator));
	if (w->last[place] != OPS_NONE)
		ops_pb_uint(&w->node, NODE_DATA_DEPS, node_id(w->last[place]));
	w->last[place] = row;
	chakra_write_times(w, row);
	chakra_write_number(w, "is_cpu_op", ATTRIBUTE_BOOL, 0);
	chakra_write_number(w, "device", ATTRIBUTE_INT64, track->flags & OPS_TRACK_PID_TEXT ? 0 : track->pid);
	chakra_write_number(w, "stream", ATTRIBUTE_INT64, track->flags & OPS_TRACK_TID_TEXT ? 0 : track->tid);
	if (collective >= 0)
		chakra_write_number(w, "comm_type", ATTRIBUTE_INT64, collective);
	if (bytes > 0)
		chakra_write_number(w, "comm_size", ATTRIBUTE_INT64, bytes);
	if (ops_event_arg(w->trace, row, "bytes", &json) && ops_json_parse_integer(json, &bytes) && bytes >= 0)
		chakra_write_number(w, "tensor_size", ATTRIBUTE_UINT64, bytes);
	chakra_write_arguments(w, row);
}

/* --- file ----------------------------------------------------------------------------------------------------------- */

static void chakra_flush(struct chakra_writer *w, size_t least)
{
	if (w->out.size < least)
		return;
	ops_sink_write(w->sink, w->out.bytes, w->out.size);
	w->out.size = 0;
}

static void chakra_end_message(struct chakra_writer *w)
{
	ops_pb_varint(&w->out, w->node.size);
	ops_buffer_append(&w->out, w->node.bytes, w->node.size);
	w->out.failed |= w->node.failed | w->part.failed | w->inner.failed | w->text.failed;
	w->node.size = 0;
	chakra_flush(w, CHAKRA_FLUSH_BYTES);
}

static bool chakra_write_nodes(struct chakra_writer *w)
{
	size_t count;

	w->tracks = ops_trace_tracks(w->trace, &count);
	w->origins = ops_origins(w->trace);
	w->last = ops_alloc_none(count + 1);
	if (!w->origins || !w->last)
		return false;
	ops_pb_text(&w->node, CHAKRA_VERSION, "0.0.4");
	chakra_end_message(w);
	for (size_t i = 0; i < w->events->count && !w->out.failed && !ops_sink_failed(w->sink); i++) {
		if (is_host_row(w, (uint32_t)i))
			chakra_write_host(w, (uint32_t)i);
		else if (ops_kind_is_work(w->events->kind[i]))
			chakra_write_work(w, (uint32_t)i);
		else
			continue;
		chakra_end_message(w);
	}
	chakra_flush(w, 0);
	return !w->out.failed;
}

enum ops_code ops_write_chakra(const struct ops_trace *trace, const char *path, struct ops_error *error)
{
	struct chakra_writer w = {.trace = trace, .events = ops_trace_events(trace), .has_times = !ops_trace_has_note(trace, OPS_NOTE_NO_TIMES)};
	enum ops_code code = ops_sink_open_file(path, 0, &w.sink, error);

	if (!code && chakra_write_nodes(&w)) {
		code = ops_sink_close(w.sink, error);
	} else if (!code) {
		ops_sink_abandon(w.sink);
		code = ops_fault_memory(error);
	}
	ops_free(w.last);
	ops_buffer_release(&w.out);
	ops_buffer_release(&w.node);
	ops_buffer_release(&w.part);
	ops_buffer_release(&w.inner);
	ops_buffer_release(&w.text);
	return code ? ops_fault_context(error, code, "cannot write execution trace '%s'", path) : OPS_OK;
}

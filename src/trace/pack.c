/* SPDX-License-Identifier: Apache-2.0
 *
 * Serializes a trace to bytes and back. Data derived from the rows are not written: unpacking builds the trace again and checks
 * it, so that any input results in a valid trace or an error.
 *
 *     head │ texts: strings, input lists, metadata keys and values │ tracks │ memory │ its stacks │ roles │ counters │ processes │ notes │ links │ functions │ modules │
 *     columns
 *
 * A text is its size (uint32_t) and its bytes. Numbers are in the machine's byte order; nothing is aligned.
 */
#include <opstrobe/internal/pack.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include <string.h>

#include "base/buffer.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/text.h"
#include "trace/builder.h"

#define PACK_MAGIC 0x314b43415053504fu /* "OPSPACK1" in memory order on little endian */

/* The columns that are written; the others are computed. */
#define PACKED_COLUMNS(X)                                                                          \
	X(int64_t, start_ns)                                                                       \
	X(int64_t, end_ns)                                                                         \
	X(int64_t, sequence_nr)                                                                    \
	X(uint32_t, name)                                                                          \
	X(uint32_t, track)                                                                         \
	X(uint32_t, inputs)                                                                        \
	X(uint32_t, forward_thread)                                                                \
	X(uint16_t, flags)                                                                         \
	X(uint8_t, kind)                                                                           \
	X(uint8_t, scope)
#define PACKED_OPTIONAL_COLUMNS(X)                                                                 \
	X(uint32_t, overload)                                                                      \
	X(uint32_t, end_track)                                                                     \
	X(uint32_t, args)                                                                          \
	X(uint32_t, storages)                                                                      \
	X(uint64_t, id)                                                                            \
	X(int64_t, correlation)                                                                    \
	X(uint32_t, category)                                                                      \
	X(uint32_t, call_stack)                                                                    \
	X(uint32_t, function)                                                                      \
	X(uint32_t, call_line)                                                                     \
	X(uint32_t, python_id)                                                                     \
	X(uint32_t, python_parent)                                                                 \
	X(uint32_t, python_module)                                                                 \
	X(uint32_t, module)                                                                        \
	X(uint32_t, extra)                                                                         \
	X(uint32_t, index)

struct pack_head {
	uint64_t magic;
	uint64_t string_count;
	uint64_t inputs_count;
	uint64_t metadata_count;
	uint64_t track_count;
	uint64_t memory_count;
	uint64_t memory_stack_count; /* number of memory records, or 0 */
	uint64_t role_count;
	uint64_t counter_count;
	uint64_t process_count;
	uint64_t note_count;
	uint64_t link_count; /* 0 unless the trace was read from a file, whose links it keeps */
	uint64_t function_count;
	uint64_t module_count;
	uint64_t alias_count;
	uint64_t event_count;
	uint64_t lost;
	int64_t start_ns;
	int64_t stop_ns;
	int64_t pid;
	int64_t base_ns;
	uint64_t file_events;
#define HAS_COLUMN(type, name) uint8_t has_##name;
	PACKED_OPTIONAL_COLUMNS(HAS_COLUMN)
#undef HAS_COLUMN
};

/* --- packing -------------------------------------------------------------------------------------------------------- */

static void pack_put_text(struct ops_buffer *out, struct ops_string text)
{
	uint32_t size = (uint32_t)text.size;

	if (text.size > UINT32_MAX)
		out->failed = true;
	ops_buffer_append(out, &size, sizeof(size));
	ops_buffer_append(out, text.bytes, size);
}

static void pack_put_texts(struct ops_buffer *out, const struct ops_trace *trace, const struct pack_head *head,
                           const struct ops_trace_info *info)
{
	struct ops_string key, json;

	for (uint64_t i = 0; i < head->string_count; i++)
		pack_put_text(out, ops_trace_string(trace, (uint32_t)i));
	for (uint64_t i = 0; i < head->inputs_count; i++)
		pack_put_text(out, ops_trace_inputs(trace, (uint32_t)i));
	for (uint64_t i = 0; i < head->metadata_count; i++) {
		ops_trace_metadata(trace, i, &key, &json);
		pack_put_text(out, key);
		pack_put_text(out, json);
	}
	pack_put_text(out, (struct ops_string){info->host_name, strlen(info->host_name)});
	pack_put_text(out, (struct ops_string){info->process_name, strlen(info->process_name)});
}

enum ops_code ops_trace_pack(const struct ops_trace *trace, char **ret_bytes, size_t *ret_size, struct ops_error *error)
{
	const struct ops_trace_info *info = ops_trace_info(trace);
	const struct ops_events *events = ops_trace_events(trace);
	size_t tracks, memory, roles, counters, processes, notes, links, functions, modules, aliases;
	const struct ops_track *track_rows = ops_trace_tracks(trace, &tracks);
	const struct ops_memory_record *memory_rows = ops_trace_memory(trace, &memory);
	const uint32_t *memory_stacks = ops_trace_memory_stacks(trace);
	const struct ops_role_record *role_rows = ops_trace_roles(trace, &roles);
	const struct ops_counter_record *counter_rows = ops_trace_counters(trace, &counters);
	const struct ops_process *process_rows = ops_trace_processes(trace, &processes);
	const struct ops_note *note_rows = ops_trace_notes(trace, &notes);
	const struct ops_link *link_rows = ops_trace_links(trace, &links);
	const struct ops_function *function_rows = ops_trace_functions(trace, &functions);
	const struct ops_module *module_rows = ops_trace_modules(trace, &modules);
	const struct ops_module_alias *alias_rows = ops_trace_module_aliases(trace, &aliases);
	struct pack_head head = {
		.magic = PACK_MAGIC,
		.string_count = ops_trace_string_count(trace),
		.inputs_count = ops_trace_inputs_count(trace),
		.metadata_count = ops_trace_metadata_count(trace),
		.track_count = tracks,
		.memory_count = memory,
		.memory_stack_count = memory_stacks ? memory : 0,
		.role_count = roles,
		.counter_count = counters,
		.process_count = processes,
		.note_count = notes,
		.link_count = events->index ? links : 0,
		.function_count = functions,
		.module_count = modules,
		.alias_count = aliases,
		.event_count = events->count,
		.lost = info->lost,
		.start_ns = info->start_ns,
		.stop_ns = info->stop_ns,
		.pid = info->pid,
		.base_ns = info->base_ns,
		.file_events = info->file_events,
#define HAS_COLUMN(type, name) .has_##name = events->name != NULL,
		PACKED_OPTIONAL_COLUMNS(HAS_COLUMN)
#undef HAS_COLUMN
	};
	struct ops_buffer out = {0};

	ops_buffer_append(&out, &head, sizeof(head));
	pack_put_texts(&out, trace, &head, info);
	ops_buffer_append(&out, track_rows, tracks * sizeof(*track_rows));
	ops_buffer_append(&out, memory_rows, memory * sizeof(*memory_rows));
	ops_buffer_append(&out, memory_stacks, head.memory_stack_count * sizeof(*memory_stacks));
	ops_buffer_append(&out, role_rows, roles * sizeof(*role_rows));
	ops_buffer_append(&out, counter_rows, counters * sizeof(*counter_rows));
	ops_buffer_append(&out, process_rows, processes * sizeof(*process_rows));
	ops_buffer_append(&out, note_rows, notes * sizeof(*note_rows));
	ops_buffer_append(&out, link_rows, head.link_count * sizeof(*link_rows));
	ops_buffer_append(&out, function_rows, functions * sizeof(*function_rows));
	ops_buffer_append(&out, module_rows, modules * sizeof(*module_rows));
	ops_buffer_append(&out, alias_rows, aliases * sizeof(*alias_rows));
#define PUT_COLUMN(type, name) ops_buffer_append(&out, events->name, events->count * sizeof(type));
	PACKED_COLUMNS(PUT_COLUMN)
#undef PUT_COLUMN
#define PUT_OPTIONAL_COLUMN(type, name)                                                            \
	if (events->name)                                                                          \
		ops_buffer_append(&out, events->name, events->count * sizeof(type));
	PACKED_OPTIONAL_COLUMNS(PUT_OPTIONAL_COLUMN)
#undef PUT_OPTIONAL_COLUMN
	if (out.failed) {
		ops_buffer_release(&out);
		return ops_fault_memory(error);
	}
	*ret_bytes = out.bytes;
	*ret_size = out.size;
	return OPS_OK;
}

/* --- unpacking ------------------------------------------------------------------------------------------------------ */

/* `failure` is the first error; nothing is read after it. */
struct unpacker {
	const char *start;
	const char *next;
	const char *end;
	const char *failure;
	struct pack_head head;
	struct ops_builder *builder;
	uint32_t *strings; /* by id: the id in the builder */
	uint32_t *inputs;
	uint32_t *functions;
	struct ops_trace_info info;
};

/* Returns the next `count` items of `bytes_each` bytes. Returns NULL, and sets the failure, if there are fewer. */
static const char *pack_read(struct unpacker *in, uint64_t count, size_t bytes_each)
{
	const char *taken = in->next;

	if (in->failure)
		return NULL;
	if (count > (size_t)(in->end - in->next) / bytes_each) {
		in->failure = "cut short";
		return NULL;
	}
	in->next += count * bytes_each;
	return taken;
}

static struct ops_string pack_read_text(struct unpacker *in)
{
	struct ops_string text = {"", 0};
	const char *at = pack_read(in, 1, sizeof(uint32_t));
	uint32_t size;

	if (!at)
		return text;
	memcpy(&size, at, sizeof(size));
	at = pack_read(in, size, 1);
	if (at)
		text = (struct ops_string){at, size};
	return text;
}

static void pack_refuse(struct unpacker *in, const char *failure)
{
	if (!in->failure)
		in->failure = failure;
}

/* Returns the builder's id for an id of the bytes; `none` allows OPS_NONE. */
static uint32_t moved_id(struct unpacker *in, uint32_t id, const uint32_t *ids, uint64_t count, bool none)
{
	if (none && id == OPS_NONE)
		return OPS_NONE;
	if (id < count)
		return ids ? ids[id] : id;
	pack_refuse(in, "an id that is out of range");
	return 0;
}

static int64_t moved_text(struct unpacker *in, int64_t id)
{
	return moved_id(in, id >= 0 && id < UINT32_MAX ? (uint32_t)id : UINT32_MAX, in->strings, in->head.string_count,
	                false);
}

static bool read_head(struct unpacker *in)
{
	const char *at = pack_read(in, 1, sizeof(in->head));

	if (!at)
		return false;
	memcpy(&in->head, at, sizeof(in->head));
	if (in->head.magic != PACK_MAGIC)
		pack_refuse(in, "not a packed trace");
	/* Each text takes at least the four bytes of its size. */
	if (in->head.string_count > (size_t)(in->end - in->next) / 4 ||
	    in->head.inputs_count > (size_t)(in->end - in->next) / 4)
		pack_refuse(in, "cut short");
	return !in->failure;
}

/* Returns false if out of memory. */
static bool read_texts(struct unpacker *in)
{
	struct ops_string text;

	in->strings = ops_realloc_array(NULL, in->head.string_count + 1, sizeof(*in->strings));
	in->inputs = ops_realloc_array(NULL, in->head.inputs_count + 1, sizeof(*in->inputs));
	if (!in->strings || !in->inputs)
		return false;
	for (uint64_t i = 0; i < in->head.string_count; i++) {
		text = pack_read_text(in);
		in->strings[i] = ops_builder_string(in->builder, text.bytes, text.size);
	}
	for (uint64_t i = 0; i < in->head.inputs_count && !in->failure; i++) {
		text = pack_read_text(in);
		in->inputs[i] = ops_builder_inputs(in->builder, text.bytes, text.size);
		if (in->inputs[i] == OPS_NONE)
			pack_refuse(in, "an input list that is none");
	}
	return !ops_builder_failed(in->builder);
}

static void read_memory(struct unpacker *in)
{
	const char *at = pack_read(in, in->head.memory_count, sizeof(struct ops_memory_record));
	const char *stacks = pack_read(in, in->head.memory_stack_count, sizeof(uint32_t));

	if (in->head.memory_stack_count && in->head.memory_stack_count != in->head.memory_count)
		pack_refuse(in, "not as many stacks as memory records");
	for (uint64_t i = 0; at && stacks && i < in->head.memory_count; i++) {
		struct ops_memory_record record;
		uint32_t stack = OPS_NONE;

		memcpy(&record, at + i * sizeof(record), sizeof(record));
		record.track = moved_id(in, record.track, NULL, in->head.track_count, false);
		ops_builder_memory(in->builder, &record);
		if (in->head.memory_stack_count == in->head.memory_count)
			memcpy(&stack, stacks + i * sizeof(stack), sizeof(stack));
		ops_builder_memory_stack(in->builder, moved_id(in, stack, in->strings, in->head.string_count, true));
	}
}

static void read_records(struct unpacker *in)
{
	const char *at = pack_read(in, in->head.track_count, sizeof(struct ops_track));

	for (uint64_t i = 0; at && i < in->head.track_count; i++) {
		struct ops_track track;
		memcpy(&track, at + i * sizeof(track), sizeof(track));
		track.name = moved_id(in, track.name, in->strings, in->head.string_count, false);
		if (track.flags & OPS_TRACK_PID_TEXT)
			track.pid = moved_text(in, track.pid);
		if (track.flags & OPS_TRACK_TID_TEXT)
			track.tid = moved_text(in, track.tid);
		if (track.kind != OPS_TRACK_THREAD && track.kind != OPS_TRACK_STREAM)
			pack_refuse(in, "an unknown kind of track");
		ops_builder_track(in->builder, &track);
	}
	read_memory(in);
	at = pack_read(in, in->head.role_count, sizeof(struct ops_role_record));
	for (uint64_t i = 0; at && i < in->head.role_count; i++) {
		struct ops_role_record record;
		memcpy(&record, at + i * sizeof(record), sizeof(record));
		record.name = moved_id(in, record.name, in->strings, in->head.string_count, false);
		record.track = moved_id(in, record.track, NULL, in->head.track_count, false);
		ops_builder_role(in->builder, &record);
	}
	at = pack_read(in, in->head.counter_count, sizeof(struct ops_counter_record));
	for (uint64_t i = 0; at && i < in->head.counter_count; i++) {
		struct ops_counter_record record;
		memcpy(&record, at + i * sizeof(record), sizeof(record));
		record.name = moved_id(in, record.name, in->strings, in->head.string_count, false);
		record.series = moved_id(in, record.series, in->strings, in->head.string_count, false);
		record.track = moved_id(in, record.track, NULL, in->head.track_count, false);
		ops_builder_counter(in->builder, &record);
	}
}

/* Reads what only a trace that was read from a file has. */
static void read_file_records(struct unpacker *in)
{
	const struct pack_head *head = &in->head;
	const char *at = pack_read(in, head->process_count, sizeof(struct ops_process));

	for (uint64_t i = 0; at && i < head->process_count; i++) {
		struct ops_process process;
		memcpy(&process, at + i * sizeof(process), sizeof(process));
		process.name = moved_id(in, process.name, in->strings, head->string_count, true);
		process.labels = moved_id(in, process.labels, in->strings, head->string_count, true);
		if (process.flags & OPS_TRACK_PID_TEXT)
			process.pid = moved_text(in, process.pid);
		ops_builder_process(in->builder, &process);
	}
	at = pack_read(in, head->note_count, sizeof(struct ops_note));
	for (uint64_t i = 0; at && i < head->note_count; i++) {
		struct ops_note note;
		memcpy(&note, at + i * sizeof(note), sizeof(note));
		if ((unsigned)note.kind < OPS_NOTE_COUNT)
			ops_builder_notes(in->builder, note.kind, note.count, note.byte);
		else
			pack_refuse(in, "an unknown note");
	}
	at = pack_read(in, head->link_count, sizeof(struct ops_link));
	for (uint64_t i = 0; at && i < head->link_count; i++) {
		struct ops_link link;
		memcpy(&link, at + i * sizeof(link), sizeof(link));
		link.from = moved_id(in, link.from, NULL, head->event_count, false);
		link.to = moved_id(in, link.to, NULL, head->event_count, false);
		link.category = moved_id(in, link.category, in->strings, head->string_count, true);
		ops_builder_link(in->builder, &link);
	}
	if (head->has_index)
		ops_builder_links_given(in->builder);
}

/* Returns false if out of memory. */
static bool read_functions(struct unpacker *in)
{
	const char *at = pack_read(in, in->head.function_count, sizeof(struct ops_function));

	if (!at)
		return true;
	in->functions = ops_realloc_array(NULL, in->head.function_count + 1, sizeof(*in->functions));
	for (uint64_t i = 0; in->functions && i < in->head.function_count; i++) {
		struct ops_function function;
		memcpy(&function, at + i * sizeof(function), sizeof(function));
		function.name = moved_id(in, function.name, in->strings, in->head.string_count, false);
		function.file = moved_id(in, function.file, in->strings, in->head.string_count, false);
		in->functions[i] = ops_builder_function(in->builder, &function);
	}
	return in->functions != NULL;
}

static void read_modules(struct unpacker *in)
{
	const struct pack_head *head = &in->head;
	const char *at = pack_read(in, head->module_count, sizeof(struct ops_module));

	for (uint64_t i = 0; at && i < head->module_count; i++) {
		struct ops_module module;
		memcpy(&module, at + i * sizeof(module), sizeof(module));
		module.name = moved_id(in, module.name, in->strings, head->string_count, false);
		module.class_name = moved_id(in, module.class_name, in->strings, head->string_count, false);
		module.path = moved_id(in, module.path, in->strings, head->string_count, false);
		module.parent = moved_id(in, module.parent, NULL, i, true);
		ops_builder_module(in->builder, &module);
	}
	at = pack_read(in, head->alias_count, sizeof(struct ops_module_alias));
	for (uint64_t i = 0; at && i < head->alias_count; i++) {
		struct ops_module_alias alias;
		memcpy(&alias, at + i * sizeof(alias), sizeof(alias));
		alias.module = moved_id(in, alias.module, NULL, head->module_count, false);
		alias.path = moved_id(in, alias.path, in->strings, head->string_count, false);
		ops_builder_module_alias(in->builder, &alias);
	}
}

/* The columns in the bytes; NULL for missing ones. */
struct packed_columns {
#define COLUMN_FIELD(type, name) const char *name;
	PACKED_COLUMNS(COLUMN_FIELD)
	PACKED_OPTIONAL_COLUMNS(COLUMN_FIELD)
#undef COLUMN_FIELD
};

static void pack_read_event(struct unpacker *in, const struct packed_columns *c, uint64_t row)
{
	const struct pack_head *head = &in->head;
	struct ops_new_event event = {OPS_NEW_EVENT};

#define LOAD_COLUMN(type, name)                                                                    \
	if (c->name)                                                                               \
		memcpy(&event.name, c->name + row * sizeof(type), sizeof(type));
	PACKED_COLUMNS(LOAD_COLUMN)
	PACKED_OPTIONAL_COLUMNS(LOAD_COLUMN)
#undef LOAD_COLUMN
	event.name = moved_id(in, event.name, in->strings, head->string_count, false);
	event.track = moved_id(in, event.track, NULL, head->track_count, false);
	event.inputs = moved_id(in, event.inputs, in->inputs, head->inputs_count, true);
	event.end_track = moved_id(in, event.end_track, NULL, head->track_count, true);
	event.module = moved_id(in, event.module, NULL, head->module_count, true);
	event.args = moved_id(in, event.args, in->strings, head->string_count, true);
	event.storages = moved_id(in, event.storages, in->strings, head->string_count, true);
	event.category = moved_id(in, event.category, in->strings, head->string_count, true);
	event.call_stack = moved_id(in, event.call_stack, in->strings, head->string_count, true);
	event.extra = moved_id(in, event.extra, in->strings, head->string_count, true);
	event.function = moved_id(in, event.function, in->functions, head->function_count, true);
	if (c->overload)
		event.overload = moved_id(in, event.overload, in->strings, head->string_count, false);
	event.flags &= OPS_EVENT_ASYNC | OPS_EVENT_UNFINISHED | OPS_EVENT_CUT;
	if (event.end_ns < event.start_ns || event.kind >= OPS_EVENT_KIND_COUNT || event.sequence_nr < -1)
		pack_refuse(in, "an impossible event");
	if (!in->failure)
		ops_builder_event(in->builder, &event);
}

static void pack_read_events(struct unpacker *in)
{
	const struct pack_head *head = &in->head;
	struct packed_columns c = {0};

#define READ_COLUMN(type, name) c.name = pack_read(in, head->event_count, sizeof(type));
	PACKED_COLUMNS(READ_COLUMN)
#undef READ_COLUMN
#define READ_OPTIONAL_COLUMN(type, name) \
	if (head->has_##name) \
		c.name = pack_read(in, head->event_count, sizeof(type));
	PACKED_OPTIONAL_COLUMNS(READ_OPTIONAL_COLUMN)
#undef READ_OPTIONAL_COLUMN
	if (!in->failure && in->next != in->end)
		pack_refuse(in, "more bytes than it says");
	if (in->failure)
		return;
	ops_builder_expect(in->builder, head->event_count, 0);
	for (uint64_t row = 0; row < head->event_count && !in->failure; row++)
		pack_read_event(in, &c, row);
}

static enum ops_code set_metadata(struct ops_trace *trace, const char *pairs, const struct unpacker *in,
                                  struct ops_error *error)
{
	struct unpacker again = {.next = pairs, .end = in->end};
	enum ops_code code = OPS_OK;

	for (uint64_t i = 0; !code && i < in->head.metadata_count; i++) {
		struct ops_string key = pack_read_text(&again);
		struct ops_string json = pack_read_text(&again);
		code = ops_trace_set_metadata(trace, key.bytes, key.size, json.bytes, json.size, error);
	}
	return code;
}

/* Reads the host or process name, a NUL-terminated string of the trace. */
static const char *pack_read_name(struct unpacker *in, struct ops_buffer *copy)
{
	struct ops_string text = pack_read_text(in);

	ops_buffer_append(copy, text.bytes, text.size);
	ops_buffer_append(copy, "", 1);
	return copy->failed ? "" : copy->bytes;
}

enum ops_code ops_trace_unpack(const char *bytes, size_t size, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct unpacker in = {.start = bytes, .next = bytes, .end = ops_bytes_end(bytes, size), .builder = ops_builder_new()};
	struct ops_buffer host = {0}, process = {0};
	enum ops_code code = OPS_OK;
	struct ops_trace *trace = NULL;
	const char *pairs = NULL;

	if (!in.builder || (read_head(&in) && !read_texts(&in)))
		code = ops_fault_memory(error);
	if (!code && !in.failure) {
		pairs = in.next;
		for (uint64_t i = 0; i < in.head.metadata_count * 2 && !in.failure; i++)
			pack_read_text(&in);
		in.info = (struct ops_trace_info){.start_ns = in.head.start_ns,
		                                  .stop_ns = in.head.stop_ns,
		                                  .pid = in.head.pid,
		                                  .lost = in.head.lost,
		                                  .base_ns = in.head.base_ns,
		                                  .file_events = in.head.file_events,
		                                  .host_name = pack_read_name(&in, &host),
		                                  .process_name = pack_read_name(&in, &process)};
		read_records(&in);
		read_file_records(&in);
		if (!read_functions(&in))
			code = ops_fault_memory(error);
		read_modules(&in);
		if (!code)
			pack_read_events(&in);
	}
	if (!code && in.failure)
		code = ops_fault(error, OPS_CORRUPT, "cannot unpack a trace: byte %zu: %s", (size_t)(in.next - in.start),
		                 in.failure);
	if (!code) {
		ops_builder_info(in.builder, &in.info);
		code = ops_builder_finish(in.builder, &trace, error);
		in.builder = NULL;
	}
	if (!code) {
		code = ops_trace_check(trace, error);
		if (code)
			ops_fault_context(error, code, "cannot unpack a trace");
	}
	if (!code)
		code = set_metadata(trace, pairs, &in, error);
	if (!code) {
		*ret_trace = trace;
		trace = NULL;
	}
	ops_trace_unref(trace);
	ops_builder_free(in.builder);
	ops_buffer_release(&host);
	ops_buffer_release(&process);
	ops_free(in.strings);
	ops_free(in.inputs);
	ops_free(in.functions);
	return code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON of AMD's rocprofv3 (`--output-format json`; ROCprofiler-SDK):
 *
 *     {"rocprofiler-sdk-tool": [{"metadata": {"pid": …}, "agents": […], "strings": {…}, "kernel_symbols": […],
 *                                "buffer_records": {"kernel_dispatch": […], "memory_copy": […], "hip_api": […], "marker_api": […], …}}]}
 *
 * with an object for each process. Records refer to their kernels, operations and agents by number. The complete text is
 * validated and kept in memory, because the order of members is not fixed; its records become Chrome JSON (transcode.h) step by
 * step.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/map.h"
#include "base/text.h"
#include "read/nvtx_text.h"
#include "read/transcode.h"

#define UNNAMED_PID 1000000 /* of the first process without a pid; differs from all device numbers */

enum { AGENT_CPU = 1, AGENT_GPU = 2 }; /* "type" of an agent */

struct agent {
	int64_t handle;
	int64_t device; /* -1: not a GPU */
};

struct tracing_kind {
	struct ops_string name; /* in quotes, like all texts here */
	size_t first; /* index in `texts` of the first of its operations */
	size_t count;
};

struct rocprof {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_reading *in;
	struct ops_buffer bytes; /* the file */
	struct ops_buffer text;  /* a decoded string */
	struct ops_buffer devices; /* deviceProperties */
	struct ops_json_walk processes; /* the remaining ones */
	struct ops_json_walk lists;     /* lists of records of the current process */
	struct ops_json_walk records;   /* of the current list */
	const struct record_list *list; /* current list; NULL: none */
	OPS_ARRAY(struct ops_string) texts;
	OPS_ARRAY(struct tracing_kind) kinds;
	OPS_ARRAY(struct agent) agents; /* of the current process */
	struct ops_map kernels; /* kernel → index in `texts` */
	struct ops_map markers; /* correlation → index in `texts` */
	int64_t pid;
	uint32_t process_count; /* number so far */
	uint64_t pairs;
	bool has_process;
	bool has_rows;
	bool has_ended;
};

struct rocprof_record {
	int64_t kind, operation, thread, correlation, start_ns, end_ns, stream, queue, agent, source, target, kernel, size_bytes, shared_bytes;
	int64_t grid[3], group[3];
};

struct record_list {
	const char *name;
	void (*put)(struct rocprof *r, const struct rocprof_record *record, struct ops_buffer *out);
	const char *category; /* of calls */
};

static enum ops_code rocprof_fault(const struct rocprof *r, const char *at, const char *why)
{
	return ops_fault(r->in->error, OPS_CORRUPT, "byte %zu: %s", (size_t)(at - r->bytes.bytes), why);
}

static void rocprof_note(const struct rocprof *r, enum ops_note_kind kind, const char *at)
{
	ops_builder_notes(r->in->builder, kind, 1, (uint64_t)(at - r->bytes.bytes));
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

/* Returns a text of the file, decoded; valid until the next call. */
static struct ops_string decode_text(struct rocprof *r, struct ops_string raw)
{
	r->text.size = 0;
	ops_json_decode_value(&r->text, raw);
	return (struct ops_string){ops_buffer_text(&r->text), r->text.size};
}

static enum ops_code rocprof_keep_text(struct rocprof *r, struct ops_map *map, int64_t key, struct ops_string raw)
{
	uint32_t *slot = OPS_ARRAY_APPEND(&r->texts, raw) ? ops_map_slot(map, (uint64_t)key, 0) : NULL;

	if (!slot)
		return ops_fault_memory(r->in->error);
	*slot = (uint32_t)(r->texts.count - 1);
	return OPS_OK;
}

static struct ops_string rocprof_find_text(const struct rocprof *r, const struct ops_map *map, int64_t key)
{
	uint32_t place = ops_map_find(map, (uint64_t)key);

	return place == OPS_NONE ? (struct ops_string){"", 0} : r->texts.items[place];
}

/* Uses the demangled name if there is one. */
static enum ops_code read_symbols(struct rocprof *r, struct ops_string list)
{
	static const char *const names[] = {"formatted_kernel_name", "demangled_kernel_name", "kernel_name"};
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	struct ops_string symbol, name = {"", 0};
	enum ops_code code = OPS_OK;

	while (!code && ops_json_next_element(&walk, &symbol)) {
		int64_t number = ops_json_integer_of(symbol, "kernel_id", -1);
		name = (struct ops_string){"", 0};
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && name.size < 3; i++)
			ops_json_find_typed(symbol, names[i], '"', &name);
		if (number >= 0 && name.size > 2)
			code = rocprof_keep_text(r, &r->kernels, number, name);
	}
	return code;
}

/* [{"key": correlation, "value": message}] */
static enum ops_code read_messages(struct rocprof *r, struct ops_string list)
{
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	struct ops_string entry, text;
	enum ops_code code = OPS_OK;

	while (!code && ops_json_next_element(&walk, &entry)) {
		int64_t number = ops_json_integer_of(entry, "key", -1);

		if (number >= 0 && ops_json_find_typed(entry, "value", '"', &text))
			code = rocprof_keep_text(r, &r->markers, number, text);
	}
	return code;
}

/* By number: [{"kind": "HIP_RUNTIME_API", "operations": ["hipApiName", …]}] */
static enum ops_code rocprof_read_kinds(struct rocprof *r, struct ops_string list)
{
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	struct ops_string entry, operations, operation;

	while (ops_json_next_element(&walk, &entry)) {
		struct tracing_kind kind = {.name = {"", 0}, .first = r->texts.count};

		ops_json_find_typed(entry, "kind", '"', &kind.name);
		if (ops_json_find_typed(entry, "operations", '[', &operations)) {
			struct ops_json_walk inner = ops_json_walk(operations.bytes, operations.size);

			while (ops_json_next_element(&inner, &operation))
				if (!OPS_ARRAY_APPEND(&r->texts, operation))
					return ops_fault_memory(r->in->error);
		}
		kind.count = r->texts.count - kind.first;
		if (!OPS_ARRAY_APPEND(&r->kinds, kind))
			return ops_fault_memory(r->in->error);
	}
	return OPS_OK;
}

/* Returns the text of a record's operation, in quotes; empty if the file does not have it. */
static struct ops_string operation_of(const struct rocprof *r, const struct rocprof_record *record)
{
	const struct tracing_kind *kind;

	if (record->kind < 0 || (uint64_t)record->kind >= r->kinds.count)
		return (struct ops_string){"", 0};
	kind = &r->kinds.items[record->kind];
	if (record->operation < 0 || (uint64_t)record->operation >= kind->count)
		return kind->name;
	return r->texts.items[kind->first + (size_t)record->operation];
}

/* --- agents --------------------------------------------------------------------------------------------------------- */

/* Writes what a device reports about itself under Kineto's names. Processes of one file have the same devices. */
static void rocprof_put_properties(struct rocprof *r, struct ops_string agent, int64_t device)
{
	static const char *const names[][2] = {{"cu_count", "numSms"}, {"wave_front_size", "warpSize"}, {"workgroup_max_size", "maxThreadsPerBlock"}};
	struct ops_string name = {"", 0};

	if (!ops_json_find_typed(agent, "product_name", '"', &name) || name.size < 3)
		ops_json_find_typed(agent, "name", '"', &name);
	ops_buffer_printf(&r->devices, "%s{\"id\":%" PRId64, r->devices.size ? "," : "", device);
	ops_put_text_member(&r->devices, "name", decode_text(r, name));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t value = ops_json_integer_of(agent, names[i][0], -1);

		if (value >= 0)
			ops_buffer_printf(&r->devices, ",\"%s\":%" PRId64, names[i][1], value);
	}
	ops_buffer_append_text(&r->devices, "}");
}

/* GPUs are numbered in the order of the file. */
static enum ops_code read_agents(struct rocprof *r, struct ops_string list)
{
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	struct ops_string entry, id;
	int64_t devices = 0;

	while (ops_json_next_element(&walk, &entry)) {
		struct agent agent = {.handle = -1, .device = -1};
		int64_t type = ops_json_integer_of(entry, "type", 0);

		if (ops_json_find_typed(entry, "id", '{', &id))
			agent.handle = ops_json_integer_of(id, "handle", agent.handle);
		if (type == AGENT_GPU)
			agent.device = devices++;
		if (type == AGENT_GPU && r->process_count == 1)
			rocprof_put_properties(r, entry, agent.device);
		if (!OPS_ARRAY_APPEND(&r->agents, agent))
			return ops_fault_memory(r->in->error);
	}
	return OPS_OK;
}

/* Returns the device of an agent; -1 for a CPU, and 0 for an agent that the file does not describe. */
static int64_t rocprof_device_of(const struct rocprof *r, int64_t handle)
{
	for (size_t i = 0; i < r->agents.count; i++)
		if (r->agents.items[i].handle == handle)
			return r->agents.items[i].device;
	return 0;
}

/* --- records -------------------------------------------------------------------------------------------------------- */

static void rocprof_read_dims(struct ops_string object, int64_t ret_dims[3])
{
	static const char *const axes[] = {"x", "y", "z"};

	for (int i = 0; i < 3; i++)
		ret_dims[i] = ops_json_integer_of(object, axes[i], ret_dims[i]);
}

static void rocprof_read_member(struct rocprof_record *record, struct ops_string key, struct ops_string value)
{
#define MEMBER(name, inner, field) {name, inner, offsetof(struct rocprof_record, field)}
	static const struct {
		const char *name;
		const char *inner; /* the value is an object with this member */
		size_t offset;
	} members[] = {
		MEMBER("kind", NULL, kind), MEMBER("operation", NULL, operation), MEMBER("thread_id", NULL, thread),
		MEMBER("correlation_id", "internal", correlation), MEMBER("start_timestamp", NULL, start_ns),
		MEMBER("end_timestamp", NULL, end_ns), MEMBER("stream_id", "handle", stream), MEMBER("queue_id", "handle", queue),
		MEMBER("agent_id", "handle", agent), MEMBER("src_agent_id", "handle", source), MEMBER("dst_agent_id", "handle", target),
		MEMBER("kernel_id", NULL, kernel), MEMBER("bytes", NULL, size_bytes), MEMBER("group_segment_size", NULL, shared_bytes),
	};
#undef MEMBER

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		int64_t *field = (int64_t *)(void *)((char *)record + members[i].offset);

		if (!ops_string_is(key, members[i].name))
			continue;
		if (members[i].inner)
			*field = ops_json_integer_of(value, members[i].inner, *field);
		else
			ops_json_parse_integer(value, field);
		return;
	}
	if (ops_string_is(key, "grid_size"))
		rocprof_read_dims(value, record->grid);
	else if (ops_string_is(key, "workgroup_size"))
		rocprof_read_dims(value, record->group);
}

static struct rocprof_record rocprof_read_record(struct ops_string object)
{
	struct rocprof_record record = {.kind = -1, .operation = -1, .correlation = -1, .start_ns = -1, .end_ns = -1, .stream = -1, .queue = -1,
	                                .agent = -1, .source = -1, .target = -1, .kernel = -1, .size_bytes = -1};
	struct ops_json_walk walk = ops_json_walk(object.bytes, object.size), inner;
	struct ops_string key, value;

	while (ops_json_next_member(&walk, &key, &value)) {
		if (!ops_string_is(key, "dispatch_info") || value.bytes[0] != '{') {
			rocprof_read_member(&record, key, value);
			continue;
		}
		inner = ops_json_walk(value.bytes, value.size);
		while (ops_json_next_member(&inner, &key, &value))
			rocprof_read_member(&record, key, value);
	}
	return record;
}

static bool rocprof_has_times(const struct rocprof_record *record)
{
	return record->start_ns >= 0 && record->start_ns <= OPS_TIME_MAX_NS && record->end_ns >= record->start_ns &&
	       record->end_ns <= OPS_TIME_MAX_NS;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static void rocprof_begin_row(struct rocprof *r, struct ops_buffer *out, const char *phase, struct ops_string name, const char *category)
{
	ops_buffer_printf(out, "%s{\"ph\":\"%s\"", r->has_rows ? ",\n" : "{\"traceEvents\":[", phase);
	ops_put_text_member(out, "name", name);
	ops_buffer_printf(out, ",\"cat\":\"%s\"", category);
	r->has_rows = true;
	r->in->events++;
}

/* Writes a span on a thread or a stream; the caller appends its arguments and a brace. */
static void rocprof_put_span(struct rocprof *r, struct ops_buffer *out, struct ops_string name, const char *category, int64_t pid, int64_t tid,
                             const struct rocprof_record *record)
{
	rocprof_begin_row(r, out, "X", name, category);
	ops_buffer_printf(out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64, pid, tid);
	ops_put_time_member(out, "ts", record->start_ns);
	ops_put_time_member(out, "dur", record->end_ns - record->start_ns);
}

/* Correlations are counted for each process. */
static void put_correlation(const struct rocprof *r, const struct rocprof_record *record, struct ops_buffer *out)
{
	if (record->correlation >= 0)
		ops_buffer_printf(out, ",\"correlation\":%" PRId64,
		                  (int64_t)((uint64_t)(r->process_count - 1) << 40 | ((uint64_t)record->correlation & UINT32_MAX)));
}

/* Versions before ROCm 7 only contain the queue. */
static void rocprof_put_work(struct rocprof *r, struct ops_buffer *out, struct ops_string name, const char *category, int64_t device,
                             const struct rocprof_record *record)
{
	int64_t stream = record->stream >= 0 ? record->stream : record->queue >= 0 ? record->queue : 0;

	rocprof_put_span(r, out, name, category, device, stream, record);
	ops_buffer_printf(out, ",\"args\":{\"device\":%" PRId64 ",\"stream\":%" PRId64, device, stream);
	put_correlation(r, record, out);
}

static int64_t groups_in(int64_t items, int64_t group)
{
	return items > 0 && group > 0 ? (items - 1) / group + 1 : 0;
}

static void rocprof_put_kernel(struct rocprof *r, const struct rocprof_record *record, struct ops_buffer *out)
{
	struct ops_string name = decode_text(r, rocprof_find_text(r, &r->kernels, record->kernel));
	int64_t device = rocprof_device_of(r, record->agent);

	if (!name.size)
		name = ops_string_of("(unknown kernel)");
	else if (ops_string_ends(name, ".kd"))
		name.size -= 3;
	rocprof_put_work(r, out, name, "kernel", device < 0 ? 0 : device, record);
	/* A grid is in work items there, and in groups of them in Chrome JSON. */
	ops_buffer_printf(out, ",\"grid\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"block\":[%" PRId64 ",%" PRId64 ",%" PRId64 "]",
	                  groups_in(record->grid[0], record->group[0]), groups_in(record->grid[1], record->group[1]),
	                  groups_in(record->grid[2], record->group[2]), record->group[0], record->group[1], record->group[2]);
	ops_buffer_printf(out, ",\"shared memory\":%" PRId64 "}}", record->shared_bytes);
}

static void rocprof_put_copy(struct rocprof *r, const struct rocprof_record *record, struct ops_buffer *out)
{
	int64_t source = rocprof_device_of(r, record->source), target = rocprof_device_of(r, record->target);
	char name[] = "Memcpy HtoD";

	name[7] = source < 0 ? 'H' : 'D';
	name[10] = target < 0 ? 'H' : 'D';
	rocprof_put_work(r, out, ops_string_of(name), "gpu_memcpy", target >= 0 ? target : source >= 0 ? source : 0, record);
	if (record->size_bytes >= 0)
		ops_buffer_printf(out, ",\"bytes\":%" PRId64, record->size_bytes);
	ops_buffer_append_text(out, "}}");
}

static void rocprof_put_call(struct rocprof *r, const struct rocprof_record *record, struct ops_buffer *out)
{
	rocprof_put_span(r, out, decode_text(r, operation_of(r, record)), r->list->category, r->pid, record->thread, record);
	ops_buffer_append_text(out, ",\"args\":{\"ROCm\":true");
	put_correlation(r, record, out);
	ops_buffer_append_text(out, "}}");
}

static void rocprof_put_end(struct rocprof *r, struct ops_buffer *out, struct ops_string name, const char *phase, int64_t tid, int64_t ns)
{
	rocprof_begin_row(r, out, phase, name, "user_annotation");
	ops_buffer_printf(out, ",\"id\":\"r%" PRIu64 "\",\"s\":\"t\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, r->pairs, r->pid, tid);
	ops_put_time_member(out, "ts", ns);
	ops_buffer_append_text(out, "}");
}

/* A mark is an instant; a range of the process may overlap others; a range of a thread nests, and may be an operator. */
static void rocprof_put_marker(struct rocprof *r, const struct rocprof_record *record, struct ops_buffer *out)
{
	struct ops_string operation = operation_of(r, record), name = rocprof_find_text(r, &r->markers, record->correlation);
	struct nvtx_operator operator;

	if (!name.size) {
		rocprof_put_call(r, record, out);
		return;
	}
	name = decode_text(r, name);
	if (ops_string_starts(operation, "\"roctxMark")) {
		rocprof_put_end(r, out, name, "i", record->thread, record->start_ns);
	} else if (ops_string_starts(operation, "\"roctxRangeStart") || ops_string_starts(operation, "\"roctxProcessRange")) {
		r->pairs++;
		rocprof_put_end(r, out, name, "b", record->thread, record->start_ns);
		rocprof_put_end(r, out, name, "e", record->thread, record->end_ns);
	} else if (nvtx_parse_operator(name, &operator)) {
		rocprof_put_span(r, out, operator.name, "cpu_op", r->pid, record->thread, record);
		nvtx_put_args(out, &operator);
		ops_buffer_append_text(out, "}");
	} else {
		rocprof_put_span(r, out, name, "user_annotation", r->pid, record->thread, record);
		ops_buffer_append_text(out, "}");
	}
}

static const struct record_list record_lists[] = {
	{"kernel_dispatch", rocprof_put_kernel, NULL},
	{"memory_copy", rocprof_put_copy, NULL},
	{"hip_api", rocprof_put_call, "cuda_runtime"},
	{"hsa_api", rocprof_put_call, "cuda_driver"},
	{"marker_api", rocprof_put_marker, "roctx"},
	{"rccl_api", rocprof_put_call, "rccl"},
};

/* --- file ----------------------------------------------------------------------------------------------------------- */

static enum ops_code open_process(struct rocprof *r, struct ops_string process)
{
	struct ops_json_walk walk = ops_json_walk(process.bytes, process.size);
	struct ops_string key, value, inner;
	enum ops_code code = OPS_OK;

	if (process.bytes[0] != '{')
		return rocprof_fault(r, process.bytes, "an entry of 'rocprofiler-sdk-tool' that is not an object");
	r->pid = UNNAMED_PID + r->process_count++;
	r->texts.count = r->kinds.count = r->agents.count = 0;
	ops_map_release(&r->kernels);
	ops_map_release(&r->markers);
	r->kernels = r->markers = (struct ops_map){0};
	r->lists = (struct ops_json_walk){0};
	while (!code && ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "metadata"))
			r->pid = ops_json_integer_of(value, "pid", r->pid);
		else if (ops_string_is(key, "agents"))
			code = read_agents(r, value);
		else if (ops_string_is(key, "kernel_symbols"))
			code = read_symbols(r, value);
		else if (ops_string_is(key, "buffer_records") && value.bytes[0] == '{')
			r->lists = ops_json_walk(value.bytes, value.size);
		else if (ops_string_is(key, "strings") && ops_json_find_typed(value, "marker_api", '[', &inner))
			code = read_messages(r, inner);
		if (!code && ops_string_is(key, "strings") && ops_json_find_typed(value, "buffer_records", '[', &inner))
			code = rocprof_read_kinds(r, inner);
	}
	r->has_process = true;
	return code;
}

static void open_list(struct rocprof *r, struct ops_string name, struct ops_string list)
{
	for (size_t i = 0; i < sizeof(record_lists) / sizeof(record_lists[0]) && list.bytes[0] == '['; i++)
		if (ops_string_is(name, record_lists[i].name)) {
			r->list = &record_lists[i];
			r->records = ops_json_walk(list.bytes, list.size);
		}
}

static void rocprof_put_record(struct rocprof *r, struct ops_string object, struct ops_buffer *out)
{
	struct rocprof_record record;

	if (object.bytes[0] != '{') {
		rocprof_note(r, OPS_NOTE_NOT_AN_EVENT, object.bytes);
		return;
	}
	record = rocprof_read_record(object);
	if (rocprof_has_times(&record))
		r->list->put(r, &record, out);
	else
		rocprof_note(r, OPS_NOTE_BAD_TIME, object.bytes);
}

static enum ops_code rocprof_step(struct rocprof *r, struct ops_buffer *out)
{
	struct ops_string item, name;

	if (r->list && ops_json_next_element(&r->records, &item)) {
		rocprof_put_record(r, item, out);
		return OPS_OK;
	}
	r->list = NULL;
	if (r->has_process && ops_json_next_member(&r->lists, &name, &item)) {
		open_list(r, name, item);
		return OPS_OK;
	}
	r->has_process = false;
	if (ops_json_next_element(&r->processes, &item))
		return open_process(r, item);
	r->has_ended = true;
	ops_buffer_append_text(out, r->has_rows ? "]" : "{\"traceEvents\":[]");
	ops_buffer_append_text(out, ",\"deviceProperties\":[");
	ops_buffer_append(out, ops_buffer_text(&r->devices), r->devices.size);
	ops_buffer_append_text(out, "]}");
	return OPS_OK;
}

static enum ops_code rocprof_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct rocprof *r = (struct rocprof *)(void *)transcoder;
	enum ops_code code = OPS_OK;

	while (!code && !r->has_ended && !text->failed && text->size < OPS_TRANSCODED_BYTES) {
		code = rocprof_step(r, text);
		text->failed |= r->text.failed || r->devices.failed;
	}
	return code;
}

/* The list may be missing around a single process. */
static enum ops_code rocprof_open_file(struct rocprof *r)
{
	struct ops_string file = {r->bytes.bytes, r->bytes.size}, tool;
	struct ops_error wrong;

	if (ops_json_validate(file.bytes, file.size, &wrong))
		return ops_fault(r->in->error, OPS_CORRUPT, "JSON of rocprofv3: %s", wrong.text);
	if (!ops_json_find_member(file, "rocprofiler-sdk-tool", &tool) || (tool.bytes[0] != '[' && tool.bytes[0] != '{'))
		return rocprof_fault(r, file.bytes, "the file has no list 'rocprofiler-sdk-tool'");
	r->processes = tool.bytes[0] == '[' ? ops_json_walk(tool.bytes, tool.size) : (struct ops_json_walk){tool.bytes, tool.bytes + tool.size};
	return OPS_OK;
}

bool ops_is_rocprof(const char *head, size_t size)
{
	struct ops_string text = {head, size};

	return size && head[0] == '{' && ops_string_contains(text, "\"rocprofiler-sdk-tool\"") && !ops_string_contains(text, "\"traceEvents\"");
}

enum ops_code ops_read_rocprof(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct rocprof r = {.transcoder = {rocprof_next}, .in = reading};
	enum ops_code code = ops_reading_all(reading, &r.bytes);

	if (!code)
		code = rocprof_open_file(&r);
	if (!code)
		code = ops_read_transcoded(reading, &r.transcoder, ret_trace);
	OPS_ARRAY_RELEASE(&r.texts);
	OPS_ARRAY_RELEASE(&r.kinds);
	OPS_ARRAY_RELEASE(&r.agents);
	ops_map_release(&r.kernels);
	ops_map_release(&r.markers);
	ops_buffer_release(&r.devices);
	ops_buffer_release(&r.text);
	ops_buffer_release(&r.bytes);
	return code;
}

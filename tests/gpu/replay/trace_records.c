/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts traces to CUPTI's records; see trace_records.h.
 */
#include "trace_records.h"

#include <stdlib.h>
#include <string.h>

#include <cupti.h>

#include <cupti_activity_deprecated.h>

#include "base/json_walk.h"
#include "base/text.h"
#include "records.h"

#define CUPTI_12_9 28
#define DEVICE_LAG_NS INT64_C(1000000000) /* of the host's clock behind the device's */
#define RUNTIME_ID_MADE_UP 3000           /* from here on ids of calls whose file has none */
#define CALLS_MAX 1000

struct writer {
	FILE *file;
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct {
		CUpti_CallbackDomain domain;
		uint32_t name; /* string id */
		uint32_t id;
	} calls[CALLS_MAX];
	size_t call_count;
};

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static const char *name_of(const struct writer *writer, uint32_t row)
{
	return ops_trace_string(writer->trace, writer->events->name[row]).bytes;
}

static int64_t integer(const struct writer *writer, uint32_t row, const char *key, int64_t default_value)
{
	struct ops_string json;
	int64_t value;

	return ops_event_arg(writer->trace, row, key, &json) &&
	                       ops_json_parse_integer(json, &value)
	               ? value
	               : default_value;
}

/* "[264,1,1]" */
static void triple(const struct writer *writer, uint32_t row, const char *key, int32_t *x, int32_t *y, int32_t *z)
{
	struct ops_string json;

	if (ops_event_arg(writer->trace, row, key, &json))
		sscanf(json.bytes, " [ %d , %d , %d", x, y, z);
}

static uint32_t correlation_of(const struct writer *writer, uint32_t row)
{
	return writer->events->correlation && writer->events->correlation[row] > 0
	               ? (uint32_t)writer->events->correlation[row]
	               : 0;
}

static const struct ops_track *track_of(const struct writer *writer, uint32_t row)
{
	size_t count;

	return &ops_trace_tracks(writer->trace, &count)[writer->events->track[row]];
}

static void record(const struct writer *writer, const void *what, size_t size)
{
	records_write(writer->file, RECORDS_RECORD, what, size, NULL, 0);
}

/* What the records of work on a device call alike. */
#define PLACE(writer, row, made)                                                                                         \
	((made).start = (uint64_t)((writer)->events->start_ns[row] + DEVICE_LAG_NS),                                      \
	 (made).end = (uint64_t)((writer)->events->end_ns[row] + DEVICE_LAG_NS),                                          \
	 (made).deviceId = (uint32_t)integer(writer, row, "device", 0),                                                   \
	 (made).contextId = (uint32_t)integer(writer, row, "context", 1),                                                 \
	 (made).streamId = (uint32_t)integer(writer, row, "stream", 0),                                                   \
	 (made).correlationId = correlation_of(writer, row),                                                              \
	 (made).graphId = (uint32_t)integer(writer, row, "graph id", 0),                                                  \
	 (made).graphNodeId = (uint64_t)integer(writer, row, "graph node id", 0))

static void write_kernel(const struct writer *writer, uint32_t row)
{
	CUpti_ActivityKernel9 ran;

	memset(&ran, 0, sizeof(ran));
	ran.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	PLACE(writer, row, ran);
	ran.registersPerThread = (uint16_t)integer(writer, row, "registers per thread", 0);
	ran.dynamicSharedMemory = (int32_t)integer(writer, row, "shared memory", 0);
	triple(writer, row, "grid", &ran.gridX, &ran.gridY, &ran.gridZ);
	triple(writer, row, "block", &ran.blockX, &ran.blockY, &ran.blockZ);
	ran.name = (const char *)(uintptr_t)(writer->events->name[row] + 1); /* the number of the text */
	record(writer, &ran, sizeof(ran));
}

static uint8_t find(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (uint8_t)i;
	return 0;
}

static uint8_t memory_kind(const char *name)
{
	static const char *const names[] = {"Unknown", "Pageable", "Pinned", "Device",
	                                    "Array",   "Managed",  "Device Static", "Managed Static"};

	return find(names, sizeof(names) / sizeof(names[0]), name);
}

static void write_copy(const struct writer *writer, uint32_t row)
{
	static const char *const kinds[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
	                                    "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
	char kind[16] = "", from[32] = "", to[32] = "";
	CUpti_ActivityMemcpy6 moved;

	sscanf(name_of(writer, row), "Memcpy %15s (%31[^-] -> %31[^)]", kind, from, to);
	if (from[0])
		from[strlen(from) - 1] = '\0'; /* the space before the arrow */
	memset(&moved, 0, sizeof(moved));
	moved.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
	PLACE(writer, row, moved);
	moved.copyKind = find(kinds, sizeof(kinds) / sizeof(kinds[0]), kind);
	moved.srcKind = memory_kind(from);
	moved.dstKind = memory_kind(to);
	moved.bytes = (uint64_t)integer(writer, row, "bytes", 0);
	record(writer, &moved, sizeof(moved));
}

static void write_set(const struct writer *writer, uint32_t row)
{
	CUpti_ActivityMemset4 filled;
	char memory[32] = "";

	sscanf(name_of(writer, row), "Memset (%31[^)]", memory);
	memset(&filled, 0, sizeof(filled));
	filled.kind = CUPTI_ACTIVITY_KIND_MEMSET;
	PLACE(writer, row, filled);
	filled.memoryKind = memory_kind(memory);
	filled.bytes = (uint64_t)integer(writer, row, "bytes", 0);
	record(writer, &filled, sizeof(filled));
}

/* A row says which recording of the event it waits for, or in old files only its stream: CUPTI would have sent that before. */
static void write_sync(const struct writer *writer, uint32_t row)
{
	static const char *const types[] = {"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
	int64_t recorded_by = integer(writer, row, "wait_on_cuda_event_record_corr_id",
	                              (int64_t)correlation_of(writer, row) - 1);
	int64_t stream = integer(writer, row, "wait_on_stream", -1);
	CUpti_ActivitySynchronization waited;
	CUpti_ActivityCudaEvent event;

	memset(&waited, 0, sizeof(waited));
	waited.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
	waited.type = find(types, sizeof(types) / sizeof(types[0]), name_of(writer, row));
	waited.start = (uint64_t)(writer->events->start_ns[row] + DEVICE_LAG_NS);
	waited.end = (uint64_t)(writer->events->end_ns[row] + DEVICE_LAG_NS);
	waited.correlationId = correlation_of(writer, row);
	waited.contextId = (uint32_t)integer(writer, row, "context", 1);
	waited.streamId = (uint32_t)integer(writer, row, "stream", -1);
	waited.cudaEventId = (uint32_t)integer(writer, row, "wait_on_cuda_event_id", 0);
	memset(&event, 0, sizeof(event));
	event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
	event.contextId = waited.contextId;
	event.eventId = waited.cudaEventId;
	event.correlationId = (uint32_t)recorded_by;
	event.streamId = (uint32_t)stream;
	if (stream >= 0)
		record(writer, &event, sizeof(event));
	record(writer, &waited, sizeof(waited));
}

static void write_overhead(const struct writer *writer, uint32_t row)
{
	static const struct {
		CUpti_ActivityOverheadKind kind;
		const char *name;
	} kinds[] = {
		{CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, "Driver Compiler"},
		{CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, "Buffer Flush"},
		{CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, "Instrumentation"},
		{CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, "Resource"},
		{CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, "Lazy Function Loading"},
		{CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, "Command Buffer Full"},
		{CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, "Activity Buffer Request"},
	};
	CUpti_ActivityOverhead spent;

	memset(&spent, 0, sizeof(spent));
	spent.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name_of(writer, row)) == 0)
			spent.overheadKind = kinds[i].kind;
	spent.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
	spent.start = (uint64_t)(writer->events->start_ns[row] + DEVICE_LAG_NS);
	spent.end = (uint64_t)(writer->events->end_ns[row] + DEVICE_LAG_NS);
	spent.objectId.pt.threadId = (uint32_t)track_of(writer, row)->tid;
	record(writer, &spent, sizeof(spent));
}

static uint32_t call_id(const struct writer *writer, CUpti_CallbackDomain domain, uint32_t name)
{
	for (size_t i = 0; i < writer->call_count; i++)
		if (writer->calls[i].domain == domain && writer->calls[i].name == name)
			return writer->calls[i].id;
	return 0;
}

static CUpti_CallbackDomain domain_of(const struct writer *writer, uint32_t row)
{
	return writer->events->kind[row] == OPS_EVENT_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
}

static void write_call(const struct writer *writer, uint32_t row)
{
	bool runtime = writer->events->kind[row] == OPS_EVENT_RUNTIME;
	CUpti_ActivityAPI made;

	memset(&made, 0, sizeof(made));
	made.kind = runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
	made.cbid = call_id(writer, domain_of(writer, row), writer->events->name[row]);
	made.start = (uint64_t)(writer->events->start_ns[row] + DEVICE_LAG_NS);
	made.end = (uint64_t)(writer->events->end_ns[row] + DEVICE_LAG_NS);
	made.threadId = (uint32_t)track_of(writer, row)->tid;
	made.correlationId = correlation_of(writer, row);
	record(writer, &made, sizeof(made));
}

static void write_range(const struct writer *writer, uint32_t row)
{
	struct ops_string name = ops_trace_string(writer->trace, writer->events->name[row]);
	const struct records_range range = {(uint32_t)track_of(writer, row)->tid,
	                                    writer->events->kind[row] == OPS_EVENT_CPU_OP, writer->events->start_ns[row],
	                                    writer->events->end_ns[row]};

	records_write(writer->file, RECORDS_RANGE, &range, sizeof(range), name.bytes, name.size);
}

/* --- what is behind the rows ---------------------------------------------------------------------------------------- */

/* Names the call of a row, once. */
static void name_call(struct writer *writer, uint32_t row)
{
	CUpti_CallbackDomain domain = domain_of(writer, row);
	uint32_t name = writer->events->name[row];
	uint32_t call[2] = {domain, (uint32_t)integer(writer, row, "cbid", RUNTIME_ID_MADE_UP + (int64_t)writer->call_count)};
	char versioned[256];

	if (call_id(writer, domain, name) || writer->call_count == CALLS_MAX)
		return;
	writer->calls[writer->call_count].domain = domain;
	writer->calls[writer->call_count].name = name;
	writer->calls[writer->call_count++].id = call[1];
	snprintf(versioned, sizeof(versioned), "%s%s", name_of(writer, row), domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "_v7000" : "");
	records_write(writer->file, RECORDS_CALL, call, sizeof(call), versioned, strlen(versioned) + 1);
}

static void read_property(struct records_device *device, struct ops_string key, struct ops_string value)
{
	static const struct {
		const char *key;
		size_t place;
	} known[] = {
		{"id", offsetof(struct records_device, ordinal)},
		{"computeMajor", offsetof(struct records_device, compute_major)},
		{"computeMinor", offsetof(struct records_device, compute_minor)},
		{"numSms", offsetof(struct records_device, multiprocessors)},
		{"warpSize", offsetof(struct records_device, warp_size)},
		{"maxThreadsPerMultiprocessor", offsetof(struct records_device, threads_max)},
		{"regsPerMultiprocessor", offsetof(struct records_device, registers)},
		{"sharedMemPerMultiprocessor", offsetof(struct records_device, shared_bytes)},
	};
	int64_t number;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (ops_string_is(key, known[i].key) && ops_json_parse_integer(value, &number))
			*(uint32_t *)(void *)((char *)device + known[i].place) = (uint32_t)number;
}

static void write_devices(const struct writer *writer)
{
	struct ops_string properties;
	struct ops_json_walk list;
	struct ops_string json;

	if (!ops_trace_find_metadata(writer->trace, "deviceProperties", &json))
		return;
	list = ops_json_walk(json.bytes, json.size);
	while (ops_json_next_element(&list, &properties)) {
		struct ops_json_walk members = ops_json_walk(properties.bytes, properties.size);
		struct ops_string name, value;
		struct records_device device = {0};

		while (ops_json_next_member(&members, &name, &value))
			read_property(&device, name, value);
		device.shared_reserved_bytes = device.compute_major >= 8 ? 1024 : 0;
		records_write(writer->file, RECORDS_DEVICE, &device, sizeof(device), properties.bytes, properties.size);
	}
}

static void write_clock(const struct writer *writer, int64_t host_ns)
{
	const struct records_clock clock = {host_ns + DEVICE_LAG_NS, host_ns};

	records_write(writer->file, RECORDS_CLOCK, &clock, sizeof(clock), NULL, 0);
}

static void write_names(struct writer *writer)
{
	const struct ops_events *e = writer->events;

	for (uint32_t row = 0; row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_RUNTIME || e->kind[row] == OPS_EVENT_DRIVER)
			name_call(writer, row);
	for (uint32_t id = 0; id < ops_trace_string_count(writer->trace); id++) {
		struct ops_string string = ops_trace_string(writer->trace, id);
		uint64_t number = (uint64_t)id + 1;

		records_write(writer->file, RECORDS_TEXT, &number, sizeof(number), string.bytes, string.size);
	}
}

static void write_row(const struct writer *writer, uint32_t row)
{
	static void (*const writers[OPS_EVENT_KIND_COUNT])(const struct writer *writer, uint32_t row) = {
		[OPS_EVENT_KERNEL] = write_kernel,   [OPS_EVENT_GPU_MEMCPY] = write_copy,
		[OPS_EVENT_GPU_MEMSET] = write_set,  [OPS_EVENT_SYNC] = write_sync,
		[OPS_EVENT_RUNTIME] = write_call,    [OPS_EVENT_DRIVER] = write_call,
		[OPS_EVENT_CPU_OP] = write_range,    [OPS_EVENT_USER_ANNOTATION] = write_range,
		[OPS_EVENT_OVERHEAD] = write_overhead,
	};
	uint8_t kind = writer->events->kind[row];

	if (writers[kind])
		writers[kind](writer, row);
}

void write_trace_records(FILE *file, const struct ops_trace *trace)
{
	struct writer writer = {.file = file, .trace = trace, .events = ops_trace_events(trace)};
	const struct ops_events *e = writer.events;
	int64_t end_ns = 0;

	for (uint32_t row = 0; row < e->count; row++)
		end_ns = e->end_ns[row] > end_ns ? e->end_ns[row] : end_ns;
	records_write_head(file, CUPTI_12_9);
	write_clock(&writer, e->count ? e->start_ns[0] : 0);
	write_devices(&writer);
	write_names(&writer);
	for (uint32_t row = 0; row < e->count; row++)
		write_row(&writer, row);
	write_clock(&writer, end_ns + 1);
}

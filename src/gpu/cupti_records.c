/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding CUPTI's records; see cupti_records.h.
 */
#include "gpu/cupti_records.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <cupti_activity_deprecated.h>

#include "base/alloc.h"
#include "base/json.h"

/* What holds for the records of every library that is loaded (OPS_CUPTI_VERSION_MIN). */
#define SAME_PLACE(old, new, field) _Static_assert(offsetof(old, field) == offsetof(new, field), "records of CUPTI")
SAME_PLACE(CUpti_ActivityKernel8, CUpti_ActivityKernel9, graphId);
SAME_PLACE(CUpti_ActivityKernel8, CUpti_ActivityKernel9, name);
SAME_PLACE(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, graphNodeId);
SAME_PLACE(CUpti_ActivityMemset4, CUpti_ActivityMemset5, graphNodeId);

typedef CUpti_ActivityKernel8 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
typedef CUpti_ActivityMemcpyPtoP4 peer_copy_record;
typedef CUpti_ActivityMemset4 set_record;
typedef CUpti_ActivitySynchronization sync_record;
typedef CUpti_ActivityOverhead overhead_record;

#define CALLS_MAX 4096 /* callback ids are less */

/* abi::__cxa_demangle */
typedef char *demangle(const char *mangled, char *buffer, size_t *size, int *status);

/* --- life ----------------------------------------------------------------------------------------------------------- */

void ops_cupti_decoder_init(struct ops_cupti_decoder *decoder, const struct ops_cupti *library,
                            struct ops_activities *activities, uint32_t kinds)
{
	*decoder = (struct ops_cupti_decoder){.library = library, .activities = activities, .kinds = kinds};
}

void ops_cupti_decoder_release(struct ops_cupti_decoder *decoder)
{
	OPS_ARRAY_RELEASE(&decoder->devices);
	ops_intern_release(&decoder->names);
	OPS_ARRAY_RELEASE(&decoder->name_texts);
	ops_intern_release(&decoder->shapes);
	OPS_ARRAY_RELEASE(&decoder->details);
	ops_free(decoder->runtime_calls);
	ops_free(decoder->driver_calls);
	ops_buffer_release(&decoder->text);
}

/* --- texts ---------------------------------------------------------------------------------------------------------- */

/* The demangler of libstdc++, which is in every process with torch; without one names stay as they are. */
static demangle *find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

	return library ? (demangle *)(uintptr_t)dlsym(library, "__cxa_demangle") : NULL;
}

/* A kernel's name as its source has it; 0 when memory is out. */
static uint32_t kernel_name(struct ops_cupti_decoder *decoder, const char *mangled)
{
	uint32_t number;
	uint32_t *text;
	char *readable = NULL;
	int status;

	if (!mangled)
		return 0;
	number = ops_intern_add(&decoder->names, mangled, strlen(mangled));
	if (number < decoder->name_texts.count)
		return decoder->name_texts.items[number];
	text = number == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&decoder->name_texts);
	if (!text)
		return 0;
	if (strncmp(mangled, "_Z", 2) == 0) {
		demangle *demangler = find_demangler();

		readable = demangler ? demangler(mangled, NULL, NULL, &status) : NULL;
	}
	*text = readable ? ops_activities_text(decoder->activities, readable, strlen(readable))
	                 : ops_activities_text(decoder->activities, mangled, strlen(mangled));
	free(readable);
	return *text;
}

/* The name of a call, without the version that CUPTI appends: "cudaLaunchKernel_v7000". */
static uint32_t call_name(struct ops_cupti_decoder *decoder, CUpti_CallbackDomain domain, uint32_t callback)
{
	bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
	uint32_t **calls = runtime ? &decoder->runtime_calls : &decoder->driver_calls;
	const char *name = NULL;
	size_t size;

	if (!*calls)
		*calls = ops_alloc_zeroed(CALLS_MAX, sizeof(**calls));
	if (!*calls || callback >= CALLS_MAX)
		return ops_activities_text(decoder->activities, "INVALID", 7);
	if ((*calls)[callback])
		return (*calls)[callback];
	if (decoder->library->cuptiGetCallbackName(domain, callback, &name) != CUPTI_SUCCESS || !name)
		name = "INVALID";
	size = strlen(name);
	if (runtime) {
		const char *version = strstr(name, "_v");

		while (version && version[2 + strspn(version + 2, "0123456789")])
			version = strstr(version + 2, "_v");
		if (version && version[2])
			size = (size_t)(version - name);
	}
	return (*calls)[callback] = ops_activities_text(decoder->activities, name, size);
}

/* What all rows of one shape say, for the text in decoder->text is made once for each shape. */
static bool known_details(struct ops_cupti_decoder *decoder, const void *shape, size_t size, uint32_t *ret_details)
{
	uint32_t number = ops_intern_find(&decoder->shapes, shape, size);

	if (number != OPS_INTERN_NONE)
		*ret_details = decoder->details.items[number];
	decoder->text.size = 0;
	return number != OPS_INTERN_NONE;
}

/* The id of decoder->text, kept for further records of that shape. */
static uint32_t keep_details(struct ops_cupti_decoder *decoder, const void *shape, size_t size)
{
	uint32_t *kept;
	uint32_t details;

	if (decoder->text.failed)
		return 0;
	details = ops_activities_text(decoder->activities, decoder->text.bytes, decoder->text.size);
	kept = OPS_ARRAY_PUSH(&decoder->details);
	if (kept && ops_intern_add(&decoder->shapes, shape, size) == OPS_INTERN_NONE)
		decoder->details.count--;
	else if (kept)
		*kept = details;
	return details;
}

static void put_number(struct ops_buffer *text, const char *key, double value)
{
	char digits[32];

	ops_buffer_printf(text, ",\"%s\":", key);
	ops_buffer_append(text, digits, (size_t)(ops_json_double_to(digits, value) - digits));
}

/* What the records of work on a device call alike, though they lie at different places. */
#define PLACE(activity, record)                                                                    \
	((activity)->start_ns = (int64_t)(record)->start, (activity)->end_ns = (int64_t)(record)->end,  \
	 (activity)->device = (uint16_t)(record)->deviceId, (activity)->stream = (record)->streamId,   \
	 (activity)->correlation = (record)->correlationId)

/* --- kernels -------------------------------------------------------------------------------------------------------- */

/* What kernels have in common that differ in time and name alone. No padding: it is compared as bytes. */
struct launch_shape {
	struct ops_kernel_shape shape;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t graph;
	uint32_t unused;
	uint64_t graph_node;
};

static const struct ops_multiprocessor *device_of(const struct ops_cupti_decoder *decoder, uint32_t ordinal)
{
	static const struct ops_multiprocessor unknown;

	return ordinal < decoder->devices.count ? &decoder->devices.items[ordinal] : &unknown;
}

static void put_limits(struct ops_buffer *text, const struct ops_occupancy *occupancy)
{
	static const char *const names[] = {"WARPS", "REGS", "SMEM", "BLOCKS"};
	const char *separator = "";

	ops_buffer_append_text(text, ",\"limitingFactors\":\"");
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(occupancy->limits & 1u << i))
			continue;
		ops_buffer_append_text(text, separator);
		ops_buffer_append_text(text, names[i]);
		separator = "|";
	}
	ops_buffer_append_text(text, "\"");
}

static void put_occupancy(struct ops_buffer *text, const struct ops_occupancy *occupancy)
{
	put_number(text, "blocks per SM", occupancy->blocks_a_multiprocessor);
	put_number(text, "warps per SM", occupancy->warps_a_multiprocessor);
	ops_buffer_printf(text, ",\"est. achieved occupancy %%\":%d", (int)(occupancy->percent + 0.5));
	ops_buffer_printf(text, ",\"occupancy\":{\"activeBlocksPerMultiprocessor\":%u", occupancy->active_blocks);
	put_limits(text, occupancy);
	ops_buffer_printf(text,
	                  ",\"blockLimitRegs\":%u,\"blockLimitSharedMem\":%u,\"blockLimitWarps\":%u,\"blockLimitBlocks\":%u"
	                  ",\"allocatedRegistersPerBlock\":%u,\"allocatedSharedMemPerBlock\":%u}",
	                  occupancy->by_registers, occupancy->by_shared, occupancy->by_warps, occupancy->by_blocks,
	                  occupancy->registers_a_block, occupancy->shared_a_block);
}

static uint32_t launch_details(struct ops_cupti_decoder *decoder, const struct launch_shape *launch)
{
	const struct ops_multiprocessor *device = device_of(decoder, launch->device);
	const uint32_t *grid = launch->shape.grid, *block = launch->shape.block;
	struct ops_buffer *text = &decoder->text;
	uint32_t details = 0;

	if (known_details(decoder, launch, sizeof(*launch), &details))
		return details;
	ops_buffer_printf(text,
	                  "\"queued\":0,\"device\":%u,\"context\":%u,\"stream\":%u,\"registers per thread\":%u,\"shared memory\":%u",
	                  launch->device, launch->context, launch->stream, launch->shape.registers,
	                  launch->shape.shared_bytes);
	ops_buffer_printf(text, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", grid[0], grid[1], grid[2], block[0], block[1],
	                  block[2]);
	if (device->count) {
		struct ops_occupancy occupancy = ops_occupancy_of(device, &launch->shape);

		put_occupancy(text, &occupancy);
	}
	if (launch->graph_node)
		ops_buffer_printf(text, ",\"graph id\":%u,\"graph node id\":%llu", launch->graph,
		                  (unsigned long long)launch->graph_node);
	return keep_details(decoder, launch, sizeof(*launch));
}

static void take_kernel(struct ops_cupti_decoder *decoder, const kernel_record *record, struct ops_activity *activity)
{
	struct launch_shape launch = {
		.shape = {.grid = {(uint32_t)record->gridX, (uint32_t)record->gridY, (uint32_t)record->gridZ},
	                  .block = {(uint32_t)record->blockX, (uint32_t)record->blockY, (uint32_t)record->blockZ},
	                  .registers = record->registersPerThread,
	                  .shared_bytes = (uint32_t)record->staticSharedMemory + (uint32_t)record->dynamicSharedMemory},
		.device = record->deviceId,
		.context = record->contextId,
		.stream = record->streamId,
		.graph = record->graphId,
		.graph_node = record->graphNodeId,
	};

	activity->kind = OPS_ACTIVITY_KERNEL;
	PLACE(activity, record);
	activity->name = kernel_name(decoder, record->name);
	activity->details = launch_details(decoder, &launch);
}

/* --- copies and sets ------------------------------------------------------------------------------------------------ */

static const char *memory_name(uint32_t kind)
{
	static const char *const names[] = {"Unknown", "Pageable", "Pinned", "Device",
	                                    "Array",   "Managed",  "Device Static", "Managed Static"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "Unrecognized";
}

static const char *copy_name(uint32_t kind)
{
	static const char *const names[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
	                                    "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "<unknown>";
}

/* What copies and sets have in common that differ in time and size alone. No padding. */
struct copy_shape {
	uint32_t kind; /* CUpti_ActivityKind */
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t graph;
	uint32_t peers[4]; /* devices and contexts of the source and the destination */
	uint32_t unused;
	uint64_t graph_node;
};

static uint32_t copy_details(struct ops_cupti_decoder *decoder, const struct copy_shape *copy)
{
	struct ops_buffer *text = &decoder->text;
	uint32_t details = 0;

	if (known_details(decoder, copy, sizeof(*copy), &details))
		return details;
	ops_buffer_printf(text, "\"device\":%u,\"context\":%u,\"stream\":%u", copy->device, copy->context, copy->stream);
	if (copy->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
		ops_buffer_printf(text,
		                  ",\"fromDevice\":%u,\"inDevice\":%u,\"toDevice\":%u,\"fromContext\":%u,\"inContext\":%u,\"toContext\":%u",
		                  copy->peers[0], copy->device, copy->peers[2], copy->peers[1], copy->context, copy->peers[3]);
	if (copy->graph_node)
		ops_buffer_printf(text, ",\"graph id\":%u,\"graph node id\":%llu", copy->graph,
		                  (unsigned long long)copy->graph_node);
	return keep_details(decoder, copy, sizeof(*copy));
}

/* "Memcpy HtoD (Pageable -> Device)" */
static uint32_t copy_text(struct ops_cupti_decoder *decoder, uint32_t kind, uint32_t from, uint32_t to)
{
	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "Memcpy %s (%s -> %s)", copy_name(kind), memory_name(from), memory_name(to));
	return decoder->text.failed ? 0
	                            : ops_activities_text(decoder->activities, decoder->text.bytes, decoder->text.size);
}

#define COPY_SHAPE(record, ...)                                                                    \
	{.kind = (record)->kind, .device = (record)->deviceId, .context = (record)->contextId,         \
	 .stream = (record)->streamId, .graph = (record)->graphId, .graph_node = (record)->graphNodeId, __VA_ARGS__}

static void take_copy(struct ops_cupti_decoder *decoder, const copy_record *record, struct ops_activity *activity)
{
	struct copy_shape copy = COPY_SHAPE(record, .peers = {0});

	activity->kind = OPS_ACTIVITY_MEMCPY;
	PLACE(activity, record);
	activity->bytes = record->bytes;
	activity->name = copy_text(decoder, record->copyKind, record->srcKind, record->dstKind);
	activity->details = copy_details(decoder, &copy);
}

static void take_peer_copy(struct ops_cupti_decoder *decoder, const peer_copy_record *record,
                           struct ops_activity *activity)
{
	struct copy_shape copy = COPY_SHAPE(record, .peers = {record->srcDeviceId, record->srcContextId,
	                                                       record->dstDeviceId, record->dstContextId});

	activity->kind = OPS_ACTIVITY_MEMCPY;
	PLACE(activity, record);
	activity->bytes = record->bytes;
	activity->name = copy_text(decoder, record->copyKind, record->srcKind, record->dstKind);
	activity->details = copy_details(decoder, &copy);
}

static void take_set(struct ops_cupti_decoder *decoder, const set_record *record, struct ops_activity *activity)
{
	struct copy_shape set = COPY_SHAPE(record, .peers = {0});

	activity->kind = OPS_ACTIVITY_MEMSET;
	PLACE(activity, record);
	activity->bytes = record->bytes;
	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "Memset (%s)", memory_name(record->memoryKind));
	if (!decoder->text.failed)
		activity->name = ops_activities_text(decoder->activities, decoder->text.bytes, decoder->text.size);
	activity->details = copy_details(decoder, &set);
}

/* --- calls and what else there is ----------------------------------------------------------------------------------- */

/* Calls of the driver are rows where nothing of the runtime is around them: what launches, as compiled code does. */
static bool is_shown_driver_call(uint32_t callback)
{
	return callback == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel || callback == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx;
}

static void take_call(struct ops_cupti_decoder *decoder, const CUpti_ActivityAPI *record, struct ops_activity *activity)
{
	bool runtime = record->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
	const uint64_t shape[1] = {(uint64_t)runtime << 32 | record->cbid};

	if (!runtime && !is_shown_driver_call(record->cbid)) {
		activity->kind = OPS_ACTIVITY_KIND_COUNT;
		return;
	}
	activity->kind = runtime ? OPS_ACTIVITY_RUNTIME : OPS_ACTIVITY_DRIVER;
	activity->start_ns = (int64_t)record->start;
	activity->end_ns = (int64_t)record->end;
	activity->thread = record->threadId;
	activity->correlation = record->correlationId;
	activity->name = call_name(decoder, runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, record->cbid);
	if (!known_details(decoder, shape, sizeof(shape), &activity->details)) {
		ops_buffer_printf(&decoder->text, "\"cbid\":%u", record->cbid);
		activity->details = keep_details(decoder, shape, sizeof(shape));
	}
}

static void take_sync(struct ops_cupti_decoder *decoder, const sync_record *record, struct ops_activity *activity)
{
	static const char *const names[] = {"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
	uint32_t type = record->type < sizeof(names) / sizeof(names[0]) ? record->type : 0;

	activity->kind = OPS_ACTIVITY_SYNC;
	activity->start_ns = (int64_t)record->start;
	activity->end_ns = (int64_t)record->end;
	activity->stream = record->streamId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? -1 : (int64_t)record->streamId;
	activity->correlation = record->correlationId;
	activity->name = ops_activities_text(decoder->activities, names[type], strlen(names[type]));
	decoder->text.size = 0;
	ops_buffer_printf(&decoder->text, "\"cuda_sync_kind\":\"%s\",\"stream\":%lld,\"context\":%u", names[type],
	                  (long long)activity->stream, record->contextId);
	if (!decoder->text.failed)
		activity->details =
			ops_activities_text(decoder->activities, decoder->text.bytes, decoder->text.size);
}

static const char *overhead_name(uint32_t kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
		return "Driver Compiler";
	case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
		return "Buffer Flush";
	case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
		return "Instrumentation";
	case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
		return "Resource";
	case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
		return "Runtime Triggered Module Loading";
	case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
		return "Lazy Function Loading";
	case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
		return "Command Buffer Full";
	case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
		return "Activity Buffer Request";
	default:
		return "Unknown";
	}
}

static void take_overhead(struct ops_cupti_decoder *decoder, const overhead_record *record, struct ops_activity *activity)
{
	const char *name = overhead_name(record->overheadKind);

	activity->kind = OPS_ACTIVITY_OVERHEAD;
	activity->start_ns = (int64_t)record->start;
	activity->end_ns = (int64_t)record->end;
	if (record->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
		activity->thread = record->objectId.pt.threadId;
	activity->name = ops_activities_text(decoder->activities, name, strlen(name));
}

void ops_cupti_decode(struct ops_cupti_decoder *decoder, const CUpti_Activity *record)
{
	struct ops_activity activity = {.kind = OPS_ACTIVITY_KIND_COUNT};
	const void *bytes = record;

	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		take_kernel(decoder, bytes, &activity);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		take_copy(decoder, bytes, &activity);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		take_peer_copy(decoder, bytes, &activity);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		take_set(decoder, bytes, &activity);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER:
		take_call(decoder, bytes, &activity);
		break;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		take_sync(decoder, bytes, &activity);
		break;
	case CUPTI_ACTIVITY_KIND_OVERHEAD:
		take_overhead(decoder, bytes, &activity);
		break;
	default:
		break;
	}
	if (activity.kind != OPS_ACTIVITY_KIND_COUNT && (decoder->kinds & OPS_ACTIVITY_BIT(activity.kind)))
		ops_activities_add(decoder->activities, &activity);
}

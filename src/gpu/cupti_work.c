/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work: kernels, copies, sets.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "gpu/cupti_decoder.h"

/* Asserts that the records of all supported libraries (OPS_CUPTI_VERSION_MIN) agree. */
#define SAME_PLACE(old, new, field) _Static_assert(offsetof(old, field) == offsetof(new, field), "records of CUPTI")
SAME_PLACE(cupti_kernel, CUpti_ActivityKernel13, name);
SAME_PLACE(cupti_kernel, CUpti_ActivityKernel13, graphId);
SAME_PLACE(cupti_kernel, CUpti_ActivityKernel13, channelType);
SAME_PLACE(CUpti_ActivityKernel11, CUpti_ActivityKernel13, priority);
SAME_PLACE(cupti_copy, CUpti_ActivityMemcpy7, channelType);
SAME_PLACE(cupti_set, CUpti_ActivityMemset5, channelType);

#define VERSION_PRIORITY 130100u /* since this version kernels have a priority */

static void cupti_work_put_number(struct ops_buffer *text, const char *key, double value)
{
	char digits[32];

	ops_buffer_printf(text, ",\"%s\":", key);
	ops_buffer_append(text, digits, (size_t)(ops_json_double_to(digits, value) - digits));
}

static void put_graph(struct ops_buffer *text, uint32_t graph, uint64_t node)
{
	if (node)
		ops_buffer_printf(text, ",\"graph id\":%u,\"graph node id\":%llu", graph, (unsigned long long)node);
}

/* Details of a node are not shared with other nodes. */
static uint32_t of_node(struct ops_cupti_decoder *decoder, uint32_t details, uint64_t node)
{
	if (details && node)
		ops_activities_node(decoder->activities, details, node);
	return details;
}

static void put_channel(struct ops_buffer *text, uint32_t channel, uint32_t type)
{
	if (type != CUPTI_CHANNEL_TYPE_INVALID)
		ops_buffer_printf(text, ",\"channel\":%u,\"channel_type\":%u", channel, type);
}

/* Copies the members that all records of device work have, at different offsets. */
#define PLACE(activity, record)                                                                    \
	((activity)->start_ns = (int64_t)(record)->start, (activity)->end_ns = (int64_t)(record)->end,  \
	 (activity)->device = (uint16_t)(record)->deviceId, (activity)->stream = (int32_t)(record)->streamId,   \
	 (activity)->correlation = (record)->correlationId)

/* The device of a wait is only known from its context. */
static void cupti_work_note_context(struct ops_cupti_decoder *decoder, uint32_t context, uint32_t device)
{
	uint32_t number = ops_intern_add(&decoder->contexts, &context, sizeof(context));
	uint16_t *known = number == decoder->context_devices.count ? OPS_ARRAY_PUSH(&decoder->context_devices) : NULL;

	if (known)
		*known = (uint16_t)device;
}

/* --- kernels -------------------------------------------------------------------------------------------------------- */

static const struct ops_multiprocessor *cupti_work_device_of(const struct ops_cupti_decoder *decoder, uint32_t ordinal)
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
	ops_buffer_append_text(text, occupancy->limits ? "\"" : "none\"");
}

static void put_occupancy(struct ops_buffer *text, const struct ops_occupancy *occupancy)
{
	cupti_work_put_number(text, "blocks per SM", occupancy->blocks_a_multiprocessor);
	cupti_work_put_number(text, "warps per SM", occupancy->warps_a_multiprocessor);
	ops_buffer_printf(text, ",\"est. achieved occupancy %%\":%d", (int)(occupancy->percent + 0.5));
	ops_buffer_printf(text, ",\"occupancy\":{\"activeBlocksPerMultiprocessor\":%u", occupancy->active_blocks);
	put_limits(text, occupancy);
	ops_buffer_printf(text,
	                  ",\"blockLimitRegs\":%u,\"blockLimitSharedMem\":%u,\"blockLimitWarps\":%u,\"blockLimitBlocks\":%u"
	                  ",\"blockLimitBarriers\":%u,\"allocatedRegistersPerBlock\":%u,\"allocatedSharedMemPerBlock\":%u}",
	                  occupancy->by_registers, occupancy->by_shared, occupancy->by_warps, occupancy->by_blocks,
	                  OPS_OCCUPANCY_NO_LIMIT /* CUPTI does not report barriers */, occupancy->registers_a_block,
	                  occupancy->shared_a_block);
}

static uint32_t make_launch_details(struct ops_cupti_decoder *decoder, const struct ops_cupti_launch *launch)
{
	const struct ops_multiprocessor *device = cupti_work_device_of(decoder, launch->device);
	const uint32_t *grid = launch->shape.grid, *block = launch->shape.block;
	struct ops_buffer *text = &decoder->text;
	uint32_t details;

	if (ops_cupti_known(decoder, launch, sizeof(*launch), &details))
		return details;
	cupti_work_note_context(decoder, launch->context, launch->device);
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
	put_graph(text, launch->graph, launch->graph_node);
	if (decoder->library->version >= VERSION_PRIORITY)
		ops_buffer_printf(text, ",\"priority\":%d", launch->priority);
	put_channel(text, launch->channel, launch->channel_type);
	return of_node(decoder, ops_cupti_keep(decoder, launch, sizeof(*launch)), launch->graph_node);
}

static uint32_t launch_details(struct ops_cupti_decoder *decoder, const struct ops_cupti_launch *launch)
{
	uint64_t differing = (uint64_t)launch->shape.grid[0] << 32 ^ (uint64_t)launch->stream << 16 ^ launch->shape.block[0] ^
	                     launch->graph_node << 8;
	size_t place = differing * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (OPS_CUPTI_RECENT_LAUNCHES - 1);

	if (!decoder->recent_launches[place].details ||
	    memcmp(&decoder->recent_launches[place].launch, launch, sizeof(*launch)) != 0) {
		decoder->recent_launches[place].launch = *launch;
		decoder->recent_launches[place].details = make_launch_details(decoder, launch);
	}
	return decoder->recent_launches[place].details;
}

static int32_t priority_of(const struct ops_cupti_decoder *decoder, const void *bytes, size_t size)
{
	const CUpti_ActivityKernel11 *record = bytes;

	return decoder->library->version >= VERSION_PRIORITY && size >= sizeof(*record) ? record->priority : 0;
}

void ops_cupti_decode_kernel(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const cupti_kernel *record = bytes;
	struct ops_cupti_launch launch = {
		.shape = {.grid = {(uint32_t)record->gridX, (uint32_t)record->gridY, (uint32_t)record->gridZ},
	                  .block = {(uint32_t)record->blockX, (uint32_t)record->blockY, (uint32_t)record->blockZ},
	                  .registers = record->registersPerThread,
	                  .shared_bytes = (uint32_t)record->staticSharedMemory + (uint32_t)record->dynamicSharedMemory},
		.device = record->deviceId,
		.context = record->contextId,
		.stream = record->streamId,
		.graph = record->graphId,
		.channel = record->channelID,
		.channel_type = record->channelType,
		.priority = priority_of(decoder, bytes, size),
		.graph_node = record->graphNodeId,
	};

	activity->kind = OPS_ACTIVITY_KERNEL;
	PLACE(activity, record);
	activity->name = ops_cupti_kernel_name(decoder, record->name);
	activity->details = launch_details(decoder, &launch);
}

/* --- copies and sets ------------------------------------------------------------------------------------------------ */

const char *ops_cupti_memory_name(uint32_t kind)
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

/* The members in which copies and sets of the same shape agree. Has no padding. */
struct copy_shape {
	uint32_t kind; /* CUpti_ActivityKind */
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t graph;
	uint32_t peers[4]; /* devices and contexts of the source and the destination */
	uint32_t channel;
	uint32_t channel_type;
	uint32_t unused;
	uint64_t graph_node;
};
_Static_assert(sizeof(struct copy_shape) == 56, "no padding");

static uint32_t cupti_work_copy_details(struct ops_cupti_decoder *decoder, const struct copy_shape *copy)
{
	struct ops_buffer *text = &decoder->text;
	uint32_t details;

	if (ops_cupti_known(decoder, copy, sizeof(*copy), &details))
		return details;
	cupti_work_note_context(decoder, copy->context, copy->device);
	ops_buffer_printf(text, "\"device\":%u,\"context\":%u,\"stream\":%u", copy->device, copy->context, copy->stream);
	if (copy->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
		ops_buffer_printf(text,
		                  ",\"fromDevice\":%u,\"inDevice\":%u,\"toDevice\":%u,\"fromContext\":%u,\"inContext\":%u,\"toContext\":%u",
		                  copy->peers[0], copy->device, copy->peers[2], copy->peers[1], copy->context, copy->peers[3]);
	put_graph(text, copy->graph, copy->graph_node);
	put_channel(text, copy->channel, copy->channel_type);
	return of_node(decoder, ops_cupti_keep(decoder, copy, sizeof(*copy)), copy->graph_node);
}

/* "Memcpy HtoD (Pageable -> Device)" */
static uint32_t cupti_work_copy_text(struct ops_cupti_decoder *decoder, uint32_t kind, uint32_t from, uint32_t to)
{
	const uint32_t key[4] = {CUPTI_ACTIVITY_KIND_MEMCPY, kind, from, to};
	uint32_t name;

	if (ops_cupti_known(decoder, key, sizeof(key), &name))
		return name;
	ops_buffer_printf(&decoder->text, "Memcpy %s (%s -> %s)", copy_name(kind), ops_cupti_memory_name(from), ops_cupti_memory_name(to));
	return ops_cupti_keep(decoder, key, sizeof(key));
}

#define COPY_SHAPE(record, ...)                                                                    \
	{.kind = (record)->kind, .device = (record)->deviceId, .context = (record)->contextId,         \
	 .stream = (record)->streamId, .graph = (record)->graphId, .graph_node = (record)->graphNodeId, \
	 .channel = (record)->channelID, .channel_type = (record)->channelType, __VA_ARGS__}

void ops_cupti_decode_copy(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const cupti_copy *record = bytes;
	struct copy_shape copy = COPY_SHAPE(record, .peers = {0});

	(void)size;
	activity->kind = OPS_ACTIVITY_MEMCPY;
	PLACE(activity, record);
	activity->bytes = record->bytes;
	activity->name = cupti_work_copy_text(decoder, record->copyKind, record->srcKind, record->dstKind);
	activity->details = cupti_work_copy_details(decoder, &copy);
}

void ops_cupti_decode_peer_copy(struct ops_cupti_decoder *decoder, const void *bytes, size_t size,
                                struct ops_activity *activity)
{
	const cupti_peer_copy *record = bytes;
	struct copy_shape copy = COPY_SHAPE(record, .peers = {record->srcDeviceId, record->srcContextId,
	                                                       record->dstDeviceId, record->dstContextId});

	(void)size;
	activity->kind = OPS_ACTIVITY_MEMCPY;
	PLACE(activity, record);
	activity->bytes = record->bytes;
	activity->name = cupti_work_copy_text(decoder, record->copyKind, record->srcKind, record->dstKind);
	activity->details = cupti_work_copy_details(decoder, &copy);
}

/* "Memset (Device)" */
static uint32_t set_text(struct ops_cupti_decoder *decoder, uint32_t memory)
{
	const uint32_t key[2] = {CUPTI_ACTIVITY_KIND_MEMSET, memory};
	uint32_t name;

	if (ops_cupti_known(decoder, key, sizeof(key), &name))
		return name;
	ops_buffer_printf(&decoder->text, "Memset (%s)", ops_cupti_memory_name(memory));
	return ops_cupti_keep(decoder, key, sizeof(key));
}

void ops_cupti_decode_set(struct ops_cupti_decoder *decoder, const void *bytes, size_t size, struct ops_activity *activity)
{
	const cupti_set *record = bytes;
	struct copy_shape set = COPY_SHAPE(record, .peers = {0});

	(void)size;
	activity->kind = OPS_ACTIVITY_MEMSET;
	PLACE(activity, record);
	activity->bytes = record->bytes;
	activity->name = set_text(decoder, record->memoryKind);
	activity->details = cupti_work_copy_details(decoder, &set);
}

/* --- graph nodes that are not device work --------------------------------------------------------------------------- */

/* The members in which all runs of a node agree. Has no padding. */
struct node_shape {
	uint32_t kind; /* CUpti_ActivityKind */
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t graph;
	uint32_t event;   /* of a node that records an event */
	uint32_t process; /* this and the next: of a node that runs on the host */
	uint32_t thread;
	uint64_t graph_node;
};
_Static_assert(sizeof(struct node_shape) == 40, "no padding");

static uint32_t cupti_work_node_details(struct ops_cupti_decoder *decoder, const struct node_shape *node)
{
	struct ops_buffer *text = &decoder->text;
	uint32_t details;

	if (ops_cupti_known(decoder, node, sizeof(*node), &details))
		return details;
	cupti_work_note_context(decoder, node->context, node->device);
	ops_buffer_printf(text, "\"device\":%u,\"context\":%u,\"stream\":%u", node->device, node->context, node->stream);
	put_graph(text, node->graph, node->graph_node);
	if (node->kind == CUPTI_ACTIVITY_KIND_CUDA_EVENT)
		ops_buffer_printf(text, ",\"cuda event\":\"0x%x\"", node->event);
	else
		ops_buffer_printf(text, ",\"host process\":%u,\"host thread\":%u", node->process, node->thread);
	return of_node(decoder, ops_cupti_keep(decoder, node, sizeof(*node)), node->graph_node);
}

void ops_cupti_decode_host_node(struct ops_cupti_decoder *decoder, const void *bytes, size_t size,
                                struct ops_activity *activity)
{
	static const char name[] = "HostNode";
	const CUpti_ActivityGraphHostNode *record = bytes;
	struct node_shape node = {.kind = record->kind,
	                          .device = record->deviceId,
	                          .context = record->contextId,
	                          .stream = record->streamId,
	                          .graph = record->graphId,
	                          .process = record->processId,
	                          .thread = record->threadId,
	                          .graph_node = record->graphNodeId};

	(void)size;
	activity->kind = OPS_ACTIVITY_HOST_NODE;
	PLACE(activity, record);
	activity->name = ops_activities_text(decoder->activities, name, sizeof(name) - 1);
	activity->details = cupti_work_node_details(decoder, &node);
}

void ops_cupti_decode_event_node(struct ops_cupti_decoder *decoder, const void *bytes, size_t size,
                                 struct ops_activity *activity)
{
	static const char name[] = "EventRecord";
	const CUpti_ActivityCudaEvent3 *record = bytes;
	struct node_shape node = {.kind = record->kind,
	                          .device = record->deviceId,
	                          .context = record->contextId,
	                          .stream = record->streamId,
	                          .graph = record->graphId,
	                          .event = record->eventId,
	                          .graph_node = record->graphNodeId};

	(void)size;
	activity->kind = OPS_ACTIVITY_EVENT_NODE;
	activity->name = ops_activities_text(decoder->activities, name, sizeof(name) - 1);
	activity->details = cupti_work_node_details(decoder, &node);
}

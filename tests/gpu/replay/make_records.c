/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the files of records (records.h) that tests replay, from the structures of CUPTI's headers. Deprecated structures are
 * those of older libraries.
 *
 *     make_records FOLDER            writes them
 *     make_records FOLDER --check    checks that the existing files are what would be written
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupti.h>

#include <cupti_activity_deprecated.h>

#include "records.h"

#define CUPTI_11_8 18
#define CUPTI_12_9 28
#define CUPTI_13_5 130500

#define START_NS INT64_C(1800000000000000000) /* of the host */
#define DEVICE_LAG_NS INT64_C(700000000000000000)
#define AT(us) (uint64_t)(START_NS - DEVICE_LAG_NS + (int64_t)((us) * 1000)) /* on the device's clock */

enum { MAIN = 4001, AUTOGRAD = 4002, PINNED = 4003, DRIVER = 4004 }; /* threads */
enum { GEMM = 1, RELU, ADAM, TRITON, NORM, TINY, STEP, DOMAIN, TABLE };

static FILE *file; /* in memory */
static char *bytes;
static size_t size;
static uint32_t version;
static uint32_t correlation;

/* --- sections ------------------------------------------------------------------------------------------------------- */

static void text(uint64_t number, const char *what)
{
	records_write(file, RECORDS_TEXT, &number, sizeof(number), what, strlen(what));
}

static void clock_pair(double us, int64_t drift_ns)
{
	const struct records_clock clock = {(int64_t)AT(us) + drift_ns, START_NS + (int64_t)(us * 1000)};

	records_write(file, RECORDS_CLOCK, &clock, sizeof(clock), NULL, 0);
}

static void device(uint32_t ordinal)
{
	const struct records_device known = {ordinal, 9, 0, 132, 32, 2048, 65536, 233472, 1024, 32};
	char json[200];

	snprintf(json, sizeof(json),
	         "{\"id\":%u,\"name\":\"NVIDIA H100 80GB HBM3\",\"totalGlobalMem\":85018279936,\"computeMajor\":9,"
	         "\"computeMinor\":0,\"numSms\":132}",
	         ordinal);
	records_write(file, RECORDS_DEVICE, &known, sizeof(known), json, strlen(json));
}

static void name_call(CUpti_CallbackDomain domain, uint32_t id, const char *name)
{
	const uint32_t call[2] = {domain, id};

	records_write(file, RECORDS_CALL, call, sizeof(call), name, strlen(name) + 1);
}

static void range(uint32_t thread, bool is_operator, double from_us, double to_us, const char *name)
{
	const struct records_range where = {thread, is_operator, START_NS + (int64_t)(from_us * 1000),
	                                    START_NS + (int64_t)(to_us * 1000)};

	records_write(file, RECORDS_RANGE, &where, sizeof(where), name, strlen(name));
}

/* Records of a graph from the calling thread. */
static void node(enum records_kind kind, uint64_t id, uint64_t other, double us)
{
	const struct records_node made = {id, other, (int64_t)AT(us), MAIN, 0};

	records_write(file, kind, &made, sizeof(made), NULL, 0);
}

static void function(uint64_t id, uint64_t address, const char *name)
{
	const struct records_function called = {id, address};

	records_write(file, RECORDS_FUNCTION, &called, sizeof(called), name, strlen(name));
}

static void record(const void *what, size_t what_bytes)
{
	records_write(file, RECORDS_RECORD, what, what_bytes, NULL, 0);
}

/* --- records: cleared first, padding too, for what is written must not depend on the compiler ---------------------------- */

static void call(CUpti_ActivityKind kind, uint32_t id, uint32_t thread, double from_us, double to_us)
{
	CUpti_ActivityAPI made;

	memset(&made, 0, sizeof(made));
	made.kind = kind;
	made.cbid = id;
	made.start = AT(from_us);
	made.end = AT(to_us);
	made.processId = 4000;
	made.threadId = thread;
	made.correlationId = correlation;

	record(&made, sizeof(made));
}

static void runtime(uint32_t id, uint32_t thread, double from_us, double to_us)
{
	correlation++;
	call(CUPTI_ACTIVITY_KIND_RUNTIME, id, thread, from_us, to_us);
}

static size_t kernel_size(void)
{
	return version < 20 ? sizeof(CUpti_ActivityKernel8)
	       : version < 130000 ? sizeof(CUpti_ActivityKernel9)
	                          : sizeof(CUpti_ActivityKernel13);
}

static void kernel(uint32_t name, uint32_t device_id, uint32_t stream, double from_us, double to_us, int32_t blocks, uint32_t node)
{
	CUpti_ActivityKernel13 ran;

	memset(&ran, 0, sizeof(ran));
	ran.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	ran.registersPerThread = 40;
	ran.start = AT(from_us);
	ran.end = AT(to_us);
	ran.deviceId = device_id;
	ran.contextId = device_id + 1;
	ran.streamId = stream;
	ran.gridX = blocks;
	ran.gridY = 1;
	ran.gridZ = 1;
	ran.blockX = 256;
	ran.blockY = 1;
	ran.blockZ = 1;
	ran.staticSharedMemory = 4096;
	ran.correlationId = correlation;
	ran.name = (const char *)(uintptr_t)name;
	ran.graphId = node ? 3 : 0;
	ran.graphNodeId = node;
	ran.channelID = 10;
	ran.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
	ran.priority = -2;

	record(&ran, kernel_size());
}

static void launch(uint32_t name, uint32_t thread, uint32_t device_id, uint32_t stream, double call_us, double from_us, double to_us)
{
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, thread, call_us, call_us + 5);
	kernel(name, device_id, stream, from_us, to_us, 264, 0);
}

static void copy(CUpti_ActivityMemcpyKind kind, CUpti_ActivityMemoryKind from, CUpti_ActivityMemoryKind to, uint64_t count,
                 uint32_t stream, double from_us, double to_us)
{
	CUpti_ActivityMemcpy7 moved;

	memset(&moved, 0, sizeof(moved));
	moved.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
	moved.copyKind = (uint8_t)kind;
	moved.srcKind = (uint8_t)from;
	moved.dstKind = (uint8_t)to;
	moved.bytes = count;
	moved.start = AT(from_us);
	moved.end = AT(to_us);
	moved.contextId = 1;
	moved.streamId = stream;
	moved.correlationId = correlation;
	moved.channelID = 12;
	moved.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;

	record(&moved, version < 20 ? sizeof(CUpti_ActivityMemcpy5)
	               : version < 130000 ? sizeof(CUpti_ActivityMemcpy6)
	                                  : sizeof(moved));
}

static void peer_copy(uint64_t count, double from_us, double to_us)
{
	CUpti_ActivityMemcpyPtoP4 moved;

	memset(&moved, 0, sizeof(moved));
	moved.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
	moved.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
	moved.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	moved.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	moved.bytes = count;
	moved.start = AT(from_us);
	moved.end = AT(to_us);
	moved.contextId = 1;
	moved.streamId = 7;
	moved.srcContextId = 1;
	moved.dstDeviceId = 1;
	moved.dstContextId = 2;
	moved.correlationId = correlation;

	record(&moved, sizeof(moved));
}

static void set(uint64_t count, double from_us, double to_us, uint32_t node)
{
	CUpti_ActivityMemset5 filled;

	memset(&filled, 0, sizeof(filled));
	filled.kind = CUPTI_ACTIVITY_KIND_MEMSET;
	filled.bytes = count;
	filled.start = AT(from_us);
	filled.end = AT(to_us);
	filled.contextId = 1;
	filled.streamId = 7;
	filled.correlationId = correlation;
	filled.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	filled.graphNodeId = node;
	filled.graphId = node ? 3 : 0;

	record(&filled, version < 130000 ? sizeof(CUpti_ActivityMemset4) : sizeof(filled));
}

static void wait_for(CUpti_ActivitySynchronizationType type, uint32_t context, uint32_t stream, uint32_t event, double from_us, double to_us)
{
	CUpti_ActivitySynchronization2 waited;

	memset(&waited, 0, sizeof(waited));
	waited.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
	waited.type = type;
	waited.start = AT(from_us);
	waited.end = AT(to_us);
	waited.correlationId = correlation;
	waited.contextId = context;
	waited.streamId = stream;
	waited.cudaEventId = event;

	record(&waited, version < CUPTI_12_9 ? sizeof(CUpti_ActivitySynchronization) : sizeof(waited));
}

static void event_of_node(uint32_t stream, uint32_t id, uint64_t node, double us)
{
	CUpti_ActivityCudaEvent3 recorded;

	memset(&recorded, 0, sizeof(recorded));
	recorded.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
	recorded.correlationId = correlation;
	recorded.contextId = 1;
	recorded.streamId = stream;
	recorded.eventId = id;
	recorded.deviceTimestamp = us > 0 ? AT(us) : 0;
	recorded.graphNodeId = node;
	recorded.graphId = node ? 3 : 0;

	record(&recorded, version < CUPTI_12_9 ? sizeof(CUpti_ActivityCudaEvent)
	                  : version < CUPTI_13_5 ? sizeof(CUpti_ActivityCudaEvent2)
	                                         : sizeof(recorded));
}

static void event(uint32_t stream, uint32_t id, double us)
{
	event_of_node(stream, id, 0, us);
}

static void host_node(uint32_t launched_by, uint64_t node, double from_us, double to_us)
{
	CUpti_ActivityGraphHostNode ran;

	memset(&ran, 0, sizeof(ran));
	ran.kind = CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE;
	ran.streamId = 7;
	ran.contextId = 1;
	ran.correlationId = launched_by;
	ran.graphId = 3;
	ran.graphNodeId = node;
	ran.processId = 4000;
	ran.threadId = DRIVER;
	ran.start = AT(from_us);
	ran.end = AT(to_us);

	record(&ran, sizeof(ran));
}

static void overhead(CUpti_ActivityOverheadKind kind, double from_us, double to_us)
{
	CUpti_ActivityOverhead3 spent;

	memset(&spent, 0, sizeof(spent));
	spent.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
	spent.overheadKind = kind;
	spent.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
	spent.start = AT(from_us);
	spent.end = AT(to_us);

	spent.objectId.pt.processId = 4000;
	spent.objectId.pt.threadId = MAIN;
	record(&spent, version < CUPTI_12_9 ? sizeof(CUpti_ActivityOverhead) : sizeof(spent));
}

static void marker(uint32_t id, CUpti_ActivityFlag flags, double us, uint32_t name)
{
	CUpti_ActivityMarker2 marked;

	memset(&marked, 0, sizeof(marked));
	marked.kind = CUPTI_ACTIVITY_KIND_MARKER;
	marked.flags = flags;
	marked.timestamp = AT(us);
	marked.id = id;
	marked.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
	marked.name = (const char *)(uintptr_t)name;
	marked.domain = (const char *)(uintptr_t)DOMAIN;

	marked.objectId.pt.processId = 4000;
	marked.objectId.pt.threadId = MAIN;
	record(&marked, sizeof(marked));
}

static void name_object(CUpti_ActivityObjectKind object, uint32_t device_id, uint32_t stream, uint32_t name)
{
	CUpti_ActivityName named;

	memset(&named, 0, sizeof(named));
	named.kind = CUPTI_ACTIVITY_KIND_NAME;
	named.objectKind = object;
	named.objectId.dcs.deviceId = device_id;
	named.objectId.dcs.contextId = device_id + 1;
	named.objectId.dcs.streamId = stream;
	named.name = (const char *)(uintptr_t)name;
	record(&named, sizeof(named));
}

static void environment(CUpti_ActivityEnvironmentKind kind, double us, uint32_t first, uint32_t second)
{
	CUpti_ActivityEnvironment state;

	memset(&state, 0, sizeof(state));
	state.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
	state.timestamp = AT(us);
	state.environmentKind = kind;

	state.data.speed.smClock = first; /* the first field of each */
	state.data.speed.memoryClock = second;
	record(&state, sizeof(state));
}

static void pool(double us, uint64_t held, uint64_t used)
{
	CUpti_ActivityMemoryPool3 state;

	memset(&state, 0, sizeof(state));
	state.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
	state.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED;
	state.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
	state.address = 0x7000;
	state.size = held;
	state.timestamp = AT(us);
	state.utilizedSize = used;

	record(&state, version < 130000 ? sizeof(CUpti_ActivityMemoryPool2) : sizeof(state));
}

/* `pool` is the address of a memory pool, 0: none; calls for a pool are on stream 7. */
static CUpti_ActivityMemory4 memory(CUpti_ActivityMemoryOperationType operation, CUpti_ActivityMemoryKind kind, uint64_t address,
                                    uint64_t count, uint64_t from_pool, double us)
{
	const uint32_t none = version < 130000 ? UINT32_MAX : 0;
	CUpti_ActivityMemory4 changed;

	memset(&changed, 0, sizeof(changed));
	changed.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
	changed.memoryOperationType = operation;
	changed.memoryKind = kind;
	changed.correlationId = correlation;
	changed.address = address;
	changed.bytes = count;
	changed.timestamp = AT(us);
	changed.processId = 4000;
	changed.contextId = kind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED ? none : 1;
	changed.streamId = from_pool ? 7 : none;
	changed.isAsync = from_pool != 0;
	changed.memoryPoolConfig.memoryPoolType = from_pool ? CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL : 0;
	changed.memoryPoolConfig.address = from_pool;
	return changed;
}

static void record_memory(const CUpti_ActivityMemory4 *changed)
{
	record(changed, version < 20 ? sizeof(CUpti_ActivityMemory2)
	                : version < 130000 ? sizeof(CUpti_ActivityMemory3)
	                                   : sizeof(*changed));
}

static void allocate(CUpti_ActivityMemoryKind kind, uint64_t address, uint64_t count, uint64_t from_pool, double us)
{
	const CUpti_ActivityMemory4 taken =
		memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, kind, address, count, from_pool, us);

	record_memory(&taken);
}

static void give_back(CUpti_ActivityMemoryKind kind, uint64_t address, uint64_t count, uint64_t from_pool, double us)
{
	const CUpti_ActivityMemory4 given = memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, kind, address, count, from_pool, us);

	record_memory(&given);
}

/* --- scenes --------------------------------------------------------------------------------------------------------- */

static void begin(uint32_t cupti)
{
	file = open_memstream(&bytes, &size);
	version = cupti;
	correlation = 100;
	records_write_head(file, cupti);
	clock_pair(0, 0);
	device(0);
	device(1);
	text(GEMM, "_Z4gemmPKfS0_Pf");
	text(RELU, "_Z4reluPf");
	text(ADAM, "_Z4adamPfS_");
	text(TRITON, "triton_poi_fused_add_0");
	text(NORM, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
	text(TINY, "_Z4tinyPf");
	text(STEP, "optimizer step");
	text(DOMAIN, "training");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel_v7000");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, "cudaMemcpyAsync_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, "cudaMemsetAsync_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, "cudaStreamSynchronize_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, "cudaDeviceSynchronize_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, "cudaEventRecord_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, "cudaStreamWaitEvent_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, "cudaGraphLaunch_v10000");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000, "cudaMemcpyPeerAsync_v4000");
	name_call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx");
	name_call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel");
}

static void end(double us, int64_t drift_ns)
{
	clock_pair(us, drift_ns);
	fclose(file);
}

static bool write_file(const char *path)
{
	FILE *out = fopen(path, "wb");

	return out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0;
}

static bool is_in_file(const char *path)
{
	FILE *in = fopen(path, "rb");
	char *there = malloc(size + 1);
	bool same = in && fread(there, 1, size + 1, in) == size && memcmp(there, bytes, size) == 0;

	if (in)
		fclose(in);
	free(there);
	return same;
}

/* A step of training: a loader's copy from a separate thread, the forward pass, the backward pass on autograd's thread, a Triton
 * kernel by the driver alone, streams that wait for each other, and a second device. */
static void training(void)
{
	range(MAIN, false, 10, 900, "ProfilerStep#1");
	range(MAIN, true, 20, 120, "aten::linear");
	range(MAIN, true, 30, 110, "aten::addmm");
	range(MAIN, true, 130, 170, "aten::relu");
	range(MAIN, true, 180, 240, "Torch-Compiled Region: 0/0");
	range(MAIN, true, 700, 780, "aten::_to_copy");
	range(AUTOGRAD, false, 300, 500, "backward");
	range(AUTOGRAD, true, 310, 490, "autograd::engine::evaluate_function: AddmmBackward0");
	range(AUTOGRAD, true, 320, 480, "aten::mm");

	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, PINNED, 5, 12);
	copy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 1 << 20, 13, 15, 60);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, PINNED, 62, 63);
	event(13, 5, 0);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, MAIN, 64, 65);
	wait_for(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, 1, 7, 5, 64, 65);
	overhead(CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, 66, 90);
	/* one launch as recorded by the runtime and the driver */
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, MAIN, 92, 104);
	call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, MAIN, 94, 102);
	kernel(GEMM, 0, 7, 110, 260, 264, 0);
	launch(RELU, MAIN, 0, 7, 140, 262, 280);
	correlation++;
	call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, MAIN, 200, 210);
	kernel(TRITON, 0, 7, 282, 300, 64, 0);
	call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent, MAIN, 211, 212);
	launch(GEMM, AUTOGRAD, 0, 7, 330, 340, 500);
	launch(NORM, AUTOGRAD, 1, 7, 400, 410, 600);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000, AUTOGRAD, 450, 455);
	peer_copy(4 << 20, 460, 500);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, MAIN, 600, 605);
	set(4096, 610, 612, 0);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, MAIN, 710, 720);
	copy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, 4, 7, 722, 724);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, MAIN, 721, 760);
	wait_for(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, 1, 7, 0, 721, 760);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, MAIN, 800, 880);
	wait_for(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, 2, CUPTI_SYNCHRONIZATION_INVALID_VALUE, 0, 800, 880);
}

/* A graph of three nodes is launched twice. The other two wait for the first, one of them through a node without work; it is
 * instantiated after the operators of the first and the last were captured. */
static void graph(void)
{
	range(MAIN, false, 2, 9, "capture");
	range(MAIN, true, 3, 4, "aten::mm");
	node(RECORDS_NODE, 41, 0, 3.5);
	node(RECORDS_NODE, 42, 0, 4.5);
	range(MAIN, true, 5, 7, "aten::_fused_adam_");
	node(RECORDS_NODE, 44, 0, 5.5);
	node(RECORDS_NODE, 43, 0, 6);
	for (uint64_t id = 41; id <= 44; id++)
		node(RECORDS_NODE, id + 10, id, 8);
	node(RECORDS_EDGE, 42, 41, 8);
	node(RECORDS_EDGE, 44, 41, 8);
	node(RECORDS_EDGE, 43, 44, 8);
	range(MAIN, false, 10, 900, "ProfilerStep#1");
	range(MAIN, true, 20, 60, "replay");
	range(MAIN, true, 100, 140, "replay");
	for (int i = 0; i < 2; i++) {
		double from = 30 + 80 * i;

		runtime(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, MAIN, from, from + 8);
		kernel(GEMM, 0, 7, from + 10, from + 30, 264, 51);
		set(4096, from + 31, from + 32, 52);
		kernel(ADAM, 0, 7, from + 33, from + 43, 132, 53);
	}
}

/* A graph whose nodes follow one another: a kernel, a function of the host with a name, one without, an event, a kernel. At the
 * second launch CUPTI does not record what launched those of the host, and not when the event was recorded. */
static void host_and_event_nodes(void)
{
	range(MAIN, true, 2, 8, "toy::capture");
	for (uint64_t id = 61; id <= 65; id++)
		node(RECORDS_NODE, id, 0, 3);
	for (uint64_t id = 61; id <= 65; id++)
		node(RECORDS_NODE, id + 10, id, 9);
	for (uint64_t id = 61; id <= 64; id++)
		node(RECORDS_EDGE, id + 1, id, 9);
	function(62, 0x7f0000001230, "on_\"done\"(void*)");
	function(63, 0x7f0000004560, "");
	function(99, 0x7f0000007890, "of a graph that is not known");
	range(MAIN, true, 20, 60, "replay");
	range(MAIN, true, 200, 240, "replay");
	for (int i = 0; i < 2; i++) {
		double from = 30 + 180 * i;

		runtime(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, MAIN, from, from + 8);
		kernel(GEMM, 0, 7, from + 10, from + 30, 264, 71);
		host_node(i ? 0 : correlation, 72, from + 31, from + 51);
		host_node(i ? 0 : correlation, 73, from + 52, from + 60);
		event_of_node(7, 0xab, 74, i ? 0 : from + 61);
		kernel(ADAM, 0, 7, from + 63, from + 73, 132, 75);
	}
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, MAIN, 300, 301);
	event(7, 3, 302);
}

static void extras(void)
{
	range(MAIN, true, 100, 200, "aten::mm");
	marker(1, CUPTI_ACTIVITY_FLAG_MARKER_START, 50, STEP);
	marker(2, CUPTI_ACTIVITY_FLAG_MARKER_START, 60, GEMM);
	launch(GEMM, MAIN, 0, 7, 110, 130, 190);
	marker(2, CUPTI_ACTIVITY_FLAG_MARKER_END, 210, 0);
	marker(3, CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, 220, RELU);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, MAIN, 120, 122);
	event(7, 3, 191); /* when the kernel was done */
	marker(9, CUPTI_ACTIVITY_FLAG_MARKER_END, 230, 0); /* began before the session */
	marker(1, CUPTI_ACTIVITY_FLAG_MARKER_END, 250, 0);
	marker(4, CUPTI_ACTIVITY_FLAG_MARKER_START, 260, STEP); /* ends after the session */
	environment(CUPTI_ACTIVITY_ENVIRONMENT_SPEED, 100, 1980, 2619);
	environment(CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE, 101, 61, 0);
	environment(CUPTI_ACTIVITY_ENVIRONMENT_POWER, 102, 412500, 700000);
	environment(CUPTI_ACTIVITY_ENVIRONMENT_COOLING, 103, 35, 0);
	pool(120, 64 << 20, 48 << 20);
	pool(240, 32 << 20, 0);
	name_object(CUPTI_ACTIVITY_OBJECT_STREAM, 1, 7, RELU);
	name_object(CUPTI_ACTIVITY_OBJECT_STREAM, 0, 7, STEP);
	name_object(CUPTI_ACTIVITY_OBJECT_CONTEXT, 0, 7, RELU);
}

#define BLOCK UINT64_C(0x7f0000000000)
#define HOST UINT64_C(0x7e0000000000)
#define POOL UINT64_C(0x7d0000000000)

/* Memory of each kind comes and goes. */
static void memories(void)
{
	CUpti_ActivityMemory4 other;

	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, "cudaMalloc_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020, "cudaMallocHost_v3020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020, "cudaMallocAsync_v11020");
	name_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, "cudaFree_v3020");
	text(TABLE, "lookup_table");
	other = memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC, BLOCK - 4096, 256, 0, 50);
	other.correlationId = 0;
	other.name = (const char *)(uintptr_t)TABLE;
	record_memory(&other);
	range(MAIN, true, 100, 200, "aten::empty");
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, MAIN, 110, 150);
	allocate(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, BLOCK, 64 << 20, 0, 145);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020, MAIN, 160, 190);
	allocate(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, HOST, 4 << 20, 0, 185);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020, MAIN, 205, 208);
	allocate(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, POOL, 1 << 20, POOL, 206);
	launch(GEMM, MAIN, 0, 7, 210, 217, 237);
	runtime(CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, MAIN, 220, 250);
	give_back(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, BLOCK, 0, 0, 245); /* how much is known from its allocation */
	correlation++;
	give_back(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, BLOCK + 4096, 512, 0, 255); /* was there before the session */
	correlation++;
	allocate(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, HOST, 8 << 20, 0, 260); /* its release was not recorded */
	correlation++;
	other = memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, BLOCK, 2 << 20, 0, 270);
	other.deviceId = 1;
	other.contextId = 2;
	record_memory(&other);
	correlation++;
	give_back(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, POOL, 1 << 20, POOL, 280);
}

#define STEPS 5

static double step_at(int step, double us)
{
	char name[32];

	snprintf(name, sizeof(name), "ProfilerStep#%d", step);
	range(MAIN, false, 10 + us * step, us * (step + 1) - 10, name);
	return 10 + us * step;
}

/* Kernels that are launched more slowly than they run. */
static void slow_launches(void)
{
	for (int step = 0; step < STEPS; step++) {
		double from = step_at(step, 2000);

		for (int i = 0; i < 12; i++) {
			double at = from + 20 + 150 * i;

			range(MAIN, true, at, at + 140, "aten::add");
			launch(TINY, MAIN, 0, 7, at + 120, at + 127, at + 129);
		}
	}
}

/* Copies from pageable memory, and values that the host waits for before it goes on. */
static void waiting(void)
{
	for (int step = 0; step < STEPS; step++) {
		double from = step_at(step, 4000);

		range(MAIN, true, from + 10, from + 1100, "aten::to");
		runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, MAIN, from + 20, from + 1050);
		copy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 16 << 20,
		     7, from + 30, from + 1040);
		for (int i = 0; i < 6; i++) {
			double at = from + 1200 + 400 * i;

			range(MAIN, true, at, at + 30, "aten::mm");
			launch(GEMM, MAIN, 0, 7, at + 20, at + 27, at + 227);
			range(MAIN, true, at + 32, at + 250, "aten::item");
			range(MAIN, true, at + 33, at + 249, "aten::_local_scalar_dense");
			runtime(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, MAIN, at + 35, at + 40);
			copy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, 4,
			     7, at + 228, at + 230);
			runtime(CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, MAIN, at + 41, at + 245);
			wait_for(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, 1, 7, 0, at + 41, at + 245);
		}
	}
}

/* A minute on a device whose clock gains 20 microseconds a second; its times are as it has them. */
static void drift(void)
{
	for (int i = 1; i < 6; i++) {
		double at = 1e7 * i;

		range(MAIN, true, at - 10, at + 10, "aten::mm");
		launch(GEMM, MAIN, 0, 7, at * 1.00002 - 5, at * 1.00002, at * 1.00002 + 100);
	}
}

int main(int count, char **arguments)
{
	const char *folder = count > 1 ? arguments[1] : ".";
	bool check = count > 2 && strcmp(arguments[2], "--check") == 0;
	static const struct {
		const char *name;
		uint32_t version;
		void (*play)(void);
		double until_us;
		int64_t drift_ns;
	} scenes[] = {
		{"training-11.8.cupti", CUPTI_11_8, training, 1000, 0}, {"training-12.9.cupti", CUPTI_12_9, training, 1000, 0},
		{"training-13.5.cupti", CUPTI_13_5, training, 1000, 0}, {"graph-13.5.cupti", CUPTI_13_5, graph, 1000, 0},
		{"memory-11.8.cupti", CUPTI_11_8, memories, 300, 0},    {"memory-12.9.cupti", CUPTI_12_9, memories, 300, 0},
		{"memory-13.5.cupti", CUPTI_13_5, memories, 300, 0},
		{"nodes-13.5.cupti", CUPTI_13_5, host_and_event_nodes, 400, 0},
		{"extras-13.5.cupti", CUPTI_13_5, extras, 300, 0},      {"launches-12.9.cupti", CUPTI_12_9, slow_launches, 2010.0 * STEPS, 0},
		{"waiting-12.9.cupti", CUPTI_12_9, waiting, 4010.0 * STEPS, 0},
		{"drift-12.9.cupti", CUPTI_12_9, drift, 6e7, 1200000},
	};

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", folder, scenes[i].name);
		begin(scenes[i].version);
		scenes[i].play();
		end(scenes[i].until_us, scenes[i].drift_ns);
		if (!(check ? is_in_file(path) : write_file(path))) {
			fprintf(stderr, "%s %s\n", path, check ? "is not what this program makes" : "cannot be written");
			return 1;
		}
		free(bytes);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI without a GPU; see fake_cupti.h. In a buffer, each record is preceded by its size, which GetNextRecord uses.
 */
#include "fake_cupti.h"
#include "fake_internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../replay/records.h"

#define RECORD_HEAD 8u
#define TEXTS_MAX 4096
#define UNDER_WAY_MAX 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_TimestampCallbackFunc timestamp;
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
static sigset_t reader_blocks;
static bool subscribed;
static CUpti_CallbackFunc subscriber_callback; /* of the subscriber */
static void *tell_data;
#define CALLBACKS 1024
static bool callbacks[CUPTI_CB_DOMAIN_SIZE][CALLBACKS]; /* text, by domain */
static bool quiet[2][CALLBACKS]; /* calls of the driver, of the runtime: not recorded though their kind is */
static uint8_t *buffer;
static size_t buffer_size, buffer_used, dropped;
static uint32_t last_correlation;
static uint64_t started_at;
static long started_by;
static uint64_t stream_free; /* when the work so far is done */
#define STREAM_GAP_NS 500
#define NODE_NS 2000 /* how long a kernel of a graph runs */

static struct {
	pthread_mutex_t lock;
	char function[64];
	CUptiResult result;
} failing = {.lock = PTHREAD_MUTEX_INITIALIZER};

CUptiResult result_of(const char *function)
{
	CUptiResult result;

	pthread_mutex_lock(&failing.lock);
	result = strcmp(failing.function, function) == 0 ? failing.result : CUPTI_SUCCESS;
	pthread_mutex_unlock(&failing.lock);
	return result;
}

SHOW void fake_cupti_fail(const char *function, int result)
{
	pthread_mutex_lock(&failing.lock);
	snprintf(failing.function, sizeof(failing.function), "%s", function);
	failing.result = (CUptiResult)result;
	pthread_mutex_unlock(&failing.lock);
}

uint64_t now(void)
{
	struct timespec time;

	if (timestamp)
		return timestamp();
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* --- buffers -------------------------------------------------------------------------------------------------------- */

static void *deliver(void *unused)
{
	complete(NULL, 0, buffer, buffer_size, buffer_used);
	return unused;
}

/* As CUPTI does, on a separate thread. The lock is held. */
static void flush(void)
{
	pthread_t thread;

	if (!buffer)
		return;
	if (pthread_create(&thread, NULL, deliver, NULL) == 0)
		pthread_join(thread, NULL);
	buffer = NULL;
}

/* The lock is held. */
static void emit(const void *record, uint32_t size)
{
	uint32_t room = RECORD_HEAD + (size + 7) / 8 * 8;
	size_t most = 0;

	if (buffer && buffer_size - buffer_used < room)
		flush();
	if (!buffer) {
		request(&buffer, &buffer_size, &most);
		buffer_used = 0;
	}
	if (!buffer || buffer_size < room) {
		dropped++;
		return;
	}
	memset(buffer + buffer_used, 0, room);
	memcpy(buffer + buffer_used, &size, sizeof(size));
	memcpy(buffer + buffer_used + RECORD_HEAD, record, size);
	buffer_used += room;
}

SHOW void fake_cupti_emit(const void *record, uint32_t size)
{
	CUpti_ActivityKind kind;

	memcpy(&kind, record, sizeof(kind));
	pthread_mutex_lock(&lock);
	if (request && ((unsigned)kind >= CUPTI_ACTIVITY_KIND_COUNT || enabled[kind]))
		emit(record, size);
	pthread_mutex_unlock(&lock);
}

SHOW bool fake_cupti_is_enabled(int kind)
{
	return kind >= 0 && kind < CUPTI_ACTIVITY_KIND_COUNT && enabled[kind];
}

/* --- launching ------------------------------------------------------------------------------------------------------ */

/* The record of a call of this thread that takes no time to speak of. */
static uint64_t emit_call(uint32_t callback, uint32_t correlation)
{
	CUpti_ActivityAPI call = {
		.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
		.cbid = callback,
		.processId = (uint32_t)getpid(),
		.threadId = (uint32_t)syscall(SYS_gettid),
		.correlationId = correlation,
	};

	call.start = now();
	call.end = now();
	fake_cupti_emit(&call, sizeof(call));
	return call.end;
}

/* Work of a stream runs one after the other. */
static uint64_t next_start(uint64_t wanted, uint64_t run_ns)
{
	uint64_t start;

	pthread_mutex_lock(&lock);
	start = wanted > stream_free ? wanted : stream_free;
	stream_free = start + run_ns + STREAM_GAP_NS;
	pthread_mutex_unlock(&lock);
	return start;
}

SHOW uint32_t fake_cupti_launch(const char *mangled_name, uint32_t blocks, uint32_t threads, uint64_t delay_ns,
                                uint64_t run_ns)
{
	uint32_t correlation = __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
	CUpti_ActivityKernel13 kernel = {
		.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		.registersPerThread = 32,
		.contextId = 1,
		.streamId = 7,
		.gridX = (int32_t)blocks,
		.gridY = 1,
		.gridZ = 1,
		.blockX = (int32_t)threads,
		.blockY = 1,
		.blockZ = 1,
		.correlationId = correlation,
		.name = mangled_name,
	};

	kernel.start = emit_call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, correlation) + delay_ns;
	kernel.start = next_start(kernel.start, run_ns);
	kernel.end = kernel.start + run_ns;
	fake_cupti_emit(&kernel, sizeof(kernel));
	return correlation;
}

SHOW uint32_t fake_cupti_copy(uint64_t bytes, uint64_t delay_ns, uint64_t run_ns)
{
	uint32_t correlation = __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
	CUpti_ActivityMemcpy6 copy = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
		.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
		.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
		.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
		.bytes = bytes,
		.contextId = 1,
		.streamId = 7,
		.correlationId = correlation,
	};

	copy.start = emit_call(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, correlation) + delay_ns;
	copy.start = next_start(copy.start, run_ns);
	copy.end = copy.start + run_ns;
	fake_cupti_emit(&copy, sizeof(copy));
	return correlation;
}

/* --- work that goes on ---------------------------------------------------------------------------------------------- */

static CUpti_ActivityKernel13 under_way[UNDER_WAY_MAX];
static size_t under_way_count;

SHOW void fake_cupti_launch_long(const char *mangled_name, uint32_t on_device)
{
	uint32_t correlation = __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
	CUpti_ActivityKernel13 kernel = {
		.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		.deviceId = on_device,
		.contextId = on_device + 1,
		.streamId = 7,
		.gridX = 1,
		.gridY = 1,
		.gridZ = 1,
		.blockX = 1,
		.blockY = 1,
		.blockZ = 1,
		.correlationId = correlation,
		.name = mangled_name,
	};

	kernel.start = emit_call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, correlation);
	pthread_mutex_lock(&lock);
	if (enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] && under_way_count < UNDER_WAY_MAX)
		under_way[under_way_count++] = kernel;
	pthread_mutex_unlock(&lock);
}

/* Ends pending work of a device; UINT32_MAX: passes on all records as they are. The lock is held. */
static void end_work(uint32_t of_device)
{
	size_t left = 0;

	for (size_t i = 0; i < under_way_count; i++) {
		if (of_device == under_way[i].deviceId)
			under_way[i].end = now();
		if (of_device == UINT32_MAX || of_device == under_way[i].deviceId)
			emit(&under_way[i], sizeof(under_way[i]));
		else
			under_way[left++] = under_way[i];
	}
	under_way_count = left;
}

SHOW void fake_cupti_synchronize(uint32_t of_device)
{
	pthread_mutex_lock(&lock);
	end_work(of_device);
	pthread_mutex_unlock(&lock);
}

SHOW uint32_t fake_cupti_launch_graph(const uint64_t *nodes, uint32_t count)
{
	uint32_t correlation = __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
	uint64_t launched = emit_call(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, correlation);

	for (uint32_t i = 0; i < count; i++) {
		CUpti_ActivityKernel9 kernel = {
			.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
			.contextId = 1,
			.streamId = 7,
			.correlationId = correlation,
			.name = "node",
			.graphId = 2,
			.graphNodeId = nodes[i],
		};

		kernel.start = next_start(launched, NODE_NS);
		kernel.end = kernel.start + NODE_NS;
		fake_cupti_emit(&kernel, sizeof(kernel));
	}
	return correlation;
}

/* --- files of records ----------------------------------------------------------------------------------------------- */

/* What records point to, and what calls are named, stays as long as the process. */
static struct {
	uint64_t number;
	const char *text;
} texts[TEXTS_MAX];
static size_t text_count;
static struct {
	uint32_t domain;
	uint32_t callback;
	const char *name;
} calls[TEXTS_MAX];
static size_t call_count;

static uint64_t point_to_text(void *unused, uint64_t number)
{
	(void)unused;
	for (size_t i = text_count; i-- > 0;)
		if (texts[i].number == number)
			return (uint64_t)(uintptr_t)texts[i].text;
	return 0;
}

static uint64_t move_time(void *moved, uint64_t time)
{
	return time + *(const uint64_t *)moved;
}

/* A call of thread 0 is one of the thread that started the collection. */
static void play_record(const struct records_section *section, uint64_t moved)
{
	uint64_t record[RECORD_BYTES_MAX / 8] = {0};
	CUpti_ActivityAPI *call = (CUpti_ActivityAPI *)record;

	if (section->size > sizeof(record) || section->size < sizeof(CUpti_ActivityKind))
		return;
	memcpy(record, section->bytes, section->size);
	records_change_times(record, section->size, move_time, &moved);
	records_change_pointers(record, section->size, point_to_text, NULL);
	if ((call->kind == CUPTI_ACTIVITY_KIND_RUNTIME || call->kind == CUPTI_ACTIVITY_KIND_DRIVER) && call->threadId == 0)
		call->threadId = (uint32_t)started_by;
	if ((unsigned)call->kind >= CUPTI_ACTIVITY_KIND_COUNT || enabled[call->kind])
		emit(record, section->size);
}

static void play_section(const struct records_section *section, uint64_t moved)
{
	uint64_t number;
	uint32_t call[2];
	const char *text;
	size_t size;

	if (section->kind == RECORDS_RECORD)
		play_record(section, moved);
	else if (section->kind == RECORDS_TEXT && records_read(section, &number, sizeof(number), &text, &size)) {
		texts[text_count % TEXTS_MAX].number = number;
		texts[text_count++ % TEXTS_MAX].text = strndup(text, size);
	} else if (section->kind == RECORDS_CALL && records_read(section, call, sizeof(call), &text, &size)) {
		calls[call_count % TEXTS_MAX].domain = call[0];
		calls[call_count % TEXTS_MAX].callback = call[1];
		calls[call_count++ % TEXTS_MAX].name = strndup(text, size);
	} else if (section->kind == RECORDS_DROPPED && records_read(section, &number, sizeof(number), &text, &size))
		dropped += number;
}

static uint64_t start_of(const void *bytes, size_t size)
{
	struct records records;
	struct records_section section;
	struct records_clock clock = {0};
	const char *rest;
	uint32_t version;

	if (!records_open(&records, bytes, size, &version))
		abort();
	while (records_next(&records, &section))
		if (section.kind == RECORDS_CLOCK && records_read(&section, &clock, sizeof(clock), &rest, &size))
			break;
	return (uint64_t)clock.device_ns;
}

/* The lock is held. */
static void play_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct records records;
	struct records_section section;
	uint32_t version;
	uint64_t moved;
	uint8_t *bytes;
	size_t size;

	if (!file || fseek(file, 0, SEEK_END) || !(bytes = malloc((size_t)ftell(file) + 1)))
		abort();
	size = (size_t)ftell(file);
	rewind(file);
	if (fread(bytes, 1, size, file) != size)
		abort();
	fclose(file);
	text_count = call_count = 0;
	records_open(&records, bytes, size, &version);
	moved = started_at - start_of(bytes, size);
	while (records_next(&records, &section))
		play_section(&section, moved);
	free(bytes);
}

/* --- calling_back -------------------------------------------------------------------------------------------------------- */

static _Thread_local CUpti_CallbackDomain calling_back; /* what of, on this thread */

static void add_name(CUpti_CallbackDomain domain, CUpti_CallbackId callback, const void *data)
{
	if (!subscribed || !callbacks[domain][callback])
		return;
	calling_back = domain;
	subscriber_callback(tell_data, domain, callback, data);
	calling_back = CUPTI_CB_DOMAIN_INVALID;
}

/* --- capturing ------------------------------------------------------------------------------------------------------ */

SHOW void fake_cupti_capture(uint64_t node, uint64_t original)
{
	CUpti_GraphData graph = {.node = (CUgraphNode)(uintptr_t)node, .originalNode = (CUgraphNode)(uintptr_t)original};
	const CUpti_ResourceData data = {.resourceDescriptor = &graph};
	CUpti_CallbackId callback = original ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED;

	add_name(CUPTI_CB_DOMAIN_RESOURCE, callback, &data);
}

SHOW void fake_cupti_instantiate(uint64_t graph, int result)
{
	CUgraphExec executable = NULL;
	cuGraphInstantiateWithFlags_params parameters = {&executable, (CUgraph)(uintptr_t)graph, 0};
	CUpti_CallbackData call = {.callbackSite = CUPTI_API_ENTER, .functionName = "cuGraphInstantiateWithFlags",
	                           .functionParams = &parameters};

	add_name(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, &call);
	call.callbackSite = CUPTI_API_EXIT;
	call.functionReturnValue = &result;
	add_name(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, &call);
	add_name(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000, &call);
}

/* --- contexts ------------------------------------------------------------------------------------------------------- */

/* With the context goes what was not fetched. */
SHOW void fake_cupti_end_context(void)
{
	CUpti_CallbackData call = {.callbackSite = CUPTI_API_ENTER, .functionName = "cuCtxDestroy_v2"};

	add_name(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2, &call);
	add_name(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, &(CUpti_ResourceData){0});
	pthread_mutex_lock(&lock);
	buffer_used = 0;
	pthread_mutex_unlock(&lock);
	call.callbackSite = CUPTI_API_EXIT;
	add_name(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2, &call);
}

/* --- CUPTI's entry points ------------------------------------------------------------------------------------------- */

SHOW CUptiResult cuptiGetVersion(uint32_t *version)
{
	const char *text = getenv("FAKE_CUPTI_VERSION");

	*version = text ? (uint32_t)atoi(text) : CUPTI_API_VERSION;
	return result_of(__func__);
}

SHOW CUptiResult cuptiGetTimestamp(uint64_t *ret_time)
{
	*ret_time = now();
	return result_of(__func__);
}

SHOW CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
	*text = result == CUPTI_ERROR_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED" : "CUPTI_ERROR";
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t callback, const char **name)
{
	for (size_t i = 0; i < call_count && i < TEXTS_MAX; i++)
		if (calls[i].domain == (uint32_t)domain && calls[i].callback == callback) {
			*name = calls[i].name;
			return CUPTI_SUCCESS;
		}
	*name = domain == CUPTI_CB_DOMAIN_DRIVER_API                           ? "cuLaunchKernel"
	        : callback == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000  ? "cudaLaunchKernel_v7000"
	        : callback == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020   ? "cudaMemcpyAsync_v3020"
	        : callback == CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020 ? "cudaStreamSynchronize_v3020"
	                                                                           : NULL;
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SHOW CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data)
{
	if (result_of(__func__) != CUPTI_SUCCESS)
		return result_of(__func__);
	if (subscribed)
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	subscribed = true;
	subscriber_callback = callback;
	tell_data = data;
	*handle = (CUpti_SubscriberHandle)&subscribed;
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	(void)handle;
	subscribed = false;
	memset(callbacks, 0, sizeof(callbacks));
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                     CUpti_CallbackId callback)
{
	(void)handle;
	if (domain >= CUPTI_CB_DOMAIN_SIZE || callback >= sizeof(callbacks[0]))
		return CUPTI_ERROR_INVALID_PARAMETER;
	callbacks[domain][callback] = enable;
	return result_of(__func__);
}

SHOW CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable)
{
	(void)enable;
	return result_of(__func__);
}

/* Nodes are their own ids. */
SHOW CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *ret_id)
{
	*ret_id = (uint64_t)(uintptr_t)node;
	return result_of(__func__);
}

SHOW CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	if (result_of(__func__) != CUPTI_SUCCESS)
		return result_of(__func__);
	pthread_mutex_lock(&lock);
	enabled[kind] = true;
	if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
		memset(quiet[kind == CUPTI_ACTIVITY_KIND_RUNTIME], 0, sizeof(quiet[0]));
	started_at = now();
	started_by = syscall(SYS_gettid);
	stream_free = 0;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

static CUptiResult enable_call(bool runtime, CUpti_CallbackId callback, bool enable)
{
	if (callback >= CALLBACKS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	quiet[runtime][callback] = !enable;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId callback, uint8_t enable)
{
	return enable_call(true, callback, enable);
}

SHOW CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId callback, uint8_t enable)
{
	return enable_call(false, callback, enable);
}

SHOW bool fake_cupti_is_quiet(bool runtime, uint32_t callback)
{
	return quiet[runtime][callback];
}

SHOW CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	pthread_mutex_lock(&lock);
	enabled[kind] = false;
	pthread_mutex_unlock(&lock);
	return result_of(__func__);
}

SHOW CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc to_request,
                                                CUpti_BuffersCallbackCompleteFunc to_complete)
{
	request = to_request;
	complete = to_complete;
	return result_of(__func__);
}

SHOW CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	const char *path = getenv("FAKE_CUPTI_RECORDS");

	/* In callbacks that are not of calls its header forbids it. */
	if (calling_back != CUPTI_CB_DOMAIN_INVALID && calling_back != CUPTI_CB_DOMAIN_DRIVER_API && calling_back != CUPTI_CB_DOMAIN_RUNTIME_API)
		return CUPTI_ERROR_INVALID_OPERATION;
	pthread_mutex_lock(&lock);
	if (path)
		play_file(path);
	if (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
		end_work(UINT32_MAX);
	flush();
	pthread_mutex_unlock(&lock);
	return result_of(__func__);
}

SHOW bool fake_cupti_reader_takes(int signal)
{
	return !sigismember(&reader_blocks, signal);
}

SHOW CUptiResult cuptiActivityGetNextRecord(uint8_t *bytes, size_t valid, CUpti_Activity **record)
{
	uint8_t *at = *record ? (uint8_t *)*record : bytes;
	uint32_t size;

	pthread_sigmask(SIG_BLOCK, NULL, &reader_blocks);
	if (result_of(__func__) != CUPTI_SUCCESS)
		return result_of(__func__);
	if (*record) {
		memcpy(&size, at - RECORD_HEAD, sizeof(size));
		at += (size + 7) / 8 * 8;
	}
	if (at + RECORD_HEAD >= bytes + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)(void *)(at + RECORD_HEAD);
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *ret_dropped)
{
	(void)context;
	(void)stream;
	pthread_mutex_lock(&lock);
	*ret_dropped = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? result_of(__func__) : CUPTI_ERROR_INVALID_PARAMETER;
}

SHOW CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc subscriber_callback)
{
	timestamp = subscriber_callback;
	return result_of(__func__);
}

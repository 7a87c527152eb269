/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI without a GPU; see fake_cupti.h. Records lie in buffers with their size before each, which is how GetNextRecord finds
 * its way.
 */
#include "fake_cupti.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cupti.h>

#define SHOW __attribute__((visibility("default")))
#define RECORD_HEAD 8u
#define TEXTS_MAX 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_TimestampCallbackFunc timestamp;
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
static bool subscribed;
static uint8_t *buffer;
static size_t buffer_size, buffer_used, dropped;
static uint32_t last_correlation;
static uint64_t started_at;
static long started_by;
static uint64_t stream_free; /* when the work so far is done */
#define STREAM_GAP_NS 500

static struct {
	char function[64];
	CUptiResult result;
} failing;

static CUptiResult result_of(const char *function)
{
	return strcmp(failing.function, function) == 0 ? failing.result : CUPTI_SUCCESS;
}

SHOW void fake_cupti_fail(const char *function, int result)
{
	snprintf(failing.function, sizeof(failing.function), "%s", function);
	failing.result = (CUptiResult)result;
}

static uint64_t now(void)
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

/* As CUPTI does, on a thread of its own. The lock is held. */
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
	CUpti_ActivityKernel9 kernel = {
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

/* --- files of records ----------------------------------------------------------------------------------------------- */

struct replay {
	char *bytes;
	size_t size;
	const char *texts[TEXTS_MAX];
};

/* Moves times, and puts in the thread and the names that the file stands for. */
static void adapt(struct replay *replay, void *record, uint64_t moved)
{
	CUpti_ActivityKind kind;

	memcpy(&kind, record, sizeof(kind));
	if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
		CUpti_ActivityKernel9 *kernel = record;
		uintptr_t number = (uintptr_t)kernel->name;

		kernel->start += moved;
		kernel->end += moved;
		kernel->name = number < TEXTS_MAX ? replay->texts[number] : NULL;
	} else if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER) {
		CUpti_ActivityAPI *call = record;

		call->start += moved;
		call->end += moved;
		call->threadId = call->threadId ? call->threadId : (uint32_t)started_by;
	} else if (kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION || kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
		uint64_t *times = (uint64_t *)((char *)record + (kind == CUPTI_ACTIVITY_KIND_OVERHEAD ? 24 : 8));

		times[0] += moved;
		times[1] += moved;
	} else {
		uint64_t *times = (uint64_t *)((char *)record + offsetof(CUpti_ActivityMemcpy6, start));

		times[0] += moved;
		times[1] += moved;
	}
}

static void play_section(struct replay *replay, uint32_t kind, char *bytes, uint32_t size, uint64_t moved)
{
	uint64_t number;
	union {
		CUpti_ActivityKernel9 largest;
		char bytes[1024];
	} record = {0};

	if (kind == FAKE_CUPTI_TEXT && size > sizeof(number)) {
		memcpy(&number, bytes, sizeof(number));
		if (number < TEXTS_MAX)
			replay->texts[number] = strndup(bytes + sizeof(number), size - sizeof(number));
	} else if (kind == FAKE_CUPTI_RECORD && size >= sizeof(CUpti_ActivityKind) && size <= sizeof(record)) {
		memcpy(&record, bytes, size);
		adapt(replay, &record, moved);
		emit(&record, size);
	}
}

/* The lock is held. The texts stay, for records point to them. */
static void play_file(const char *path)
{
	static struct replay replay;
	FILE *file = fopen(path, "rb");
	struct fake_cupti_head head;
	uint32_t section[2];
	char *bytes;

	if (!file || fread(&head, sizeof(head), 1, file) != 1 || memcmp(head.magic, FAKE_CUPTI_MAGIC, 8) != 0)
		abort();
	while (fread(section, sizeof(section), 1, file) == 1) {
		size_t padded = (section[1] + (size_t)7) / 8 * 8;

		bytes = calloc(1, padded + 1);
		if (fread(bytes, 1, padded, file) == padded)
			play_section(&replay, section[0], bytes, section[1], started_at - head.start);
		free(bytes);
	}
	fclose(file);
}

/* --- CUPTI's entry points ------------------------------------------------------------------------------------------- */

SHOW CUptiResult cuptiGetVersion(uint32_t *version)
{
	*version = CUPTI_API_VERSION;
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
	*name = domain == CUPTI_CB_DOMAIN_DRIVER_API                           ? "cuLaunchKernel"
	        : callback == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000  ? "cudaLaunchKernel_v7000"
	        : callback == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020   ? "cudaMemcpyAsync_v3020"
	        : callback == CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020 ? "cudaStreamSynchronize_v3020"
	                                                                           : NULL;
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SHOW CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data)
{
	(void)callback;
	(void)data;
	if (result_of(__func__) != CUPTI_SUCCESS)
		return result_of(__func__);
	if (subscribed)
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	subscribed = true;
	*handle = (CUpti_SubscriberHandle)&subscribed;
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	(void)handle;
	subscribed = false;
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	if (result_of(__func__) != CUPTI_SUCCESS)
		return result_of(__func__);
	pthread_mutex_lock(&lock);
	enabled[kind] = true;
	started_at = now();
	started_by = syscall(SYS_gettid);
	stream_free = 0;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
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

	(void)flag;
	pthread_mutex_lock(&lock);
	if (path)
		play_file(path);
	flush();
	pthread_mutex_unlock(&lock);
	return result_of(__func__);
}

SHOW CUptiResult cuptiActivityGetNextRecord(uint8_t *bytes, size_t valid, CUpti_Activity **record)
{
	uint8_t *at = *record ? (uint8_t *)*record : bytes;
	uint32_t size;

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

SHOW CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc tell)
{
	timestamp = tell;
	return result_of(__func__);
}

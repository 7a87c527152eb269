/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with CUPTI's entry points that passes everything on to the real one and writes the records to a file for replay
 * (../replay/records.h). OPSTROBE_CUPTI names this library, RECORD_CUPTI_LIBRARY the real one, RECORD_CUPTI_FILE the file, which
 * contains the last session of the process. CUPTI does not report the size of a record, so it extends to the next one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../replay/records.h"
#include "gpu/cuda_devices.h"
#include "gpu/cupti_library.h"

#define SHOW __attribute__((visibility("default")))
#define TEXTS_MAX 65536u
#define CLOCK_TRIES 8

static struct ops_cupti real;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static FILE *file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for the file */
static CUpti_TimestampCallbackFunc timestamp;
static const void *texts[TEXTS_MAX]; /* written: pointers by their hash */
static uint8_t *pending, *pending_end; /* the record that was delivered last */

static void load(void)
{
	const char *path = getenv("RECORD_CUPTI_LIBRARY");
	void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!handle) {
		fprintf(stderr, "RECORD_CUPTI_LIBRARY does not name a libcupti\n");
		abort();
	}
#define FIND(name) real.name = (__typeof__(&name))(uintptr_t)dlsym(handle, #name);
	OPS_CUPTI_FUNCTIONS(FIND, FIND)
#undef FIND
}

static const struct ops_cupti *cupti(void)
{
	pthread_once(&once, load);
	return &real;
}

/* --- the file ------------------------------------------------------------------------------------------------------- */

static void write_section(enum records_kind kind, const void *fixed, size_t fixed_bytes, const void *rest, size_t rest_bytes)
{
	pthread_mutex_lock(&lock);
	if (file)
		records_write(file, kind, fixed, fixed_bytes, rest, rest_bytes);
	pthread_mutex_unlock(&lock);
}

static int64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The device's clock between two readings of the host's; of several tries the tightest. */
static void write_clock(void)
{
	struct records_clock clock = {0};
	int64_t tightest_ns = INT64_MAX;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		int64_t before_ns = host_ns(), width_ns;
		uint64_t device = 0;

		if (timestamp)
			device = timestamp();
		else
			cupti()->cuptiGetTimestamp(&device);
		width_ns = host_ns() - before_ns;
		if (width_ns < tightest_ns) {
			tightest_ns = width_ns;
			clock = (struct records_clock){(int64_t)device, before_ns + width_ns / 2};
		}
	}
	write_section(RECORDS_CLOCK, &clock, sizeof(clock), NULL, 0);
}

static void write_devices(void)
{
	uint32_t count = 0;

	ops_cuda_device_count(&count, NULL);
	for (uint32_t i = 0; i < count; i++) {
		struct ops_multiprocessor known;
		struct ops_buffer json = {0};
		struct records_device device;

		ops_cuda_device(i, &known, &json);
		device = (struct records_device){i, known.compute_major, known.compute_minor, known.count, known.warp_size,
		                                 known.threads_max, known.registers, known.shared_bytes,
		                                 known.shared_reserved_bytes, known.blocks_max};
		write_section(RECORDS_DEVICE, &device, sizeof(device), json.bytes, json.size);
		ops_buffer_release(&json);
	}
}

static void open_file(void)
{
	const char *path = getenv("RECORD_CUPTI_FILE");
	uint32_t version = 0;

	file = path ? fopen(path, "wb") : NULL;
	memset(texts, 0, sizeof(texts));
	cupti()->cuptiGetVersion(&version);
	if (file)
		records_write_head(file, version);
	write_devices();
}

/* The number of a text is its address. Where two share a place it is written more often than is needed. */
static uint64_t write_text(void *unused, uint64_t number)
{
	const char *text = (const char *)(uintptr_t)number;
	const void **place = &texts[(number >> 4) % TEXTS_MAX];

	(void)unused;
	if (*place != text)
		write_section(RECORDS_TEXT, &number, sizeof(number), text, strlen(text));
	*place = text;
	return number;
}

static void write_pending(const uint8_t *until)
{
	uint8_t record[RECORD_BYTES_MAX];
	size_t size = (size_t)(until - pending);

	if (!pending || until <= pending || size > sizeof(record))
		return;
	memcpy(record, pending, size);
	records_change_pointers(record, size, write_text, NULL);
	write_section(RECORDS_RECORD, NULL, 0, record, size);
}

/* --- CUPTI's entry points ------------------------------------------------------------------------------------------- */

SHOW CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data)
{
	CUptiResult result = cupti()->cuptiSubscribe(handle, callback, data);

	if (result == CUPTI_SUCCESS)
		open_file();
	return result;
}

SHOW CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	write_clock();
	if (file)
		fclose(file);
	file = NULL;
	return cupti()->cuptiUnsubscribe(handle);
}

SHOW CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback)
{
	timestamp = callback;
	return cupti()->cuptiActivityRegisterTimestampCallback(callback);
}

SHOW CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
	write_clock();
	return cupti()->cuptiActivityRegisterCallbacks(request, complete);
}

SHOW CUptiResult cuptiActivityGetNextRecord(uint8_t *bytes, size_t valid, CUpti_Activity **record)
{
	CUptiResult result;

	if (!*record)
		pending = NULL;
	result = cupti()->cuptiActivityGetNextRecord(bytes, valid, record);
	write_pending(result == CUPTI_SUCCESS ? (const uint8_t *)*record : pending_end);
	pending = result == CUPTI_SUCCESS ? (uint8_t *)*record : NULL;
	pending_end = bytes + valid;
	return result;
}

SHOW CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t callback, const char **name)
{
	CUptiResult result = cupti()->cuptiGetCallbackName(domain, callback, name);
	const uint32_t call[2] = {domain, callback};

	if (result == CUPTI_SUCCESS && *name)
		write_section(RECORDS_CALL, call, sizeof(call), *name, strlen(*name) + 1);
	return result;
}

SHOW CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *ret_dropped)
{
	CUptiResult result = cupti()->cuptiActivityGetNumDroppedRecords(context, stream, ret_dropped);
	const uint64_t count = *ret_dropped;

	if (result == CUPTI_SUCCESS && count)
		write_section(RECORDS_DROPPED, &count, sizeof(count), NULL, 0);
	return result;
}

#define HAND_ON(name, parameters, arguments)                                                       \
	SHOW CUptiResult name parameters                                                           \
	{                                                                                          \
		return cupti()->name arguments;                                                    \
	}

/* Older libraries do not have these. */
#define HAND_ON_IF_THERE(name, parameters, arguments)                                              \
	SHOW CUptiResult name parameters                                                           \
	{                                                                                          \
		return cupti()->name ? cupti()->name arguments : CUPTI_ERROR_NOT_SUPPORTED;        \
	}

HAND_ON_IF_THERE(cuptiActivityEnableCudaEventDeviceTimestamps, (uint8_t enable), (enable))
HAND_ON_IF_THERE(cuptiActivityEnableRuntimeApi, (CUpti_CallbackId callback, uint8_t enable), (callback, enable))
HAND_ON_IF_THERE(cuptiActivityEnableDriverApi, (CUpti_CallbackId callback, uint8_t enable), (callback, enable))
HAND_ON(cuptiGetVersion, (uint32_t *version), (version))
HAND_ON(cuptiGetTimestamp, (uint64_t *time), (time))
HAND_ON(cuptiGetResultString, (CUptiResult result, const char **text), (result, text))
HAND_ON(cuptiActivityEnable, (CUpti_ActivityKind kind), (kind))
HAND_ON(cuptiActivityDisable, (CUpti_ActivityKind kind), (kind))
HAND_ON(cuptiActivityFlushAll, (uint32_t flag), (flag))
HAND_ON(cuptiSetThreadIdType, (CUpti_ActivityThreadIdType type), (type))
HAND_ON(cuptiEnableCallback, (uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain, CUpti_CallbackId callback),
        (enable, handle, domain, callback))
HAND_ON(cuptiGetGraphNodeId, (CUgraphNode node, uint64_t *id), (node, id))

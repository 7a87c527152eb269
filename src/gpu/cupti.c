/* SPDX-License-Identifier: Apache-2.0
 *
 * Collecting with CUPTI; see cupti.h.
 *
 *     CUPTI's threads ── full buffers ─▶ stack ── semaphore ─▶ drain thread ─▶ decoder ─▶ activities
 *
 * CUPTI's time stamps on the host are taken from the recorder's own clock if the library allows it (since CUDA 11.6, with the
 * functions registered at each start): then calls lie exactly within their operators.
 */
#include "gpu/cupti.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"
#include "gpu/cuda_devices.h"
#include "gpu/cupti_buffers.h"
#include "gpu/cupti_calls.h"
#include "gpu/cupti_contexts.h"
#include "gpu/cupti_graphs.h"
#include "gpu/cupti_pm_sampling.h"
#include "gpu/cupti_records.h"

struct cupti_session {
	const struct ops_cupti *library;
	struct ops_activities *activities;
	struct ops_cupti_decoder decoder;
	CUpti_SubscriberHandle subscriber;
	struct ops_cupti_sampler *sampler; /* NULL if no counters are sampled */
	pthread_t drain;
	atomic_bool stopping;
	pid_t pid; /* process of the session: a forked one has no drain thread, and no CUDA */
	uint64_t unread; /* buffers that CUPTI could not parse */
};

/* CUPTI's callbacks receive no context, and may come after the stop, so these live as long as the process. */
static struct ops_cupti_buffers buffers;
static sem_t filled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `running` */
static struct cupti_session *running;

/* The recorder's clock as nanoseconds from an arbitrary origin, at a slightly wrong rate; corrected by readings at the ends of
 * the session. */
static uint64_t first_ticks;
static double ns_per_tick = 1;

/* --- callbacks of CUPTI --------------------------------------------------------------------------------------------- */

static uint64_t CUPTIAPI read_session_time(void)
{
	return (uint64_t)((double)(ops_ticks(ops_clock_tsc()) - first_ticks) * ns_per_tick);
}

static void CUPTIAPI request_buffer(uint8_t **ret_bytes, size_t *ret_size, size_t *ret_records_max)
{
	*ret_bytes = ops_cupti_buffers_claim(&buffers);
	*ret_size = *ret_bytes ? OPS_CUPTI_BUFFER_BYTES : 0;
	*ret_records_max = 0;
}

static void CUPTIAPI read_buffer(CUcontext context, uint32_t stream, uint8_t *bytes, size_t size, size_t valid_bytes)
{
	(void)context;
	(void)stream;
	(void)size;
	ops_cupti_buffers_fill(&buffers, bytes, valid_bytes);
	sem_post(&filled);
}

/* --- drain thread --------------------------------------------------------------------------------------------------- */

static void decode_buffer(struct cupti_session *session, const struct ops_cupti_buffer *buffer)
{
	uint8_t *bytes = atomic_load_explicit(&buffer->bytes, memory_order_relaxed);
	const uint8_t *end = bytes + buffer->valid_bytes;
	CUpti_Activity *record = NULL;
	CUptiResult result;

	while ((result = session->library->cuptiActivityGetNextRecord(bytes, buffer->valid_bytes, &record)) == CUPTI_SUCCESS)
		ops_cupti_decode(&session->decoder, record, (size_t)(end - (const uint8_t *)record));
	session->unread += result != CUPTI_ERROR_MAX_LIMIT_REACHED;
}

static void drain_buffers(struct cupti_session *session)
{
	struct ops_cupti_buffer *buffer = ops_cupti_buffers_drain(&buffers);

	while (buffer) {
		struct ops_cupti_buffer *next = buffer->next;

		decode_buffer(session, buffer);
		ops_cupti_buffers_return(buffer);
		buffer = next;
	}
}

static void *cupti_drain(void *argument)
{
	struct cupti_session *session = argument;

	while (!atomic_load_explicit(&session->stopping, memory_order_acquire)) {
		while (sem_wait(&filled) && errno == EINTR)
			;
		drain_buffers(session);
	}
	drain_buffers(session);
	return NULL;
}

/* --- collected kinds ------------------------------------------------------------------------------------------------ */

static const struct {
	CUpti_ActivityKind cupti;
	enum ops_activity_kind kind;
} collected[] = {
	{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, OPS_ACTIVITY_KERNEL},
	{CUPTI_ACTIVITY_KIND_MEMCPY, OPS_ACTIVITY_MEMCPY},
	{CUPTI_ACTIVITY_KIND_MEMCPY2, OPS_ACTIVITY_MEMCPY},
	{CUPTI_ACTIVITY_KIND_MEMSET, OPS_ACTIVITY_MEMSET},
	{CUPTI_ACTIVITY_KIND_RUNTIME, OPS_ACTIVITY_RUNTIME},
	{CUPTI_ACTIVITY_KIND_DRIVER, OPS_ACTIVITY_DRIVER},
	{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, OPS_ACTIVITY_SYNC},
	{CUPTI_ACTIVITY_KIND_CUDA_EVENT, OPS_ACTIVITY_SYNC},
	{CUPTI_ACTIVITY_KIND_CUDA_EVENT, OPS_ACTIVITY_EVENT_NODE},
	{CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE, OPS_ACTIVITY_HOST_NODE},
	{CUPTI_ACTIVITY_KIND_OVERHEAD, OPS_ACTIVITY_OVERHEAD},
	{CUPTI_ACTIVITY_KIND_MARKER, OPS_ACTIVITY_NVTX},
	{CUPTI_ACTIVITY_KIND_NAME, OPS_ACTIVITY_NVTX},
	{CUPTI_ACTIVITY_KIND_ENVIRONMENT, OPS_ACTIVITY_ENVIRONMENT},
	{CUPTI_ACTIVITY_KIND_MEMORY2, OPS_ACTIVITY_MEMORY},
	{CUPTI_ACTIVITY_KIND_MEMORY_POOL, OPS_ACTIVITY_MEMORY_POOL},
};
#define COLLECTED (sizeof(collected) / sizeof(collected[0]))
#define VERSION_HOST_NODES 130300u /* since this version CUPTI records graph nodes that run on the host */

/* Returns whether a kind is requested and supported by the library. */
static bool cupti_is_wanted(const struct cupti_session *session, size_t i)
{
	return session->decoder.kinds & OPS_ACTIVITY_BIT(collected[i].kind) &&
	       (collected[i].kind != OPS_ACTIVITY_HOST_NODE || session->library->version >= VERSION_HOST_NODES);
}

static void disable(struct cupti_session *session)
{
	for (size_t i = 0; i < COLLECTED; i++)
		if (cupti_is_wanted(session, i))
			session->library->cuptiActivityDisable(collected[i].cupti);
}

static enum ops_code enable(struct cupti_session *session, struct ops_error *error)
{
	for (size_t i = 0; i < COLLECTED; i++) {
		CUptiResult result;

		if (!cupti_is_wanted(session, i))
			continue;
		result = session->library->cuptiActivityEnable(collected[i].cupti);
		if (collected[i].kind == OPS_ACTIVITY_RUNTIME || collected[i].kind == OPS_ACTIVITY_DRIVER)
			ops_cupti_calls_quieten(session->library, collected[i].cupti);
		if (result == CUPTI_SUCCESS || collected[i].kind == OPS_ACTIVITY_HOST_NODE)
			continue; /* a graph is worth recording even without its host nodes */
		disable(session);
		return ops_cupti_fault(session->library, error, result, "CUPTI does not collect activity");
	}
	return OPS_OK;
}

static bool put_version(struct ops_activities *activities, const char *of, uint32_t version)
{
	char digits[16];

	return !version || ops_activities_metadata(activities, of, digits, (size_t)snprintf(digits, sizeof(digits), "%u", version));
}

/* Records the versions under torch's names; unknown ones are omitted. */
static enum ops_code describe_versions(struct cupti_session *session, struct ops_error *error)
{
	return put_version(session->activities, "cupti_version", session->library->version) &&
	                       put_version(session->activities, "cuda_runtime_version", ops_cuda_runtime_version()) &&
	                       put_version(session->activities, "cuda_driver_version", ops_cuda_driver_version())
	               ? OPS_OK
	               : ops_fault_memory(error);
}

static enum ops_code describe_devices(struct cupti_session *session, struct ops_error *error)
{
	struct ops_buffer json = {0};
	uint32_t count = 0;
	enum ops_code code = ops_cuda_device_count(&count, error);

	if (!code && !OPS_ARRAY_RESERVE(&session->decoder.devices, count))
		code = ops_fault_memory(error);
	for (uint32_t i = 0; !code && i < count; i++) {
		json.size = 0;
		ops_cuda_device(i, &session->decoder.devices.items[session->decoder.devices.count++], &json);
		if (json.failed || !ops_activities_device(session->activities, i, json.bytes, json.size))
			code = ops_fault_memory(error);
	}
	ops_buffer_release(&json);
	return code;
}

/* --- start and stop ------------------------------------------------------------------------------------------------- */

static void set_clock(void)
{
	struct ops_clock_pair now = ops_clock_pair_now();
	struct ops_clock_map map = ops_clock_map_between(now, now);

	first_ticks = now.ticks;
	ns_per_tick = map.ns_per_tick;
}

static int64_t cupti_now_ns(const struct ops_cupti *library)
{
	uint64_t now = 0;

	if (library->cuptiActivityRegisterTimestampCallback)
		return (int64_t)read_session_time();
	library->cuptiGetTimestamp(&now);
	return (int64_t)now;
}

/* Uses no session, because CUPTI may call it while one stops. */
static void CUPTIAPI read_callback(void *library, CUpti_CallbackDomain domain, CUpti_CallbackId callback, const void *data)
{
	if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
		ops_cupti_graphs_on_resource(library, callback, data, cupti_now_ns(library));
	} else {
		ops_cupti_contexts_on_call(library, domain, callback);
		ops_cupti_graphs_on_call(library, domain, callback, data, cupti_now_ns(library));
	}
}

/* Subscribes to the ends of contexts and to graphs. Detects whether another profiler has subscribed. */
static enum ops_code subscribe(struct cupti_session *session, struct ops_error *error)
{
	const struct ops_cupti *library = session->library;
	CUptiResult result = library->cuptiSubscribe(&session->subscriber, read_callback, (void *)(uintptr_t)library);

	if (result != CUPTI_SUCCESS)
		return ops_cupti_fault(library, error, result, "CUPTI does not start");
	set_clock();
	result = library->cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
	if (result == CUPTI_SUCCESS && library->cuptiActivityRegisterTimestampCallback)
		result = library->cuptiActivityRegisterTimestampCallback(read_session_time);
	/* If this fails, events have no rows. */
	if (session->decoder.kinds & (OPS_ACTIVITY_BIT(OPS_ACTIVITY_SYNC) | OPS_ACTIVITY_BIT(OPS_ACTIVITY_EVENT_NODE)) &&
	    library->cuptiActivityEnableCudaEventDeviceTimestamps)
		library->cuptiActivityEnableCudaEventDeviceTimestamps(1);
	if (result == CUPTI_SUCCESS)
		result = library->cuptiActivityRegisterCallbacks(request_buffer, read_buffer);
	if (result == CUPTI_SUCCESS) {
		ops_cupti_contexts_enable(library, session->subscriber);
		ops_cupti_graphs_enable(library, session->subscriber, session->decoder.kinds);
		return OPS_OK;
	}
	library->cuptiUnsubscribe(session->subscriber);
	return ops_cupti_fault(library, error, result, "CUPTI cannot be set up");
}

static enum ops_code start_drain(struct cupti_session *session, struct ops_error *error)
{
	return ops_thread_start(&session->drain, cupti_drain, session)
		       ? OPS_OK
		       : ops_fault(error, OPS_NO_MEMORY, "cannot start a thread for CUPTI's records");
}

static void stop_drain(struct cupti_session *session)
{
	atomic_store_explicit(&session->stopping, true, memory_order_release);
	sem_post(&filled);
	pthread_join(session->drain, NULL);
}

/* Only invalid metrics are a failure. Other reasons that prevent sampling are recorded. */
static enum ops_code open_sampler(struct cupti_session *session, struct ops_cuda_sampling *sampling, struct ops_error *error)
{
	enum ops_code code;

	sampling->problem.code = OPS_OK;
	if (sampling->device >= session->decoder.devices.count)
		return ops_fault(error, OPS_INVALID, "CUDA device %u does not exist", sampling->device);
	code = ops_cupti_sampler_open(session->library, sampling, &session->decoder.devices.items[sampling->device],
	                              &session->sampler, &sampling->problem);
	return code == OPS_INVALID ? ops_fault(error, code, "%s", sampling->problem.text) : OPS_OK;
}

static void start_sampler(struct cupti_session *session, struct ops_cuda_sampling *sampling)
{
	if (!session->sampler || !ops_cupti_sampler_run(session->sampler, true, cupti_now_ns, &sampling->problem))
		return;
	ops_cupti_sampler_free(session->sampler);
	session->sampler = NULL;
}

static enum ops_code cupti_begin(struct cupti_session *session, struct ops_cuda_sampling *sampling, struct ops_error *error)
{
	enum ops_code code = describe_versions(session, error);

	if (!code)
		code = describe_devices(session, error);
	if (!code && sampling)
		code = open_sampler(session, sampling, error);
	if (code || (code = subscribe(session, error)))
		return code;
	code = start_drain(session, error);
	if (!code && (code = enable(session, error)))
		stop_drain(session);
	if (code)
		session->library->cuptiUnsubscribe(session->subscriber);
	else
		start_sampler(session, sampling);
	return code;
}

static void cupti_free_session(struct cupti_session *session)
{
	ops_cupti_sampler_free(session->sampler);
	ops_cupti_decoder_release(&session->decoder);
	ops_free(session);
}

static enum ops_code cupti_start(void *self, uint32_t kinds, struct ops_activities *activities, struct ops_error *error)
{
	struct ops_cuda_sampling *sampling = kinds & OPS_ACTIVITY_BIT(OPS_ACTIVITY_PM_SAMPLING) ? self : NULL;
	struct cupti_session *session;
	const struct ops_cupti *library;
	enum ops_code code = ops_cupti_load(&library, error);

	if (code)
		return code;
	session = ops_alloc_zeroed(1, sizeof(*session));
	if (!session)
		return ops_fault_memory(error);
	session->library = library;
	session->activities = activities;
	session->pid = getpid();
	ops_cupti_decoder_init(&session->decoder, library, activities, kinds);
	pthread_mutex_lock(&lock);
	if (running && running->pid != getpid())
		code = ops_fault(error, OPS_STATE, "the process was forked from one that records CUDA's devices");
	else
		code = running ? ops_fault(error, OPS_BUSY, "another session records CUDA's devices")
		               : cupti_begin(session, sampling, error);
	if (!code)
		running = session;
	pthread_mutex_unlock(&lock);
	if (code)
		cupti_free_session(session);
	return code;
}

static enum ops_code stop(void *unused, struct ops_activities *activities, struct ops_error *error)
{
	struct cupti_session *session;
	CUptiResult result;
	enum ops_code code;
	size_t dropped = 0;

	(void)unused;
	pthread_mutex_lock(&lock);
	session = running;
	pthread_mutex_unlock(&lock);
	/* A forced flush would deliver running work without its end, and never again. */
	code = ops_cuda_synchronize(error);
	if (session->sampler) {
		enum ops_code paused = ops_cupti_sampler_run(session->sampler, false, cupti_now_ns, code ? NULL : error);

		code = code ? code : paused;
	}
	result = session->library->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	if (!code && result != CUPTI_SUCCESS)
		code = ops_cupti_fault(session->library, error, result, "CUPTI did not deliver all its records");
	disable(session);
	stop_drain(session);
	ops_cupti_decode_end(&session->decoder);
	if (session->library->cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS)
		activities->lost += dropped;
	activities->lost += session->unread; /* the number of records in them is unknown */
	if (!code && session->unread)
		code = ops_fault(error, OPS_CORRUPT, "CUPTI could not read %llu of its buffers",
		                 (unsigned long long)session->unread);
	session->library->cuptiUnsubscribe(session->subscriber);
	ops_cupti_graphs_flush(&session->decoder);
	if (session->sampler) {
		enum ops_code missing = ops_cupti_sampler_flush(session->sampler, activities, code ? NULL : error);

		code = code ? code : missing;
	}
	ops_cupti_buffers_release(&buffers);
	pthread_mutex_lock(&lock);
	running = NULL; /* only now: another session would interfere with what this one still uses of CUPTI */
	pthread_mutex_unlock(&lock);
	cupti_free_session(session);
	return code;
}

/* --- collector ------------------------------------------------------------------------------------------------------ */

static enum ops_code toggle(void *unused, bool on, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	(void)unused;
	pthread_mutex_lock(&lock);
	if (running && on)
		code = enable(running, error);
	else if (running)
		disable(running);
	if (!code && running && running->sampler)
		code = ops_cupti_sampler_run(running->sampler, on, cupti_now_ns, error);
	pthread_mutex_unlock(&lock);
	return code;
}

static int64_t clock_ns(void *unused)
{
	const struct ops_cupti *library;

	(void)unused;
	return ops_cupti_load(&library, NULL) ? 0 : cupti_now_ns(library);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void cupti_init(void)
{
	sem_init(&filled, 0, 0);
}

const struct ops_device_collector *ops_cupti_collector(void)
{
	static const struct ops_device_collector collector = {"CUPTI", NULL, cupti_start, stop, clock_ns, toggle};

	pthread_once(&once, cupti_init);
	return &collector;
}

enum ops_code ops_cuda_check(uint32_t *ret_devices, struct ops_error *error)
{
	const struct ops_cupti *library;
	uint32_t count = 0;
	enum ops_code code = ops_cuda_device_count(&count, error);

	if (ret_devices)
		*ret_devices = count;
	return code ? code : ops_cupti_load(&library, error);
}

const char *ops_cuda_describe(void)
{
	static _Thread_local char description[1200];
	const struct ops_cupti *library;
	struct ops_error error;

	if (ops_cupti_load(&library, &error))
		snprintf(description, sizeof(description), "none: %.1000s", error.text);
	else
		snprintf(description, sizeof(description), "%s, version %u", library->path, library->version);
	return description;
}

uint32_t ops_cuda_cupti_version(void)
{
	const struct ops_cupti *library;

	return ops_cupti_load(&library, NULL) ? 0 : library->version;
}

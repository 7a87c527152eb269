/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples hardware counters; see cupti_pm_sampling.h.
 */
#include "gpu/cupti_pm_sampling.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/thread.h"
#include "gpu/cupti_pm_metrics.h"

#define INTERVAL_NS 1000000u          /* default interval */
#define HARDWARE_BYTES (64u << 20)    /* a sample takes up to 16 KiB */
#define SAMPLES_MAX 1024u             /* in the image; up to 18 KiB each */
#define PASSES_AHEAD 4u               /* by how many passes decoding may be late before the image is too small */
#define PERIOD_MIN_NS 1000000u
#define PERIOD_MAX_NS 100000000u
#define PASSES_MAX 64                 /* consecutive passes to empty the hardware's buffer */
#define CLOCK_SLACK_NS 10000000       /* tolerance for converted times outside of the session */
#define VERSION_APPEND_MODE 26u       /* since this version, 12.8, the buffer can keep the latest samples; 12.6 rejects structures
                                       * longer than its own */

struct ops_cupti_sampler {
	const struct ops_cupti *library;
	int64_t (*clock_ns)(const struct ops_cupti *library);
	struct ops_cupti_metrics metrics;
	uint64_t interval_ns;
	bool by_cycles; /* samples are triggered by the system clock's cycles, because intervals of time are not supported */
	CUpti_PmSampling_Object *target;
	struct ops_cupti_image counters; /* destination of a decoded pass */
	double *values;                  /* values of one sample */

	pthread_mutex_t lock; /* protects the following members and calls with `target` */
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread;
	bool stopping;
	bool running;
	bool overflown; /* in the latest pass */
	int64_t begun_ns;
	int64_t last_ns; /* start of the latest sample */
	OPS_ARRAY(int64_t) times;
	OPS_ARRAY(double) sampled; /* a value of each metric for each time */
	uint64_t lost;
	const char *why_lost;   /* the first reason; NULL: nothing was lost */
	struct ops_error fault; /* with a code: why sampling ended early */
};

/* --- device side ---------------------------------------------------------------------------------------------------- */

/* Turing and GA100 count cycles of the system clock, whose rate varies; 1 GHz is assumed, as in CUPTI's samples. Turing cannot
 * keep the latest samples either. */
static CUptiResult configure(struct ops_cupti_sampler *sampler, const struct ops_multiprocessor *device)
{
	bool is_turing = device->compute_major < 8;
	PARAMS(CUpti_PmSampling_SetConfig_Params, config, .pPmSamplingObject = sampler->target,
	       .configSize = sampler->metrics.config.size, .pConfig = sampler->metrics.config.bytes,
	       .hardwareBufferSize = HARDWARE_BYTES, .samplingInterval = sampler->interval_ns);

	sampler->by_cycles = is_turing || (device->compute_major == 8 && device->compute_minor == 0);
	config.triggerMode = sampler->by_cycles ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL
	                                        : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
	if (!is_turing)
		config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST;
	if (sampler->library->version < VERSION_APPEND_MODE)
		config.structSize = CUPTI_PROFILER_STRUCT_SIZE(CUpti_PmSampling_SetConfig_Params, triggerMode);
	return sampler->library->cuptiPmSamplingSetConfig(&config);
}

static CUptiResult clear_counters(struct ops_cupti_sampler *sampler)
{
	PARAMS(CUpti_PmSampling_CounterDataImage_Initialize_Params, clear, .pPmSamplingObject = sampler->target,
	       .counterDataSize = sampler->counters.size, .pCounterData = sampler->counters.bytes);

	return sampler->library->cuptiPmSamplingCounterDataImageInitialize(&clear);
}

static enum ops_code cupti_pm_sampling_open_target(struct ops_cupti_sampler *sampler, const struct ops_multiprocessor *device,
                                                   struct ops_error *error)
{
	PARAMS(CUpti_PmSampling_Enable_Params, enable, .deviceIndex = sampler->metrics.device);
	PARAMS(CUpti_PmSampling_GetCounterDataSize_Params, size, .pMetricNames = sampler->metrics.names,
	       .numMetrics = sampler->metrics.count, .maxSamples = SAMPLES_MAX);
	CUptiResult result = sampler->library->cuptiPmSamplingEnable(&enable);

	if (result == CUPTI_SUCCESS) {
		sampler->target = size.pPmSamplingObject = enable.pPmSamplingObject;
		result = configure(sampler, device);
	}
	if (result == CUPTI_SUCCESS)
		result = sampler->library->cuptiPmSamplingGetCounterDataSize(&size);
	if (result != CUPTI_SUCCESS)
		return ops_cupti_metrics_refuse(&sampler->metrics, result, error);
	if (!ops_cupti_image_make(&sampler->counters, size.counterDataSize))
		return ops_fault_memory(error);
	result = clear_counters(sampler);
	return result == CUPTI_SUCCESS ? OPS_OK : ops_cupti_metrics_refuse(&sampler->metrics, result, error);
}

/* --- decoding; the lock must be held -------------------------------------------------------------------------------- */

static void lose(struct ops_cupti_sampler *sampler, const char *why)
{
	sampler->lost++;
	if (!sampler->why_lost)
		sampler->why_lost = why;
}

static void cupti_pm_sampling_abandon(struct ops_cupti_sampler *sampler, CUptiResult result)
{
	sampler->lost++; /* the number of further samples is unknown */
	ops_cupti_fault(sampler->library, &sampler->fault, result, "CUPTI samples counters no more");
}

static bool is_timely(const struct ops_cupti_sampler *sampler, uint64_t start, uint64_t end)
{
	int64_t now_ns = sampler->clock_ns(sampler->library);

	return start < end && end <= INT64_MAX && (int64_t)start > sampler->last_ns &&
	       (int64_t)start >= sampler->begun_ns - CLOCK_SLACK_NS && (int64_t)end <= now_ns + CLOCK_SLACK_NS;
}

static bool cupti_pm_sampling_keep(struct ops_cupti_sampler *sampler, int64_t time_ns)
{
	if (!OPS_ARRAY_RESERVE(&sampler->times, 1) || !OPS_ARRAY_RESERVE(&sampler->sampled, sampler->metrics.count))
		return false;
	sampler->times.items[sampler->times.count++] = time_ns;
	memcpy(sampler->sampled.items + sampler->sampled.count, sampler->values, sampler->metrics.count * sizeof(double));
	sampler->sampled.count += sampler->metrics.count;
	return true;
}

static CUptiResult read_sample(struct ops_cupti_sampler *sampler, size_t index)
{
	PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo_Params, sample, .pPmSamplingObject = sampler->target,
	       .pCounterDataImage = sampler->counters.bytes, .counterDataImageSize = sampler->counters.size,
	       .sampleIndex = index);
	PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluate, .pHostObject = sampler->metrics.host,
	       .pCounterDataImage = sampler->counters.bytes, .counterDataImageSize = sampler->counters.size,
	       .ppMetricNames = sampler->metrics.names, .numMetrics = sampler->metrics.count, .rangeIndex = index,
	       .pMetricValues = sampler->values);
	CUptiResult result = sampler->library->cuptiPmSamplingCounterDataGetSampleInfo(&sample);

	if (result != CUPTI_SUCCESS || (sample.startTimestamp && sample.startTimestamp == sample.endTimestamp))
		return result;
	if (!is_timely(sampler, sample.startTimestamp, sample.endTimestamp)) {
		lose(sampler, "their times are none of the recording");
		return CUPTI_SUCCESS;
	}
	sampler->last_ns = (int64_t)sample.startTimestamp;
	result = sampler->library->cuptiProfilerHostEvaluateToGpuValues(&evaluate);
	if (result == CUPTI_SUCCESS && !cupti_pm_sampling_keep(sampler, sampler->last_ns))
		lose(sampler, "memory was out");
	return result;
}

static CUptiResult read_samples(struct ops_cupti_sampler *sampler, size_t *ret_count)
{
	PARAMS(CUpti_PmSampling_GetCounterDataInfo_Params, info, .pCounterDataImage = sampler->counters.bytes,
	       .counterDataImageSize = sampler->counters.size);
	CUptiResult result = sampler->library->cuptiPmSamplingGetCounterDataInfo(&info);

	for (size_t i = 0; result == CUPTI_SUCCESS && i < info.numCompletedSamples; i++)
		result = read_sample(sampler, i);
	*ret_count = info.numCompletedSamples;
	return result == CUPTI_SUCCESS ? clear_counters(sampler) : result;
}

/* Decodes a pass. Returns whether more samples are available: they did not fit into the image or, after the end of sampling,
 * CUPTI stopped before them without a reason. */
static bool cupti_pm_sampling_decode(struct ops_cupti_sampler *sampler)
{
	PARAMS(CUpti_PmSampling_DecodeData_Params, decode, .pPmSamplingObject = sampler->target,
	       .pCounterDataImage = sampler->counters.bytes, .counterDataImageSize = sampler->counters.size);
	CUptiResult result = sampler->library->cuptiPmSamplingDecodeData(&decode);
	bool was_overflown = sampler->overflown;
	size_t count = 0;

	sampler->overflown = result == CUPTI_ERROR_OUT_OF_MEMORY || (result == CUPTI_SUCCESS && decode.overflow);
	if (sampler->overflown && !was_overflown)
		lose(sampler, "the hardware's buffer overflowed, which a longer interval helps against");
	if (result == CUPTI_ERROR_OUT_OF_MEMORY)
		return false;
	if (result == CUPTI_SUCCESS && decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL)
		lose(sampler, "more came at once than could be decoded, which a longer interval helps against");
	if (result == CUPTI_SUCCESS)
		result = read_samples(sampler, &count);
	if (result != CUPTI_SUCCESS)
		cupti_pm_sampling_abandon(sampler, result);
	if (result != CUPTI_SUCCESS || !count)
		return false;
	return decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL ||
	       (decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER && !sampler->running);
}

static void cupti_pm_sampling_drain(struct ops_cupti_sampler *sampler)
{
	for (int i = 0; i < PASSES_MAX && !sampler->fault.code && cupti_pm_sampling_decode(sampler); i++)
		;
}

static void wait_a_period(struct ops_cupti_sampler *sampler)
{
	uint64_t period_ns = sampler->interval_ns < PERIOD_MAX_NS ? sampler->interval_ns * (SAMPLES_MAX / PASSES_AHEAD) : PERIOD_MAX_NS;
	struct timespec until;

	if (period_ns > PERIOD_MAX_NS)
		period_ns = PERIOD_MAX_NS;
	if (period_ns < PERIOD_MIN_NS)
		period_ns = PERIOD_MIN_NS;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)period_ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!sampler->stopping && pthread_cond_timedwait(&sampler->changed, &sampler->lock, &until) == 0)
		;
}

static void *decode_regularly(void *argument)
{
	struct ops_cupti_sampler *sampler = argument;

	pthread_mutex_lock(&sampler->lock);
	while (!sampler->stopping) {
		wait_a_period(sampler);
		if (sampler->running)
			cupti_pm_sampling_drain(sampler);
	}
	pthread_mutex_unlock(&sampler->lock);
	return NULL;
}

static void stop_thread(struct ops_cupti_sampler *sampler)
{
	if (!sampler->has_thread)
		return;
	pthread_mutex_lock(&sampler->lock);
	sampler->stopping = true;
	pthread_cond_signal(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	pthread_join(sampler->thread, NULL);
	sampler->has_thread = false;
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

static struct ops_cupti_sampler *new_sampler(const struct ops_cupti *library, const struct ops_cuda_sampling *wanted)
{
	struct ops_cupti_sampler *sampler = ops_alloc_zeroed(1, sizeof(*sampler));
	pthread_condattr_t attributes;

	if (!sampler)
		return NULL;
	sampler->library = library;
	sampler->interval_ns = wanted->interval_ns ? wanted->interval_ns : INTERVAL_NS;
	pthread_mutex_init(&sampler->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sampler->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	sampler->values = ops_alloc_zeroed(wanted->metric_count, sizeof(*sampler->values));
	if (sampler->values)
		return sampler;
	ops_cupti_sampler_free(sampler);
	return NULL;
}

enum ops_code ops_cupti_sampler_open(const struct ops_cupti *library, const struct ops_cuda_sampling *wanted,
                                     const struct ops_multiprocessor *device, struct ops_cupti_sampler **ret_sampler,
                                     struct ops_error *error)
{
	struct ops_cupti_sampler *sampler = new_sampler(library, wanted);
	enum ops_code code;

	if (!sampler)
		return ops_fault_memory(error);
	code = ops_cupti_metrics_open(&sampler->metrics, library, wanted, error);
	if (!code)
		code = cupti_pm_sampling_open_target(sampler, device, error);
	if (!code && !(sampler->has_thread = ops_thread_start(&sampler->thread, decode_regularly, sampler)))
		code = ops_fault(error, OPS_NO_MEMORY, "cannot start a thread for samples of counters");
	if (code)
		ops_cupti_sampler_free(sampler);
	else
		*ret_sampler = sampler;
	return code;
}

static CUptiResult cupti_pm_sampling_start(struct ops_cupti_sampler *sampler)
{
	PARAMS(CUpti_PmSampling_Start_Params, start, .pPmSamplingObject = sampler->target);
	CUptiResult result;

	sampler->begun_ns = sampler->clock_ns(sampler->library);
	result = sampler->library->cuptiPmSamplingStart(&start);
	sampler->running = result == CUPTI_SUCCESS;
	return result;
}

static CUptiResult pause_sampling(struct ops_cupti_sampler *sampler)
{
	PARAMS(CUpti_PmSampling_Stop_Params, stop, .pPmSamplingObject = sampler->target);
	CUptiResult result = sampler->library->cuptiPmSamplingStop(&stop);

	sampler->running = false;
	cupti_pm_sampling_drain(sampler);
	return result;
}

enum ops_code ops_cupti_sampler_run(struct ops_cupti_sampler *sampler, bool on,
                                    int64_t (*clock_ns)(const struct ops_cupti *library), struct ops_error *error)
{
	CUptiResult result = CUPTI_SUCCESS;

	pthread_mutex_lock(&sampler->lock);
	sampler->clock_ns = clock_ns;
	if (on != sampler->running && !(on && sampler->fault.code))
		result = on ? cupti_pm_sampling_start(sampler) : pause_sampling(sampler);
	pthread_mutex_unlock(&sampler->lock);
	return result == CUPTI_SUCCESS ? OPS_OK : ops_cupti_metrics_refuse(&sampler->metrics, result, error);
}

/* Describes what is sampled, for the trace's metadata. */
static bool cupti_pm_sampling_describe(struct ops_cupti_sampler *sampler, struct ops_activities *activities,
                                       const uint32_t *names)
{
	struct ops_buffer json = {0};
	bool kept;

	ops_buffer_printf(&json, "{\"device\":%u,\"chip\":", sampler->metrics.device);
	ops_json_string(&json, sampler->metrics.chip, strlen(sampler->metrics.chip));
	ops_buffer_printf(&json, ",\"%s\":%llu,\"metrics\":{", sampler->by_cycles ? "interval_cycles" : "interval_ns",
	                  (unsigned long long)sampler->interval_ns);
	for (size_t i = 0; i < sampler->metrics.count; i++) {
		const struct ops_intern_entry *name = &activities->texts.entries[names[i]];

		ops_buffer_append_text(&json, i ? "," : "");
		ops_json_string(&json, name->bytes, name->size);
		ops_buffer_append_text(&json, ":");
		ops_json_string(&json, sampler->metrics.names[i], strlen(sampler->metrics.names[i]));
	}
	ops_buffer_append_text(&json, "}}");
	kept = !json.failed && ops_activities_metadata(activities, "pm_sampling", json.bytes, json.size);
	ops_buffer_release(&json);
	return kept;
}

static bool add_samples(struct ops_cupti_sampler *sampler, struct ops_activities *activities)
{
	uint32_t *names = ops_realloc_array(NULL, sampler->metrics.count, sizeof(*names));

	bool kept = names != NULL;

	if (kept) {
		ops_cupti_metrics_label(&sampler->metrics, activities, names);
		kept = cupti_pm_sampling_describe(sampler, activities, names);
	}
	for (size_t i = 0; kept && i < sampler->sampled.count; i++) {
		int64_t time_ns = sampler->times.items[i / sampler->metrics.count];
		struct ops_activity counter = {.kind = OPS_ACTIVITY_PM_SAMPLING, .device = (uint16_t)sampler->metrics.device,
		                               .start_ns = time_ns, .end_ns = time_ns, .value = sampler->sampled.items[i],
		                               .name = names[i % sampler->metrics.count]};

		if (isfinite(counter.value)) /* a ratio with denominator 0 has no value */
			ops_activities_add(activities, &counter);
	}
	ops_free(names);
	return kept;
}

enum ops_code ops_cupti_sampler_flush(struct ops_cupti_sampler *sampler, struct ops_activities *activities,
                                      struct ops_error *error)
{
	stop_thread(sampler);
	if (!add_samples(sampler, activities))
		sampler->lost += sampler->times.count;
	activities->lost += sampler->lost;
	if (sampler->fault.code)
		return ops_fault(error, sampler->fault.code, "%s", sampler->fault.text);
	if (sampler->why_lost)
		return ops_fault(error, OPS_STATE, "samples of counters are missing: %s", sampler->why_lost);
	return OPS_OK;
}

void ops_cupti_sampler_free(struct ops_cupti_sampler *sampler)
{
	if (!sampler)
		return;
	stop_thread(sampler);
	if (sampler->target) {
		PARAMS(CUpti_PmSampling_Disable_Params, disable, .pPmSamplingObject = sampler->target);

		sampler->library->cuptiPmSamplingDisable(&disable);
	}
	ops_cupti_metrics_release(&sampler->metrics);
	pthread_cond_destroy(&sampler->changed);
	pthread_mutex_destroy(&sampler->lock);
	ops_free(sampler->counters.bytes);
	ops_free(sampler->values);
	OPS_ARRAY_RELEASE(&sampler->times);
	OPS_ARRAY_RELEASE(&sampler->sampled);
	ops_free(sampler);
}

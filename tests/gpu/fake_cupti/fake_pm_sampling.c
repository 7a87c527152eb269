/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling of hardware counters without hardware; see fake_cupti.h. Like CUPTI, it reads the configuration through the given
 * pointer, rejects structures that are longer than its own, and loses samples for which a full image has no room.
 */
#include "fake_cupti.h"
#include "fake_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#define DEVICES 1
#define METRICS_A_PASS 4
#define QUEUED_MAX 8192
#define CONFIG_MAGIC 0x636f6e66u
#define HOST_MAGIC 0x686f7374u

struct sample {
	uint64_t start;
	uint64_t end;
	uint64_t number;
};

struct config {
	uint32_t magic;
	uint32_t metric_count;
};

struct image {
	uint64_t room;
	uint64_t count;
	struct sample samples[];
};

struct CUpti_Profiler_Host_Object {
	uint32_t magic;
	uint32_t metric_count;
};

struct CUpti_PmSampling_Object {
	const uint8_t *config;
	bool configured;
	bool started;
	uint64_t started_ns;
	uint64_t numbered; /* samples so far */
	struct sample queue[QUEUED_MAX];
	size_t queued;
	bool overflow;
	bool stops_early; /* decodes half of what it could */
	uint64_t room;    /* of images */
};

static struct CUpti_PmSampling_Object object;
static bool enabled, initialized;
static atomic_bool busy; /* who calls with the object is alone */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for the queue */
static struct fake_sampling configured;

#define SIZED(params, type) ((params)->structSize && (params)->structSize <= type##_STRUCT_SIZE && !(params)->pPriv)

static void enter(void)
{
	if (atomic_exchange(&busy, true))
		abort();
}

static CUptiResult leave(CUptiResult result)
{
	atomic_store(&busy, false);
	return result;
}

/* --- what tests do -------------------------------------------------------------------------------------------------- */

SHOW struct fake_sampling fake_cupti_sampling(void)
{
	struct fake_sampling found;

	pthread_mutex_lock(&lock);
	found = configured;
	found.started_ns = object.started ? object.started_ns : 0;
	found.waiting = (uint32_t)object.queued;
	pthread_mutex_unlock(&lock);
	return found;
}

SHOW void fake_cupti_sample(uint64_t start_ns, uint64_t length_ns, uint32_t count)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < count && object.started; i++) {
		struct sample sample = {.number = object.numbered++};

		sample.start = start_ns ? start_ns + i * length_ns : 0;
		sample.end = start_ns ? sample.start + length_ns : 0;
		if (object.queued < QUEUED_MAX)
			object.queue[object.queued++] = sample;
	}
	pthread_mutex_unlock(&lock);
}

SHOW void fake_cupti_stop_early(void)
{
	pthread_mutex_lock(&lock);
	object.stops_early = true;
	pthread_mutex_unlock(&lock);
}

SHOW void fake_cupti_overflow(void)
{
	pthread_mutex_lock(&lock);
	object.overflow = true;
	pthread_mutex_unlock(&lock);
}

/* --- the host's side ------------------------------------------------------------------------------------------------ */

SHOW CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *params)
{
	if (!SIZED(params, CUpti_Profiler_Initialize_Params))
		return CUPTI_ERROR_INVALID_PARAMETER;
	initialized = result_of(__func__) == CUPTI_SUCCESS;
	return result_of(__func__);
}

SHOW CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *params)
{
	if (!SIZED(params, CUpti_Device_GetChipName_Params) || params->deviceIndex >= DEVICES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	params->pChipName = "GH100";
	return initialized ? result_of(__func__) : CUPTI_ERROR_NOT_INITIALIZED;
}

SHOW CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *params)
{
	/* 12.6 ends here. */
	if (params->structSize != CUPTI_PROFILER_STRUCT_SIZE(CUpti_Profiler_Host_Initialize_Params, pHostObject) ||
	    params->profilerType != CUPTI_PROFILER_TYPE_PM_SAMPLING || strcmp(params->pChipName, "GH100") != 0 ||
	    !params->pCounterAvailabilityImage || params->pCounterAvailabilityImage[0] != 1)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (result_of(__func__) != CUPTI_SUCCESS)
		return result_of(__func__);
	params->pHostObject = calloc(1, sizeof(*params->pHostObject));
	params->pHostObject->magic = HOST_MAGIC;
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *params)
{
	free(params->pHostObject);
	return result_of(__func__);
}

/* Metrics have a unit, two underscores, a name, and how they are summed up. */
SHOW CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *params)
{
	if (!SIZED(params, CUpti_Profiler_Host_ConfigAddMetrics_Params) || !params->numMetrics)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < params->numMetrics; i++)
		if (!strstr(params->ppMetricNames[i], "__") || !strchr(params->ppMetricNames[i], '.'))
			return CUPTI_ERROR_INVALID_PARAMETER;
	params->pHostObject->metric_count += (uint32_t)params->numMetrics;
	return result_of(__func__);
}

SHOW CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *params)
{
	params->configImageSize = sizeof(struct config);
	return result_of(__func__);
}

SHOW CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *params)
{
	struct config config = {CONFIG_MAGIC, params->pHostObject->metric_count};

	if (params->configImageSize != sizeof(config))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(params->pConfigImage, &config, sizeof(config));
	return result_of(__func__);
}

static uint32_t metrics_of(const uint8_t *image)
{
	struct config config;

	memcpy(&config, image, sizeof(config));
	return config.magic == CONFIG_MAGIC ? config.metric_count : 0;
}

SHOW CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *params)
{
	params->numOfPasses = (metrics_of(params->pConfigImage) + METRICS_A_PASS - 1) / METRICS_A_PASS;
	return result_of(__func__);
}

/* The value of metric m in sample n is 100 m + n. A metric that ends in ".ratio" has none in odd ones. */
SHOW CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *params)
{
	const struct image *image = (const void *)params->pCounterDataImage;

	if (!SIZED(params, CUpti_Profiler_Host_EvaluateToGpuValues_Params) || params->pHostObject->magic != HOST_MAGIC ||
	    params->rangeIndex >= image->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < params->numMetrics; i++) {
		uint64_t number = image->samples[params->rangeIndex].number;

		params->pMetricValues[i] = 100.0 * (double)i + (double)number;
		if (number % 2 && strstr(params->ppMetricNames[i], ".ratio"))
			params->pMetricValues[i] = __builtin_nan("");
	}
	return result_of(__func__);
}

/* --- the device's side ---------------------------------------------------------------------------------------------- */

SHOW CUptiResult cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *params)
{
	if (!SIZED(params, CUpti_PmSampling_GetCounterAvailability_Params) || params->deviceIndex >= DEVICES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (params->pCounterAvailabilityImage)
		memset(params->pCounterAvailabilityImage, 1, params->counterAvailabilityImageSize);
	params->counterAvailabilityImageSize = 16;
	return result_of(__func__);
}

SHOW CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *params)
{
	if (result_of(__func__) != CUPTI_SUCCESS)
		return result_of(__func__);
	if (enabled)
		return CUPTI_ERROR_INVALID_OPERATION;
	pthread_mutex_lock(&lock);
	enabled = true;
	memset(&object, 0, sizeof(object));
	params->pPmSamplingObject = &object;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

SHOW CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *params)
{
	enter();
	pthread_mutex_lock(&lock);
	enabled = object.started = false;
	pthread_mutex_unlock(&lock);
	return leave(params->pPmSamplingObject == &object ? result_of(__func__) : CUPTI_ERROR_INVALID_PARAMETER);
}

SHOW CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *params)
{
	if (!SIZED(params, CUpti_PmSampling_SetConfig_Params) || metrics_of(params->pConfig) > METRICS_A_PASS ||
	    !params->samplingInterval || !params->hardwareBufferSize)
		return CUPTI_ERROR_INVALID_PARAMETER;
	object.config = params->pConfig;
	object.configured = true;
	configured.interval = params->samplingInterval;
	configured.by_time = params->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
	configured.keeps_latest = params->hwBufferAppendMode == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST;
	return result_of(__func__);
}

SHOW CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *params)
{
	object.room = params->maxSamples;
	params->counterDataSize = sizeof(struct image) + params->maxSamples * sizeof(struct sample);
	return result_of(__func__);
}

SHOW CUptiResult cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *params)
{
	struct image *image = (void *)params->pCounterData;

	enter();
	memset(params->pCounterData, 0, params->counterDataSize);
	image->room = params->pPmSamplingObject->room;
	return leave(result_of(__func__));
}

SHOW CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *params)
{
	CUptiResult result = result_of(__func__);

	enter();
	if (!params->pPmSamplingObject->configured || object.started)
		result = CUPTI_ERROR_INVALID_OPERATION;
	pthread_mutex_lock(&lock);
	if (result == CUPTI_SUCCESS) {
		object.started = true;
		object.started_ns = now();
	}
	pthread_mutex_unlock(&lock);
	return leave(result);
}

/* What comes behind the last sample has no length. */
SHOW CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *params)
{
	CUptiResult result = params->pPmSamplingObject->started ? result_of(__func__) : CUPTI_ERROR_INVALID_OPERATION;

	enter();
	pthread_mutex_lock(&lock);
	if (object.queued < QUEUED_MAX)
		object.queue[object.queued++] = (struct sample){object.started_ns, object.started_ns, 0};
	object.started = false;
	pthread_mutex_unlock(&lock);
	return leave(result);
}

SHOW CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *params)
{
	struct image *image = (void *)params->pCounterDataImage;
	CUptiResult result = result_of(__func__);

	enter();
	if (!SIZED(params, CUpti_PmSampling_DecodeData_Params) || !metrics_of(object.config) || image->count)
		result = CUPTI_ERROR_INVALID_PARAMETER;
	if (result != CUPTI_SUCCESS)
		return leave(result);
	pthread_mutex_lock(&lock);
	image->count = object.queued < image->room ? object.queued : image->room;
	if (object.stops_early && image->count > 1)
		image->count /= 2;
	memcpy(image->samples, object.queue, image->count * sizeof(struct sample));
	object.queued -= image->count;
	memmove(object.queue, object.queue + image->count, object.queued * sizeof(struct sample));
	for (size_t i = 0; i < object.queued && image->count == image->room; i++)
		object.queue[i].start = object.queue[i].end = 0;
	params->decodeStopReason = object.queued && image->count < image->room
	                                   ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER
	                           : object.queued ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
	                                           : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
	params->overflow = object.overflow;
	object.overflow = false;
	pthread_mutex_unlock(&lock);
	return leave(CUPTI_SUCCESS);
}

SHOW CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *params)
{
	const struct image *image = (const void *)params->pCounterDataImage;

	params->numTotalSamples = image->room;
	params->numPopulatedSamples = params->numCompletedSamples = image->count;
	return result_of(__func__);
}

SHOW CUptiResult cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params *params)
{
	const struct image *image = (const void *)params->pCounterDataImage;

	if (params->sampleIndex >= image->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	params->startTimestamp = image->samples[params->sampleIndex].start;
	params->endTimestamp = image->samples[params->sampleIndex].end;
	return result_of(__func__);
}

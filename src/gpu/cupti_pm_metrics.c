/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics to sample, and their configuration in CUPTI; see cupti_pm_metrics.h.
 */
#include "gpu/cupti_pm_metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"

/* --- metrics -------------------------------------------------------------------------------------------------------- */

static bool copy_names(struct ops_cupti_metrics *metrics, const struct ops_cuda_sampling *wanted)
{
	size_t size = wanted->metric_count * sizeof(*metrics->names);
	char *at;

	for (size_t i = 0; i < wanted->metric_count; i++)
		size += strlen(wanted->metrics[i]) + 1;
	metrics->names = ops_alloc(size);
	if (!metrics->names)
		return false;
	metrics->count = wanted->metric_count;
	at = (char *)(metrics->names + metrics->count);
	for (size_t i = 0; i < metrics->count; i++) {
		metrics->names[i] = at;
		at = stpcpy(at, wanted->metrics[i]) + 1;
	}
	return true;
}

static enum ops_code fault_of_metrics(struct ops_cupti_metrics *metrics, const struct ops_buffer *names, size_t passes,
                                      struct ops_error *error)
{
	if (names->failed)
		return ops_fault_memory(error);
	if (passes)
		return ops_fault(error, OPS_INVALID, "the metrics need %zu passes on %s, of which sampling has one:%.*s", passes,
		                 metrics->chip, (int)names->size, names->bytes);
	return ops_fault(error, OPS_INVALID, "CUPTI does not know these metrics of %s:%.*s", metrics->chip, (int)names->size,
	                 names->bytes);
}

/* --- host side ------------------------------------------------------------------------------------------------------ */

static bool has_functions(const struct ops_cupti *library)
{
#define THERE(name) &&library->name
	return true OPS_CUPTI_SAMPLING_FUNCTIONS(THERE);
#undef THERE
}

enum ops_code ops_cupti_metrics_refuse(const struct ops_cupti_metrics *metrics, CUptiResult result, struct ops_error *error)
{
	static const char what[] = "CUPTI does not sample counters";

	if (result == CUPTI_ERROR_NOT_INITIALIZED)
		return ops_fault(error, OPS_UNSUPPORTED,
		                 "%s: libnvperf_host.so and libnvperf_target.so, which belong to '%s', cannot be loaded (%d)", what,
		                 metrics->library->path, (int)result);
	if (result == CUPTI_ERROR_NOT_SUPPORTED)
		return ops_fault(error, OPS_UNSUPPORTED, "%s: device %u cannot (%d)", what, metrics->device, (int)result);
	if (result == CUPTI_ERROR_INVALID_OPERATION)
		return ops_fault(error, OPS_BUSY, "%s: device %u is already being sampled (%d)", what, metrics->device,
		                 (int)result);
	return ops_cupti_fault(metrics->library, error, result, what);
}

bool ops_cupti_image_make(struct ops_cupti_image *image, size_t size)
{
	image->bytes = ops_alloc_zeroed(1, size);
	image->size = size;
	return image->bytes != NULL;
}

/* Queries which chip the device has, and what can be counted on it. */
static enum ops_code query_device(struct ops_cupti_metrics *metrics, struct ops_error *error)
{
	const struct ops_cupti *library = metrics->library;
	PARAMS(CUpti_Profiler_Initialize_Params, initialize);
	PARAMS(CUpti_Device_GetChipName_Params, name, .deviceIndex = metrics->device);
	PARAMS(CUpti_PmSampling_GetCounterAvailability_Params, available, .deviceIndex = metrics->device);
	CUptiResult result = library->cuptiProfilerInitialize(&initialize);

	if (result == CUPTI_SUCCESS)
		result = library->cuptiDeviceGetChipName(&name);
	if (result == CUPTI_SUCCESS)
		result = library->cuptiPmSamplingGetCounterAvailability(&available);
	if (result != CUPTI_SUCCESS)
		return ops_cupti_metrics_refuse(metrics, result, error);
	snprintf(metrics->chip, sizeof(metrics->chip), "%s", name.pChipName ? name.pChipName : "this device");
	if (!ops_cupti_image_make(&metrics->available, available.counterAvailabilityImageSize))
		return ops_fault_memory(error);
	available.pCounterAvailabilityImage = metrics->available.bytes;
	result = library->cuptiPmSamplingGetCounterAvailability(&available);
	return result == CUPTI_SUCCESS ? OPS_OK : ops_cupti_metrics_refuse(metrics, result, error);
}

static void close_host(struct ops_cupti_metrics *metrics)
{
	PARAMS(CUpti_Profiler_Host_Deinitialize_Params, end, .pHostObject = metrics->host);

	if (metrics->host)
		metrics->library->cuptiProfilerHostDeinitialize(&end);
	metrics->host = NULL;
}

/* Opens a new host object with some of the metrics. An object that has refused a metric cannot be used any more. */
static CUptiResult open_host(struct ops_cupti_metrics *metrics, const char **names, size_t count)
{
	PARAMS_UP_TO(CUpti_Profiler_Host_Initialize_Params, pHostObject, initialize, .profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING,
	             .pChipName = metrics->chip, .pCounterAvailabilityImage = metrics->available.bytes);
	CUptiResult result;

	close_host(metrics);
	result = metrics->library->cuptiProfilerHostInitialize(&initialize);
	if (result == CUPTI_SUCCESS) {
		PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add, .pHostObject = initialize.pHostObject,
		       .ppMetricNames = names, .numMetrics = count);

		metrics->host = initialize.pHostObject;
		result = metrics->library->cuptiProfilerHostConfigAddMetrics(&add);
	}
	return result;
}

/* CUPTI does not report which metric it refuses, so each one is tried. */
static enum ops_code name_unknown(struct ops_cupti_metrics *metrics, CUptiResult refusal, struct ops_error *error)
{
	struct ops_buffer names = {0};
	enum ops_code code;

	for (size_t i = 0; i < metrics->count; i++)
		if (open_host(metrics, &metrics->names[i], 1) != CUPTI_SUCCESS)
			ops_buffer_printf(&names, " %s", metrics->names[i]);
	code = names.size || names.failed ? fault_of_metrics(metrics, &names, 0, error) : ops_cupti_metrics_refuse(metrics, refusal, error);
	ops_buffer_release(&names);
	return code;
}

static enum ops_code add_metrics(struct ops_cupti_metrics *metrics, struct ops_error *error)
{
	CUptiResult result = open_host(metrics, metrics->names, metrics->count);

	if (result == CUPTI_SUCCESS)
		return OPS_OK;
	if (metrics->host && (result == CUPTI_ERROR_INVALID_PARAMETER || result == CUPTI_ERROR_INVALID_METRIC_NAME))
		return name_unknown(metrics, result, error);
	return ops_cupti_metrics_refuse(metrics, result, error);
}

static enum ops_code check_passes(struct ops_cupti_metrics *metrics, struct ops_error *error)
{
	PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes, .configImageSize = metrics->config.size,
	       .pConfigImage = metrics->config.bytes);
	CUptiResult result = metrics->library->cuptiProfilerHostGetNumOfPasses(&passes);
	struct ops_buffer names = {0};
	enum ops_code code;

	if (result != CUPTI_SUCCESS)
		return ops_cupti_metrics_refuse(metrics, result, error);
	if (passes.numOfPasses == 1)
		return OPS_OK;
	for (size_t i = 0; i < metrics->count; i++)
		ops_buffer_printf(&names, " %s", metrics->names[i]);
	code = fault_of_metrics(metrics, &names, passes.numOfPasses, error);
	ops_buffer_release(&names);
	return code;
}

/* Creates the configuration with which the hardware counts. */
static enum ops_code make_config(struct ops_cupti_metrics *metrics, struct ops_error *error)
{
	PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size, .pHostObject = metrics->host);
	PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, image, .pHostObject = metrics->host);
	CUptiResult result = metrics->library->cuptiProfilerHostGetConfigImageSize(&size);

	if (result != CUPTI_SUCCESS)
		return ops_cupti_metrics_refuse(metrics, result, error);
	if (!ops_cupti_image_make(&metrics->config, size.configImageSize))
		return ops_fault_memory(error);
	image.configImageSize = metrics->config.size;
	image.pConfigImage = metrics->config.bytes;
	result = metrics->library->cuptiProfilerHostGetConfigImage(&image);
	return result == CUPTI_SUCCESS ? check_passes(metrics, error) : ops_cupti_metrics_refuse(metrics, result, error);
}

/* --- names in the trace --------------------------------------------------------------------------------------------- */

/* Torch's names for some of them, by the text before the first dot. */
static const struct {
	const char *base;
	const char *label;
} labels[] = {
	{"sm__cycles_active", "SM Active"},
	{"gpu__dram_throughput", "DRAM BW"},
	{"dram__throughput", "HBM BW"},
	{"dram__read_throughput", "HBM Read"},
	{"dram__write_throughput", "HBM Write"},
	{"nvlrx__bytes", "NVLink RX"},
	{"nvltx__bytes", "NVLink TX"},
	{"pcie__throughput", "PCIe"},
};

static uint32_t cupti_pm_metrics_label_of(struct ops_activities *activities, const char *metric)
{
	size_t base = strcspn(metric, ".");
	char text[64];

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (strlen(labels[i].base) == base && memcmp(labels[i].base, metric, base) == 0) {
			int size = snprintf(text, sizeof(text), "%s%s", labels[i].label,
			                    strstr(metric + base, "pct_of_peak") ? " (%)" : "");

			return ops_activities_text(activities, text, (size_t)size);
		}
	return ops_activities_text(activities, metric, strlen(metric));
}

/* A metric whose name would be equal to an earlier one keeps its own name. */
void ops_cupti_metrics_label(struct ops_cupti_metrics *metrics, struct ops_activities *activities, uint32_t *names)
{
	for (size_t i = 0; i < metrics->count; i++) {
		names[i] = cupti_pm_metrics_label_of(activities, metrics->names[i]);
		for (size_t before = 0; before < i; before++)
			if (names[before] == names[i])
				names[i] = ops_activities_text(activities, metrics->names[i], strlen(metrics->names[i]));
	}
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

enum ops_code ops_cupti_metrics_open(struct ops_cupti_metrics *metrics, const struct ops_cupti *library,
                                     const struct ops_cuda_sampling *wanted, struct ops_error *error)
{
	enum ops_code code;

	*metrics = (struct ops_cupti_metrics){.library = library, .device = wanted->device};
	if (!has_functions(library))
		return ops_fault(error, OPS_UNSUPPORTED, "'%s' does not sample counters: CUPTI 12.6 or newer is needed",
		                 library->path);
	if (!copy_names(metrics, wanted))
		return ops_fault_memory(error);
	code = query_device(metrics, error);
	if (!code)
		code = add_metrics(metrics, error);
	return code ? code : make_config(metrics, error);
}

void ops_cupti_metrics_release(struct ops_cupti_metrics *metrics)
{
	close_host(metrics);
	ops_free(metrics->available.bytes);
	ops_free(metrics->config.bytes);
	ops_free(metrics->names);
}

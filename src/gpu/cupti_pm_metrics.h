/* SPDX-License-Identifier: Apache-2.0
 *
 * The host side of sampling hardware counters (cupti_pm_sampling.h): which metrics are requested on which chip, the configuration
 * of the hardware for them, and their names in the trace.
 */
#ifndef OPS_GPU_CUPTI_PM_METRICS_H
#define OPS_GPU_CUPTI_PM_METRICS_H

#include "gpu/cupti_library.h"
#include "record/activities.h"

/* Declares a parameter structure up to its last member, or up to one that older libraries have. */
#define PARAMS(type, variable, ...) type variable = {.structSize = type##_STRUCT_SIZE, __VA_ARGS__}
#define PARAMS_UP_TO(type, last, variable, ...) type variable = {.structSize = CUPTI_PROFILER_STRUCT_SIZE(type, last), __VA_ARGS__}

/* Opaque data of CUPTI. */
struct ops_cupti_image {
	uint8_t *bytes;
	size_t size;
};

/* Allocates a zeroed image. Returns false if out of memory. */
bool ops_cupti_image_make(struct ops_cupti_image *image, size_t size);

struct ops_cupti_metrics {
	const struct ops_cupti *library;
	const char **names; /* pointers to texts that follow the array */
	size_t count;
	uint32_t device;
	char chip[64];
	CUpti_Profiler_Host_Object *host;
	struct ops_cupti_image available;
	struct ops_cupti_image config; /* read by CUPTI while it samples */
};

/* OPS_INVALID, naming them, if CUPTI does not know some metrics or cannot sample them in one pass; else the reason that sampling
 * is not possible. Must be released even on failure. */
enum ops_code ops_cupti_metrics_open(struct ops_cupti_metrics *metrics, const struct ops_cupti *library,
                                     const struct ops_cuda_sampling *wanted, struct ops_error *error);
void ops_cupti_metrics_release(struct ops_cupti_metrics *metrics);

/* Returns the error for a result of CUPTI that prevents sampling. */
enum ops_code ops_cupti_metrics_refuse(const struct ops_cupti_metrics *metrics, CUptiResult result, struct ops_error *error);
/* Returns the text id of each metric's name in the trace, torch's name if there is one. `names` has `count` elements. */
void ops_cupti_metrics_label(struct ops_cupti_metrics *metrics, struct ops_activities *activities, uint32_t *names);

#endif

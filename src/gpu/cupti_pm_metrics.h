/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of sampling counters of the hardware (cupti_pm_sampling.h): which metrics are wanted of which chip, the plan by
 * which the hardware counts for them, and how they are called in the trace.
 */
#ifndef OPS_GPU_CUPTI_PM_METRICS_H
#define OPS_GPU_CUPTI_PM_METRICS_H

#include "gpu/cupti_library.h"
#include "record/activities.h"

/* A structure of parameters up to its last member, or up to one that older libraries have. */
#define PARAMS(type, variable, ...) type variable = {.structSize = type##_STRUCT_SIZE, __VA_ARGS__}
#define PARAMS_UP_TO(type, last, variable, ...) type variable = {.structSize = CUPTI_PROFILER_STRUCT_SIZE(type, last), __VA_ARGS__}

/* Bytes that CUPTI alone understands. */
struct ops_cupti_image {
	uint8_t *bytes;
	size_t size;
};

/* Zeroed; false when memory is out. */
bool ops_cupti_image_make(struct ops_cupti_image *image, size_t size);

struct ops_cupti_metrics {
	const struct ops_cupti *library;
	const char **names; /* their texts lie behind them */
	size_t count;
	uint32_t device;
	char chip[64];
	CUpti_Profiler_Host_Object *host;
	struct ops_cupti_image available;
	struct ops_cupti_image config; /* read by CUPTI as long as it samples */
};

/* OPS_INVALID, by name, when CUPTI does not know them or has no plan of one pass; else why it samples nothing here. To be released in
 * every case. */
enum ops_code ops_cupti_metrics_open(struct ops_cupti_metrics *metrics, const struct ops_cupti *library,
                                     const struct ops_cuda_sampling *wanted, struct ops_error *error);
void ops_cupti_metrics_release(struct ops_cupti_metrics *metrics);

/* What a result means that keeps them from being sampled. */
enum ops_code ops_cupti_metrics_refuse(const struct ops_cupti_metrics *metrics, CUptiResult result, struct ops_error *error);
/* The text by which each goes in the trace: torch's, where it has one. `names` has room for `count`. */
void ops_cupti_metrics_label(struct ops_cupti_metrics *metrics, struct ops_activities *activities, uint32_t *names);

#endif

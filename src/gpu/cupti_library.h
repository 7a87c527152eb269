/* SPDX-License-Identifier: Apache-2.0
 *
 * libcupti, loaded at run time, so that building and running without a GPU requires nothing of CUDA. Compiled with the headers of
 * CUPTI 13; from libraries since 11.8, only what they have in common with it is used.
 */
#ifndef OPS_GPU_CUPTI_LIBRARY_H
#define OPS_GPU_CUPTI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <opstrobe/error.h>

/* Functions for sampling hardware counters, since CUPTI 12.6. */
#define OPS_CUPTI_SAMPLING_FUNCTIONS(OPTIONAL)                                                     \
	OPTIONAL(cuptiProfilerInitialize)                                                          \
	OPTIONAL(cuptiDeviceGetChipName)                                                           \
	OPTIONAL(cuptiProfilerHostInitialize)                                                      \
	OPTIONAL(cuptiProfilerHostConfigAddMetrics)                                                \
	OPTIONAL(cuptiProfilerHostGetConfigImageSize)                                              \
	OPTIONAL(cuptiProfilerHostGetConfigImage)                                                  \
	OPTIONAL(cuptiProfilerHostGetNumOfPasses)                                                  \
	OPTIONAL(cuptiProfilerHostEvaluateToGpuValues)                                             \
	OPTIONAL(cuptiProfilerHostDeinitialize)                                                    \
	OPTIONAL(cuptiPmSamplingGetCounterAvailability)                                            \
	OPTIONAL(cuptiPmSamplingEnable)                                                            \
	OPTIONAL(cuptiPmSamplingSetConfig)                                                         \
	OPTIONAL(cuptiPmSamplingGetCounterDataSize)                                                \
	OPTIONAL(cuptiPmSamplingCounterDataImageInitialize)                                        \
	OPTIONAL(cuptiPmSamplingStart)                                                             \
	OPTIONAL(cuptiPmSamplingStop)                                                              \
	OPTIONAL(cuptiPmSamplingDecodeData)                                                        \
	OPTIONAL(cuptiPmSamplingGetCounterDataInfo)                                                \
	OPTIONAL(cuptiPmSamplingCounterDataGetSampleInfo)                                          \
	OPTIONAL(cuptiPmSamplingDisable)

/* The list of functions. OPTIONAL ones are NULL if the library is too old for them. */
#define OPS_CUPTI_FUNCTIONS(X, OPTIONAL)                                                           \
	OPS_CUPTI_SAMPLING_FUNCTIONS(OPTIONAL)                                                     \
	X(cuptiGetVersion)                                                                         \
	X(cuptiGetTimestamp)                                                                       \
	X(cuptiGetResultString)                                                                    \
	X(cuptiGetCallbackName)                                                                    \
	X(cuptiSubscribe)                                                                          \
	X(cuptiUnsubscribe)                                                                        \
	X(cuptiActivityEnable)                                                                     \
	X(cuptiActivityDisable)                                                                    \
	X(cuptiActivityRegisterCallbacks)                                                          \
	X(cuptiActivityFlushAll)                                                                   \
	X(cuptiActivityGetNextRecord)                                                              \
	X(cuptiActivityGetNumDroppedRecords)                                                       \
	X(cuptiSetThreadIdType)                                                                    \
	X(cuptiEnableCallback)                                                                     \
	OPTIONAL(cuptiGetGraphNodeId)                                                              \
	OPTIONAL(cuptiActivityRegisterTimestampCallback)                                           \
	OPTIONAL(cuptiActivityEnableCudaEventDeviceTimestamps)                                     \
	OPTIONAL(cuptiActivityEnableRuntimeApi)                                                    \
	OPTIONAL(cuptiActivityEnableDriverApi)

/* A call, or another source of a CUPTI callback. */
struct ops_cupti_callback {
	CUpti_CallbackDomain domain;
	CUpti_CallbackId id;
};

struct ops_cupti {
#define OPS_CUPTI_MEMBER(name) __typeof__(&name) name;
	OPS_CUPTI_FUNCTIONS(OPS_CUPTI_MEMBER, OPS_CUPTI_MEMBER)
#undef OPS_CUPTI_MEMBER
	uint32_t version; /* from cuptiGetVersion: 28 is CUPTI 12.9, 130500 is 13.5 */
	const char *path; /* where the library was found */
};

/* The oldest supported version, CUPTI 11.8, whose records are prefixes of the current ones. */
#define OPS_CUPTI_VERSION_MIN 18

/* Loads libcupti once for the process: OPSTROBE_CUPTI in the environment, a loaded one (from torch's own profiler), the PyPI
 * package, what the loader finds, CUDA_HOME. OPS_UNSUPPORTED with what was tried; a later call may succeed if torch was imported
 * in between. */
enum ops_code ops_cupti_load(const struct ops_cupti **ret_library, struct ops_error *error);

/* Enables these callbacks for a subscriber, except those that the library does not support. */
void ops_cupti_enable_callbacks(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber,
                                const struct ops_cupti_callback *callbacks, size_t count);
/* Returns whether a callback is one of these. */
bool ops_cupti_is_among(const struct ops_cupti_callback *callbacks, size_t count, CUpti_CallbackDomain domain,
                        CUpti_CallbackId id);

/* Returns OPS_STATE with `what` and CUPTI's description of a result. */
enum ops_code ops_cupti_fault(const struct ops_cupti *library, struct ops_error *error, CUptiResult result,
                              const char *what);

#endif

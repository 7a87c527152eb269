/* SPDX-License-Identifier: Apache-2.0
 *
 * libcupti, loaded at run time: nothing of CUDA is needed to build or to run where no GPU is. Compiled against the headers of
 * CUPTI 13; of libraries from 11.8 on only what they have in common with it is used.
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

/* What sampling counters of the hardware takes, from CUPTI 12.6 on. */
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

/* One list of functions. OPTIONAL ones are NULL where the library is too old for them. */
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

/* A call, or another subject of a CUPTI callback. */
struct ops_cupti_callback {
	CUpti_CallbackDomain domain;
	CUpti_CallbackId id;
};

struct ops_cupti {
#define OPS_CUPTI_MEMBER(name) __typeof__(&name) name;
	OPS_CUPTI_FUNCTIONS(OPS_CUPTI_MEMBER, OPS_CUPTI_MEMBER)
#undef OPS_CUPTI_MEMBER
	uint32_t version; /* of cuptiGetVersion: 28 is CUPTI 12.9, 130500 is 13.5 */
	const char *path; /* where it was found */
};

/* The oldest that is used: CUPTI 11.8, whose records begin as those of today do. */
#define OPS_CUPTI_VERSION_MIN 18

/* Loads libcupti once for the process: OPSTROBE_CUPTI in the environment, the one that is loaded already (torch's own profiler
 * brings one), the package of PyPI, what the loader finds, CUDA_HOME. OPS_UNSUPPORTED with what was tried; a later call may find
 * one, when torch was imported in between. */
enum ops_code ops_cupti_load(const struct ops_cupti **ret_library, struct ops_error *error);

/* Enables these callbacks for a subscriber, except those that the library does not know. */
void ops_cupti_enable_callbacks(const struct ops_cupti *library, CUpti_SubscriberHandle subscriber,
                                const struct ops_cupti_callback *callbacks, size_t count);
/* Whether a callback is one of these. */
bool ops_cupti_is_among(const struct ops_cupti_callback *callbacks, size_t count, CUpti_CallbackDomain domain,
                        CUpti_CallbackId id);

/* OPS_STATE with `what` and CUPTI's own words for a result. */
enum ops_code ops_cupti_fault(const struct ops_cupti *library, struct ops_error *error, CUptiResult result,
                              const char *what);

#endif

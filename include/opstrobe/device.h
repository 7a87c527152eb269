/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/device.h: records CUDA devices, through CUPTI, during a session of opstrobe/record.h.
 *
 *     ops_session_start(NULL, &session, &error);
 *     ops_cuda_start(OPS_ACTIVITY_ALL, NULL, &devices, &error);
 *     …
 *     ops_session_stop(session, &recording, &error);
 *     ops_device_stop(devices, recording, &error);
 *
 * ops_device_stop waits for the work in the primary contexts of devices. Synchronize other contexts first, or their last work is not
 * recorded.
 */
#ifndef OPSTROBE_DEVICE_H
#define OPSTROBE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ops_device_session;
struct ops_recording;

/* Kinds of activity, with Kineto's names where Kineto has one. KERNEL to EVENT_NODE are on a stream of a device, RUNTIME to
 * GRAPH_DEPENDENCY on a thread of the host. The last three, and some of MEMORY, are counters of a device. GRAPH_NODE: which
 * operator was captured as which node of a CUDA graph. GRAPH_DEPENDENCY: which node waits for which. HOST_NODE: a node that calls
 * a function of the host. EVENT_NODE: a node that records an event. PM_SAMPLING: the counters of struct ops_cuda_sampling. */
#define OPS_ACTIVITY_KINDS(X)                                                                      \
	X(KERNEL, "CONCURRENT_KERNEL")                                                             \
	X(MEMCPY, "GPU_MEMCPY")                                                                    \
	X(MEMSET, "GPU_MEMSET")                                                                    \
	X(SYNC, "CUDA_SYNC")                                                                       \
	X(MEMORY, "MEMORY")                                                                        \
	X(HOST_NODE, "GRAPH_HOST_NODE")                                                            \
	X(EVENT_NODE, "GRAPH_EVENT_NODE")                                                          \
	X(RUNTIME, "CUDA_RUNTIME")                                                                 \
	X(DRIVER, "CUDA_DRIVER")                                                                   \
	X(OVERHEAD, "OVERHEAD")                                                                    \
	X(NVTX, "NVTX")                                                                            \
	X(GRAPH_NODE, "GRAPH_NODE")                                                                \
	X(GRAPH_DEPENDENCY, "GRAPH_DEPENDENCY")                                                    \
	X(ENVIRONMENT, "ENVIRONMENT")                                                              \
	X(MEMORY_POOL, "MEMORY_POOL")                                                              \
	X(PM_SAMPLING, "PM_SAMPLING")

enum ops_activity_kind {
#define OPS_ACTIVITY_KIND_ENUM(name, text) OPS_ACTIVITY_##name,
	OPS_ACTIVITY_KINDS(OPS_ACTIVITY_KIND_ENUM)
#undef OPS_ACTIVITY_KIND_ENUM
	OPS_ACTIVITY_KIND_COUNT
};

/* Sets of kinds. */
#define OPS_ACTIVITY_BIT(kind) (1u << (kind))
#define OPS_ACTIVITY_ALL (OPS_ACTIVITY_BIT(OPS_ACTIVITY_KIND_COUNT) - 1)

/* Returns OPS_OK if CUDA devices can be recorded, or OPS_UNSUPPORTED with what is missing. `ret_devices`, which may be NULL,
 * receives the number of devices that the driver knows; 0 without a driver. */
enum ops_code ops_cuda_check(uint32_t *ret_devices, struct ops_error *error);
/* Returns the path and version of libcupti, or the reason that it is not available. Valid until the thread's next call. */
const char *ops_cuda_describe(void);
/* Returns the version of CUPTI: 28 is 12.9, 130500 is 13.5. Returns 0 if CUPTI is not available. EVENT_NODE requires 130500,
 * HOST_NODE 130300. */
uint32_t ops_cuda_cupti_version(void);

/* Hardware counters to sample, on one device. */
struct ops_cuda_sampling {
	const char *const *metrics; /* in CUPTI's names, such as "sm__cycles_active.avg.pct_of_peak_sustained_elapsed" */
	size_t metric_count;
	uint64_t interval_ns; /* 0: one millisecond. Turing and GA100 count cycles of a clock of about 1 GHz */
	uint32_t device;      /* ordinal */
	struct ops_error problem; /* output: why the counters are not sampled, although everything else is recorded */
};

/* Starts recording a set of kinds. A process has one device session at a time. `sampling` may be NULL, and is not used after the
 * call. On failure nothing is recorded. OPS_INVALID: CUPTI does not know a metric, or cannot sample these metrics together. */
enum ops_code ops_cuda_start(uint32_t kinds, struct ops_cuda_sampling *sampling, struct ops_device_session **ret_session,
                             struct ops_error *error);

/* Pauses (false) and resumes (true) recording. OPS_UNSUPPORTED if the collector cannot. */
enum ops_code ops_device_toggle(struct ops_device_session *session, bool on, struct ops_error *error);

/* Stops recording and adds the device records to `recording`, or discards them if it is NULL. Always frees the device session.
 * If the collector failed, returns its error; the recording then has the records up to the failure. */
enum ops_code ops_device_stop(struct ops_device_session *owned_session, struct ops_recording *recording,
                              struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/device.h: record what devices do, beside a session of opstrobe/record.h. So far those of CUDA, through CUPTI.
 *
 *     ops_session_start(NULL, &session, &error);
 *     ops_cuda_start(OPS_ACTIVITY_ALL, NULL, &devices, &error);
 *     …
 *     ops_session_stop(session, &recording, &error);
 *     ops_device_stop(devices, recording, &error);
 *
 * The stop waits for the work that is under way in the primary contexts of devices; of other contexts it is not recorded:
 * synchronise those first.
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

/* One list of what can be recorded, with Kineto's names for it where it has one. The first seven happen on a stream of a device,
 * those up to GRAPH_DEPENDENCY on a thread of the host; the last three are counters of a device, and MEMORY has some besides.
 * GRAPH_NODE tells which operator was captured as which node of a CUDA graph, GRAPH_DEPENDENCY which node waits for which;
 * HOST_NODE and EVENT_NODE are nodes that call a function of the host and that record an event; PM_SAMPLING is what struct
 * ops_cuda_sampling asks for, nothing without it. */
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

/* Whether CUDA's devices can be recorded here: OPS_OK, or OPS_UNSUPPORTED and what is missing. `ret_devices`, which may be NULL,
 * gets how many the driver knows, 0 without a driver. */
enum ops_code ops_cuda_check(uint32_t *ret_devices, struct ops_error *error);
/* Where libcupti was found and which version, or why there is none. Kept until the thread asks again. */
const char *ops_cuda_describe(void);
/* Its version, as CUPTI tells it: 28 is 12.9, 130500 is 13.5; 0 when there is none. EVENT_NODE takes 130500, HOST_NODE 130300. */
uint32_t ops_cuda_cupti_version(void);

/* Counters of the hardware to sample, on one device. */
struct ops_cuda_sampling {
	const char *const *metrics; /* in CUPTI's names, such as "sm__cycles_active.avg.pct_of_peak_sustained_elapsed" */
	size_t metric_count;
	uint64_t interval_ns; /* 0: a millisecond. Turing and GA100 count cycles of a clock of about a GHz instead */
	uint32_t device;      /* ordinal */
	struct ops_error problem; /* filled: with a code, why they are not sampled, although all else is recorded */
};

/* Begins to record a set of kinds of activity. One at a time in a process. `sampling` may be NULL, and is not needed afterwards.
 * On failure, which says why, nothing is recorded; OPS_INVALID: CUPTI does not know a metric, or cannot sample them together. */
enum ops_code ops_cuda_start(uint32_t kinds, struct ops_cuda_sampling *sampling, struct ops_device_session **ret_session,
                             struct ops_error *error);

/* Records nothing for a while (false), and again (true). OPS_UNSUPPORTED where the collector cannot. */
enum ops_code ops_device_toggle(struct ops_device_session *session, bool on, struct ops_error *error);

/* Ends it, and puts what was recorded into the recording of the session it ran beside; NULL throws it away. Takes the session
 * in every case. A failure of the collector is told, with what it did record in the recording. */
enum ops_code ops_device_stop(struct ops_device_session *take_session, struct ops_recording *recording,
                              struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

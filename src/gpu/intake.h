/* SPDX-License-Identifier: Apache-2.0
 *
 * The intake: what every collector of a device's activity implements, and how a session runs one. CUPTI is a collector, a
 * replayed file is one, tests write their own; docs/devices.md shows how.
 *
 *     collector ── ops_activities_add ─▶ activities ── ops_device_stop ─▶ recording ─▶ read/recording_devices.c
 *
 * A collector knows nothing of operators: the reader finds the operator of a call by the thread and the moment it was made,
 * so that profiled threads pay for nothing but the collector's own records. What it has to get right is `correlation`,
 * thread ids, and a clock.
 */
#ifndef OPS_GPU_INTAKE_H
#define OPS_GPU_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "record/activities.h"

struct ops_device_collector {
	const char *name; /* "cupti" */
	void *self;       /* handed to the functions */

	/* Begins collecting the kinds of the set. Until `stop` has returned it may add to `activities`, from any thread but
	 * from one at a time. On failure nothing is collected, and `stop` is not called. */
	enum ops_code (*start)(void *self, uint32_t kinds, struct ops_activities *activities, struct ops_error *error);
	/* Ends it. Adds everything that happened so far before it returns, and counts dropped records in
	 * activities->lost. On an error, the records added so far stay. */
	enum ops_code (*stop)(void *self, struct ops_activities *activities, struct ops_error *error);
	/* The clock of its times, in ns, read now; called while it collects. */
	int64_t (*clock_ns)(void *self);
	/* Collects nothing for a while (false), and again (true). Between start and stop; NULL when it cannot. */
	enum ops_code (*toggle)(void *self, bool on, struct ops_error *error);
};

/* Starts a collector with a session of the recorder. Returns OPS_NO_MEMORY, or the collector's error. `self` must be valid
 * until the stop. */
enum ops_code ops_device_start(const struct ops_device_collector *collector, uint32_t kinds,
                               struct ops_device_session **ret_session, struct ops_error *error);

#endif

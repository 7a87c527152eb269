/* SPDX-License-Identifier: Apache-2.0
 *
 * The intake: the interface of collectors of device activity, and how a session runs one. CUPTI is a collector, a replayed file
 * is another, and tests define their own; docs/devices.md shows how.
 *
 *     collector ── ops_activities_add ─▶ activities ── ops_device_stop ─▶ recording ─▶ read/recording_devices.c
 *
 * A collector knows nothing about operators: the reader finds the operator of a call by thread and time, so that profiled threads
 * only pay for the collector's own records. A collector must provide `correlation`, thread ids and a clock.
 */
#ifndef OPS_GPU_INTAKE_H
#define OPS_GPU_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "record/activities.h"

struct ops_device_collector {
	const char *name; /* "cupti" */
	void *self;       /* passed to the functions */

	/* Starts collecting the kinds of the set. Until `stop` has returned, the collector may add to `activities` from any
	 * thread, one at a time. On failure nothing is collected, and `stop` is not called. */
	enum ops_code (*start)(void *self, uint32_t kinds, struct ops_activities *activities, struct ops_error *error);
	/* Stops collecting. Adds everything that happened so far before it returns, and counts dropped records in
	 * activities->lost. On an error, the records added so far are kept. */
	enum ops_code (*stop)(void *self, struct ops_activities *activities, struct ops_error *error);
	/* Returns the current time of the clock of the records, in ns; called while collecting. */
	int64_t (*clock_ns)(void *self);
	/* Pauses (false) or resumes (true) collecting. Called between start and stop; NULL if not supported. */
	enum ops_code (*toggle)(void *self, bool on, struct ops_error *error);
};

/* Starts a collector with a session of the recorder. Returns OPS_NO_MEMORY, or the collector's error. `self` must be valid
 * until the stop. */
enum ops_code ops_device_start(const struct ops_device_collector *collector, uint32_t kinds,
                               struct ops_device_session **ret_session, struct ops_error *error);

#endif

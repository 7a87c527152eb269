/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a collector during a session; see intake.h.
 */
#include <opstrobe/internal/collector.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "gpu/cupti.h"
#include "gpu/intake.h"
#include "record/recording.h"

#define CLOCK_TRIES 8

struct ops_device_session {
	struct ops_device_collector collector;
	struct ops_activities *activities;
};

/* Reads the collector's clock between two readings of ours. Of several attempts, returns the tightest. */
static struct ops_activity_clock read_clocks(const struct ops_device_collector *collector)
{
	struct ops_activity_clock best = {.width_ticks = UINT64_MAX};
	uint32_t tsc = ops_clock_tsc();

	for (int i = 0; i < CLOCK_TRIES; i++) {
		uint64_t before = ops_ticks(tsc);
		int64_t device_ns = collector->clock_ns(collector->self);
		uint64_t width = ops_ticks(tsc) - before;

		if (width < best.width_ticks)
			best = (struct ops_activity_clock){device_ns, before + width / 2, width};
	}
	return best;
}

static void device_session_free_session(struct ops_device_session *session)
{
	ops_activities_free(session->activities);
	ops_free(session);
}

enum ops_code ops_device_start(const struct ops_device_collector *collector, uint32_t kinds,
                               struct ops_device_session **ret_session, struct ops_error *error)
{
	struct ops_device_session *session = ops_alloc_zeroed(1, sizeof(*session));
	enum ops_code code;

	if (!session)
		return ops_fault_memory(error);
	session->collector = *collector;
	session->activities = ops_activities_new();
	if (!session->activities) {
		device_session_free_session(session);
		return ops_fault_memory(error);
	}
	code = collector->start(collector->self, kinds, session->activities, error);
	if (code) {
		device_session_free_session(session);
		return ops_fault_context(error, code, "cannot record devices with %s", collector->name);
	}
	session->activities->start = read_clocks(collector);
	*ret_session = session;
	return OPS_OK;
}

enum ops_code ops_cuda_start(uint32_t kinds, struct ops_cuda_sampling *sampling, struct ops_device_session **ret_session,
                             struct ops_error *error)
{
	struct ops_device_collector collector = *ops_cupti_collector();

	collector.self = sampling;
	return ops_device_start(&collector, kinds, ret_session, error);
}

enum ops_code ops_device_toggle(struct ops_device_session *session, bool on, struct ops_error *error)
{
	const struct ops_device_collector *collector = &session->collector;
	enum ops_code code;

	if (!collector->toggle)
		return ops_fault(error, OPS_UNSUPPORTED, "%s cannot be interrupted", collector->name);
	code = collector->toggle(collector->self, on, error);
	return code ? ops_fault_context(error, code, "cannot %s recording devices", on ? "resume" : "interrupt") : OPS_OK;
}

enum ops_code ops_device_stop(struct ops_device_session *owned_session, struct ops_recording *recording,
                              struct ops_error *error)
{
	const struct ops_device_collector collector = owned_session->collector;
	enum ops_code code;

	owned_session->activities->stop = read_clocks(&collector);
	code = collector.stop(collector.self, owned_session->activities, error);
	if (recording) {
		ops_activities_free(recording->activities);
		recording->activities = owned_session->activities;
		owned_session->activities = NULL;
	}
	device_session_free_session(owned_session);
	return code ? ops_fault_context(error, code, "%s could not finish recording devices", collector.name) : OPS_OK;
}

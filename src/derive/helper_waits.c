/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits of helper threads; see helper_waits.h.
 */
#include "derive/helper_waits.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/map.h"
#include "derive/blocking.h"
#include "derive/steps.h"
#include "trace/derived.h"

/* What is known of a process. */
enum owner {
	OWNER_UNKNOWN,
	OWNER_MAIN_THREAD, /* it has its main thread, and no steps */
	OWNER_STEPS,
};

static bool helper_waits_is_main(const struct ops_track *track)
{
	return track->kind == OPS_TRACK_THREAD && track->tid == track->pid;
}

static enum owner helper_waits_owner(const struct ops_steps *steps, const struct ops_track *tracks, uint32_t track)
{
	if (tracks[track].kind != OPS_TRACK_THREAD)
		return OWNER_UNKNOWN;
	if (ops_steps_of_track(steps, track))
		return OWNER_STEPS;
	return helper_waits_is_main(&tracks[track]) ? OWNER_MAIN_THREAD : OWNER_UNKNOWN;
}

static bool find_helpers(struct ops_helper_waits *waits, const struct ops_trace *trace, const struct ops_steps *steps)
{
	struct ops_map owners = {0}; /* by process */
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	bool done = true;

	for (uint32_t i = 0; done && i < count; i++) {
		uint32_t *owner = ops_map_slot(&owners, (uint64_t)tracks[i].pid, OWNER_UNKNOWN), mine = helper_waits_owner(steps, tracks, i);

		done = owner != NULL;
		if (done && mine > *owner)
			*owner = mine;
	}
	for (uint32_t i = 0; done && i < count; i++) {
		uint32_t *owner = ops_map_slot(&owners, (uint64_t)tracks[i].pid, OWNER_UNKNOWN);

		done = owner != NULL;
		waits->helpers[i] = done && tracks[i].kind == OPS_TRACK_THREAD && helper_waits_owner(steps, tracks, i) < *owner;
	}
	ops_map_release(&owners);
	return done;
}

/* Rows come after their parents. */
static bool find_rows(struct ops_helper_waits *waits, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint8_t *blocking = ops_blocking_names(trace);

	for (size_t row = 0; blocking && row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (!waits->helpers[events->track[row]])
			continue;
		if ((parent == OPS_NONE || !ops_bit(waits->rows, parent)) &&
		    (events->kind[row] != OPS_EVENT_PYTHON_FUNCTION || !blocking[events->name[row]]))
			continue;
		ops_bit_set(waits->rows, row);
		waits->count++;
	}
	ops_free(blocking);
	return blocking != NULL;
}

static void helper_waits_free(void *object)
{
	struct ops_helper_waits *waits = object;

	if (waits) {
		ops_free(waits->helpers);
		ops_free(waits->rows);
	}
	ops_free(waits);
}

static void helper_waits_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	size_t rows = ops_trace_events(trace)->count, tracks;
	const struct ops_steps *steps = ops_steps_of(trace);
	struct ops_helper_waits *waits = ops_alloc_zeroed(1, sizeof(*waits));

	ops_trace_tracks(trace, &tracks);
	if (waits) {
		waits->helpers = ops_alloc_zeroed(tracks + 1, 1);
		waits->rows = ops_alloc_zeroed(rows / 8 + 1, 1);
	}
	if (steps && waits && waits->helpers && waits->rows && find_helpers(waits, trace, steps) && find_rows(waits, trace))
		*ret_made = (struct ops_derived_object){waits, helper_waits_free, tracks + rows / 8};
	else
		helper_waits_free(waits);
}

const struct ops_helper_waits *ops_helper_waits_of(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_HELPER_WAITS, helper_waits_derive);
}

bool ops_is_helper(const struct ops_helper_waits *waits, const struct ops_trace *trace, int64_t tid)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	bool others = false;

	for (size_t i = 0; i < count; i++) {
		if (tracks[i].kind != OPS_TRACK_THREAD)
			continue;
		if (tracks[i].tid == tid)
			return waits->helpers[i];
		others = true;
		if (tracks[i].pid == tid)
			return false;
	}
	return others;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Work on a device belongs to the operator that was running where it was launched: the innermost one around the call that
 * an arrow leads from, or else that has the same correlation, or else (a file without calls) the one that the work names
 * by its id. An operator has the time of its work and of all that its children launched; ranges and Python functions have
 * that of the operators in them. What is on a stream has its own duration, and nothing is inside it.
 */
#include "analyze/device_times.h"

#include "analyze/device.h"
#include "analyze/sum.h"
#include "analyze/views/view_map.h"
#include "analyze/visible.h"
#include "base/alloc.h"

/* --- devices -------------------------------------------------------------------------------------------------------- */

bool ops_event_on_device(const struct ops_trace *trace, uint32_t row)
{
	size_t count;

	return ops_trace_tracks(trace, &count)[ops_trace_events(trace)->track[row]].kind == OPS_TRACK_STREAM;
}

static bool has_streams(const struct ops_trace *trace)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (tracks[i].kind == OPS_TRACK_STREAM)
			return true;
	return false;
}

const char *ops_trace_device(const struct ops_trace *trace, char *device)
{
	const struct ops_events *events = ops_trace_events(trace);

	if (!has_streams(trace))
		return ops_pair_device(trace, device);
	for (uint32_t row = 0; row < events->count; row++)
		if (ops_event_on_device(trace, row))
			return "cuda";
	return NULL;
}

/* --- whose work it is ----------------------------------------------------------------------------------------------- */

struct attribution {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_track *tracks;
	uint32_t *operator_of; /* by row: the innermost operator around it, or itself */
	struct view_map calls; /* correlation → row */
	struct view_map ids;   /* id → row of an operator */
};

static bool on_stream(const struct attribution *a, size_t row)
{
	return a->tracks[a->events->track[row]].kind == OPS_TRACK_STREAM;
}

/* What operators launch: no annotations over it, no waiting. */
static bool is_work(const struct attribution *a, size_t row)
{
	uint8_t kind = a->events->kind[row];

	return on_stream(a, row) && ops_event_visible(a->events, row) &&
	       (kind == OPS_EVENT_KERNEL || kind == OPS_EVENT_GPU_MEMCPY || kind == OPS_EVENT_GPU_MEMSET);
}

static bool is_call(const struct attribution *a, size_t row)
{
	uint8_t kind = a->events->kind[row];

	return (kind == OPS_EVENT_RUNTIME || kind == OPS_EVENT_DRIVER) && !on_stream(a, row);
}

static bool is_operator(const struct attribution *a, size_t row)
{
	return a->events->kind[row] == OPS_EVENT_CPU_OP && ops_event_visible(a->events, row) &&
	       !(a->events->flags[row] & OPS_EVENT_ASYNC) && !on_stream(a, row);
}

/* Parents stand above their children, and a child's parent is never a folded row. */
static bool find_operators(struct attribution *a)
{
	const struct ops_events *events = a->events;

	a->operator_of = ops_realloc_array(NULL, events->count + 1, sizeof(*a->operator_of));
	for (size_t row = 0; a->operator_of && row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (is_operator(a, row))
			a->operator_of[row] = (uint32_t)row;
		else
			a->operator_of[row] = parent == OPS_NONE ? OPS_NONE : a->operator_of[parent];
	}
	return a->operator_of != NULL;
}

static bool has_correlation(const struct attribution *a, size_t row)
{
	return a->events->correlation && a->events->correlation[row] >= 0;
}

/* The maps for work that no arrow leads to. */
static bool make_maps(struct attribution *a)
{
	const struct ops_events *events = a->events;
	bool ok = true;

	for (size_t row = 0; ok && row < events->count; row++) {
		if (is_call(a, row) && has_correlation(a, row))
			ok = view_map_add(&a->calls, (uint64_t)events->correlation[row], (uint32_t)row);
		else if (events->id && events->id[row] && is_operator(a, row))
			ok = view_map_add(&a->ids, events->id[row], (uint32_t)row);
	}
	return ok;
}

static uint32_t operator_without_arrow(const struct attribution *a, size_t row)
{
	uint32_t call = OPS_NONE;

	if (has_correlation(a, row))
		call = view_map_find(&a->calls, (uint64_t)a->events->correlation[row]);
	if (call != OPS_NONE)
		return a->operator_of[call];
	return a->events->id && a->events->id[row] ? view_map_find(&a->ids, a->events->id[row]) : OPS_NONE;
}

/* LAUNCHED stands, for a while, for work whose call is known but has no operator around it. */
#define LAUNCHED (OPS_NONE - 1)

static bool find_launchers(struct attribution *a, uint32_t *launcher)
{
	const struct ops_events *events = a->events;
	size_t link_count;
	const struct ops_link *links = ops_trace_links(a->trace, &link_count);
	bool mapped = false;

	for (size_t row = 0; row < events->count; row++)
		launcher[row] = OPS_NONE;
	for (size_t i = 0; i < link_count; i++) {
		uint32_t launching = a->operator_of[links[i].from];

		if (links[i].kind == OPS_LINK_LAUNCH && is_work(a, links[i].to))
			launcher[links[i].to] = launching == OPS_NONE ? LAUNCHED : launching;
	}
	for (size_t row = 0; row < events->count; row++) {
		if (launcher[row] == LAUNCHED) {
			launcher[row] = OPS_NONE;
		} else if (launcher[row] == OPS_NONE && is_work(a, row)) {
			if (!mapped && !make_maps(a))
				return false;
			mapped = true;
			launcher[row] = operator_without_arrow(a, row);
		}
	}
	return true;
}

static void add_times(const struct attribution *a, struct ops_event_costs *costs)
{
	const struct ops_events *events = a->events;

	for (size_t row = 0; row < events->count; row++) {
		int64_t duration_ns = ops_difference(events->end_ns[row], events->start_ns[row]);
		uint32_t launcher = costs->launcher[row];

		if (!on_stream(a, row))
			continue;
		costs->self_device_time[row] = duration_ns;
		if (launcher != OPS_NONE)
			costs->self_device_time[launcher] = ops_sum(costs->self_device_time[launcher], duration_ns);
	}
	for (size_t row = events->count; row-- > 0;) {
		uint32_t parent = events->parent[row];

		costs->device_time[row] = ops_sum(costs->device_time[row], costs->self_device_time[row]);
		if (parent != OPS_NONE && !on_stream(a, row))
			costs->device_time[parent] = ops_sum(costs->device_time[parent], costs->device_time[row]);
	}
}

bool ops_device_times(struct ops_event_costs *costs, const struct ops_trace *trace)
{
	struct attribution a = {.trace = trace, .events = ops_trace_events(trace)};
	size_t track_count, count = a.events->count;
	bool ok;

	a.tracks = ops_trace_tracks(trace, &track_count);
	if (count == 0)
		return true;
	if (!has_streams(trace))
		return ops_pair_times(costs, trace);
	costs->launcher = ops_realloc_array(NULL, count, sizeof(*costs->launcher));
	costs->device_time = ops_alloc_zeroed(count, sizeof(*costs->device_time));
	costs->self_device_time = ops_alloc_zeroed(count, sizeof(*costs->self_device_time));
	ok = costs->launcher && costs->device_time && costs->self_device_time && find_operators(&a) &&
	     find_launchers(&a, costs->launcher);
	if (ok)
		add_times(&a, costs);
	ops_free(a.operator_of);
	view_map_release(&a.calls);
	view_map_release(&a.ids);
	return ok;
}

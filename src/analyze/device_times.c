/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work belongs to the operator that launched it (derive/launches.h); in a file without calls, to the operator
 * whose id the work has. Work launched outside of operators counts for the innermost Python function around the launch.
 * Ranges have the time of the operators in them, as in torch's tables. An event on a stream has its own duration and no
 * children. A device that waits does no work, so waiting takes no time of the device.
 */
#include "analyze/device_times.h"

#include "analyze/device.h"
#include "analyze/visible.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/around.h"
#include "derive/captures.h"
#include "trace/kinds.h"

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
			return ops_string_starts(ops_event_category(trace, row), "mtia") ? "mtia" : "cuda";
	return NULL;
}

/* --- owner of device work ------------------------------------------------------------------------------------------- */

struct attribution {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_track *tracks;
	const uint32_t *origins;
	uint32_t *functions; /* by row: the innermost Python function around it */
};

static bool on_stream(const struct attribution *a, size_t row)
{
	return a->tracks[a->events->track[row]].kind == OPS_TRACK_STREAM;
}

/* Returns the row that tables and lists show for a row: for a folded row the one that it is folded into. */
static uint32_t device_times_shown(const struct ops_events *events, uint32_t row)
{
	while (row != OPS_NONE && (events->flags[row] & OPS_EVENT_FOLDED))
		row = events->parent[row];
	return row;
}

static bool device_times_is_function(const void *context, uint32_t row)
{
	const struct ops_events *events = context;

	return events->kind[row] == OPS_EVENT_PYTHON_FUNCTION;
}

/* Returns the innermost Python function around the call that launched work. */
static uint32_t device_times_function_of(const struct attribution *a, size_t work)
{
	if (!ops_kind_is_work(a->events->kind[work]) || a->origins[work] == OPS_NONE)
		return OPS_NONE;
	return a->functions[a->origins[work]];
}

/* For files without calls: maps ids to operators, since work has the id of its operator. */
static bool device_times_map_operators(const struct ops_events *events, struct ops_map *ids)
{
	bool ok = true;

	for (uint32_t row = 0; ok && row < events->count; row++)
		if (events->id[row] && events->kind[row] == OPS_EVENT_CPU_OP && ops_event_visible(events, row) &&
		    !(events->flags[row] & OPS_EVENT_ASYNC))
			ok = ops_map_add(ids, events->id[row], row);
	return ok;
}

static bool find_launchers(const struct attribution *a, uint32_t *launcher)
{
	const struct ops_events *events = a->events;
	struct ops_map ids = {0};
	bool mapped = false, ok = true;

	for (uint32_t row = 0; ok && row < events->count; row++) {
		launcher[row] = OPS_NONE;
		if (!ops_kind_is_work(events->kind[row]) || !on_stream(a, row))
			continue;
		if (a->origins[row] != OPS_NONE) {
			launcher[row] = device_times_shown(events, ops_origin_operator(a->origins, row));
		} else if (events->id && events->id[row]) {
			ok = mapped || device_times_map_operators(events, &ids);
			mapped = true;
			launcher[row] = ok ? ops_map_find(&ids, events->id[row]) : OPS_NONE;
		}
	}
	ops_map_release(&ids);
	return ok;
}

static void device_times_add_times(const struct attribution *a, struct ops_event_costs *costs)
{
	const struct ops_events *events = a->events;

	for (size_t row = 0; row < events->count; row++) {
		int64_t duration_ns = ops_difference(events->end_ns[row], events->start_ns[row]);
		uint32_t launcher = costs->launcher[row];

		if (!on_stream(a, row) || events->kind[row] == OPS_EVENT_SYNC)
			continue;
		costs->self_device_time[row] = duration_ns;
		if (launcher == OPS_NONE)
			launcher = device_times_function_of(a, row);
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
	a.origins = ops_origins(trace);
	a.functions = ops_rows_around(trace, device_times_is_function, a.events);
	ok = a.origins && a.functions && costs->launcher && costs->device_time && costs->self_device_time &&
	     find_launchers(&a, costs->launcher);
	if (ok)
		device_times_add_times(&a, costs);
	ops_free(a.functions);
	return ok;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Device time without a collector for the device: a pair of events around each operator and range, which torch
 * represents as one kernel of the same name. The measured time includes everything inside, so it is not added up: an
 * event's self time is its time minus that of its children, and an event without a pair has the time of its children.
 *
 *     events   ├──────── 90 ────────┤        Linear: 90, itself 30
 *                 ├── 60 ──┤                 addmm: 60
 */
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/collector.h>

#include "analyze/device_times.h"
#include "analyze/visible.h"
#include "base/alloc.h"
#include "base/sum.h"

const char *ops_pair_device(const struct ops_trace *trace, char *device)
{
	struct ops_string json;

	if (!ops_trace_find_metadata(trace, OPS_DEVICE_TIMES_KEY, &json) || json.size < 3 || json.bytes[0] != '"')
		return NULL;
	json.size -= 2;
	if (json.size >= OPS_DEVICE_NAME_BYTES)
		json.size = OPS_DEVICE_NAME_BYTES - 1;
	memcpy(device, json.bytes + 1, json.size);
	device[json.size] = '\0';
	return device;
}

/* Returns the device time measured by the events around a row; 0: none. Asynchronous rows launch nothing. */
static int64_t measured(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_string json;
	long long ns;

	if ((events->flags[row] & (OPS_EVENT_ASYNC | OPS_EVENT_HIDDEN)) || !events->extra || events->extra[row] == OPS_NONE ||
	    !ops_event_arg(trace, row, OPS_DEVICE_TIME_NAME, &json))
		return 0;
	ns = strtoll(json.bytes, NULL, 10);
	return ns > 0 ? ns : 0;
}

/* An event that is folded into its parent passes its kernel on, replacing the parent's own. Parents precede
 * children. */
static void read_measured(struct ops_event_costs *costs, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);

	for (uint32_t row = 0; row < events->count; row++) {
		bool folded = (events->flags[row] & OPS_EVENT_FOLDED) && events->parent[row] != OPS_NONE;
		uint32_t owner = folded ? events->parent[row] : row;

		costs->device_time[owner] = measured(trace, row);
		costs->legacy[owner] |= costs->device_time[owner] > 0;
	}
}

/* `self_device_time` holds the sum of the children's times until the walk, from the last row up, reaches the row. */
static void pair_times_subtract_children(struct ops_event_costs *costs, const struct ops_events *events)
{
	for (size_t row = events->count; row-- > 0;) {
		int64_t of_children = costs->self_device_time[row];
		uint32_t parent = events->parent[row];

		if (!ops_event_visible(events, row))
			continue;
		if (!costs->legacy[row])
			costs->device_time[row] = of_children;
		costs->self_device_time[row] = ops_difference(costs->device_time[row], of_children);
		if (parent != OPS_NONE)
			costs->self_device_time[parent] = ops_sum(costs->self_device_time[parent], costs->device_time[row]);
	}
}

bool ops_pair_times(struct ops_event_costs *costs, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	char device[OPS_DEVICE_NAME_BYTES];

	if (!ops_pair_device(trace, device))
		return true;
	costs->device_time = ops_alloc_zeroed(events->count, sizeof(*costs->device_time));
	costs->self_device_time = ops_alloc_zeroed(events->count, sizeof(*costs->self_device_time));
	costs->legacy = ops_alloc_zeroed(events->count, sizeof(*costs->legacy));
	if (!costs->device_time || !costs->self_device_time || !costs->legacy)
		return false;
	read_measured(costs, trace);
	pair_times_subtract_children(costs, events);
	return true;
}

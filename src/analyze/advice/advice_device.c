/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of host rows if a device does the work. Host time means little then, since the device computes earlier work
 * during most of it. A row costs the time that would disappear with it:
 *
 *     host    ──[ op ]──[ op ]──[ Python            ]──[ op ]──
 *     device  ────[ kernel        ][ kernel ]            [ kernel ]
 *                                           ├─────────┤ idle during Python
 *
 * That is the time during the row in which the device is idle for lack of launched work, plus the time of the work
 * launched by the row, whenever it runs. For the rows of one thread this adds up to the duration of the steps, and each
 * nanosecond counts once.
 */
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Work on the device gets the time that no earlier work has. Overlapping work saves nothing when it disappears, and all
 * work together takes no longer than the device is busy. Only time within the step counts. Collectives have their own
 * rules and do not take time from other work. */
static void advice_device_add_device_work(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	int64_t busy_ns = INT64_MIN;
	size_t cursor = 0;

	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];
		uint32_t step = advice->step_of[event->row];
		int64_t start_ns = events->start_ns[event->row], end_ns = events->end_ns[event->row];
		int64_t *device_ns = &advice->device_ns[advice_launch_row(advice, event)];

		if (event->communicates)
			continue;
		if (start_ns < busy_ns)
			start_ns = busy_ns;
		if (step != OPS_NONE && start_ns < advice->views->steps.items[step].start_ns)
			start_ns = advice->views->steps.items[step].start_ns;
		advice->ns[event->row] = 0;
		if (end_ns > start_ns)
			advice->ns[event->row] = ops_difference(end_ns, start_ns) -
			                         ops_intervals_within(&advice->captures, start_ns, end_ns, &cursor);
		if (event->launch != OPS_NONE)
			*device_ns = ops_sum(*device_ns, advice->ns[event->row]);
		busy_ns = end_ns > busy_ns ? end_ns : busy_ns;
	}
	/* Children come after their parents. */
	for (uint32_t row = (uint32_t)events->count; row-- > 0;)
		if (events->parent[row] != OPS_NONE)
			advice->device_ns[events->parent[row]] = ops_sum(advice->device_ns[events->parent[row]], advice->device_ns[row]);
}

int64_t advice_cost_ns(const struct advice *advice, int64_t start_ns, int64_t end_ns)
{
	if (!advice->views->device_events.count)
		return ops_difference(end_ns, start_ns);
	return end_ns > start_ns ? advice_idle_before(&advice->idle, end_ns) - advice_idle_before(&advice->idle, start_ns) : 0;
}

/* Replaces host times by device costs. */
bool advice_charge_device(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	uint8_t *on_device;

	if (!advice->views->device_events.count)
		return true;
	on_device = ops_alloc_zeroed(events->count + 1, sizeof(*on_device));
	if (!on_device)
		return false;
	for (size_t i = 0; i < advice->views->device_events.count; i++)
		on_device[advice->views->device_events.items[i].row] = 1;
	advice_device_add_device_work(advice);
	memset(advice->self_ns, 0, (events->count + 1) * sizeof(*advice->self_ns));
	for (uint32_t row = (uint32_t)events->count; row-- > 0;) {
		uint32_t parent = events->parent[row];

		if (!on_device[row])
			advice->ns[row] = ops_sum(advice_cost_ns(advice, events->start_ns[row], events->end_ns[row]),
			                          advice->device_ns[row]);
		/* So far this is minus the time of the children. */
		advice->self_ns[row] = events->self_ns[row] ? ops_sum(advice->ns[row], advice->self_ns[row]) : 0;
		if (advice->self_ns[row] < 0)
			advice->self_ns[row] = 0;
		if (parent != OPS_NONE)
			advice->self_ns[parent] = ops_difference(advice->self_ns[parent], advice->ns[row]);
	}
	ops_free(on_device);
	return true;
}

double advice_work_share(const struct advice *advice, uint32_t row)
{
	if (!advice->device_ns[row])
		return 1;
	return advice->ns[row] > 0 ? (double)advice->device_ns[row] / (double)advice->ns[row] : 0;
}

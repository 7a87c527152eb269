/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows are in order of time, so that most lists are merged while they are made.
 */
#include "analyze/advice/advice_activity.h"

#include "analyze/advice/advice.h"
#include "base/text.h"
#include "trace/nests.h"

void advice_activity_release(struct advice_activity *activity)
{
	ops_intervals_release(&activity->compute);
	ops_intervals_release(&activity->backward);
	ops_intervals_release(&activity->collectives);
	ops_intervals_release(&activity->exposed);
	ops_intervals_release(&activity->alone);
}

static bool add_computation(const struct advice *advice, uint32_t row, bool backward, struct advice_activity *activity)
{
	int64_t start_ns = advice->events->start_ns[row], end_ns = advice->events->end_ns[row];

	return ops_intervals_merge(&activity->compute, start_ns, end_ns) &&
	       (!backward || ops_intervals_merge(&activity->backward, start_ns, end_ns));
}

static bool advice_activity_computes(const struct advice *advice, uint32_t row)
{
	return advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR) && advice->views->parts[row] == VIEW_OPERATOR &&
	       !(advice->views->names[advice->events->name[row]] & (VIEW_NAME_COLLECTIVE | VIEW_NAME_DDP | VIEW_NAME_DP)) &&
	       !ops_string_starts(advice_name(advice, row), "c10d::") && ops_event_nests(advice->events, row);
}

static bool find_computation(const struct advice *advice, struct advice_activity *activity)
{
	const struct ops_views *views = advice->views;
	bool done = true;

	for (size_t i = 0; done && i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];

		if (!event->communicates)
			done = add_computation(advice, event->row, advice->zone[advice_launch_row(advice, event)] & ADVICE_IN_BACKWARD, activity);
	}
	for (uint32_t row = 0; done && row < advice->events->count && !views->device_events.count; row++)
		if (advice_activity_computes(advice, row))
			done = add_computation(advice, row, advice->zone[row] & ADVICE_IN_BACKWARD, activity);
	return done;
}

bool advice_collectives_find(const struct advice *advice, struct advice_collectives *collectives)
{
	const struct ops_views *views = advice->views;
	bool done = true;

	for (size_t i = 0; done && i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];

		if (event->communicates && advice_counts(advice, event->row))
			done = OPS_ARRAY_APPEND(&collectives->items, ((struct advice_collective){event->row, event->collective}));
	}
	if (collectives->items.count)
		return done;
	for (uint32_t i = 0; done && i < views->collectives.count; i++)
		if (advice->step_of[views->collectives.items[i].row] != OPS_NONE)
			done = OPS_ARRAY_APPEND(&collectives->items, ((struct advice_collective){views->collectives.items[i].row, i}));
	return done;
}

void advice_collectives_release(struct advice_collectives *collectives)
{
	OPS_ARRAY_RELEASE(&collectives->items);
}

static bool add_collectives(const struct advice *advice, struct advice_activity *activity)
{
	const struct ops_events *events = advice->events;
	struct advice_collectives collectives = {0};
	bool done = advice_collectives_find(advice, &collectives);

	for (size_t i = 0; done && i < collectives.items.count; i++) {
		uint32_t row = collectives.items.items[i].row;

		done = ops_intervals_push(&activity->collectives, events->start_ns[row], events->end_ns[row]);
	}
	ops_intervals_sort(&activity->collectives);
	advice_collectives_release(&collectives);
	return done;
}

bool advice_activity_find(const struct advice *advice, struct advice_activity *activity)
{
	return find_computation(advice, activity) && add_collectives(advice, activity) &&
	       ops_intervals_subtract(&activity->collectives, &activity->compute, &activity->exposed) &&
	       ops_intervals_subtract(&activity->backward, &activity->collectives, &activity->alone);
}

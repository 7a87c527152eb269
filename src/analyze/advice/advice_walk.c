/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows are in order of time, and the rows of a thread nest.
 */
#include "analyze/advice/advice_walk.h"

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "trace/nests.h"

bool advice_walk_init(struct advice_walk *walk, const struct advice *advice)
{
	size_t tracks;

	ops_trace_tracks(advice->trace, &tracks);
	*walk = (struct advice_walk){.advice = advice, .current = ops_alloc_none(tracks + 1), .of_steps = OPS_NONE};
	return walk->current;
}

void advice_walk_release(struct advice_walk *walk)
{
	ops_free(walk->current);
}

static void walk_on(struct advice_walk *walk)
{
	const struct ops_events *events = walk->advice->events;
	uint32_t row = walk->next++;

	if (!ops_event_nests(events, row))
		return;
	walk->current[events->track[row]] = row;
	if (walk->advice->step_tracks[events->track[row]])
		walk->of_steps = events->track[row];
}

void advice_walk_to(struct advice_walk *walk, int64_t time_ns)
{
	const struct ops_events *events = walk->advice->events;

	while (walk->next < events->count && events->start_ns[walk->next] <= time_ns)
		walk_on(walk);
}

uint32_t advice_walk_row_at(struct advice_walk *walk, uint32_t track, int64_t time_ns)
{
	const struct ops_events *events = walk->advice->events;

	while (walk->current[track] != OPS_NONE && events->end_ns[walk->current[track]] <= time_ns)
		walk->current[track] = events->parent[walk->current[track]];
	return walk->current[track];
}

/* Returns the innermost row of a thread at a time if it counts. Shortens the time up to which that is so. */
static uint32_t counting_row_at(struct advice_walk *walk, uint32_t track, int64_t time_ns, int64_t *until_ns)
{
	uint32_t row = track == OPS_NONE ? OPS_NONE : advice_walk_row_at(walk, track, time_ns);

	if (row != OPS_NONE && walk->advice->events->end_ns[row] < *until_ns)
		*until_ns = walk->advice->events->end_ns[row];
	return row != OPS_NONE && advice_counts(walk->advice, row) ? row : OPS_NONE;
}

/* Adds a time in which no row begins on either thread. */
static void add_to_rows(struct advice_walk *walk, uint32_t track, int64_t from_ns, int64_t until_ns, int64_t *ns)
{
	while (from_ns < until_ns) {
		int64_t end_ns = until_ns;
		uint32_t row = counting_row_at(walk, track, from_ns, &end_ns), waiting = counting_row_at(walk, walk->of_steps, from_ns, &end_ns);

		row = row == OPS_NONE ? waiting : row;
		if (row != OPS_NONE)
			ns[row] = ops_sum(ns[row], end_ns - from_ns);
		from_ns = end_ns;
	}
}

void advice_walk_divide(struct advice_walk *walk, uint32_t track, int64_t start_ns, int64_t end_ns, int64_t *ns)
{
	const struct ops_events *events = walk->advice->events;

	advice_walk_to(walk, start_ns);
	while (walk->next < events->count && events->start_ns[walk->next] < end_ns) {
		uint32_t begins = events->track[walk->next];

		if (begins == track || walk->advice->step_tracks[begins]) {
			add_to_rows(walk, track, start_ns, events->start_ns[walk->next], ns);
			start_ns = events->start_ns[walk->next];
		}
		walk_on(walk);
	}
	add_to_rows(walk, track, start_ns, end_ns, ns);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches; see launches.h.
 */
#include "derive/launches.h"

#include "base/alloc.h"
#include "base/map.h"
#include "derive/around.h"
#include "derive/calls.h"
#include "derive/steps.h"
#include "trace/derived.h"

/* --- calls ------------------------------------------------------------------------------------------------------------ */

static bool expect_calls(const struct ops_events *events, struct ops_map *calls)
{
	struct ops_map_keys keys = {0};

	for (size_t row = 0; row < events->count; row++)
		if (ops_kind_is_call(events->kind[row]) && events->correlation[row] >= 0)
			ops_map_keys_add(&keys, (uint64_t)events->correlation[row]);
	return ops_map_expect(calls, &keys);
}

/* Maps correlations to calls. Rows are in order of time. */
static bool map_calls(const struct ops_trace *trace, struct ops_map *calls)
{
	const struct ops_events *events = ops_trace_events(trace);
	const uint8_t *by_name = ops_calls_by_name(trace);
	bool done = by_name && expect_calls(events, calls);

	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t *call;

		if (!ops_kind_is_call(events->kind[row]) || events->correlation[row] < 0)
			continue;
		call = ops_map_slot(calls, (uint64_t)events->correlation[row], row);
		done = call != NULL;
		if (done && *call != row && (by_name[events->name[row]] & OPS_CALL_STARTS_WORK) &&
		    !(by_name[events->name[*call]] & OPS_CALL_STARTS_WORK))
			*call = row;
	}
	return done;
}

static void follow_arrows(const struct ops_trace *trace, uint32_t *launchers)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count;
	const struct ops_link *links = ops_trace_links(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (links[i].kind == OPS_LINK_LAUNCH && ops_kind_is_work(events->kind[links[i].to]) &&
		    !ops_kind_is_work(events->kind[links[i].from]) && launchers[links[i].to] == OPS_NONE)
			launchers[links[i].to] = links[i].from;
}

/* Returns false if out of memory. */
static bool launch_work(const struct ops_trace *trace, uint32_t *launchers)
{
	const struct ops_events *events = ops_trace_events(trace);
	const int64_t *correlation = events->correlation;
	struct ops_map calls = {0};
	bool done = !correlation || map_calls(trace, &calls);

	for (size_t row = 0; done && correlation && row < events->count; row++)
		if (correlation[row] >= 0 && ops_row_is_launched(events, row))
			launchers[row] = ops_map_find(&calls, (uint64_t)correlation[row]);
	if (done)
		follow_arrows(trace, launchers);
	ops_map_release(&calls);
	return done;
}

/* --- operators -------------------------------------------------------------------------------------------------------- */

static bool is_operator(const void *context, uint32_t row)
{
	const struct ops_trace *trace = context;
	const struct ops_events *events = ops_trace_events(trace);
	int64_t number;

	return events->kind[row] == OPS_EVENT_CPU_OP && !(events->flags[row] & OPS_EVENT_HIDDEN) &&
	       !ops_row_step(trace, row, &number);
}

static bool launches_map_operators(const struct ops_trace *trace, struct ops_map *operators)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_map_keys keys = {0};
	bool done = true;

	for (uint32_t row = 0; row < events->count; row++)
		if (events->id[row] && is_operator(trace, row))
			ops_map_keys_add(&keys, events->id[row]);
	done = ops_map_expect(operators, &keys);
	for (uint32_t row = 0; done && row < events->count; row++)
		if (events->id[row] && is_operator(trace, row))
			done = ops_map_add(operators, events->id[row], row);
	return done;
}

/* Returns true if an operator runs when a call is made, including its very start and end. */
static bool runs(const struct ops_events *events, uint32_t operator, uint32_t call)
{
	return events->track[operator] == events->track[call] && events->start_ns[operator] <= events->start_ns[call] &&
	       events->start_ns[call] <= events->end_ns[operator];
}

/* Some files store the correlation in place of the external id. Ids that match no operator, or an operator that does
 * not contain the call, are evidence against the ids of the file. */
static bool ids_hold(const struct ops_events *events, const struct ops_map *operators, const uint32_t *around)
{
	size_t agree = 0, disagree = 0;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t named;

		if (!ops_kind_is_call(events->kind[row]) || !events->id[row])
			continue;
		named = ops_map_find(operators, events->id[row]);
		if (named != OPS_NONE && runs(events, named, row))
			agree++;
		else if (around[row] != OPS_NONE)
			disagree++;
	}
	return agree >= disagree;
}

/* `launchers` has the operators around rows, which make calls unless the file names others. Returns false if out of memory. */
static bool make_calls(const struct ops_trace *trace, uint32_t *launchers)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_map operators = {0};
	bool done = !events->id || launches_map_operators(trace, &operators);

	for (uint32_t row = 0; done && row < events->count; row++)
		if (!ops_kind_is_call(events->kind[row]))
			launchers[row] = is_operator(trace, row) ? row : OPS_NONE;
	if (done && events->id && ids_hold(events, &operators, launchers))
		for (uint32_t row = 0; row < events->count; row++) {
			uint32_t named = OPS_NONE;

			if (ops_kind_is_call(events->kind[row]) && events->id[row])
				named = ops_map_find(&operators, events->id[row]);
			if (named != OPS_NONE)
				launchers[row] = named;
		}
	ops_map_release(&operators);
	return done;
}

static void launches_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	size_t count = ops_trace_events(trace)->count + 1;
	uint32_t *launchers = ops_rows_around(trace, is_operator, trace);

	if (launchers && make_calls(trace, launchers) && launch_work(trace, launchers))
		*ret_made = (struct ops_derived_object){launchers, ops_free, count * sizeof(*launchers)};
	else
		ops_free(launchers);
}

const uint32_t *ops_launchers(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_LAUNCHERS, launches_derive);
}

int64_t *ops_first_launched(const struct ops_trace *trace, const uint32_t *launchers)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t tracks;
	int64_t *first;

	ops_trace_tracks(trace, &tracks);
	first = ops_realloc_array(NULL, tracks + 1, sizeof(*first));
	for (size_t track = 0; first && track < tracks; track++)
		first[track] = INT64_MIN;
	for (size_t row = 0; first && row < events->count; row++) /* rows are in order of time */
		if (ops_kind_is_work(events->kind[row]) && launchers[row] != OPS_NONE && first[events->track[row]] == INT64_MIN)
			first[events->track[row]] = events->start_ns[row];
	return first;
}

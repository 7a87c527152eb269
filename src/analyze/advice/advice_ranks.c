/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduces a trace to the summary of a rank, and computes from all ranks which one waited how long.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_activity.h"
#include "analyze/ranks/collectives.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/arguments.h"
#include "derive/messages.h"

static uint32_t advice_ranks_text(struct advice_ranks *ranks, struct ops_string string)
{
	return ops_intern_add(&ranks->texts, string.bytes, string.size);
}

/* --- places --------------------------------------------------------------------------------------------------------- */

struct gathering {
	struct advice_ranks *ranks;
	struct advice *advice;
	struct rank *rank;
	struct ops_map times; /* place → index into rank.times */
	struct ops_map known; /* site and name of a row → place */
};

static bool find_place(struct gathering *gathering, uint32_t site, uint32_t row, uint32_t *ret_place)
{
	struct advice_where where = advice_describe(gathering->advice, site, row);
	struct rank_place place;
	uint64_t key = (uint64_t)site << 32 | gathering->advice->events->name[row];
	uint32_t *known = ops_map_slot(&gathering->known, key, OPS_NONE);

	if (!known || *known != OPS_NONE) {
		*ret_place = known ? *known : OPS_NONE;
		return known != NULL;
	}
	memset(&place, 0, sizeof(place));
	place.file = advice_ranks_text(gathering->ranks, where.file);
	place.function = advice_ranks_text(gathering->ranks, where.function);
	place.module = advice_ranks_text(gathering->ranks, where.module);
	place.operator_name = advice_ranks_text(gathering->ranks, where.operator_name);
	place.line = where.line;
	*known = *ret_place = ops_intern_add(&gathering->ranks->places, &place, sizeof(place));
	return place.file != OPS_INTERN_NONE && place.function != OPS_INTERN_NONE && place.module != OPS_INTERN_NONE &&
	       place.operator_name != OPS_INTERN_NONE && *ret_place != OPS_INTERN_NONE;
}

static bool advice_ranks_add_time(struct gathering *gathering, uint32_t site, uint32_t row, int64_t ns)
{
	struct rank *rank = gathering->rank;
	struct rank_time *time;
	uint32_t place;

	if (!find_place(gathering, site, row, &place))
		return false;
	time = OPS_ARRAY_AT(&rank->times, ops_map_number(&gathering->times, place));
	if (!time)
		return false;
	time->place = place;
	time->ns = ops_sum(time->ns, ns);
	return true;
}

/* Adds the times outside of operators by sampled stacks. */
static bool gather_sampled_times(struct gathering *gathering)
{
	struct advice *advice = gathering->advice;
	bool done = true;

	for (size_t i = 0; done && i < advice->samples.samples.count; i++) {
		uint32_t row = advice->sample_row[i], site = advice->sample_site[i];

		if (row == OPS_NONE || site == OPS_NONE || !advice_counts(advice, row) || advice_is_operator(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_LOADER)))
			continue;
		done = advice_ranks_add_time(gathering, site, row, advice->samples.samples.items[i].weight_ns);
	}
	return done;
}

/* Adds the times of operators, of their kernels, and of Python outside of operators. What a rank waits for takes longer
 * on the other ranks. */
static bool gather_times(struct gathering *gathering)
{
	struct advice *advice = gathering->advice;
	const struct ops_views *views = advice->views;
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		if (!advice_counts(advice, row) || (views->names[advice->events->name[row]] & VIEW_NAME_COLLECTIVE))
			continue;
		if (views->parts[row] == VIEW_LOADER)
			done = advice_ranks_add_time(gathering, advice->site[row], row, advice_host_ns(advice, row));
		else if (advice->zone[row] & ADVICE_IN_LOADER)
			continue;
		else if (views->parts[row] == VIEW_OPERATOR && !(advice->zone[row] & ADVICE_IN_OPERATOR))
			done = advice_ranks_add_time(gathering, advice->site[row], row, advice_host_ns(advice, row));
		else if (advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			done = advice_ranks_add_time(gathering,
			                             advice_own_site(advice, row) == OPS_NONE ? advice->site[row]
			                                                                      : advice_own_site(advice, row),
			                             row, advice->events->self_ns[row]);
	}
	for (size_t i = 0; done && i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];
		uint32_t launch = advice_launch_row(advice, event);

		if (!event->communicates && advice_counts(advice, event->row))
			done = advice_ranks_add_time(gathering, advice->site[launch], launch, advice_ns(advice, event->row));
	}
	return done && gather_sampled_times(gathering);
}

/* --- collectives ---------------------------------------------------------------------------------------------------- */

static struct ops_string advice_ranks_group_of(const struct advice *advice, uint32_t row)
{
	struct ops_string json;

	return ops_event_arg(advice->trace, row, "Process Group Ranks", &json) ? json : (struct ops_string){"", 0};
}

/* Returns the bytes of a message that a link carries, in either direction. */
static double bus_bytes(const struct advice *advice, uint32_t row, struct ops_string kind, int64_t bytes, int64_t group_size)
{
	double in = (double)ops_argument_integer(advice->trace, row, "In msg nelems", 0),
	       out = (double)ops_argument_integer(advice->trace, row, "Out msg nelems", 0);
	struct ops_string name;

	if (!ops_event_arg(advice->trace, row, "Collective name", &name))
		name = kind;
	return (double)bytes * (out > in && in > 0 ? out / in : 1) * collective_bus_factor(name, group_size);
}

static bool advice_ranks_add_collective(struct gathering *gathering, uint32_t row, uint32_t host, int64_t bytes)
{
	struct advice *advice = gathering->advice;
	struct rank_collective *collective = OPS_ARRAY_PUSH(&gathering->rank->collectives);
	struct ops_string kind = advice_name(advice, host == OPS_NONE ? row : host);
	int64_t group_size = ops_argument_integer(advice->trace, row, "Group size", 0);

	if (!collective)
		return false;
	if (group_size > gathering->ranks->largest_group)
		gathering->ranks->largest_group = group_size;
	*collective = (struct rank_collective){
		.row = row,
		.step = advice->step_of[row],
		.start_ns = advice->events->start_ns[row],
		.end_ns = advice->events->end_ns[row],
		.bytes = bytes,
		.bus_bytes = bus_bytes(advice, row, kind, bytes, group_size),
		.kind = advice_ranks_text(gathering->ranks, kind),
		.group = advice_ranks_text(gathering->ranks, advice_ranks_group_of(advice, row))};
	return collective->kind != OPS_INTERN_NONE && collective->group != OPS_INTERN_NONE &&
	       find_place(gathering, advice->site[host == OPS_NONE ? row : host], host == OPS_NONE ? row : host,
	                  &collective->place);
}

static bool gather_collectives(struct gathering *gathering)
{
	const struct ops_views *views = gathering->advice->views;
	struct advice_collectives found = {0};
	bool done = advice_collectives_find(gathering->advice, &found);

	for (size_t i = 0; done && i < found.items.count; i++) {
		uint32_t row = found.items.items[i].row, number = found.items.items[i].number;
		const struct view_collective *collective = number == OPS_NONE ? NULL : &views->collectives.items[number];
		bool on_device = !collective || collective->row != row;
		int64_t bytes = on_device ? ops_message_bytes(gathering->advice->trace, row) : 0;

		done = advice_ranks_add_collective(gathering, row, on_device && collective ? collective->row : OPS_NONE,
		                                   bytes || !collective ? bytes : collective->bytes);
	}
	advice_collectives_release(&found);
	return done;
}

OPS_ORDER(advice_ranks_compare_starts, struct rank_collective, OPS_UP(start_ns))

/* The host requests each collective by an operator, and threads of Gloo run them in that order. So the nth collective
 * belongs to the nth operator, which has the line and the time of the request. */
static bool advice_ranks_find_calls(struct gathering *gathering)
{
	struct advice *advice = gathering->advice;
	struct rank *rank = gathering->rank;
	OPS_ARRAY(uint32_t) calls = {0};
	int64_t calls_ns = 0;
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t *call;

		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) ||
		    !ops_string_starts(advice_name(advice, row), "c10d::"))
			continue;
		calls_ns = ops_sum(calls_ns, advice_ns(advice, row));
		call = OPS_ARRAY_PUSH(&calls);
		if (call)
			*call = row;
		done = call != NULL;
	}
	for (size_t i = 0; done && i < rank->collectives.count; i++) {
		rank->collectives.items[i].call_ns = calls_ns / (int64_t)rank->collectives.count;
		if (calls.count == rank->collectives.count && advice->site[calls.items[i]] != OPS_NONE)
			done = find_place(gathering, advice->site[calls.items[i]], calls.items[i], &rank->collectives.items[i].place);
	}
	OPS_ARRAY_RELEASE(&calls);
	return done;
}

static bool number_collectives(struct gathering *gathering)
{
	struct ops_buffer kind = {0};
	struct ops_map seen = {0};
	bool done = true;

	for (size_t i = 0; done && i < gathering->rank->collectives.count; i++) {
		struct rank_collective *collective = &gathering->rank->collectives.items[i];
		uint32_t numbers[] = {gathering->rank->steps.items[collective->step].name, collective->kind};

		kind.size = 0;
		ops_buffer_append(&kind, numbers, sizeof(numbers));
		ops_buffer_append(&kind, &collective->bytes, sizeof(collective->bytes));
		ops_operation_append_group(gathering->advice->trace, collective->row, &kind);
		collective->operation = kind.failed ? OPS_NONE : ops_operations_number(&gathering->ranks->operations, &seen, kind.bytes, kind.size);
		done = collective->operation != OPS_NONE;
	}
	ops_map_release(&seen);
	ops_buffer_release(&kind);
	return done;
}

/* --- steps ---------------------------------------------------------------------------------------------------------- */

static bool gather_steps(struct gathering *gathering)
{
	struct advice *advice = gathering->advice;

	for (size_t i = 0; i < advice->views->steps.count; i++) {
		const struct view_step *step = &advice->views->steps.items[i];
		struct rank_step *added = OPS_ARRAY_PUSH(&gathering->rank->steps);

		if (!added)
			return false;
		*added = (struct rank_step){.name = advice_ranks_text(gathering->ranks, step->name),
		                            .steady = advice->steady[i],
		                            .ns = ops_difference(step->end_ns, step->start_ns)};
		if (added->name == OPS_INTERN_NONE)
			return false;
	}
	return true;
}

static void advice_ranks_measure_steps(struct gathering *gathering, const struct advice_activity *activity)
{
	size_t exposed = 0, alone = 0;

	for (size_t i = 0; i < gathering->rank->steps.count; i++) {
		const struct view_step *step = &gathering->advice->views->steps.items[i];
		struct rank_step *kept = &gathering->rank->steps.items[i];

		kept->exposed_ns = ops_intervals_within(&activity->exposed, step->start_ns, step->end_ns, &exposed);
		kept->backward_ns = ops_intervals_within(&activity->alone, step->start_ns, step->end_ns, &alone);
	}
}

/* --- a rank --------------------------------------------------------------------------------------------------------- */

static void advice_ranks_release_rank(struct rank *rank)
{
	OPS_ARRAY_RELEASE(&rank->steps);
	OPS_ARRAY_RELEASE(&rank->collectives);
	OPS_ARRAY_RELEASE(&rank->times);
}

static bool advice_ranks_gather(struct gathering *gathering)
{
	struct rank *rank = gathering->rank;
	struct advice_activity activity = {0};
	bool done = gather_steps(gathering) && gather_collectives(gathering);

	if (done && rank->collectives.count) {
		qsort(rank->collectives.items, rank->collectives.count, sizeof(*rank->collectives.items),
		      advice_ranks_compare_starts);
		done = advice_ranks_find_calls(gathering) && number_collectives(gathering) &&
		       advice_activity_find(gathering->advice, &activity) && gather_times(gathering);
		if (done)
			advice_ranks_measure_steps(gathering, &activity);
	}
	advice_activity_release(&activity);
	return done;
}

bool advice_ranks_add(struct advice_ranks *ranks, struct advice *advice, const struct ops_rank *worker)
{
	struct rank rank = {.number = ops_trace_rank(advice->trace, worker->name), .step_count = advice->step_count,
	                    .steps_ns = advice->steps_ns};
	struct gathering gathering = {.ranks = ranks, .advice = advice, .rank = &rank};
	struct rank *added = NULL;
	char number[24];
	bool done;

	snprintf(number, sizeof(number), "%lld", (long long)worker->rank);
	rank.name = advice_ranks_text(ranks, ops_string_of(worker->name ? worker->name : number));
	done = rank.name != OPS_INTERN_NONE && advice_ranks_gather(&gathering);
	ops_map_release(&gathering.times);
	ops_map_release(&gathering.known);
	/* The profiling cycles of one worker come one after another. */
	for (size_t i = 0; done && i < ranks->ranks.count && !added; i++)
		if (ranks->ranks.items[i].name == rank.name)
			added = &ranks->ranks.items[i];
	if (added)
		advice_ranks_release_rank(added);
	if (done && rank.collectives.count && !added)
		added = OPS_ARRAY_PUSH(&ranks->ranks);
	if (!added) {
		advice_ranks_release_rank(&rank);
		return done && !rank.collectives.count;
	}
	*added = rank;
	return true;
}

struct advice_where advice_place(const struct advice_ranks *ranks, uint32_t place)
{
	struct rank_place known;

	memcpy(&known, ranks->places.entries[place].bytes, sizeof(known));
	return (struct advice_where){.file = rank_text(ranks, known.file), .function = rank_text(ranks, known.function),
	                             .module = rank_text(ranks, known.module),
	                             .operator_name = rank_text(ranks, known.operator_name), .line = known.line,
	                             .row = OPS_NONE};
}

/* --- all ranks ------------------------------------------------------------------------------------------------------ */

static bool advice_ranks_find_shortest(struct advice_ranks *ranks)
{
	size_t count = ranks->operations.numbers.count + 1;

	ranks->shortest_ns = ops_realloc_array(NULL, count, sizeof(*ranks->shortest_ns));
	ranks->taking = ops_alloc_zeroed(count, sizeof(*ranks->taking));
	if (!ranks->shortest_ns || !ranks->taking)
		return false;
	for (size_t i = 0; i < count; i++)
		ranks->shortest_ns[i] = INT64_MAX;
	for (size_t r = 0; r < ranks->ranks.count; r++) {
		const struct rank *rank = &ranks->ranks.items[r];

		for (size_t i = 0; i < rank->collectives.count; i++) {
			const struct rank_collective *collective = &rank->collectives.items[i];
			int64_t ns = ops_difference(collective->end_ns, collective->start_ns);

			ranks->taking[collective->operation]++;
			if (ns < ranks->shortest_ns[collective->operation])
				ranks->shortest_ns[collective->operation] = ns;
		}
	}
	return true;
}

/* Transfers end with the collective. Several may run at once, so time that they share counts once. */
static bool measure_transfers(const struct advice_ranks *ranks, struct rank *rank)
{
	struct ops_intervals transfers = {0};
	size_t from = 0;
	bool done = true;

	for (size_t s = 0; done && s < rank->steps.count; s++) {
		struct rank_step *step = &rank->steps.items[s];

		transfers.count = 0;
		for (; done && from < rank->collectives.count && rank->collectives.items[from].step <= s; from++) {
			const struct rank_collective *collective = &rank->collectives.items[from];

			done = ops_intervals_push(&transfers, collective->end_ns - ranks->shortest_ns[collective->operation],
			                       collective->end_ns);
		}
		ops_intervals_sort(&transfers);
		step->transfer_ns = ops_intervals_length(&transfers);
		step->wait_ns = step->exposed_ns > step->transfer_ns ? step->exposed_ns - step->transfer_ns : 0;
	}
	ops_intervals_release(&transfers);
	return done;
}

bool advice_ranks_finalize(struct advice_ranks *ranks)
{
	bool done = advice_ranks_find_shortest(ranks);

	for (size_t i = 0; done && i < ranks->ranks.count; i++)
		done = measure_transfers(ranks, &ranks->ranks.items[i]);
	return done;
}

void advice_ranks_release(struct advice_ranks *ranks)
{
	for (size_t i = 0; i < ranks->ranks.count; i++)
		advice_ranks_release_rank(&ranks->ranks.items[i]);
	OPS_ARRAY_RELEASE(&ranks->ranks);
	ops_intern_release(&ranks->texts);
	ops_operations_release(&ranks->operations);
	ops_intern_release(&ranks->places);
	ops_free(ranks->shortest_ns);
	ops_free(ranks->taking);
}

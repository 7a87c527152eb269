/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the rows that waited for a processor. The operating system reports how long the thread of each step was ready
 * to run while other programs had the processors ("machine" in the metadata), but not where. Most of this wait is in
 * few rows, for milliseconds each. These take longer than equal rows, which have the same name at the same position in
 * the tree in other iterations and steps. The wait is subtracted from the rows with the largest excess over their
 * quickest equal rows, until it is used up. The rest is divided among all rows that ran, in proportion to their time.
 *
 * An operator on several threads ends when the last of them does, even if that thread waits for a processor. The thread
 * of the step then polls, or is blocked, which does not count as a wait for a processor. If the machine is busy and
 * there are several threads, the entire excess of operators over equal ones on as many elements is subtracted.
 */
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "analyze/views/view_step_stats.h"
#include "base/alloc.h"
#include "base/order.h"

/* With fewer equal rows, none of them is known to be quick. */
#define LIKE_MIN 3
/* Equal rows take as long as the quickest tenth of them: on a busy machine more than half of them may have waited. */
#define QUICK_SHARE 10
/* Losing a processor and getting it back takes some microseconds at least; a smaller difference is noise. */
#define WAIT_NS_MIN 20000

struct own {
	uint64_t path; /* or the index of the step */
	int64_t ns;    /* self time, or its excess over that of quick rows */
	uint32_t row;
};

OPS_ORDER(by_path, struct own, OPS_UP(path) OPS_UP(ns))

OPS_ORDER(by_excess, struct own, OPS_DOWN(ns) OPS_UP(row))

/* By row: its position in the tree, by names and lines, and for operators also by size. All steps count as equal,
 * whatever their number. */
static void find_paths(const struct advice *advice, uint64_t *paths)
{
	const struct ops_events *events = advice->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint64_t name = advice->views->parts[row] == VIEW_STEP ? OPS_NONE : events->name[row];
		uint64_t line = events->call_line ? events->call_line[row] : 0;
		uint64_t above = events->parent[row] == OPS_NONE ? 0 : paths[events->parent[row]];

		uint8_t dtype;

		if (advice_is_operator(advice, row))
			line ^= (uint64_t)advice_elements(advice, row, &dtype) << 32;
		paths[row] = ((above ^ name) * 0x9e3779b97f4a7c15u ^ line) * 0xbf58476d1ce4e5b9u;
		paths[row] ^= paths[row] >> 31;
	}
}

/* Gathers the rows of steps on a track in order, with the step of each as `path`. */
static size_t advice_waits_gather(const struct advice *advice, uint32_t track, struct own *rows)
{
	const struct ops_events *events = advice->events;
	size_t count = 0, at = 0;

	for (uint32_t row = 0; row < events->count; row++) {
		at = advice_next_step(advice, at, events->start_ns[row]);
		if (events->track[row] != track || (events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)) ||
		    events->start_ns[row] < advice->views->steps.items[at].host_start_ns ||
		    events->start_ns[row] >= advice->views->steps.items[at].end_ns)
			continue;
		rows[count++] = (struct own){at, advice->self_ns[row], row};
	}
	return count;
}

/* Replaces the path of each of the rows by the excess of its self time over that of the quickest equal rows. Changes the order of rows. */
static void advice_waits_find_excess(struct own *rows, size_t count, uint64_t *paths)
{
	uint64_t *excess_ns = paths;

	for (size_t i = 0; i < count; i++)
		rows[i].path = paths[rows[i].row];
	qsort(rows, count, sizeof(*rows), by_path);
	for (size_t first = 0, next; first < count; first = next) {
		int64_t quick_ns;

		for (next = first + 1; next < count && rows[next].path == rows[first].path; next++)
			;
		quick_ns = next - first < LIKE_MIN ? INT64_MAX : rows[first + (next - first) / QUICK_SHARE].ns;
		for (size_t i = first; i < next; i++)
			excess_ns[rows[i].row] = rows[i].ns > quick_ns ? (uint64_t)(rows[i].ns - quick_ns) : 0;
	}
}

/* Brings the rows whose excess may be a wait to the front, the largest first. Returns their number. */
static size_t advice_waits_order(struct own *rows, size_t count)
{
	size_t long_count = 0;

	for (size_t i = 0; i < count; i++) {
		struct own row = rows[i];

		if (row.ns < WAIT_NS_MIN)
			continue;
		rows[i] = rows[long_count];
		rows[long_count++] = row;
	}
	qsort(rows, long_count, sizeof(*rows), by_excess);
	return long_count;
}

/* Subtracts up to `wait_ns` from the excess of rows, the largest first; only from operators, or from all rows. Returns
 * the sum. */
static int64_t assign_to_excess(struct advice *advice, struct own *rows, size_t count, int64_t wait_ns, bool operators)
{
	int64_t assigned_ns = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t left_ns = ops_difference(wait_ns, assigned_ns), ns = rows[i].ns < left_ns ? rows[i].ns : left_ns;

		if (ns < WAIT_NS_MIN || (operators && !advice_is_operator(advice, rows[i].row)))
			continue;
		advice->lost_ns[rows[i].row] = ops_sum(advice->lost_ns[rows[i].row], ns);
		rows[i].ns -= ns;
		assigned_ns = ops_sum(assigned_ns, ns);
	}
	return assigned_ns;
}

/* Assigns the wait to the rows of a step, those with the largest excess first. */
static void assign_waits(struct advice *advice, struct own *rows, size_t count, const struct ops_step_wait *wait)
{
	int64_t own_ns = 0, polled_ns = 0, left_ns;
	size_t long_count = advice_waits_order(rows, count);

	/* How much of that is part of `waited_ns` is unknown; it may all belong to other rows. */
	if (advice_threads_starve(advice))
		polled_ns = assign_to_excess(advice, rows, long_count, INT64_MAX, true);
	left_ns = wait->waited_ns - assign_to_excess(advice, rows, long_count, wait->waited_ns, false);
	left_ns = ops_difference(left_ns, polled_ns);
	for (size_t i = 0; i < count; i++)
		if (!(advice->zone[rows[i].row] & ADVICE_WAITING))
			own_ns = ops_sum(own_ns, ops_difference(advice->self_ns[rows[i].row], advice->lost_ns[rows[i].row]));
	/* Only rows that ran can lose the processor, unlike those that slept or waited for other threads. */
	if (left_ns <= 0 || left_ns >= own_ns || ops_sum(wait->ran_ns, left_ns) < own_ns / 2)
		return;
	for (size_t i = 0; i < count; i++) {
		int64_t ns = ops_difference(advice->self_ns[rows[i].row], advice->lost_ns[rows[i].row]);

		if (!(advice->zone[rows[i].row] & ADVICE_WAITING))
			advice->lost_ns[rows[i].row] += (int64_t)((double)ns * (double)left_ns / (double)own_ns);
	}
}

struct starving {
	const struct ops_thread_states *states;
	int64_t *starved_ns; /* by row */
	uint32_t track;
};

static bool add_starved(void *context, const struct ops_thread_part *part)
{
	struct starving *starving = context;

	if (part->track == starving->track && part->row != OPS_NONE &&
	    (part->state == OPS_THREAD_GIL || part->state == OPS_THREAD_LOCK))
		starving->starved_ns[part->row] = ops_sum(starving->starved_ns[part->row],
		                                          ops_thread_states_starved_ns(starving->states, part->thread,
		                                                                       part->start_ns, part->end_ns));
	return true;
}

/* A row that waits for a thread that waits for a processor is waiting for the processor as well. Part of this may
 * already be in the excess. */
static bool assign_starved(struct advice *advice, uint32_t track)
{
	struct ops_thread_states states;
	struct starving starving = {&states, ops_alloc_zeroed(advice->events->count + 1, sizeof(int64_t)), track};
	bool done = ops_thread_states_read(&states, advice->trace) && starving.starved_ns &&
	            (!states.threads.count || ops_thread_states_walk(&states, advice->trace, add_starved, &starving));

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		int64_t ns = starving.starved_ns[row] < advice->self_ns[row] ? starving.starved_ns[row] : advice->self_ns[row];

		advice->lost_ns[row] = ns > advice->lost_ns[row] ? ns : advice->lost_ns[row];
	}
	ops_free(starving.starved_ns);
	ops_thread_states_release(&states);
	return done;
}

/* Without steps the waits for a processor are unknown. If operators on several threads mostly take much longer than equal ones, then
 * because threads waited. */
#define STARVED_MIN 0.5

static void assign_without_steps(struct advice *advice, struct own *rows, size_t count)
{
	double excess_ns = 0, all_ns = 0;

	for (size_t i = 0; i < count; i++) {
		bool operator = advice_is_operator(advice, rows[i].row);

		excess_ns += operator ? (double)rows[i].ns : 0;
		all_ns += operator ? (double)advice->self_ns[rows[i].row] : 0;
	}
	if (excess_ns > STARVED_MIN * all_ns)
		assign_to_excess(advice, rows, count, INT64_MAX, true);
}

bool advice_find_lost_waits(struct advice *advice)
{
	size_t rows_max = advice->events->count + 1, count;
	bool without_steps = advice->views->unmarked && advice->machine.threads > 1;
	uint32_t track;
	uint64_t *paths;
	struct own *rows;
	bool done = view_main_track(advice->views, &track);

	/* Times of ranks are compared with each other, and a device has its own times, so nothing is subtracted
	 * there. */
	if (!done || (!advice->machine.has_waits && !without_steps) || advice_is_oversubscribed(advice) || track == OPS_NONE ||
	    advice->views->device_events.count || advice->views->has_collectives)
		return done;
	paths = ops_realloc_array(NULL, rows_max, sizeof(*paths));
	rows = ops_realloc_array(NULL, rows_max, sizeof(*rows));
	done = paths && rows;
	if (done) {
		find_paths(advice, paths);
		count = advice_waits_gather(advice, track, rows);
		advice_waits_find_excess(rows, count, paths);
		count = advice_waits_gather(advice, track, rows);
		for (size_t i = 0; i < count; i++)
			rows[i].ns = (int64_t)paths[rows[i].row];
		if (without_steps)
			assign_without_steps(advice, rows, count);
		for (size_t first = 0, next; !without_steps && first < count; first = next) {
			for (next = first + 1; next < count && rows[next].path == rows[first].path; next++)
				;
			assign_waits(advice, rows + first, next - first, &advice->machine.waits[rows[first].path]);
		}
		done = assign_starved(advice, track);
	}
	ops_free(paths);
	ops_free(rows);
	return done;
}

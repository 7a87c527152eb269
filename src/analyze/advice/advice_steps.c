/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps: which of them are steady, and which rows belong to each.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/extent.h"

size_t advice_next_step(const struct advice *advice, size_t at, int64_t ns)
{
	while (at + 1 < advice->views->steps.count && advice->views->steps.items[at + 1].host_start_ns <= ns)
		at++;
	return at;
}

double advice_typical_ns(const struct advice *advice, int64_t *by_step)
{
	size_t count = 0;

	for (size_t i = 0; i < advice->views->steps.count; i++)
		if (advice->steady[i])
			by_step[count++] = by_step[i];
	return (double)ops_sort_to_middle(by_step, count) * (double)count;
}

/* A step that takes more than three times the median of its kind is not steady: it compiles, warms up or waits once. A
 * prefill is steady however many decodes there are. */
#define UNSTEADY 3

static int64_t advice_steps_length(const struct advice *advice, size_t i)
{
	return ops_difference(advice->views->steps.items[i].end_ns, advice->views->steps.items[i].start_ns);
}

/* Gets the median by enum ops_iteration_kind; 0 for kinds that do not occur. Returns false if out of memory. */
static bool median_steps(const struct advice *advice, int64_t ret_ns[OPS_ITERATION_KIND_COUNT])
{
	size_t steps = advice->views->steps.count;
	int64_t *times = ops_realloc_array(NULL, steps + 1, sizeof(*times));

	for (int kind = 0; times && kind < OPS_ITERATION_KIND_COUNT; kind++) {
		size_t count = 0;

		for (size_t i = 0; i < steps; i++)
			if ((int)advice->views->steps.items[i].kind == kind)
				times[count++] = advice_steps_length(advice, i);
		ret_ns[kind] = ops_sort_to_middle(times, count);
	}
	ops_free(times);
	return times != NULL;
}

/* A longer step belongs to the program if it makes more calls than others and such steps recur: each epoch begins with a sort of
 * the samples, or each hundredth step writes a checkpoint. The first steps warm up. */
#define MORE_CALLS 1.1
#define RECUR_MIN 3

static bool keep_recurring(const struct advice *advice, const int64_t *calls, uint8_t *steady, bool *ret_kept)
{
	size_t steps = advice->views->steps.count, first = 0, longer = 0, recurring = 0;
	int64_t *sorted;
	double more;

	while (first < steps && !steady[first])
		first++;
	for (size_t i = first; i < steps; i++)
		longer += !steady[i];
	if (longer < RECUR_MIN)
		return true;
	sorted = ops_alloc_zeroed(steps + 1, sizeof(*sorted));
	if (!sorted)
		return false;
	memcpy(sorted, calls, steps * sizeof(*sorted));
	more = MORE_CALLS * (double)ops_sort_to_middle(sorted, steps);
	for (size_t i = first; i < steps; i++)
		recurring += !steady[i] && (double)calls[i] > more;
	for (size_t i = first; i < steps && recurring >= RECUR_MIN; i++)
		steady[i] |= (double)calls[i] > more;
	*ret_kept = recurring >= RECUR_MIN;
	ops_free(sorted);
	return true;
}

/* A step that waited for a processor for more than a tenth of its time is not steady: the place of the wait is an estimate
 * (advice_waits.c), and caches are cold afterwards. If nearly all steps waited, all count. What the program itself causes belongs to
 * its steps. */
#define WAITED_MAX 0.1
#define LEFT_MIN 4

static bool has_waited(const struct advice *advice, size_t i)
{
	const struct view_step *step = &advice->views->steps.items[i];

	return (1 - view_waited_own(advice->machine.waited)) * (double)advice->machine.waits[i].waited_ns >
	       WAITED_MAX * (double)ops_difference(step->end_ns, step->start_ns);
}

/* A rank that is late in some steps makes these long on all ranks. Two long ones have a reason, unless they waited for a processor. */
#define LATE_MIN 2

static bool has_ranks(const struct advice *advice)
{
	bool found = advice->views->has_collectives;

	for (size_t i = 0; !found && i < advice->views->device_events.count; i++)
		found = advice->views->device_events.items[i].communicates;
	return found;
}

/* Returns true if it keeps some. */
static bool keep_late(const struct advice *advice, uint8_t *steady)
{
	size_t steps = advice->views->steps.count, first = 0, late = 0;

	while (first < steps && !steady[first])
		first++;
	for (size_t i = first; i < steps; i++)
		late += !steady[i] && !has_waited(advice, i);
	for (size_t i = first; late >= LATE_MIN && i < steps; i++)
		steady[i] |= !has_waited(advice, i);
	return late >= LATE_MIN;
}

/* The first step is not steady if means of other surfaces leave it out (derive/steps.c), unless no other one is. */
static void leave_out_apart(const struct advice *advice, uint8_t *steady)
{
	if (view_averaged_from(advice->views) && memchr(steady + 1, 1, advice->views->steps.count - 1))
		steady[0] = 0;
}

static void leave_out_waiting(const struct advice *advice, uint8_t *steady)
{
	size_t steps = advice->views->steps.count, left = 0;

	for (size_t i = 0; i < steps; i++)
		left += steady[i] && !has_waited(advice, i);
	for (size_t i = 0; left >= LEFT_MIN && i < steps; i++)
		steady[i] &= !has_waited(advice, i);
}

/* A step that captures graphs is not steady, unless all steps do. */
static void leave_out_capturing(const struct advice *advice, uint8_t *steady)
{
	size_t cursor = 0, left = 0, steps = advice->views->steps.count;

	for (size_t i = 0; i < steps; i++) {
		const struct view_step *step = &advice->views->steps.items[i];

		left += steady[i] && !ops_intervals_within(&advice->captures, step->host_start_ns, step->host_end_ns, &cursor);
	}
	cursor = 0;
	for (size_t i = 0; left && i < steps; i++) {
		const struct view_step *step = &advice->views->steps.items[i];

		steady[i] &= !ops_intervals_within(&advice->captures, step->host_start_ns, step->host_end_ns, &cursor);
	}
}

/* Steps that make the same calls differ because of the machine: cold caches in the first of them, clock rates, other
 * programs. The faster half then represents the program. The duration of a step that waits for another process may
 * vary. */
#define SAME_CALLS 0.02

struct pace {
	size_t step;
	int64_t ns;
};

OPS_ORDER(compare_paces, struct pace, OPS_UP(ns) OPS_UP(step))

/* Finds the paces of the steady steps. Returns false if they do not make the same calls, or wait for another
 * process. */
static bool find_paces(const struct advice *advice, const int64_t *calls, const uint8_t *steady, struct pace *paces)
{
	const struct ops_events *events = advice->events;
	size_t steps = advice->views->steps.count, at = 0;
	int64_t least = INT64_MAX, most = 0;

	for (size_t i = 0; i < steps; i++)
		paces[i] = (struct pace){i, advice_steps_length(advice, i)};
	for (uint32_t row = 0; row < events->count; row++) {
		at = advice_next_step(advice, at, events->start_ns[row]);
		paces[at].ns = ops_difference(paces[at].ns, advice->lost_ns[row]);
		if (advice->views->parts[row] == VIEW_LOADER && ops_string_contains(advice_name(advice, row), "_MultiProcessing"))
			return false;
	}
	for (size_t i = 0; i < steps; i++) {
		if (!steady[i])
			continue;
		least = calls[i] < least ? calls[i] : least;
		most = calls[i] > most ? calls[i] : most;
	}
	return (double)most <= (1 + SAME_CALLS) * (double)least;
}

static bool leave_out_slower(const struct advice *advice, const int64_t *calls, uint8_t *steady)
{
	size_t steps = advice->views->steps.count, left = 0, kept = 0;
	struct pace *paces = ops_realloc_array(NULL, steps + 1, sizeof(*paces));

	for (size_t i = 0; i < steps; i++)
		left += steady[i];
	/* A device has its own speed, and ranks are compared step by step, so all steps count there. */
	if (paces && steps && !advice->views->device_events.count && !advice->views->has_collectives &&
	    find_paces(advice, calls, steady, paces)) {
		qsort(paces, steps, sizeof(*paces), compare_paces);
		for (size_t i = 0; i < steps; i++)
			if (steady[paces[i].step] && kept++ >= (left + 1) / 2 && kept > LEFT_MIN)
				steady[paces[i].step] = 0;
	}
	ops_free(paces);
	return paces != NULL;
}

/* Returns the process of the steps, or that of the recording if there are none. */
static int64_t process_of_steps(const struct advice *advice)
{
	const struct ops_steps *steps = advice->views->host_steps;
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(advice->trace, &count);

	return steps->list.count ? tracks[steps->list.items[0].track].pid : ops_trace_info(advice->trace)->pid;
}

/* Returns true for a thread of another process, such as a worker of a loader. No step waits for it as for another thread of the same process. */
static bool is_of_another(const struct advice *advice, uint32_t track, int64_t process)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(advice->trace, &count);

	return tracks[track].kind == OPS_TRACK_THREAD && tracks[track].pid != process;
}

/* Counts the events that begin in each step. Returns NULL if out of memory. */
static int64_t *count_step_calls(const struct advice *advice)
{
	int64_t *calls = ops_alloc_zeroed(advice->views->steps.count + 1, sizeof(*calls)), process = process_of_steps(advice);
	size_t at = 0;

	for (uint32_t row = 0; calls && row < advice->events->count; row++) {
		at = advice_next_step(advice, at, advice->events->start_ns[row]);
		calls[at] += !is_of_another(advice, advice->events->track[row], process);
	}
	return calls;
}

/* Result by step; NULL if out of memory. */
static uint8_t *find_steady(const struct advice *advice)
{
	size_t steps = advice->views->steps.count;
	uint8_t *steady = ops_alloc_zeroed(steps + 1, 1);
	int64_t *calls = count_step_calls(advice), median_ns[OPS_ITERATION_KIND_COUNT];
	bool recur = false, done = steady && calls && median_steps(advice, median_ns);

	for (size_t i = 0; done && i < steps; i++)
		steady[i] = advice_steps_length(advice, i) / UNSTEADY <= median_ns[advice->views->steps.items[i].kind];
	done = done && keep_recurring(advice, calls, steady, &recur);
	if (done) {
		recur |= has_ranks(advice) && keep_late(advice, steady);
		leave_out_apart(advice, steady);
		leave_out_capturing(advice, steady);
		/* Longer steps wait more often. Without them the others would not represent the program. */
		if (advice->machine.has_waits && !advice_is_oversubscribed(advice) && !recur)
			leave_out_waiting(advice, steady);
		done = leave_out_slower(advice, calls, steady);
	}
	ops_free(calls);
	if (!done) {
		ops_free(steady);
		return NULL;
	}
	return steady;
}

/* --- the threads of a step ------------------------------------------------------------------------------------------ */

/* True for an operator that is not called by another operator. */
static bool is_outermost(const struct advice *advice, uint32_t row)
{
	return advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR) &&
	       !(advice->events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC));
}

/* By track: true for a thread of the steps. Those are the threads that have the steps of one process; without steps,
 * the thread that spends most time in operators; without operators, all threads. In a loader, the thread of a worker. Returns NULL if out
 * of memory. */
static uint8_t *find_step_tracks(const struct advice *advice)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(advice->trace, &count);
	const struct ops_steps *steps = advice->views->host_steps;
	uint32_t most, loader = advice->inside_loader ? advice_loader_track(advice) : OPS_NONE;
	uint8_t *of_steps = ops_alloc_zeroed(count + 1, 1);

	if (loader != OPS_NONE && of_steps) {
		of_steps[loader] = 1;
		return of_steps;
	}
	for (size_t i = 0; of_steps && i < steps->list.count; i++) {
		uint32_t track = steps->list.items[i].track;

		of_steps[track] = tracks[track].pid == tracks[steps->list.items[0].track].pid;
	}
	if (of_steps && !steps->list.count) {
		if (!ops_busiest_thread(advice->trace, true, &most)) {
			ops_free(of_steps);
			return NULL;
		}
		if (most == OPS_NONE)
			memset(of_steps, 1, count);
		else
			of_steps[most] = 1;
	}
	return of_steps;
}

/* Marks the rows, with their children, that run in parallel to a step. A step waits for other threads, such as the one
 * of the backward pass, while it runs no operator itself. Work that overlaps with an operator of the step, or of a
 * thread that it waits for, runs in parallel. If it counted as well, the rows of a step would take longer than the
 * step. Other processes always run in parallel: what a step waits for there is known to the data loader alone. */
static bool find_parallel(struct advice *advice, const uint8_t *of_steps)
{
	const struct ops_events *events = advice->events;
	struct ops_intervals operators = {0};
	int64_t busy_until_ns = INT64_MIN; /* end of the time of another thread */
	int64_t process = process_of_steps(advice);
	size_t cursor = 0;
	bool done = true;

	for (uint32_t row = 0; done && row < events->count; row++)
		if (of_steps[events->track[row]] && is_outermost(advice, row))
			done = ops_intervals_merge(&operators, events->start_ns[row], events->end_ns[row]);
	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t parent = events->parent[row];
		int64_t start_ns = events->start_ns[row], end_ns = events->end_ns[row];

		if (of_steps[events->track[row]] || advice_is_device_work(advice, row))
			continue;
		if (is_of_another(advice, events->track[row], process))
			advice->zone[row] |= ADVICE_PARALLEL;
		else if (is_outermost(advice, row) && start_ns >= busy_until_ns &&
		    ops_intervals_within(&operators, start_ns, end_ns, &cursor) == 0)
			busy_until_ns = end_ns;
		else if (parent == OPS_NONE || (advice->zone[parent] & ADVICE_PARALLEL) || is_outermost(advice, row))
			advice->zone[row] |= ADVICE_PARALLEL;
	}
	ops_intervals_release(&operators);
	return done;
}

/* --- rows of a step -------------------------------------------------------------------------------------------------- */

/* Returns the steady step of the host at a time. `at` is the result for an earlier time. */
static uint32_t steady_step_at(const struct advice *advice, size_t *at, int64_t ns)
{
	const struct view_step *step;

	*at = advice_next_step(advice, *at, ns);
	if (*at >= advice->views->steps.count || !advice->steady[*at])
		return OPS_NONE;
	step = &advice->views->steps.items[*at];
	return ns >= step->host_start_ns && ns < step->host_end_ns ? (uint32_t)*at : OPS_NONE;
}

/* Device work belongs to the step that launched it; without a launch in the trace it belongs to no step. */
static void find_steps_of_device(struct advice *advice)
{
	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];

		advice->step_of[event->row] =
			event->launch == OPS_NONE ? OPS_NONE : advice->step_of[advice->views->launches.items[event->launch].row];
	}
}

bool advice_steady_spans(const struct advice *advice, struct ops_intervals *ret_spans)
{
	struct ops_intervals steps = {0};
	bool done = true;

	for (size_t i = 0; done && i < advice->views->steps.count; i++)
		if (advice->steady[i])
			done = ops_intervals_merge(&steps, advice->views->steps.items[i].start_ns, advice->views->steps.items[i].end_ns);
	done = done && ops_intervals_subtract(&steps, &advice->captures, ret_spans);
	ops_intervals_release(&steps);
	return done;
}

/* A row that begins in a step and ends after it, or that captures graphs, counts only with its time in steady steps. */
static bool clip_to_steps(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	struct ops_intervals steady = {0};
	struct ops_interval_sums sums = {0};
	bool done = advice_steady_spans(advice, &steady) && ops_interval_sums_init(&sums, &steady);

	for (uint32_t row = 0; done && row < events->count; row++) {
		int64_t start_ns = events->start_ns[row], end_ns = events->end_ns[row], outside_ns;

		if (!advice_counts(advice, row) || (end_ns <= advice->views->steps.items[advice->step_of[row]].end_ns &&
		                                    !advice->captures.count))
			continue;
		outside_ns = ops_difference(end_ns, start_ns) - ops_interval_sums_within(&sums, start_ns, end_ns);
		advice->ns[row] = advice->ns[row] > outside_ns ? advice->ns[row] - outside_ns : 0;
		advice->self_ns[row] = advice->self_ns[row] < advice->ns[row] ? advice->self_ns[row] : advice->ns[row];
	}
	ops_interval_sums_release(&sums);
	ops_intervals_release(&steady);
	return done;
}

static bool sum_up_steps(struct advice *advice)
{
	struct ops_intervals steady = {0};
	int64_t *excluded_ns = advice->excluded_ns;
	bool done = advice_steady_spans(advice, &steady);

	for (size_t i = 0; i < advice->views->steps.count; i++)
		advice->step_count += advice->steady[i];
	advice->steps_ns = ops_intervals_length(&steady);
	ops_intervals_release(&steady);
	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t *lost_ns = &excluded_ns[advice->zone[row] & ADVICE_IN_IMPORT ? ADVICE_EXCLUDED_IMPORTS : ADVICE_EXCLUDED_WAITS];

		if (!advice_counts(advice, row))
			continue;
		*lost_ns = ops_sum(*lost_ns, advice->lost_ns[row]);
		/* The overhead of recording a row occurs around it, so that of a step's first row precedes the step. */
		if (advice->events->start_ns[row] > advice->views->steps.items[advice->step_of[row]].host_start_ns)
			excluded_ns[ADVICE_EXCLUDED_RECORDING] = ops_sum(excluded_ns[ADVICE_EXCLUDED_RECORDING], advice_recording_ns(advice, row));
	}
	advice->contended_ns = (int64_t)(view_waited_own(advice->machine.waited) * (double)excluded_ns[ADVICE_EXCLUDED_WAITS]);
	excluded_ns[ADVICE_EXCLUDED_WAITS] = ops_difference(excluded_ns[ADVICE_EXCLUDED_WAITS], advice->contended_ns);
	advice->steps_ns = ops_difference(advice->steps_ns, ops_sum_all(excluded_ns, ADVICE_EXCLUDED_PARTS));
	if (advice->steps_ns < 0)
		advice->steps_ns = 0;
	return done;
}

bool advice_find_steps(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	size_t at = 0, cursor = 0;
	bool done;

	advice->step_tracks = find_step_tracks(advice);
	advice->real_steps = !advice->views->unmarked;
	advice->steady = find_steady(advice);
	done = advice->step_tracks && advice->steady && find_parallel(advice, advice->step_tracks);
	for (uint32_t row = 0; done && row < events->count; row++) {
		advice->step_of[row] = steady_step_at(advice, &at, events->start_ns[row]);
		if ((events->flags[row] & OPS_EVENT_HIDDEN) ||
		    ops_intervals_within(&advice->captures, events->start_ns[row], events->start_ns[row] + 1, &cursor))
			advice->step_of[row] = OPS_NONE;
	}
	if (done && advice->inside_loader)
		done = advice_keep_loader(advice);
	if (done) {
		find_steps_of_device(advice);
		done = sum_up_steps(advice);
	}
	return done && clip_to_steps(advice);
}

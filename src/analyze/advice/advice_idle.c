/* SPDX-License-Identifier: Apache-2.0
 *
 * Gaps in the work of a device and their causes. Rows, device events and gaps are all in order of time, so one pass
 * over each suffices.
 */
#include "analyze/advice/advice.h"
#include "analyze/advice/advice_walk.h"
#include "base/alloc.h"
#include "base/search.h"
#include "derive/calls.h"
#include "trace/nests.h"

/* Assumed error between the clocks of host and device. */
#define SKEW_NS 5000

/* Maximum host time on the way to the next launch. Python between two operators takes tens of microseconds; an operator
 * that launches a kernel takes as long as all operators it calls. Longer times are computation on the host. */
#define PYTHON_NS_MAX 200000
#define OPERATOR_NS_MAX 2000000

/* An idle device starts work within microseconds of the call. Work that starts later was queued. */
#define START_NS_MAX 20000

/* A launch takes microseconds, or some hundred for a graph. A longer call first loads the code of the kernel, or
 * waits. */
#define LAUNCH_NS_MAX 1000000

/* --- gaps ----------------------------------------------------------------------------------------------------------- */

static bool add_gap(struct advice *advice, const struct ops_intervals *steady, size_t *cursor, struct advice_gap gap)
{
	gap.ns = ops_intervals_within(steady, gap.start_ns, gap.end_ns, cursor);
	if (gap.ns <= 0)
		return true;
	return OPS_ARRAY_APPEND(&advice->idle.gaps, gap);
}

static bool advice_idle_find_gaps(struct advice *advice, const struct ops_intervals *steady)
{
	const struct ops_events *events = advice->events;
	size_t cursor = 0;
	int64_t busy_ns = steady->count ? steady->items[0].start_ns : INT64_MAX; /* end of the work so far */
	bool done = true;

	for (uint32_t i = 0; done && i < advice->views->device_events.count; i++) {
		uint32_t row = advice->views->device_events.items[i].row;

		if (events->start_ns[row] > busy_ns)
			done = add_gap(advice, steady, &cursor,
			               (struct advice_gap){.start_ns = busy_ns, .end_ns = events->start_ns[row], .event = i,
			                                   .row = OPS_NONE});
		busy_ns = events->end_ns[row] > busy_ns ? events->end_ns[row] : busy_ns;
	}
	if (done && steady->count && busy_ns < steady->items[steady->count - 1].end_ns)
		done = add_gap(advice, steady, &cursor,
		               (struct advice_gap){.start_ns = busy_ns, .end_ns = steady->items[steady->count - 1].end_ns,
		                                   .event = OPS_NONE, .row = OPS_NONE});
	return done;
}

/* --- causes --------------------------------------------------------------------------------------------------------- */

/* Calls that load the code of a kernel, explicitly or at its first launch. */
static const char *const loading[] = {"*LaunchKernel*", "*ModuleLaunch*", "*ModuleLoad*", "*LibraryLoad*", "*ModuleGetFunction*",
                                      "*LibraryGetKernel*", NULL};

struct walk {
	const struct advice *advice;
	struct advice_walk rows;
	const uint8_t *calls;  /* by name */
	uint8_t *loads;        /* by string */
	uint8_t *uploads;      /* by row: a child copies to the device */
	uint32_t *outermost;   /* by row: the outermost operator that is or contains it, without compiled regions */
	uint32_t seen;         /* rows before this one are covered by `sync` */
	uint32_t sync;         /* the synchronizing call so far that ends last */
};

static void walk_to(struct walk *walk, int64_t time_ns)
{
	const struct ops_events *events = walk->advice->events;

	advice_walk_to(&walk->rows, time_ns);
	for (; walk->seen < walk->rows.next; walk->seen++) {
		uint32_t row = walk->seen;

		if ((walk->calls[events->name[row]] & OPS_CALL_BLOCKS) && walk->advice->views->parts[row] == VIEW_LAUNCH &&
		    ops_event_nests(events, row) &&
		    (walk->sync == OPS_NONE || events->end_ns[row] > events->end_ns[walk->sync]))
			walk->sync = row;
	}
}

/* Returns false if out of memory. */
static bool advice_idle_find_outermost(struct walk *walk)
{
	const struct advice *advice = walk->advice;

	walk->outermost = ops_alloc_none(advice->events->count + 1);
	for (uint32_t row = 0; walk->outermost && row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];

		if (parent != OPS_NONE && walk->outermost[parent] != OPS_NONE)
			walk->outermost[row] = walk->outermost[parent];
		else if (advice_is_operator(advice, row) && advice->views->parts[row] == VIEW_OPERATOR && !advice_is_region(advice_name(advice, row)))
			walk->outermost[row] = row;
	}
	return walk->outermost;
}

static uint8_t cause_of_sync(struct walk *walk, struct advice_gap *gap, uint32_t sync)
{
	uint32_t parent = walk->advice->events->parent[sync];

	gap->row = sync;
	return parent != OPS_NONE && walk->uploads[parent] ? ADVICE_IDLE_UPLOAD : ADVICE_IDLE_SYNC;
}

/* Returns the end of the host's share: the call that launched the next work, or the end of the gap if the device starts
 * that work immediately. A long call has launched the work when it returns. */
static int64_t host_end(const struct advice *advice, const struct advice_gap *gap, uint32_t call)
{
	int64_t start_ns = advice->events->start_ns[call], end_ns = advice->events->end_ns[call];
	int64_t launched_ns = ops_difference(end_ns, start_ns) > LAUNCH_NS_MAX ? end_ns : start_ns;

	if (launched_ns > gap->start_ns && gap->end_ns <= ops_sum(end_ns, START_NS_MAX))
		return gap->end_ns;
	return launched_ns < gap->start_ns ? gap->start_ns : launched_ns > gap->end_ns ? gap->end_ns : launched_ns;
}

/* Returns the call that launched the work that ends a gap, which must be known. */
static uint32_t launching_call(const struct advice *advice, const struct advice_gap *gap)
{
	return advice->views->launches.items[advice->views->device_events.items[gap->event].launch].row;
}

static uint8_t cause_of(struct walk *walk, struct advice_gap *gap)
{
	const struct advice *advice = walk->advice;
	uint32_t call, sync, operator;
	int64_t host_ns, middle_ns;

	walk_to(walk, gap->start_ns);
	sync = walk->sync;
	gap->host_end_ns = gap->event == OPS_NONE ? gap->end_ns : gap->start_ns;
	if (gap->event == OPS_NONE || advice->views->device_events.items[gap->event].launch == OPS_NONE)
		return ADVICE_IDLE_END;
	call = launching_call(advice, gap);
	gap->host_end_ns = host_end(advice, gap, call);
	host_ns = ops_difference(gap->host_end_ns, gap->start_ns);
	if (host_ns <= 0)
		return ADVICE_IDLE_DEVICE;
	middle_ns = gap->start_ns + host_ns / 2;
	walk_to(walk, middle_ns);
	gap->row = advice_walk_row_at(&walk->rows, advice->events->track[call], middle_ns);
	if (gap->row != OPS_NONE && (advice->zone[gap->row] & ADVICE_IN_LOADER))
		return ADVICE_IDLE_LOADER;
	if (sync != OPS_NONE && ops_sum(advice->events->end_ns[sync], SKEW_NS) >= gap->start_ns)
		return cause_of_sync(walk, gap, sync);
	if (gap->row != OPS_NONE && advice->views->parts[gap->row] == VIEW_LAUNCH) {
		uint32_t name = advice->events->name[gap->row];

		if (walk->calls[name] & OPS_CALL_BLOCKS)
			return cause_of_sync(walk, gap, gap->row);
		if (walk->loads[name] && advice_host_ns(advice, gap->row) > LAUNCH_NS_MAX)
			return ADVICE_IDLE_LOAD;
	}
	if (gap->row != OPS_NONE && (advice->zone[gap->row] & ADVICE_WAITING))
		return ADVICE_IDLE_WAIT;
	operator = gap->row == OPS_NONE ? OPS_NONE : walk->outermost[gap->row];
	if (operator != OPS_NONE)
		return advice_host_ns(advice, operator) <= OPERATOR_NS_MAX ? ADVICE_IDLE_LAUNCH : ADVICE_IDLE_HOST;
	return host_ns <= PYTHON_NS_MAX ? ADVICE_IDLE_LAUNCH : ADVICE_IDLE_HOST;
}

/* Finds the operators or functions that request a copy to the device directly. */
static bool find_uploads(struct walk *walk)
{
	const struct advice *advice = walk->advice;
	static const char *const patterns[] = {"*HtoD*", "*HostToDevice*", NULL};
	uint8_t *which = advice_names(advice, patterns);

	walk->uploads = ops_alloc_zeroed(advice->events->count + 1, sizeof(*walk->uploads));
	for (size_t i = 0; which && walk->uploads && i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];
		uint32_t parent;

		if (event->launch == OPS_NONE || !which[advice->events->name[event->row]])
			continue;
		parent = advice->events->parent[advice->views->launches.items[event->launch].row];
		if (parent != OPS_NONE && advice_is_operator(advice, parent))
			walk->uploads[parent] = 1;
	}
	ops_free(which);
	return which && walk->uploads;
}

/* Returns the host's share of a gap up to a time. */
static int64_t host_ns(const struct advice_gap *gap, int64_t until_ns)
{
	return ops_difference(gap->host_end_ns < until_ns ? gap->host_end_ns : until_ns, gap->start_ns);
}

/* Splits a gap between its cause and the device. */
static void add_idle(struct advice_idle *idle, struct advice_gap *gap, const struct ops_intervals *steady, size_t *cursor)
{
	idle->all_ns = ops_sum(idle->all_ns, gap->ns);
	if (gap->cause != ADVICE_IDLE_DEVICE && gap->cause != ADVICE_IDLE_END) {
		int64_t host_ns = ops_intervals_within(steady, gap->start_ns, gap->host_end_ns, cursor);

		idle->ns[ADVICE_IDLE_DEVICE] = ops_sum(idle->ns[ADVICE_IDLE_DEVICE], gap->ns - host_ns);
		gap->ns = host_ns;
	}
	idle->ns[gap->cause] = ops_sum(idle->ns[gap->cause], gap->ns);
}

static bool find_causes(struct advice *advice, const struct ops_intervals *steady)
{
	struct walk walk = {.advice = advice, .sync = OPS_NONE};
	size_t cursor = 0;
	bool done;

	walk.calls = ops_calls_by_name(advice->trace);
	walk.loads = advice_names(advice, loading);
	done = advice_walk_init(&walk.rows, advice) && walk.calls && walk.loads && find_uploads(&walk) && advice_idle_find_outermost(&walk);
	for (size_t i = 0; done && i < advice->idle.gaps.count; i++) {
		struct advice_gap *gap = &advice->idle.gaps.items[i];

		gap->cause = cause_of(&walk, gap);
		gap->before_ns = i ? ops_sum(gap[-1].before_ns, host_ns(&gap[-1], gap[-1].end_ns)) : 0;
		add_idle(&advice->idle, gap, steady, &cursor);
	}
	ops_free(walk.loads);
	ops_free(walk.uploads);
	ops_free(walk.outermost);
	advice_walk_release(&walk.rows);
	return done;
}

/* --- rows of gaps ---------------------------------------------------------------------------------------------------- */

bool advice_idle_divide(const struct advice *advice, enum advice_idle_cause cause, int64_t *ns)
{
	struct advice_walk walk;
	bool done = advice_walk_init(&walk, advice);

	for (size_t i = 0; done && i < advice->idle.gaps.count; i++) {
		const struct advice_gap *gap = &advice->idle.gaps.items[i];
		bool is_end = gap->cause == ADVICE_IDLE_END;
		int64_t end_ns = is_end ? gap->end_ns : gap->host_end_ns;

		if (cause != ADVICE_IDLE_CAUSES && gap->cause != cause)
			continue;
		if (cause != ADVICE_IDLE_CAUSES)
			end_ns = ops_sum(gap->start_ns, advice_idle_saved_ns(advice, gap));
		advice_walk_divide(&walk, is_end ? OPS_NONE : advice->events->track[launching_call(advice, gap)], gap->start_ns, end_ns, ns);
	}
	advice_walk_release(&walk);
	return done;
}

/* --- communication --------------------------------------------------------------------------------------------------- */

/* Time in which only collectives run on the device. */
static bool find_exposed(struct advice *advice, const struct ops_intervals *steady)
{
	struct ops_intervals all = {0}, compute = {0}, alone = {0};
	size_t count = advice->views->device_events.count;
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];
		int64_t start_ns = advice->events->start_ns[event->row], end_ns = advice->events->end_ns[event->row];

		done = ops_intervals_merge(event->communicates ? &all : &compute, start_ns, end_ns);
	}
	done = done && ops_intervals_subtract(&all, &compute, &alone);
	if (done)
		advice->idle.exposed_ns = ops_intervals_common(&alone, steady);
	ops_intervals_release(&all);
	ops_intervals_release(&compute);
	ops_intervals_release(&alone);
	return done;
}

bool advice_idle_find(struct advice *advice)
{
	struct ops_intervals steady = {0};
	bool done = !advice->views->device_events.count ||
	            (advice_steady_spans(advice, &steady) && advice_idle_find_gaps(advice, &steady) &&
	             find_causes(advice, &steady) && find_exposed(advice, &steady));

	ops_intervals_release(&steady);
	return done;
}

void advice_idle_release(struct advice_idle *idle)
{
	OPS_ARRAY_RELEASE(&idle->gaps);
}

int64_t advice_idle_saved_ns(const struct advice *advice, const struct advice_gap *gap)
{
	int64_t wait_ns;

	if (gap->cause != ADVICE_IDLE_SYNC && gap->cause != ADVICE_IDLE_UPLOAD)
		return gap->ns;
	wait_ns = advice->zone[gap->row] & ADVICE_IN_ROW_LOOP ? 0 : advice_host_ns(advice, gap->row);
	return wait_ns < gap->ns ? wait_ns : gap->ns;
}

int64_t advice_idle_before(const struct advice_idle *idle, int64_t ns)
{
	size_t first = 0; /* first gap that begins later */

	OPS_LOWER_BOUND(first, idle->gaps.count, mid, idle->gaps.items[mid].start_ns < ns);
	return first ? ops_sum(idle->gaps.items[first - 1].before_ns, host_ns(&idle->gaps.items[first - 1], ns)) : 0;
}

double advice_busy_share(const struct advice *advice)
{
	const struct advice_idle *idle = &advice->idle;
	int64_t ns = idle->all_ns - idle->ns[ADVICE_IDLE_DEVICE];
	double share = advice->steps_ns > 0 ? 1 - (double)ns / (double)advice->steps_ns : 1;

	return share > 0 ? share : 0;
}

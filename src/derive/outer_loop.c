/* SPDX-License-Identifier: Apache-2.0
 *
 * The outermost loop; see outer_loop.h. From the outermost call of the thread that has most operators, the search goes down the
 * calls that contain them, until a function repeats calls at one line.
 */
#include "derive/outer_loop.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/sum.h"
#include "derive/around.h"
#include "derive/captures.h"
#include "derive/extent.h"
#include "derive/modules.h"
#include "derive/program.h"
#include "derive/steps.h"

#define ITERATIONS_MIN 6 /* fewer are rather a list of models or files */
#define WORK_MIN 0.5     /* minimum share of the time of all operators that the loop has */
#define OUTER_MIN 0.05   /* minimum share of the loop's time of a call that makes a loop around it count; others are made in some
                          * iterations only, as those that print */

/* Calls of one function, or of one operator, at one line. */
struct call_group {
	uint32_t first; /* row */
	uint32_t count;
	int64_t ns;
	uint32_t seen;  /* while calls are compared in order */
};

struct loop_call {
	uint32_t row;
	uint32_t group;
};

struct loop_finder {
	const struct ops_trace *trace;
	const struct ops_events *events;
	enum ops_module_source modules;
	int64_t *work_ns; /* by row: time of the outermost operators in it */
	int64_t all_ns;   /* the same for the thread */
	uint8_t *captures; /* by row: whether it begins while a graph is captured, or in a loop that captures; NULL: none does */
	uint32_t track;
	/* By row, and last for those that no call contains: the first call that it makes; and by row the next one of the same caller. */
	uint32_t *first, *next;
	OPS_ARRAY(struct loop_call) calls; /* those that a function makes, in order */
	OPS_ARRAY(struct call_group) groups;
};

static int64_t duration_of_call(const struct loop_finder *finder, uint32_t row)
{
	return ops_difference(finder->events->end_ns[row], finder->events->start_ns[row]);
}

/* Not a function in C. */
static bool is_call_of_function(const struct loop_finder *finder, uint32_t row, struct ops_function_text *ret_function)
{
	*ret_function = (struct ops_function_text){.line = 0};
	return finder->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION &&
	       (ops_is_module_call(finder->trace, finder->modules, row) || (ops_event_function(finder->trace, row, ret_function) && ret_function->file.size));
}

static bool is_call_of_program(const struct loop_finder *finder, uint32_t row)
{
	struct ops_function_text function;

	return is_call_of_function(finder, row, &function) && function.file.size && !ops_file_is_library(function.file) &&
	       !ops_is_launcher(function.file, function.name) && !ops_is_module_call(finder->trace, finder->modules, row);
}

/* Marks the rows in captures of graphs: what is captured does not run, and a loop over batch sizes that captures is set-up. */
static bool mark_captures(struct loop_finder *finder)
{
	const struct ops_captures *captures = ops_captures_of(finder->trace);
	const int64_t *start_ns = finder->events->start_ns;
	size_t capture = 0, loop = 0;

	if (!captures || (!captures->times.count && !captures->loops.count))
		return captures != NULL;
	finder->captures = ops_alloc_zeroed(finder->events->count + 1, 1);
	for (size_t row = 0; finder->captures && row < finder->events->count; row++)
		finder->captures[row] = ops_intervals_within(&captures->times, start_ns[row], start_ns[row] + 1, &capture) ||
		                        ops_intervals_within(&captures->loops, start_ns[row], start_ns[row] + 1, &loop);
	return finder->captures != NULL;
}

static bool is_captured_call(const struct loop_finder *finder, uint32_t row)
{
	return finder->captures && finder->captures[row];
}

/* Rows come after their parents. */
static bool sum_work_of_calls(struct loop_finder *finder)
{
	const struct ops_events *events = finder->events;
	size_t tracks, most;
	int64_t *by_track;

	ops_trace_tracks(finder->trace, &tracks);
	by_track = ops_alloc_zeroed(tracks + 1, sizeof(*by_track));
	finder->work_ns = ops_alloc_zeroed(events->count + 1, sizeof(*finder->work_ns));
	for (size_t row = by_track && finder->work_ns ? events->count : 0; row-- > 0;) {
		uint32_t parent = events->parent[row];
		int64_t *around = parent == OPS_NONE ? &by_track[events->track[row]] : &finder->work_ns[parent];

		if (events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC))
			continue;
		if (events->kind[row] == OPS_EVENT_CPU_OP && !is_captured_call(finder, (uint32_t)row))
			finder->work_ns[row] = duration_of_call(finder, (uint32_t)row);
		*around = ops_sum(*around, finder->work_ns[row]);
	}
	most = by_track ? ops_busiest_track(finder->trace, by_track) : 0;
	finder->track = (uint32_t)most;
	finder->all_ns = by_track ? by_track[most] : 0;
	ops_free(by_track);
	return by_track && finder->work_ns;
}

#define BY_STACK (UINT32_C(1) << 31)

/* The callee, and the place of the call: its line in the function around it or, where calls of functions were not recorded, its call stack. */
static uint64_t loop_key(const struct ops_events *events, uint32_t row)
{
	uint32_t place = events->call_line ? events->call_line[row] : 0;

	if (!place && events->call_stack && events->call_stack[row] != OPS_NONE)
		place = BY_STACK | events->call_stack[row];
	return (uint64_t)events->name[row] << 32 | place;
}

static bool is_loop_call(const void *context, uint32_t row)
{
	const struct loop_finder *finder = context;
	int64_t number;

	return !ops_row_step(finder->trace, row, &number);
}

/* Lists the calls that each row makes; a row that marks a step does not count. Returns false if out of memory. */
static bool list_calls(struct loop_finder *finder)
{
	const struct ops_events *events = finder->events;
	uint32_t *around = ops_rows_around(finder->trace, is_loop_call, finder);

	finder->first = ops_alloc_none(events->count + 1);
	finder->next = ops_alloc_none(events->count + 1);
	for (uint32_t row = around && finder->first && finder->next ? (uint32_t)events->count : 0; row-- > 0;) {
		uint32_t *first = &finder->first[around[row] == OPS_NONE ? events->count : around[row]];

		if (events->track[row] != finder->track || (events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)) || !is_loop_call(finder, row) ||
		    is_captured_call(finder, row))
			continue;
		finder->next[row] = *first;
		*first = row;
	}
	ops_free(around);
	return around && finder->first && finder->next;
}

/* Gathers the calls that a row makes; OPS_NONE: those of the thread that no other contains. */
static bool gather_calls(struct loop_finder *finder, uint32_t of)
{
	const struct ops_events *events = finder->events;
	struct ops_map by_key = {0};
	bool done = true;

	finder->calls.count = finder->groups.count = 0;
	for (uint32_t row = finder->first[of == OPS_NONE ? events->count : of]; done && row != OPS_NONE; row = finder->next[row]) {
		uint32_t number = ops_map_number(&by_key, loop_key(events, row));
		struct call_group *group = OPS_ARRAY_AT(&finder->groups, number);

		done = group && OPS_ARRAY_APPEND(&finder->calls, ((struct loop_call){row, number}));
		if (!done)
			break;
		if (!group->count++)
			group->first = row;
		group->ns = ops_sum(group->ns, duration_of_call(finder, row));
	}
	ops_map_release(&by_key);
	return done;
}

/* Returns true if there are calls of `inner` between any two calls of `outer`; if `strictly`, exactly one. */
static bool alternate(struct loop_finder *finder, uint32_t outer, uint32_t inner, bool strictly)
{
	uint32_t since = 0; /* calls of `inner` since the last one of `outer` */
	bool begun = false;

	for (size_t i = 0; i < finder->calls.count; i++) {
		uint32_t group = finder->calls.items[i].group;

		if (group == outer && begun && (!since || (strictly && since > 1)))
			return false;
		begun |= group == outer;
		since = group == outer ? 0 : since + (group == inner);
	}
	return true;
}

static bool may_iterate(const struct loop_finder *finder, const struct call_group *group)
{
	struct ops_function_text function;

	return group->count >= ITERATIONS_MIN && is_call_of_function(finder, group->first, &function);
}

/* Returns the calls whose number is that of the iterations: those of the function that takes most time, or of a loop around it.
 * OPS_NONE: no function is called often enough. */
static uint32_t find_iterating(struct loop_finder *finder)
{
	const struct call_group *groups = finder->groups.items;
	uint32_t most = OPS_NONE, outer;

	for (uint32_t i = 0; i < finder->groups.count; i++)
		if (may_iterate(finder, &groups[i]) && (most == OPS_NONE || groups[i].ns > groups[most].ns))
			most = i;
	outer = most;
	for (uint32_t i = 0; most != OPS_NONE && i < finder->groups.count; i++)
		if (groups[i].count >= ITERATIONS_MIN && groups[i].count < groups[outer].count &&
		    (double)groups[i].ns >= OUTER_MIN * (double)groups[most].ns && alternate(finder, i, most, false))
			outer = i;
	return outer;
}

/* Returns the first call of an iteration. A generator is called once more at the end of its loop. */
static uint32_t find_beginning(struct loop_finder *finder, uint32_t iterating)
{
	const struct call_group *groups = finder->groups.items;
	uint32_t begins = iterating;

	for (uint32_t i = 0; i < finder->groups.count; i++)
		if ((groups[i].count == groups[iterating].count || groups[i].count == groups[iterating].count + 1) &&
		    groups[i].first < groups[begins].first && alternate(finder, i, iterating, true) && alternate(finder, iterating, i, true))
			begins = i;
	return begins;
}

/* Finds the loop of a function whose calls are gathered. Leaves it empty if there is none with most of the work. */
static bool find_loop_in_calls(struct loop_finder *finder, struct ops_outer_loop *loop)
{
	uint32_t iterating = find_iterating(finder), begins = iterating == OPS_NONE ? OPS_NONE : find_beginning(finder, iterating);
	uint32_t iterations = iterating == OPS_NONE ? 0 : finder->groups.items[iterating].count;
	int64_t work_ns = 0;

	for (size_t i = 0; i < finder->calls.count; i++)
		finder->groups.items[finder->calls.items[i].group].seen = 0;
	for (size_t i = 0; iterations && i < finder->calls.count; i++) {
		const struct loop_call *call = &finder->calls.items[i];
		struct call_group *group = &finder->groups.items[call->group];

		if (call->group == begins && group->seen < iterations && !OPS_ARRAY_APPEND(&loop->starts_ns, finder->events->start_ns[call->row]))
			return false;
		group->seen++;
		if (call->group == begins && group->seen > iterations) {
			loop->end_ns = finder->events->start_ns[call->row];
			break;
		}
		if (!loop->starts_ns.count)
			continue;
		/* The loop ends with the last of the calls that are made in each iteration. */
		if (group->count == iterations)
			loop->end_ns = finder->events->end_ns[call->row];
		work_ns = ops_sum(work_ns, finder->work_ns[call->row]);
	}
	if ((double)work_ns < WORK_MIN * (double)finder->all_ns)
		loop->starts_ns.count = 0;
	loop->track = finder->track;
	loop->row = iterating == OPS_NONE ? OPS_NONE : finder->groups.items[iterating].first;
	return true;
}

/* Returns the call with most of the work; OPS_NONE if none has enough, or if it is one of a module or an operator, in which a loop
 * is one over layers or elements. */
static uint32_t call_with_work(const struct loop_finder *finder)
{
	uint32_t most = OPS_NONE;

	for (size_t i = 0; i < finder->calls.count; i++) {
		uint32_t row = finder->calls.items[i].row;

		if (most == OPS_NONE || finder->work_ns[row] > finder->work_ns[most])
			most = row;
	}
	if (most == OPS_NONE || (double)finder->work_ns[most] < WORK_MIN * (double)finder->all_ns || finder->events->kind[most] == OPS_EVENT_CPU_OP ||
	    ops_is_module_call(finder->trace, finder->modules, most))
		return OPS_NONE;
	return most;
}

static bool has_python_calls(const struct ops_events *events)
{
	for (size_t row = 0; row < events->count; row++)
		if (events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			return true;
	return false;
}

bool ops_outer_loop_find(struct ops_outer_loop *loop, const struct ops_trace *trace)
{
	struct loop_finder finder = {.trace = trace, .events = ops_trace_events(trace), .modules = ops_module_source(trace)};
	uint32_t at = OPS_NONE;
	bool done = !has_python_calls(finder.events) || (mark_captures(&finder) && sum_work_of_calls(&finder) && list_calls(&finder));

	while (done && finder.all_ns > 0) {
		done = gather_calls(&finder, at);
		if (done && (at == OPS_NONE || is_call_of_program(&finder, at)))
			done = find_loop_in_calls(&finder, loop);
		at = done && !loop->starts_ns.count ? call_with_work(&finder) : OPS_NONE;
		if (at == OPS_NONE)
			break;
	}
	ops_free(finder.captures);
	ops_free(finder.work_ns);
	ops_free(finder.first);
	ops_free(finder.next);
	OPS_ARRAY_RELEASE(&finder.calls);
	OPS_ARRAY_RELEASE(&finder.groups);
	return done;
}

void ops_outer_loop_release(struct ops_outer_loop *loop)
{
	OPS_ARRAY_RELEASE(&loop->starts_ns);
}

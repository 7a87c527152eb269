/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of graphs and their replays; see captures.h. A trace has no link between the two: calls start nothing during
 * a capture, and the work of a replay has the correlation of the graph's launch. The i-th call of a capture is linked
 * to the i-th piece of work of a launch if both are the same sequence of kernels, copies and fills, and no other
 * capture fits.
 */
#include "derive/captures.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/json_walk.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/arguments.h"
#include "derive/calls.h"
#include "derive/launches.h"
#include "trace/derived.h"
#include "trace/kinds.h"


/* A range of `calls` or of `work`. */
struct sequence {
	size_t first, count;
	uint64_t shape; /* hash of the kinds of its pieces, in order */
};

struct capture {
	struct sequence calls;
	int64_t start_ns, end_ns;
	int64_t pid;
	uint32_t row;    /* the call that begins it */
	uint32_t next;   /* next capture of the same shape; OPS_NONE: none */
	bool is_broken;  /* it overlaps another capture of its process, has no end, or launches a graph */
};

struct replay {
	struct sequence work;
	uint32_t call;
	int64_t graph; /* -1: unknown */
	bool is_ordered;
};

struct captured_call {
	uint32_t capture;
	uint32_t row;
};

struct replayed_work {
	uint32_t call;
	uint32_t row;
	int64_t node; /* -1: unknown */
};

/* Calls of one function by the same caller. */
struct capturing {
	uint32_t calls, captured; /* calls, and those of them that contain a capture */
	uint32_t last;            /* row of the latest of these */
};

struct capture_finder {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_track *tracks;
	const uint32_t *launchers;
	const uint8_t *calls_by_name;
	uint8_t *functions; /* by name: what torch's functions show, see call_of_function(); NULL: calls of the runtime show it */
	uint8_t *does_work; /* by row: a call that has device work */
	OPS_ARRAY(struct capture) captures; /* in order of start */
	struct ops_intervals times, loops; /* see struct ops_captures */
	OPS_ARRAY(struct captured_call) calls; /* grouped by capture, in order of time */
	OPS_ARRAY(struct replayed_work) work;
	OPS_ARRAY(struct replay) replays;
	struct ops_map by_shape; /* from shape to its first capture */
	struct ops_map by_caller; /* from caller and function to its number in the list */
	OPS_ARRAY(struct capturing) capturing;
	uint32_t *origins;
	size_t known;
};

#define FUNCTION_SEEN 128

/* Returns the bits of enum ops_call of torch's functions that begin and end a capture. A recording without calls of the runtime has them. */
static unsigned call_of_function(const struct capture_finder *finder, uint32_t row)
{
	uint8_t *call = &finder->functions[finder->events->name[row]];
	struct ops_function_text function;

	if (!*call) {
		*call = FUNCTION_SEEN;
		if (ops_event_function(finder->trace, row, &function) && ops_string_ends(function.file, "torch/cuda/graphs.py"))
			*call |= ops_string_ends(function.name, "capture_begin") ? OPS_CALL_CAPTURE
			         : ops_string_ends(function.name, "capture_end") ? OPS_CALL_CAPTURED
			                                                         : 0;
	}
	return *call & ~FUNCTION_SEEN;
}

/* Returns bits of enum ops_call. */
static unsigned call_of_row(const struct capture_finder *finder, uint32_t row)
{
	if (finder->functions && finder->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
		return call_of_function(finder, row);
	return ops_kind_is_call(finder->events->kind[row]) ? finder->calls_by_name[finder->events->name[row]] : 0;
}

static void add_to_shape(struct sequence *sequence, enum ops_event_kind kind)
{
	sequence->count++;
	sequence->shape = (sequence->shape ^ (uint64_t)kind) * UINT64_C(0x100000001b3);
}

static enum ops_event_kind kind_of_call(unsigned call)
{
	if (call & OPS_CALL_LAUNCH)
		return OPS_EVENT_KERNEL;
	return call & OPS_CALL_COPY ? OPS_EVENT_GPU_MEMCPY : OPS_EVENT_GPU_MEMSET;
}

/* --- captures ------------------------------------------------------------------------------------------------------- */

static bool open_capture(struct capture_finder *finder, uint32_t row, uint32_t *open)
{
	int64_t pid = finder->tracks[finder->events->track[row]].pid;
	struct capture *capture = OPS_ARRAY_PUSH(&finder->captures);

	if (!capture)
		return false;
	/* The end stays unset until it is found. */
	*capture = (struct capture){.start_ns = finder->events->start_ns[row], .end_ns = INT64_MAX, .pid = pid, .row = row, .next = OPS_NONE,
	                            .is_broken = true};
	*open = (uint32_t)finder->captures.count - 1;
	return true;
}

/* Finds captures: from a call that begins one to the call on the same thread that ends it. */
static bool find_captures(struct capture_finder *finder)
{
	size_t tracks;
	uint32_t *open;
	bool done;

	finder->tracks = ops_trace_tracks(finder->trace, &tracks);
	open = ops_alloc_none(tracks + 1);
	done = open != NULL;
	for (uint32_t row = 0; done && row < finder->events->count; row++) {
		unsigned call = call_of_row(finder, row);
		uint32_t *opened = &open[finder->events->track[row]];

		if (call & OPS_CALL_CAPTURE) {
			done = open_capture(finder, row, opened);
		} else if (call & OPS_CALL_CAPTURED && *opened != OPS_NONE) {
			struct capture *ended = &finder->captures.items[*opened];

			ended->end_ns = finder->events->start_ns[row];
			ended->is_broken = false;
			done = ops_intervals_push(&finder->times, ended->start_ns, finder->events->end_ns[row]);
			*opened = OPS_NONE;
		}
	}
	ops_intervals_sort(&finder->times);
	ops_free(open);
	return done;
}

static uint64_t capturing_key(const struct ops_events *events, uint32_t row)
{
	return (uint64_t)events->parent[row] << 32 | events->name[row];
}

/* Counts the calls of functions around a capture, up to one that is around an earlier one, too. */
static bool count_around(struct capture_finder *finder, uint32_t begin)
{
	const struct ops_events *events = finder->events;

	for (uint32_t row = events->parent[begin]; row != OPS_NONE; row = events->parent[row]) {
		struct capturing *capturing;

		if (events->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
			continue;
		capturing = OPS_ARRAY_AT(&finder->capturing, ops_map_number(&finder->by_caller, capturing_key(events, row)));
		if (!capturing)
			return false;
		if (capturing->captured && capturing->last == row)
			return true;
		capturing->captured++;
		capturing->last = row;
	}
	return true;
}

/* Returns NULL for a row that is not such a call. */
static struct capturing *capturing_of_row(const struct capture_finder *finder, uint32_t row)
{
	uint32_t number = finder->events->kind[row] != OPS_EVENT_PYTHON_FUNCTION
	                          ? OPS_NONE
	                          : ops_map_find(&finder->by_caller, capturing_key(finder->events, row));

	return number == OPS_NONE ? NULL : &finder->capturing.items[number];
}

/* Removes the intervals in which graphs are launched, too: steps that capture and run. */
static void keep_without_launches(struct capture_finder *finder)
{
	const struct ops_events *events = finder->events;
	struct ops_intervals *loops = &finder->loops;
	size_t kept = 0;
	uint32_t row = 0;

	for (size_t i = 0; i < loops->count; i++) {
		size_t captured = 0, launched = 0;

		for (; row < events->count && events->start_ns[row] < loops->items[i].end_ns; row++) {
			unsigned call = events->start_ns[row] >= loops->items[i].start_ns ? call_of_row(finder, row) : 0;

			captured += (call & OPS_CALL_CAPTURE) != 0;
			launched += (call & OPS_CALL_GRAPH) != 0;
		}
		if (2 * launched < captured)
			loops->items[kept++] = loops->items[i];
	}
	loops->count = kept;
}

/* Finds functions of which most calls capture a graph, such as one for each batch size. */
static bool find_loops(struct capture_finder *finder)
{
	const struct ops_events *events = finder->events;
	bool done = true;

	for (size_t i = 0; done && i < finder->captures.count; i++)
		done = count_around(finder, finder->captures.items[i].row);
	for (int pass = 0; pass < 2 && finder->capturing.count; pass++) {
		for (uint32_t row = 0; done && row < events->count; row++) {
			struct capturing *capturing = capturing_of_row(finder, row);

			if (capturing && !pass)
				capturing->calls++;
			else if (capturing && capturing->captured > 1 && 2 * capturing->captured >= capturing->calls)
				done = ops_intervals_push(&finder->loops, events->start_ns[row], events->end_ns[row]);
		}
	}
	ops_intervals_sort(&finder->loops);
	keep_without_launches(finder);
	return done;
}

/* Matches calls that start work, but for which no work ran. Threads of the autograd engine also make some. */
static bool is_captured(const struct capture_finder *finder, uint32_t row, unsigned call)
{
	uint32_t parent = finder->events->parent[row];

	if (!(call & OPS_CALL_STARTS_WORK) || finder->does_work[row])
		return false;
	/* A runtime call and the driver call inside it count as one. */
	return parent == OPS_NONE || !(call_of_row(finder, parent) & OPS_CALL_STARTS_WORK);
}

/* Two simultaneous captures of a process cannot be distinguished. */
static bool begin_capture(struct capture_finder *finder, struct ops_map *latest, uint32_t at)
{
	struct capture *capture = &finder->captures.items[at];
	uint32_t *before = ops_map_slot(latest, (uint64_t)capture->pid, at);

	if (!before)
		return false;
	if (*before != at && capture->start_ns < finder->captures.items[*before].end_ns)
		capture->is_broken = finder->captures.items[*before].is_broken = true;
	*before = at;
	return true;
}

OPS_ORDER(compare_captured_calls, struct captured_call, OPS_UP(capture) OPS_UP(row))

static void sort_captured_calls(struct capture_finder *finder)
{
	OPS_ARRAY_SORT(&finder->calls, compare_captured_calls);
	for (size_t i = finder->calls.count; i-- > 0;)
		finder->captures.items[finder->calls.items[i].capture].calls.first = i;
}

static bool add_captured_calls(struct capture_finder *finder)
{
	const struct ops_events *events = finder->events;
	struct ops_map latest = {0}; /* latest capture by process */
	uint32_t count = 0;
	bool done = true;

	for (uint32_t row = 0; done && row < events->count; row++) {
		unsigned call = call_of_row(finder, row);
		struct capture *capture;
		uint32_t at;

		if (call & OPS_CALL_CAPTURE)
			done = begin_capture(finder, &latest, count++);
		if (!count || !is_captured(finder, row, call))
			continue;
		at = ops_map_find(&latest, (uint64_t)finder->tracks[events->track[row]].pid);
		if (at == OPS_NONE || events->start_ns[row] >= finder->captures.items[at].end_ns)
			continue;
		capture = &finder->captures.items[at];
		capture->is_broken |= (call & OPS_CALL_GRAPH) != 0;
		add_to_shape(&capture->calls, kind_of_call(call));
		done = OPS_ARRAY_APPEND(&finder->calls, (struct captured_call){at, row});
	}
	ops_map_release(&latest);
	if (done)
		sort_captured_calls(finder);
	return done;
}

/* Links the captures of each shape, beginning with the earliest. */
static bool sort_captures(struct capture_finder *finder)
{
	for (size_t i = finder->captures.count; i-- > 0;) {
		struct capture *capture = &finder->captures.items[i];
		uint32_t *first;

		if (capture->is_broken || !capture->calls.count)
			continue;
		first = ops_map_slot(&finder->by_shape, capture->calls.shape, OPS_NONE);
		if (!first)
			return false;
		capture->next = *first;
		*first = (uint32_t)i;
	}
	return true;
}

/* --- replays -------------------------------------------------------------------------------------------------------- */

OPS_ORDER(compare_work, struct replayed_work, OPS_UP(call) OPS_UP(node) OPS_UP(row))

static bool add_replayed_work(struct capture_finder *finder)
{
	const struct ops_events *events = finder->events;
	bool done = true;

	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t call = ops_kind_is_work(events->kind[row]) ? finder->launchers[row] : OPS_NONE;

		if (call != OPS_NONE && call_of_row(finder, call) & OPS_CALL_GRAPH)
			done = OPS_ARRAY_APPEND(&finder->work, (struct replayed_work){
				call, row, ops_argument_integer(finder->trace, row, "graph node id", -1)});
	}
	if (done)
		OPS_ARRAY_SORT(&finder->work, compare_work);
	return done;
}

/* Nodes are numbered in the order of their capture. Without numbers the order is known only on one stream. */
static bool is_in_order(const struct capture_finder *finder, const struct replayed_work *before, const struct replayed_work *after)
{
	const struct ops_events *events = finder->events;

	if (before->node < 0 || after->node < 0)
		return before->node == after->node && events->track[before->row] == events->track[after->row];
	return before->node != after->node &&
	       (events->track[before->row] != events->track[after->row] || events->start_ns[before->row] <= events->start_ns[after->row]);
}

static bool group_replays(struct capture_finder *finder)
{
	struct replay *replay = NULL;

	for (size_t i = 0; i < finder->work.count; i++) {
		const struct replayed_work *work = &finder->work.items[i];

		if (!replay || work->call != replay->call) {
			replay = OPS_ARRAY_PUSH(&finder->replays);
			if (!replay)
				return false;
			*replay = (struct replay){.work.first = i, .call = work->call, .is_ordered = true,
			                          .graph = ops_argument_integer(finder->trace, work->row, "graph id", -1)};
		} else {
			replay->is_ordered &= is_in_order(finder, work - 1, work);
		}
		add_to_shape(&replay->work, (enum ops_event_kind)finder->events->kind[work->row]);
	}
	return true;
}

/* --- matching --------------------------------------------------------------------------------------------------------- */

/* Returns true if a call of a capture can be the origin of a piece of work. ROCm's calls have the name of the
 * kernel. */
static bool may_be(const struct capture_finder *finder, uint32_t call, uint32_t work, bool *ret_named)
{
	struct ops_string json, name = ops_trace_string(finder->trace, finder->events->name[work]);

	if (kind_of_call(call_of_row(finder, call)) != (enum ops_event_kind)finder->events->kind[work])
		return false;
	if (!ops_event_arg(finder->trace, call, "kernel", &json) || json.size < 2 || ops_string_contains(json, "\\"))
		return true;
	*ret_named = true;
	return ops_string_equals((struct ops_string){json.bytes + 1, json.size - 2}, name);
}

/* Returns true if a replay can belong to a capture. `*ret_named`: names of kernels agree. */
static bool capture_fits(const struct capture_finder *finder, const struct capture *capture, const struct replay *replay, bool *ret_named)
{
	const struct ops_events *events = finder->events;

	*ret_named = false;
	if (capture->calls.count != replay->work.count || capture->end_ns > events->start_ns[replay->call] ||
	    capture->pid != finder->tracks[events->track[replay->call]].pid)
		return false;
	for (size_t i = 0; i < capture->calls.count; i++)
		if (!may_be(finder, finder->calls.items[capture->calls.first + i].row, finder->work.items[replay->work.first + i].row, ret_named))
			return false;
	return true;
}

static uint32_t function_around(const struct ops_events *events, uint32_t row)
{
	for (row = events->parent[row]; row != OPS_NONE && events->kind[row] != OPS_EVENT_PYTHON_FUNCTION;)
		row = events->parent[row];
	return row;
}

/* Rows without a name count as equal, as do equal names. */
static bool same_name(const struct ops_events *events, uint32_t a, uint32_t b)
{
	return a == b || (a != OPS_NONE && b != OPS_NONE && events->name[a] == events->name[b]);
}

/* Returns true if two captures of one shape consist of the same operators, called by the same functions, as for several
 * batch sizes. */
static bool captures_agree(const struct capture_finder *finder, const struct capture *a, const struct capture *b)
{
	for (size_t i = 0; i < a->calls.count; i++) {
		uint32_t left = finder->calls.items[a->calls.first + i].row;
		uint32_t right = finder->calls.items[b->calls.first + i].row;

		if (!same_name(finder->events, finder->launchers[left], finder->launchers[right]) ||
		    !same_name(finder->events, function_around(finder->events, left), function_around(finder->events, right)))
			return false;
	}
	return true;
}

/* Numbers of the captures of a shape, and of the replayed graphs that have it. */
struct shape {
	uint32_t captures, graphs;
	bool agrees; /* all captures have the same operators */
};

static struct shape shape_of(const struct capture_finder *finder, uint32_t first)
{
	struct shape shape = {.agrees = true};

	for (uint32_t i = first; i != OPS_NONE; i = finder->captures.items[i].next, shape.captures++)
		shape.agrees = shape.agrees && captures_agree(finder, &finder->captures.items[first], &finder->captures.items[i]);
	return shape;
}

/* Returns the capture of a replay; NULL if the trace does not determine it. */
static const struct capture *capture_of(const struct capture_finder *finder, const struct replay *replay, uint32_t first,
                                        const struct shape *shape)
{
	const struct capture *found = NULL;
	bool found_named = false;

	for (uint32_t i = first; i != OPS_NONE; i = finder->captures.items[i].next) {
		const struct capture *capture = &finder->captures.items[i];
		bool named;

		if (!capture_fits(finder, capture, replay, &named))
			continue;
		if (found && !captures_agree(finder, found, capture))
			return NULL;
		found = found ? found : capture;
		found_named |= named;
		if (shape->agrees)
			break;
	}
	/* Without names, the numbers of graphs show that no graph of this shape was captured before the recording. */
	return found_named || (replay->graph >= 0 && shape->graphs <= shape->captures) ? found : NULL;
}

static bool count_graphs(struct capture_finder *finder, struct shape *shapes)
{
	struct ops_map graphs = {0};
	bool done = true;

	for (size_t i = 0; done && i < finder->replays.count; i++) {
		const struct replay *replay = &finder->replays.items[i];
		uint32_t first = ops_map_find(&finder->by_shape, replay->work.shape);
		size_t before = graphs.count;

		if (first == OPS_NONE || replay->graph < 0)
			continue;
		done = ops_map_number(&graphs, (uint64_t)first << 32 | (uint32_t)replay->graph) != OPS_NONE;
		shapes[first].graphs += graphs.count > before;
	}
	ops_map_release(&graphs);
	return done;
}

static void link_replay(struct capture_finder *finder, const struct replay *replay, const struct capture *capture)
{
	for (size_t i = 0; i < replay->work.count; i++)
		finder->origins[finder->work.items[replay->work.first + i].row] = finder->calls.items[capture->calls.first + i].row;
	finder->known += replay->work.count;
}

static bool link_replays(struct capture_finder *finder)
{
	struct shape *shapes = ops_alloc_zeroed(finder->captures.count + 1, sizeof(*shapes)); /* indexed by their first capture */
	bool done = shapes != NULL;

	for (uint32_t i = 0; done && i < finder->captures.count; i++)
		if (finder->captures.items[i].calls.count &&
		    ops_map_find(&finder->by_shape, finder->captures.items[i].calls.shape) == i)
			shapes[i] = shape_of(finder, i);
	done = done && count_graphs(finder, shapes);
	for (size_t i = 0; done && i < finder->replays.count; i++) {
		const struct replay *replay = &finder->replays.items[i];
		uint32_t first = replay->is_ordered ? ops_map_find(&finder->by_shape, replay->work.shape) : OPS_NONE;
		const struct capture *capture = first == OPS_NONE ? NULL : capture_of(finder, replay, first, &shapes[first]);

		if (capture)
			link_replay(finder, replay, capture);
	}
	ops_free(shapes);
	return done;
}

/* --- entry point ---------------------------------------------------------------------------------------------------- */

static bool find_origins(struct capture_finder *finder)
{
	size_t count = finder->events->count;

	finder->does_work = ops_alloc_zeroed(count + 1, 1);
	finder->origins = ops_realloc_array(NULL, count + 1, sizeof(*finder->origins));
	if (!finder->does_work || !finder->origins)
		return false;
	memcpy(finder->origins, finder->launchers, count * sizeof(*finder->origins));
	for (uint32_t row = 0; row < count; row++)
		if (ops_kind_is_work(finder->events->kind[row]) && finder->launchers[row] != OPS_NONE)
			finder->does_work[finder->launchers[row]] = 1;
	return add_captured_calls(finder) && sort_captures(finder) && group_replays(finder) && link_replays(finder);
}

static void free_captures(void *object)
{
	struct ops_captures *captures = object;

	ops_intervals_release(&captures->times);
	ops_intervals_release(&captures->loops);
	ops_free((void *)captures->origins);
	ops_free(captures);
}

static void captures_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	struct capture_finder finder = {.trace = trace, .events = ops_trace_events(trace), .launchers = ops_launchers(trace)};
	struct ops_captures *captures = ops_alloc_zeroed(1, sizeof(*captures));
	bool done;

	finder.calls_by_name = ops_calls_by_name(trace);
	done = captures && finder.calls_by_name && finder.launchers && find_captures(&finder);
	if (done && !finder.captures.count) {
		finder.functions = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, 1);
		done = finder.functions && find_captures(&finder);
	}
	done = done && find_loops(&finder) && add_replayed_work(&finder);
	/* In a trace without captures, origins equal ops_launchers(). */
	if (done && finder.captures.count && finder.work.count)
		done = find_origins(&finder);
	if (done) {
		*captures = (struct ops_captures){finder.times, finder.loops, finder.origins, finder.work.count, finder.known};
		*ret_made = (struct ops_derived_object){captures, free_captures,
		                                        finder.origins ? finder.events->count * sizeof(*finder.origins) : 0};
	} else {
		ops_intervals_release(&finder.times);
		ops_intervals_release(&finder.loops);
		ops_free(finder.origins);
		ops_free(captures);
	}
	OPS_ARRAY_RELEASE(&finder.captures);
	OPS_ARRAY_RELEASE(&finder.calls);
	OPS_ARRAY_RELEASE(&finder.work);
	OPS_ARRAY_RELEASE(&finder.replays);
	OPS_ARRAY_RELEASE(&finder.capturing);
	ops_map_release(&finder.by_shape);
	ops_map_release(&finder.by_caller);
	ops_free(finder.does_work);
	ops_free(finder.functions);
}

const struct ops_captures *ops_captures_of(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_CAPTURES, captures_derive);
}

const uint32_t *ops_origins(const struct ops_trace *trace)
{
	const struct ops_captures *captures = ops_captures_of(trace);

	return captures && captures->origins ? captures->origins : captures ? ops_launchers(trace) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The critical path's edges on the host: calls that hold the process's lock one after another, and the order of a
 * thread's events. Calls that wait for a device have no weight, so that the path through the device is longer.
 */
#include <stdlib.h>

#include "analyze/graph/call_graph.h"
#include "analyze/graph/critical_backward.h"
#include "analyze/graph/critical_path.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"

/* --- lock ------------------------------------------------------------------------------------------------------------ */

struct lock_node {
	int64_t ts_ns;
	uint32_t node;
};

OPS_ORDER(compare_lock_nodes, struct lock_node, OPS_UP(ts_ns) OPS_UP(node))

/* Adds the edges into the end of a call: from all starts since the previous end, and from that end. */
static bool end_call(struct critical_path *path, const uint32_t *starts, size_t count, uint32_t previous, uint32_t end)
{
	bool done = true;

	for (size_t i = count; done && i-- > 0;)
		done = starts[i] == end - 1 ? critical_add_edge(path, starts[i], end, CRITICAL_OPERATOR,
		                                                critical_row(path, end / 2)->dur_ns, end / 2)
		                            : critical_add_edge(path, starts[i], end, CRITICAL_DEPENDENCY, 0, OPS_NONE);
	if (done && previous != OPS_NONE && previous % 2)
		done = critical_add_edge(path, previous, end, CRITICAL_DEPENDENCY, 0, OPS_NONE);
	return done;
}

static bool lock_edges(struct critical_path *path)
{
	OPS_ARRAY(struct lock_node) nodes = {0};
	OPS_ARRAY(uint32_t) starts = {0};
	uint32_t previous = OPS_NONE;
	bool done = true;

	for (uint32_t e = 0; done && e < path->events.count; e++) {
		if (!critical_name_is(path, critical_row(path, e), CRITICAL_NAME_LOCK))
			continue;
		done = OPS_ARRAY_RESERVE(&nodes, 2);
		for (uint32_t n = 2 * e; done && n < 2 * e + 2; n++)
			nodes.items[nodes.count++] = (struct lock_node){critical_node_ns(path, n), n};
	}
	OPS_ARRAY_SORT(&nodes, compare_lock_nodes);
	done = done && OPS_ARRAY_RESERVE(&starts, nodes.count + 1);
	for (size_t i = 0; done && i < nodes.count; i++) {
		uint32_t node = nodes.items[i].node;

		if (node % 2 == 0) {
			starts.items[starts.count++] = node;
		} else {
			done = end_call(path, starts.items, starts.count, previous, node);
			starts.count = 0;
		}
		previous = node;
	}
	OPS_ARRAY_RELEASE(&nodes);
	OPS_ARRAY_RELEASE(&starts);
	return done;
}

/* --- threads --------------------------------------------------------------------------------------------------------- */

/* Returns the only thread with a row whose name contains the word; OPS_NONE if there is none or several. */
static uint32_t thread_with(const struct critical_path *path, const char *word)
{
	uint32_t found = OPS_NONE;

	for (size_t i = 0; i < path->clipped.count; i++) {
		const struct event_row *row = &path->table->rows[path->clipped.items[i]];

		if ((row->kind != OPS_EVENT_CPU_OP && row->kind != OPS_EVENT_USER_ANNOTATION) || row->track == found ||
		    !ops_string_contains(event_name(path->table, row), word))
			continue;
		if (found != OPS_NONE)
			return OPS_NONE;
		found = row->track;
	}
	return found;
}

struct threads {
	uint32_t *of;    /* by track: the thread that it counts as */
	bool *is_stream; /* by track */
	struct ops_groups rows; /* by track */
	uint32_t *parents; /* by row */
	uint32_t *around;  /* by row: the innermost event that the row is or lies in */
	size_t count;
};

static void threads_release(struct threads *threads)
{
	ops_free(threads->of);
	ops_free(threads->is_stream);
	ops_groups_release(&threads->rows);
	ops_free(threads->parents);
	ops_free(threads->around);
}

static bool threads_init(struct threads *threads, const struct critical_path *path)
{
	ops_trace_tracks(path->table->trace, &threads->count);
	threads->of = ops_realloc_array(NULL, threads->count + 1, sizeof(*threads->of));
	threads->is_stream = ops_alloc_zeroed(threads->count + 1, sizeof(*threads->is_stream));
	threads->parents = ops_realloc_array(NULL, path->table->count + 1, sizeof(*threads->parents));
	threads->around = ops_realloc_array(NULL, path->table->count + 1, sizeof(*threads->around));
	return threads->of && threads->is_stream && threads->parents && threads->around;
}

/* If one thread runs all forward passes and another all of autograd, they count as one thread, as in HTA. */
static void join_autograd(struct threads *threads, const struct critical_path *path, const struct critical_engines *engines)
{
	uint32_t forward = thread_with(path, "forward"), autograd = thread_with(path, "autograd");

	for (uint32_t t = 0; t < threads->count; t++)
		threads->of[t] = t;
	if (forward != OPS_NONE && autograd != OPS_NONE && !critical_engines_have(engines, autograd))
		threads->of[autograd] = forward;
}

struct gathering {
	const struct threads *threads;
	const struct critical_path *path;
};

static uint32_t thread_of_row(const void *context, uint32_t i)
{
	const struct gathering *of = context;

	return of->threads->of[of->path->table->rows[of->path->clipped.items[i]].track];
}

static bool critical_host_gather(struct threads *threads, const struct critical_path *path)
{
	struct gathering gathering = {threads, path};
	size_t count = path->clipped.count;

	for (uint32_t i = 0; i < count; i++)
		threads->is_stream[thread_of_row(&gathering, i)] |= path->table->rows[path->clipped.items[i]].stream != -1;
	if (!ops_groups_init(&threads->rows, count, threads->count, thread_of_row, &gathering))
		return false;
	for (size_t i = 0; i < count; i++)
		threads->rows.order[i] = path->clipped.items[threads->rows.order[i]];
	return true;
}

/* Position of the walk through a thread. */
struct walk {
	struct critical_path *path;
	const uint32_t *parents;
	uint32_t *around;
	uint32_t last;  /* previous node; OPS_NONE at first */
	uint32_t open;  /* innermost running row, with nodes or without */
	uint32_t depth; /* number of running rows with nodes */
	struct critical_engines *engines;
	uint32_t track;
};

/* Edges between calls that hold the lock are added there, except those from the end of one call to the start of the
 * next. */
static bool is_lock_edge(const struct critical_path *path, uint32_t from, uint32_t to)
{
	return critical_name_is(path, critical_row(path, from / 2), CRITICAL_NAME_LOCK) &&
	       critical_name_is(path, critical_row(path, to / 2), CRITICAL_NAME_LOCK) && !(from % 2 == 1 && to % 2 == 0);
}

/* Returns the event that the time until the next start belongs to: the event that started last, or else the event
 * around both. */
static uint32_t owner(const struct walk *walk)
{
	if (walk->last % 2 == 0)
		return walk->last / 2;
	return walk->open == OPS_NONE ? OPS_NONE : walk->around[walk->open];
}

static bool enter(struct walk *walk, uint32_t row)
{
	struct critical_path *path = walk->path;
	uint32_t event = path->event_of[row], start = 2 * event;
	bool done = true;

	if (event != OPS_NONE && walk->last != OPS_NONE && !is_lock_edge(path, walk->last, start)) {
		int64_t gap_ns = critical_node_ns(path, start) - critical_node_ns(path, walk->last);

		done = walk->depth ? critical_add_edge(path, walk->last, start, CRITICAL_OPERATOR, gap_ns, owner(walk))
		                   : critical_add_edge(path, walk->last, start, CRITICAL_DEPENDENCY, 0, OPS_NONE);
	}
	walk->around[row] = event != OPS_NONE || walk->open == OPS_NONE ? event : walk->around[walk->open];
	walk->open = row;
	if (event != OPS_NONE) {
		done = done && critical_engines_between(walk->engines, path, walk->track, walk->last, start);
		walk->last = start;
		walk->depth++;
	}
	return done;
}

static bool leave(struct walk *walk)
{
	struct critical_path *path = walk->path;
	uint32_t row = walk->open, event = path->event_of[row], end = 2 * event + 1;
	bool done = true;

	walk->open = walk->parents[row];
	if (event == OPS_NONE)
		return true;
	if (!is_lock_edge(path, walk->last, end)) {
		bool blocks = critical_name_is(path, critical_row(path, event), CRITICAL_NAME_BLOCKING);
		int64_t gap_ns = critical_node_ns(path, end) - critical_node_ns(path, walk->last);

		done = critical_add_edge(path, walk->last, end, CRITICAL_OPERATOR, blocks ? 0 : gap_ns,
		                         walk->last % 2 ? event : walk->last / 2);
	}
	done = done && critical_engines_between(walk->engines, path, walk->track, walk->last, end);
	walk->last = end;
	walk->depth--;
	return done;
}

static bool walk_thread(struct critical_path *path, struct threads *threads, struct critical_engines *engines, size_t t)
{
	uint32_t *rows = threads->rows.order + threads->rows.first[t];
	size_t count = threads->rows.first[t + 1] - threads->rows.first[t];
	struct walk walk = {.path = path, .parents = threads->parents, .around = threads->around, .last = OPS_NONE, .open = OPS_NONE,
	                    .engines = engines, .track = (uint32_t)t};
	bool done = call_nest(path->table, rows, count, threads->parents);

	for (size_t i = 0; done && i < count; i++) {
		while (done && walk.open != threads->parents[rows[i]])
			done = leave(&walk);
		done = done && enter(&walk, rows[i]);
	}
	while (done && walk.open != OPS_NONE)
		done = leave(&walk);
	return done && (walk.last == OPS_NONE || critical_engines_between(engines, path, walk.track, walk.last, OPS_NONE));
}

bool critical_host_edges(struct critical_path *path)
{
	struct threads threads = {0};
	struct critical_engines engines = {0};
	bool by_name = path->table->policy->threads_by_name;
	bool done = lock_edges(path) && threads_init(&threads, path) && (by_name || critical_engines_init(&engines, path));

	if (done) {
		join_autograd(&threads, path, &engines);
		done = critical_host_gather(&threads, path);
	}
	for (size_t t = 0; done && t < threads.count; t++)
		if (!threads.is_stream[t])
			done = walk_thread(path, &threads, &engines, t);
	critical_engines_release(&engines);
	threads_release(&threads);
	return done;
}

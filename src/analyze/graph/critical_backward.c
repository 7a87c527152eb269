/* SPDX-License-Identifier: Apache-2.0
 *
 * See critical_backward.h.
 */
#include "analyze/graph/critical_backward.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/order.h"
#include "derive/steps.h"
#include "trace/names.h"

/* --- callers ---------------------------------------------------------------------------------------------------------- */

/* Returns the thread of a process that has the steps. */
static uint32_t thread_of_steps(const struct ops_trace *trace, const struct ops_steps *steps, uint32_t engine)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	for (size_t i = 0; i < steps->list.count; i++)
		if (tracks[steps->list.items[i].track].pid == tracks[engine].pid)
			return steps->list.items[i].track;
	return OPS_NONE;
}

/* Returns the thread of the first forward operator that a node of this thread is linked to. */
static uint32_t thread_of_forward(const struct ops_trace *trace, uint32_t engine)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count;
	const struct ops_link *links = ops_trace_links(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (links[i].kind == OPS_LINK_FORWARD_BACKWARD && events->track[links[i].to] == engine)
			return events->track[links[i].from];
	return OPS_NONE;
}

static bool find_engines(struct critical_engines *engines, const struct critical_path *path, uint8_t *decided)
{
	const struct ops_trace *trace = path->table->trace;
	const struct ops_steps *steps = ops_steps_of(trace);

	for (uint32_t e = 0; steps && e < path->events.count; e++) {
		const struct event_row *row = critical_row(path, e);
		uint32_t caller;

		if (ops_bit(decided, row->track) || row->stream != -1 || !ops_is_engine_name(event_name(path->table, row)))
			continue;
		ops_bit_set(decided, row->track);
		caller = thread_of_steps(trace, steps, row->track);
		caller = caller == OPS_NONE ? thread_of_forward(trace, row->track) : caller;
		if (caller == OPS_NONE || caller == row->track)
			continue;
		if (!OPS_ARRAY_APPEND(&engines->threads, (struct engine_thread){.track = row->track, .caller = caller}))
			return false;
	}
	return steps != NULL;
}

bool critical_engines_have(const struct critical_engines *engines, uint32_t track)
{
	for (size_t i = 0; i < engines->threads.count; i++)
		if (engines->threads.items[i].track == track)
			return true;
	return false;
}

/* --- events of engine threads ----------------------------------------------------------------------------------------- */

static bool starts_before(const void *context, uint32_t a, uint32_t b)
{
	const struct event_row *left = critical_row(context, a), *right = critical_row(context, b);

	return left->ts_ns != right->ts_ns ? left->ts_ns < right->ts_ns : left->dur_ns > right->dur_ns;
}

/* Skips events that are inside another. */
static bool find_events(struct engine_thread *engine, const struct critical_path *path)
{
	int64_t until_ns = INT64_MIN;
	size_t kept = 0;

	for (uint32_t e = 0; e < path->events.count; e++) {
		const struct event_row *row = critical_row(path, e);

		if (row->track != engine->track || row->stream != -1)
			continue;
		if (!OPS_ARRAY_APPEND(&engine->events, e))
			return false;
	}
	if (!ops_sort_rows(engine->events.items, engine->events.count, starts_before, path))
		return false;
	for (size_t i = 0; i < engine->events.count; i++) {
		const struct event_row *row = critical_row(path, engine->events.items[i]);

		if (row->ts_ns >= until_ns)
			engine->events.items[kept++] = engine->events.items[i];
		until_ns = event_end(row) > until_ns ? event_end(row) : until_ns;
	}
	engine->events.count = kept;
	return true;
}

bool critical_engines_init(struct critical_engines *engines, const struct critical_path *path)
{
	size_t tracks;
	uint8_t *decided;
	bool done;

	*engines = (struct critical_engines){0};
	ops_trace_tracks(path->table->trace, &tracks);
	decided = ops_alloc_zeroed(tracks / 8 + 1, 1);
	done = decided && find_engines(engines, path, decided);
	ops_free(decided);
	for (size_t i = 0; done && i < engines->threads.count; i++)
		done = find_events(&engines->threads.items[i], path);
	return done;
}

void critical_engines_release(struct critical_engines *engines)
{
	for (size_t i = 0; i < engines->threads.count; i++)
		OPS_ARRAY_RELEASE(&engines->threads.items[i].events);
	OPS_ARRAY_RELEASE(&engines->threads);
}

/* --- edges ------------------------------------------------------------------------------------------------------------ */

/* The caller waits: calls around the wait take no time meanwhile. */
static void wait_without_weight(struct critical_path *path, uint32_t from, uint32_t to)
{
	uint32_t edge = from == OPS_NONE || to == OPS_NONE ? OPS_NONE : ops_map_find(&path->edge_of, (uint64_t)from << 32 | to);

	if (edge != OPS_NONE)
		path->edges.items[edge].weight_ns = 0;
}

static int64_t end_before(const struct engine_thread *engine, const struct critical_path *path, size_t i)
{
	return i ? event_end(critical_row(path, engine->events.items[i - 1])) : INT64_MIN;
}

/* The edge to the engine is skipped if an earlier event of the engine runs at that time, since the caller did not start
 * the engine then. The edge back is skipped if the engine still runs, since the caller did not wait for it. */
static bool add_handover(struct engine_thread *engine, struct critical_path *path, uint32_t from, uint32_t to)
{
	int64_t from_ns = from == OPS_NONE ? INT64_MIN : critical_node_ns(path, from);
	int64_t to_ns = to == OPS_NONE ? INT64_MAX : critical_node_ns(path, to);
	const uint32_t *events = engine->events.items;
	size_t first = engine->at, end;
	int64_t before_ns, last_ns;
	bool done = true;

	while (first < engine->events.count && critical_row(path, events[first])->ts_ns < from_ns)
		first++;
	for (end = first; end < engine->events.count && critical_row(path, events[end])->ts_ns < to_ns;)
		end++;
	engine->at = end;
	before_ns = end_before(engine, path, first);
	last_ns = end_before(engine, path, end);
	if (from != OPS_NONE && first < end && before_ns <= from_ns)
		done = critical_add_edge(path, from, 2 * events[first], CRITICAL_DEPENDENCY, 0, OPS_NONE);
	if (done && to != OPS_NONE && last_ns > from_ns && last_ns <= to_ns)
		done = critical_add_edge(path, 2 * events[end - 1] + 1, to, CRITICAL_DEPENDENCY, 0, OPS_NONE);
	if (first < end && before_ns <= from_ns && last_ns <= to_ns)
		wait_without_weight(path, from, to);
	return done;
}

bool critical_engines_between(struct critical_engines *engines, struct critical_path *path, uint32_t track, uint32_t from,
                              uint32_t to)
{
	bool done = true;

	for (size_t i = 0; done && i < engines->threads.count; i++)
		if (engines->threads.items[i].caller == track)
			done = add_handover(&engines->threads.items[i], path, from, to);
	return done;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads waited for; see thread_states.h.
 */
#include "derive/thread_states.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json_walk.h"
#include "base/search.h"
#include "base/text.h"
#include "trace/nests.h"

/* Upper bound of a start time and of an offset from it, so that their sum does not overflow. */
#define TIME_MAX_NS (INT64_MAX / 2)

/* --- metadata ------------------------------------------------------------------------------------------------------- */

/* Parses triples of start and end in microseconds, and state. Skips spans that are out of order. */
static bool read_spans(struct ops_thread_samples *thread, struct ops_string list, int64_t start_ns)
{
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	struct ops_string text;
	int64_t fields[3], last_us = 0;

	for (;;) {
		for (size_t i = 0; i < 3; i++)
			if (!ops_json_next_element(&walk, &text) || !ops_json_parse_integer(text, &fields[i]))
				return true;
		if (fields[0] < last_us || fields[1] <= fields[0] || fields[1] > TIME_MAX_NS / 1000 || fields[2] < 0 ||
		    fields[2] >= OPS_THREAD_STATES)
			continue;
		if (!OPS_ARRAY_APPEND(&thread->spans, (struct ops_thread_span){start_ns + 1000 * fields[0], start_ns + 1000 * fields[1],
		                                                               (enum ops_thread_state)fields[2]}))
			return false;
		last_us = fields[1];
	}
}

static bool thread_states_read_one(struct ops_thread_states *states, struct ops_string object, int64_t start_ns)
{
	struct ops_json_walk walk = ops_json_walk(object.bytes, object.size);
	bool done = OPS_ARRAY_APPEND(&states->threads, (struct ops_thread_samples){0});
	struct ops_thread_samples *thread = done ? &states->threads.items[states->threads.count - 1] : NULL;
	struct ops_string key, value;

	while (done && ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "tid"))
			ops_json_parse_integer(value, &thread->tid);
		else if (ops_string_is(key, "ran_ns"))
			ops_json_parse_integer(value, &thread->ran_ns);
		else if (ops_string_is(key, "ready_ns"))
			ops_json_parse_integer(value, &thread->ready_ns);
		else if (ops_string_is(key, "intervals"))
			done = read_spans(thread, value, start_ns);
	}
	return done;
}

bool ops_thread_states_read(struct ops_thread_states *states, const struct ops_trace *trace)
{
	struct ops_string json, list, text;
	struct ops_json_walk walk;
	int64_t start_ns;
	bool done = true;

	*states = (struct ops_thread_states){0};
	if (!ops_trace_find_metadata(trace, "thread_states", &json) || json.bytes[0] != '{' ||
	    !ops_json_find_member(json, "start_ns", &text) || !ops_json_parse_integer(text, &start_ns) || start_ns < 0 ||
	    start_ns > TIME_MAX_NS ||
	    !ops_json_find_member(json, "threads", &list))
		return true;
	walk = ops_json_walk(list.bytes, list.size);
	while (done && ops_json_next_element(&walk, &text))
		done = text.bytes[0] != '{' || thread_states_read_one(states, text, start_ns);
	return done;
}

void ops_thread_states_release(struct ops_thread_states *states)
{
	for (size_t i = 0; i < states->threads.count; i++)
		OPS_ARRAY_RELEASE(&states->threads.items[i].spans);
	OPS_ARRAY_RELEASE(&states->threads);
}

size_t ops_thread_span_after(const struct ops_thread_samples *thread, int64_t time_ns)
{
	size_t at = 0;

	OPS_LOWER_BOUND(at, thread->spans.count, i, thread->spans.items[i].end_ns <= time_ns);
	return at;
}

uint32_t ops_thread_samples_of(const struct ops_thread_states *states, const struct ops_track *track)
{
	for (size_t i = 0; track->kind == OPS_TRACK_THREAD && i < states->threads.count; i++)
		if (states->threads.items[i].tid == track->tid)
			return (uint32_t)i;
	return OPS_NONE;
}

/* Returns how long a thread was in a state. */
static int64_t state_ns(const struct ops_thread_samples *thread, enum ops_thread_state state, int64_t start_ns, int64_t end_ns)
{
	int64_t all_ns = 0;

	for (size_t i = ops_thread_span_after(thread, start_ns); i < thread->spans.count && thread->spans.items[i].start_ns < end_ns; i++) {
		const struct ops_thread_span *span = &thread->spans.items[i];

		if (span->state == state)
			all_ns += (span->end_ns < end_ns ? span->end_ns : end_ns) - (span->start_ns > start_ns ? span->start_ns : start_ns);
	}
	return all_ns;
}

/* A sample reports how long a thread was ready and how long it ran since the sample before, but not in which order. So
 * the share of each is taken over a longer time around the wait. */
#define AROUND_NS 50000000

int64_t ops_thread_states_starved_ns(const struct ops_thread_states *states, uint32_t thread, int64_t start_ns, int64_t end_ns)
{
	int64_t most_ns = 0, starved_ns = 0;

	for (uint32_t i = 0; i < states->threads.count; i++) {
		const struct ops_thread_samples *other = &states->threads.items[i];
		int64_t active_ns = state_ns(other, OPS_THREAD_RUNNING, start_ns, end_ns) + state_ns(other, OPS_THREAD_READY, start_ns, end_ns);
		double ran_ns, ready_ns;

		if (i == thread || active_ns <= most_ns)
			continue;
		ran_ns = (double)state_ns(other, OPS_THREAD_RUNNING, start_ns - AROUND_NS, end_ns + AROUND_NS);
		ready_ns = (double)state_ns(other, OPS_THREAD_READY, start_ns - AROUND_NS, end_ns + AROUND_NS);
		most_ns = active_ns;
		starved_ns = (int64_t)((double)active_ns * ready_ns / (ran_ns + ready_ns));
	}
	return starved_ns;
}

/* --- assignment to rows --------------------------------------------------------------------------------------------- */

/* Progress of the walk on one track. */
struct progress {
	uint32_t thread;          /* OPS_NONE: the thread was not sampled */
	uint32_t current, before; /* innermost open row, and its last child that has ended */
	int64_t last_ns;          /* end of the time processed so far */
	size_t cursor;            /* position in the spans of the thread */
};

struct walk {
	const struct ops_thread_states *states;
	const struct ops_events *events;
	struct progress *tracks;
	bool (*visit)(void *context, const struct ops_thread_part *part);
	void *context;
};

/* Visits the states during a part of the self time of the innermost row. */
static bool visit_parts(struct walk *walk, uint32_t track, int64_t until_ns, uint32_t after)
{
	struct progress *progress = &walk->tracks[track];
	const struct ops_thread_samples *thread = &walk->states->threads.items[progress->thread];
	bool done = true;

	while (done && progress->cursor < thread->spans.count) {
		const struct ops_thread_span *span = &thread->spans.items[progress->cursor];
		int64_t start_ns = span->start_ns > progress->last_ns ? span->start_ns : progress->last_ns;
		int64_t end_ns = span->end_ns < until_ns ? span->end_ns : until_ns;

		if (start_ns < end_ns)
			done = walk->visit(walk->context, &(struct ops_thread_part){start_ns, end_ns, span->state, progress->thread,
			                                                            track, progress->current, progress->before, after});
		if (span->end_ns > until_ns)
			break;
		progress->cursor++;
	}
	progress->last_ns = until_ns;
	return done;
}

/* Advances to a time at which the row `after` begins. */
static bool thread_states_go_on(struct walk *walk, uint32_t track, int64_t time_ns, uint32_t after)
{
	struct progress *progress = &walk->tracks[track];

	while (progress->current != OPS_NONE && walk->events->end_ns[progress->current] <= time_ns) {
		int64_t end_ns = walk->events->end_ns[progress->current];

		if (end_ns > progress->last_ns && !visit_parts(walk, track, end_ns, OPS_NONE))
			return false;
		progress->before = progress->current;
		progress->current = walk->events->parent[progress->current];
	}
	return time_ns <= progress->last_ns || visit_parts(walk, track, time_ns, after);
}

bool ops_thread_states_walk(const struct ops_thread_states *states, const struct ops_trace *trace,
                            bool (*visit)(void *context, const struct ops_thread_part *part), void *context)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	struct walk walk = {.states = states, .events = ops_trace_events(trace), .visit = visit, .context = context};
	bool done;

	walk.tracks = ops_realloc_array(NULL, count + 1, sizeof(*walk.tracks));
	done = walk.tracks != NULL;
	for (size_t i = 0; done && i < count; i++)
		walk.tracks[i] = (struct progress){ops_thread_samples_of(states, &tracks[i]), OPS_NONE, OPS_NONE, INT64_MIN, 0};
	for (uint32_t row = 0; done && row < walk.events->count; row++) {
		struct progress *progress = &walk.tracks[walk.events->track[row]];

		if (progress->thread == OPS_NONE || !ops_event_nests(walk.events, row))
			continue;
		done = thread_states_go_on(&walk, walk.events->track[row], walk.events->start_ns[row], row);
		progress->current = row;
		progress->before = OPS_NONE;
	}
	for (uint32_t track = 0; done && track < count; track++)
		done = walk.tracks[track].thread == OPS_NONE || thread_states_go_on(&walk, track, INT64_MAX, OPS_NONE);
	ops_free(walk.tracks);
	return done;
}

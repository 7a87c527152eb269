/* SPDX-License-Identifier: Apache-2.0
 *
 * How threads depend on each other.
 *
 *     main    [ op ][ backward() starts ][          waits           ][ op ]
 *                          │ starts                ▲ ends the wait
 *     engine               ▼                       │
 *                         [ node ][ node ][ node ]─┘
 *
 * An outermost event of another thread starts at the position of the thread of the steps at that time, or where that
 * thread began to wait. A collective operation starts after the operator that issues it. The thread of the steps waits
 * for such an event if it runs no operator when the last of them ends, and the event is a node of the backward pass or
 * a collective operation. A Python call that waits for a lock or a queue ends when the thread that woke it had reached
 * its position at that time.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/replay/replay.h"
#include "base/alloc.h"

#define WOKEN_NS 20000 /* a shorter wait is only the call itself */
#define LATE_NS 200000 /* the end of an event may be recorded this much later than it wakes another thread, */
#define NODES_BACK 16  /* which has run at most this many nodes since */
#define THREADS_MAX 64 /* limit on the threads of a process that are searched for the one that ends a wait */

struct thread_walk {
	const struct replay *replay;
	struct replay_joins *joins;
	int64_t *end_ns;   /* by track: end of its last outermost event */
	uint32_t *waiting; /* by track: the node of the main thread that waits for it; OPS_NONE: none */
	OPS_ARRAY(uint32_t) issued; /* rows of operators that issue a collective, in order */
	size_t next;                /* index in `issued` of the first operator whose collective is not known yet */
};

static bool push_join(struct replay_joins *joins, struct replay_join join)
{
	struct replay_join *added = OPS_ARRAY_PUSH(&joins->items);

	if (added)
		*added = join;
	return added != NULL;
}

/* Returns true if the thread of the steps has nothing else to do in a node while another thread works for it. */
static bool waits_for(const struct replay *replay, uint32_t node, uint32_t row)
{
	uint32_t owner = node == OPS_NONE ? OPS_NONE : replay->nodes.items[node].row;
	bool collective = replay_name_is(replay, row, REPLAY_NAME_COLLECTIVE);

	if (node == OPS_NONE || !(collective || replay_name_is(replay, row, REPLAY_NAME_NODE)))
		return false;
	if (owner == OPS_NONE || replay->events->kind[owner] == OPS_EVENT_USER_ANNOTATION ||
	    replay->events->kind[owner] == OPS_EVENT_PYTHON_FUNCTION || replay_name_is(replay, owner, REPLAY_NAME_STEP))
		return true;
	return collective && replay_name_is(replay, owner, REPLAY_NAME_DISTRIBUTED);
}

/* --- work of another thread -------------------------------------------------------------------------------------------- */

static bool end_wait(struct thread_walk *walk, uint32_t track)
{
	uint32_t node = walk->waiting[track];
	int64_t end_ns = node == OPS_NONE ? 0 : walk->replay->nodes.items[node].end_ns;

	/* The event may be recorded as ending a little later than the wait for it. */
	end_ns = walk->end_ns[track] < end_ns ? walk->end_ns[track] : end_ns;
	walk->waiting[track] = OPS_NONE;
	return node == OPS_NONE ||
	       push_join(walk->joins, (struct replay_join){.from = track, .to = walk->replay->nodes.items[node].track,
	                                                   .from_ns = end_ns, .to_ns = end_ns, .wait = true});
}

/* Returns when the thread of the steps issued a collective; INT64_MIN: unknown. */
static int64_t issued_ns(struct thread_walk *walk, uint32_t row)
{
	const struct ops_events *events = walk->replay->events;

	if (!replay_name_is(walk->replay, row, REPLAY_NAME_COLLECTIVE) || walk->next == walk->issued.count ||
	    events->start_ns[walk->issued.items[walk->next]] > events->start_ns[row])
		return INT64_MIN;
	return events->start_ns[walk->issued.items[walk->next++]];
}

static bool start_join(struct thread_walk *walk, uint32_t row, uint32_t at_start)
{
	const struct replay *replay = walk->replay;
	uint32_t track = replay->events->track[row];
	struct replay_join join = {.from = replay->tracks[track].main, .to = track, .to_ns = replay->events->start_ns[row]};
	int64_t handed_ns = issued_ns(walk, row);

	if (handed_ns != INT64_MIN)
		join.from_ns = handed_ns;
	else if (at_start == OPS_NONE)
		return true;
	else
		join.from_ns = waits_for(replay, at_start, row) ? replay->nodes.items[at_start].start_ns : join.to_ns;
	return push_join(walk->joins, join);
}

/* Returns the node of the thread of the steps that waits for an event; OPS_NONE: none. */
static uint32_t waiting_node(const struct replay *replay, uint32_t main, uint32_t row)
{
	int64_t end_ns = replay->events->end_ns[row];
	uint32_t node = replay_node_at(replay, main, end_ns);

	if (waits_for(replay, node, row))
		return node;
	for (int back = 0; back < NODES_BACK && node != OPS_NONE; back++) {
		node = replay->nodes.items[node].previous;
		if (node == OPS_NONE || replay->nodes.items[node].end_ns < end_ns - LATE_NS ||
		    replay->nodes.items[node].end_ns <= replay->events->start_ns[row])
			return OPS_NONE;
		if (waits_for(replay, node, row) && replay->nodes.items[node].end_ns - replay->nodes.items[node].start_ns > LATE_NS / 4)
			return node;
	}
	return OPS_NONE;
}

static bool visit_outermost(struct thread_walk *walk, uint32_t row)
{
	const struct replay *replay = walk->replay;
	uint32_t track = replay->events->track[row], main = replay->tracks[track].main;
	uint32_t at_start = replay_node_at(replay, main, replay->events->start_ns[row] + 1);
	bool done = true;

	/* The thread of the steps did nothing since the previous event, so the event's thread continued on its own. */
	if (at_start != OPS_NONE && walk->waiting[track] == at_start && replay->nodes.items[at_start].start_ns <= walk->end_ns[track]) {
		walk->waiting[track] = OPS_NONE;
		issued_ns(walk, row);
	} else {
		done = end_wait(walk, track) && start_join(walk, row, at_start);
	}
	walk->end_ns[track] = replay->events->end_ns[row];
	walk->waiting[track] = waiting_node(replay, main, row);
	return done;
}

static bool find_issued(struct thread_walk *walk)
{
	const struct replay *replay = walk->replay;
	const struct ops_events *events = replay->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t *added;

		if (events->kind[row] != OPS_EVENT_CPU_OP || !replay_name_is(replay, row, REPLAY_NAME_DISTRIBUTED))
			continue;
		added = OPS_ARRAY_PUSH(&walk->issued);
		if (!added)
			return false;
		*added = row;
	}
	return true;
}

static bool find_outermost(struct thread_walk *walk)
{
	const struct replay *replay = walk->replay;
	bool done = true;

	for (uint32_t row = 0; done && row < replay->events->count; row++) {
		uint32_t track = replay->events->track[row];

		if (replay->events->parent[row] == OPS_NONE && replay_is_host_row(replay, row) && !replay_is_main(replay, track) &&
		    replay->tracks[track].main != OPS_NONE && replay->events->end_ns[row] > replay->events->start_ns[row])
			done = visit_outermost(walk, row);
	}
	for (uint32_t track = 0; done && track < replay->track_count; track++)
		done = end_wait(walk, track);
	return done;
}

/* --- locks and queues of Python ------------------------------------------------------------------------------------------ */

static bool is_waiting_call(const struct replay *replay, uint32_t row)
{
	return row != OPS_NONE && replay_name_is(replay, row, REPLAY_NAME_WAITS);
}

static bool releases(const struct replay *replay, uint32_t row)
{
	while (row != OPS_NONE && !replay_name_is(replay, row, REPLAY_NAME_RELEASES))
		row = replay->events->parent[row];
	return row != OPS_NONE;
}

/* Returns the thread that ended a wait: the one that was in a call that wakes others, or else the only one that ran;
 * OPS_NONE if unknown. */
static uint32_t find_waker(const struct replay *replay, const struct replay_node *wait)
{
	uint32_t found = OPS_NONE, ran = OPS_NONE;
	size_t released = 0, running = 0;

	for (uint32_t track = 0; track < replay->track_count; track++) {
		uint32_t node, row;

		if (track == wait->track || !replay->tracks[track].count || replay->tracks[track].main != replay->tracks[wait->track].main)
			continue;
		node = replay_node_at(replay, track, wait->end_ns);
		row = node == OPS_NONE ? OPS_NONE : replay->nodes.items[node].row;
		if (row == OPS_NONE || is_waiting_call(replay, row))
			continue;
		running++;
		ran = track;
		if (releases(replay, row)) {
			released++;
			found = track;
		}
	}
	return released == 1 ? found : running == 1 ? ran : OPS_NONE;
}

static bool find_waits(const struct replay *replay, struct replay_joins *joins)
{
	size_t threads = 0;
	bool done = true;

	for (uint32_t track = 0; track < replay->track_count; track++)
		threads += replay->tracks[track].main != OPS_NONE && replay->tracks[track].count;
	for (size_t i = 0; done && threads > 1 && threads <= THREADS_MAX && i < replay->nodes.count; i++) {
		const struct replay_node *node = &replay->nodes.items[i];
		uint32_t waker;

		if (!is_waiting_call(replay, node->row) || node->end_ns - node->start_ns < WOKEN_NS ||
		    replay->tracks[node->track].main == OPS_NONE)
			continue;
		waker = find_waker(replay, node);
		if (waker != OPS_NONE)
			done = push_join(joins, (struct replay_join){.from = waker, .to = node->track, .from_ns = node->end_ns,
			                                              .to_ns = node->end_ns, .wait = true});
	}
	return done;
}

bool replay_threads_find(const struct replay *replay, struct replay_joins *joins)
{
	struct thread_walk walk = {.replay = replay, .joins = joins};
	bool done;

	walk.end_ns = ops_alloc_zeroed(replay->track_count + 1, sizeof(*walk.end_ns));
	walk.waiting = ops_alloc_none(replay->track_count + 1);
	done = walk.end_ns && walk.waiting;
	done = done && find_issued(&walk) && find_outermost(&walk) && find_waits(replay, joins);
	ops_free(walk.end_ns);
	ops_free(walk.waiting);
	OPS_ARRAY_RELEASE(&walk.issued);
	return done;
}

/* --- edges ------------------------------------------------------------------------------------------------------------- */

bool replay_threads_link(struct replay *replay, const struct replay_joins *joins)
{
	bool done = true;

	for (size_t i = 0; done && i < joins->items.count; i++) {
		const struct replay_join *join = &joins->items.items[i];
		uint32_t source = replay_node_before(replay, join->from, join->from_ns);
		uint32_t to = replay_node_at(replay, join->to, join->wait ? join->to_ns : join->to_ns + 1);

		if (source == OPS_NONE || to == OPS_NONE || replay->nodes.items[source].end_ns != join->from_ns ||
		    replay->nodes.items[to].kind == REPLAY_WAIT)
			continue;
		if (join->wait)
			replay->nodes.items[to].kind = REPLAY_WAIT;
		done = replay_add_edge(replay, to, source, 0);
	}
	return done;
}

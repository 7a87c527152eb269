/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies of device work on the host and on other streams, and of the host on device work.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/replay/replay.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/search.h"
#include "derive/launches.h"
#include "trace/kinds.h"

/* assumed error between the clocks of host and device */
#define SKEW_NS 5000
/* Work that starts within this time after work of another stream, and could have started earlier, waited for it. */
#define HANDOVER_NS 15000
#define FREE_NS 2000
/* Limit on the search for earlier work that was launched before. */
#define LOOK_BACK 64
/* CUDA queues about a thousand launches per stream; the next launch waits. */
#define QUEUE_MAX 1000
#define FULL_NS 100000

struct device_link {
	struct replay *replay;
	uint32_t *node_of; /* by row of work; OPS_NONE: none */
};

static const struct replay_node *work_node(const struct replay *replay, size_t i)
{
	return &replay->nodes.items[replay->work.items[i]];
}

/* Returns the call that launched the work of a node; OPS_NONE: none. */
static uint32_t replay_call_of(const struct replay *replay, const struct replay_node *node)
{
	uint32_t call = replay->launchers[node->row];

	return call != OPS_NONE && replay->tracks[replay->events->track[call]].main != OPS_NONE ? call : OPS_NONE;
}

/* --- work by its end ---------------------------------------------------------------------------------------------------- */

static bool work_ends_before(const void *context, uint32_t a, uint32_t b)
{
	const struct replay *replay = context;

	return replay->nodes.items[a].end_ns < replay->nodes.items[b].end_ns;
}

static bool collect_work(struct device_link *link)
{
	struct replay *replay = link->replay;

	for (uint32_t i = 0; i < replay->nodes.count; i++) {
		uint32_t row = replay->nodes.items[i].row, *added;

		if (row == OPS_NONE || !ops_kind_is_work(replay->events->kind[row]))
			continue;
		added = OPS_ARRAY_PUSH(&replay->work);
		if (!added)
			return false;
		*added = i;
	}
	if (!replay->work.count)
		return true;
	link->node_of = ops_realloc_array(NULL, replay->events->count + 1, sizeof(*link->node_of));
	for (size_t i = 0; link->node_of && i < replay->work.count; i++)
		link->node_of[work_node(replay, i)->row] = replay->work.items[i];
	return link->node_of && ops_sort_rows(replay->work.items, replay->work.count, work_ends_before, replay);
}

/* Finds the step in which the call of each piece of work was made. */
static bool find_work_steps(struct replay *replay)
{
	replay->work_step = ops_realloc_array(NULL, replay->work.count + 1, sizeof(*replay->work_step));
	for (size_t i = 0; replay->work_step && i < replay->work.count; i++) {
		uint32_t call = replay_call_of(replay, work_node(replay, i));

		replay->work_step[i] = call == OPS_NONE ? OPS_NONE : replay_step_at(replay, replay->events->start_ns[call]);
	}
	return replay->work_step != NULL;
}

/* Returns the last work that has ended by a time and was launched before another; OPS_NONE: none. */
static uint32_t ended_by(const struct replay *replay, int64_t end_ns, int64_t launched_ns)
{
	size_t high = 0;

	OPS_LOWER_BOUND(high, replay->work.count, i, work_node(replay, i)->end_ns <= end_ns);
	for (size_t i = high, steps = 0; i-- > 0 && steps < LOOK_BACK; steps++) {
		uint32_t call = replay_call_of(replay, work_node(replay, i));

		if (call == OPS_NONE || replay->events->start_ns[call] < launched_ns)
			return (uint32_t)i;
	}
	return OPS_NONE;
}

/* --- launches ----------------------------------------------------------------------------------------------------------- */

/* A tenth of the launches reach an idle stream sooner than the launch delay. */
static bool find_launch_delay(struct replay *replay)
{
	double *delays = ops_alloc_zeroed(replay->work.count + 1, sizeof(*delays));
	size_t count = 0;

	for (size_t i = 0; delays && i < replay->work.count; i++) {
		const struct replay_node *node = work_node(replay, i);
		uint32_t call = replay_call_of(replay, node);
		int64_t call_ns = call == OPS_NONE ? 0 : replay->events->start_ns[call];

		if (call != OPS_NONE && node->start_ns > call_ns &&
		    (node->previous == OPS_NONE || replay->nodes.items[node->previous].end_ns < call_ns))
			delays[count++] = (double)(node->start_ns - call_ns);
	}
	if (count) {
		qsort(delays, count, sizeof(*delays), ops_compare_double);
		replay->launch_ns = (int64_t)ops_quantile(delays, count, 0.1);
	}
	ops_free(delays);
	return delays != NULL;
}

/* With clocks that differ, work can start before its call. It is then moved, so that no edge leads back in time. */
static bool link_launch(struct replay *replay, uint32_t at)
{
	struct replay_node *node = &replay->nodes.items[at];
	uint32_t call = replay_call_of(replay, node), source;
	int64_t call_ns;

	if (call == OPS_NONE)
		return true;
	call_ns = replay->events->start_ns[call];
	if (node->start_ns < call_ns) {
		node->end_ns += call_ns - node->start_ns;
		node->start_ns = call_ns;
	}
	source = replay_node_before(replay, replay->events->track[call], call_ns);
	return source == OPS_NONE || replay->nodes.items[source].end_ns != call_ns ||
	       replay_add_edge(replay, at, source,
	                       node->start_ns - call_ns < replay->launch_ns ? node->start_ns - call_ns : replay->launch_ns);
}

/* Returns the earliest start of the work as far as edges determine it. */
static int64_t free_ns(const struct replay *replay, const struct replay_node *node)
{
	int64_t ns = node->previous == OPS_NONE ? INT64_MIN : replay->nodes.items[node->previous].end_ns;

	for (uint32_t e = node->edges; e != OPS_NONE; e = replay->edges.items[e].next) {
		int64_t ready_ns = replay->nodes.items[replay->edges.items[e].source].end_ns + replay->edges.items[e].lag_ns;

		ns = ready_ns > ns ? ready_ns : ns;
	}
	return ns;
}

/* Files do not always record which event of another stream work waited for. Then times decide. */
static bool link_stream(struct replay *replay, uint32_t at)
{
	const struct replay_node *node = &replay->nodes.items[at];
	int64_t ready_ns = free_ns(replay, node);
	size_t high = 0;

	if (ready_ns == INT64_MIN || node->start_ns - ready_ns < FREE_NS)
		return true;
	OPS_LOWER_BOUND(high, replay->work.count, i, work_node(replay, i)->end_ns <= node->start_ns);
	for (size_t i = high, steps = 0; i-- > 0 && steps < LOOK_BACK; steps++) {
		const struct replay_node *other = work_node(replay, i);

		if (other->end_ns < node->start_ns - HANDOVER_NS || other->end_ns <= ready_ns)
			return true;
		if (other->track != node->track)
			return replay_add_edge(replay, at, replay->work.items[i], 0);
	}
	return true;
}

static bool link_dependencies(struct device_link *link)
{
	struct replay *replay = link->replay;
	size_t count;
	const struct ops_link *links = ops_trace_links(replay->trace, &count);
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		uint32_t from = links[i].from, to = links[i].to;

		if (links[i].kind == OPS_LINK_DEPENDENCY && ops_kind_is_work(replay->events->kind[from]) &&
		    ops_kind_is_work(replay->events->kind[to]) && replay->events->end_ns[from] <= replay->events->start_ns[to])
			done = replay_add_edge(replay, link->node_of[to], link->node_of[from], 0);
	}
	return done;
}

/* --- waits of the host --------------------------------------------------------------------------------------------------- */

/* A copy from or to memory that is not pinned returns after completion, whatever its name says. */
static bool waits_for_copy(const struct device_link *link, uint32_t call, uint32_t work)
{
	const struct ops_events *events = link->replay->events;

	return events->kind[work] == OPS_EVENT_GPU_MEMCPY && events->end_ns[work] <= events->end_ns[call] + SKEW_NS &&
	       events->end_ns[work] > events->start_ns[call];
}

static bool make_sync(struct replay *replay, uint32_t at, uint32_t source)
{
	struct replay_node *node = &replay->nodes.items[at];
	int64_t lag_ns = node->end_ns - replay->nodes.items[source].end_ns;

	if (node->kind != REPLAY_RUN || replay->nodes.items[source].end_ns <= node->start_ns)
		return true; /* it had ended before the call */
	node->kind = REPLAY_SYNC;
	return replay_add_edge(replay, at, source, lag_ns);
}

/* Returns, for a stream whose queue is full, the work whose end lets the call continue. */
static uint32_t full_queue(const struct replay *replay, const struct device_link *link, uint32_t call, uint32_t work)
{
	uint32_t at = link->node_of[work], before;

	if (replay->events->end_ns[call] - replay->events->start_ns[call] < FULL_NS)
		return OPS_NONE;
	before = replay_node_before(replay, replay->nodes.items[at].track, replay->events->end_ns[call] + SKEW_NS);
	return before != OPS_NONE && at > before && at - before >= QUEUE_MAX ? before : OPS_NONE;
}

static bool link_blocking_calls(struct device_link *link)
{
	struct replay *replay = link->replay;
	bool done = true;

	for (uint32_t i = 0; done && i < replay->nodes.count; i++) {
		uint32_t row = replay->nodes.items[i].row, last;

		if (row == OPS_NONE || !ops_kind_is_call(replay->events->kind[row]) || !replay_name_is(replay, row, REPLAY_NAME_BLOCKS))
			continue;
		last = ended_by(replay, replay->nodes.items[i].end_ns + SKEW_NS, replay->events->end_ns[row]);
		if (last != OPS_NONE)
			done = make_sync(replay, i, replay->work.items[last]);
	}
	for (size_t i = 0; done && i < replay->work.count; i++) {
		uint32_t work = work_node(replay, i)->row, call = replay_call_of(replay, work_node(replay, i)), at, full;

		at = call == OPS_NONE ? OPS_NONE : replay_node_before(replay, replay->events->track[call], replay->events->end_ns[call]);
		if (at == OPS_NONE || replay->nodes.items[at].row != call)
			continue;
		full = full_queue(replay, link, call, work);
		if (waits_for_copy(link, call, work))
			done = make_sync(replay, at, link->node_of[work]);
		else if (full != OPS_NONE)
			done = make_sync(replay, at, full);
	}
	return done;
}

/* Work that overlaps the previous work on its stream does not wait for it. */
static void cut_overlaps(struct replay *replay)
{
	for (size_t i = 0; i < replay->work.count; i++) {
		struct replay_node *node = &replay->nodes.items[replay->work.items[i]];

		if (node->previous != OPS_NONE && replay->nodes.items[node->previous].end_ns > node->start_ns + SKEW_NS)
			node->previous = OPS_NONE;
	}
}

bool replay_device_link(struct replay *replay)
{
	struct device_link link = {.replay = replay};
	bool done = collect_work(&link);

	if (done && replay->work.count) {
		cut_overlaps(replay);
		done = find_launch_delay(replay) && find_work_steps(replay);
		for (size_t i = 0; done && i < replay->work.count; i++)
			done = link_launch(replay, replay->work.items[i]);
		done = done && link_dependencies(&link);
		for (size_t i = 0; done && i < replay->work.count; i++)
			done = link_stream(replay, replay->work.items[i]);
		done = done && link_blocking_calls(&link);
	}
	ops_free(link.node_of);
	return done;
}

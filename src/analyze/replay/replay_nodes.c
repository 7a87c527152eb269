/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of a trace, made in one pass over its rows. At each time a thread's time belongs to the innermost event. On
 * the thread of the steps, the time between events also forms nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/replay/replay.h"
#include "base/alloc.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/map.h"
#include "base/order.h"
#include "base/search.h"
#include "base/text.h"
#include "derive/blocking.h"
#include "derive/calls.h"
#include "derive/launches.h"
#include "derive/work.h"
#include "trace/kinds.h"

/* --- names ------------------------------------------------------------------------------------------------------------- */

static bool may_release(struct ops_string name)
{
	static const char *const words[] = {"release", "notify", "put", "set", "__exit__", "set_result", "task_done"};
	const char *last = name.bytes;
	size_t size;

	if (ops_string_starts(name, "<built-in method ")) {
		name.bytes += strlen("<built-in method ");
		name.size -= strlen("<built-in method ");
		last = memchr(name.bytes, ' ', name.size);
		size = last ? (size_t)(last - name.bytes) : name.size;
		last = name.bytes;
	} else {
		for (size_t i = 0; i < name.size; i++)
			if (name.bytes[i] == '.' || name.bytes[i] == ' ')
				last = name.bytes + i + 1;
		size = (size_t)(name.bytes + name.size - last);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (size == strlen(words[i]) && !memcmp(last, words[i], size))
			return true;
	return false;
}

static uint16_t replay_classify(struct ops_string name)
{
	enum ops_blocking blocking = ops_blocking_of(name);
	unsigned call = ops_call_of(name), what = 0;
	int64_t number;

	what |= call & OPS_CALL_STARTS_WORK ? REPLAY_NAME_LAUNCHES : 0;
	what |= call & OPS_CALL_BLOCKS ? REPLAY_NAME_BLOCKS : 0;
	what |= blocking == OPS_BLOCKING_LOCK || blocking == OPS_BLOCKING_QUEUE || blocking == OPS_BLOCKING_THREAD
	                ? REPLAY_NAME_WAITS : 0;
	what |= blocking == OPS_BLOCKING_PROCESS ? REPLAY_NAME_PROCESS : 0;
	what |= ops_string_contains(name, "run_backward") ? REPLAY_NAME_ENGINE : 0;
	what |= ops_string_starts(name, "autograd::engine::evaluate_function") ? REPLAY_NAME_NODE : 0;
	what |= ops_collective_of(name) == OPS_COLLECTIVE_HOST ? REPLAY_NAME_COLLECTIVE : 0;
	what |= ops_string_starts(name, "c10d::") ? REPLAY_NAME_DISTRIBUTED : 0;
	if (ops_is_batch_name(name))
		what |= REPLAY_NAME_BATCH | (ops_string_contains(name, "_SingleProcess") ? REPLAY_NAME_IN_PROCESS : 0);
	what |= ops_step_number(name, &number) ? REPLAY_NAME_STEP : 0;
	what |= may_release(name) ? REPLAY_NAME_RELEASES : 0;
	return (uint16_t)what;
}

static bool replay_read_names(struct replay *replay)
{
	size_t count = ops_trace_string_count(replay->trace);
	uint8_t *used = ops_alloc_zeroed(count + 1, 1);

	replay->names = ops_alloc_zeroed(count + 1, sizeof(*replay->names));
	for (size_t row = 0; used && replay->names && row < replay->events->count; row++) {
		uint32_t name = replay->events->name[row];

		if (!used[name])
			replay->names[name] = replay_classify(ops_trace_string(replay->trace, name));
		used[name] = 1;
	}
	ops_free(used);
	return used && replay->names;
}

/* --- threads of steps ---------------------------------------------------------------------------------------------------- */

/* By track: total time of its outermost operators. Those of the backward pass, which can have a separate thread, do not
 * count. */
static void replay_sum_operators(const struct replay *replay, int64_t *ns)
{
	const struct ops_events *events = replay->events;

	for (uint32_t row = 0; row < events->count; row++)
		if (events->kind[row] != OPS_EVENT_TRACE && events->parent[row] == OPS_NONE && replay_is_host_row(replay, row) &&
		    !replay_name_is(replay, row, REPLAY_NAME_NODE | REPLAY_NAME_COLLECTIVE))
			ns[events->track[row]] += (events->end_ns[row] - events->start_ns[row]) >> 8; /* avoids overflow */
}

/* Ranges of a coroutine overlap those of its thread. */
static bool replay_is_thread(const struct ops_track *track)
{
	return track->kind == OPS_TRACK_THREAD && !(track->flags & (OPS_TRACK_PID_TEXT | OPS_TRACK_COROUTINE));
}

/* Finds the thread of the steps of each process: the first that has steps, or else the one with most time in events. */
static bool find_mains(struct replay *replay)
{
	const struct ops_track *tracks = ops_trace_tracks(replay->trace, &replay->track_count);
	const struct ops_steps *steps = replay->trace_steps;
	size_t count = replay->track_count;
	int64_t *ns = ops_alloc_zeroed(count + 1, sizeof(*ns));
	struct ops_map mains = {0}; /* by process */
	bool done;

	replay->tracks = ops_alloc_zeroed(count + 1, sizeof(*replay->tracks));
	done = ns && replay->tracks;
	if (done && !steps->list.count)
		replay_sum_operators(replay, ns);
	for (size_t i = steps->list.count; done && i-- > 0;)
		ns[steps->list.items[i].track] = INT64_MAX - (int64_t)i;
	for (uint32_t track = 0; done && track < count; track++) {
		uint32_t *slot = replay_is_thread(&tracks[track]) ? ops_map_slot(&mains, (uint64_t)tracks[track].pid, track) : NULL;

		done = slot || !replay_is_thread(&tracks[track]);
		if (slot && ns[track] > ns[*slot])
			*slot = track;
	}
	for (uint32_t track = 0; done && track < count; track++) {
		uint32_t main = replay_is_thread(&tracks[track]) ? ops_map_find(&mains, (uint64_t)tracks[track].pid) : OPS_NONE;

		replay->tracks[track].main = main != OPS_NONE && ns[main] > 0 ? main : OPS_NONE;
	}
	ops_map_release(&mains);
	ops_free(ns);
	return done;
}

/* --- nodes ------------------------------------------------------------------------------------------------------------- */

struct replay_sweep {
	struct replay *replay;
	const struct replay_cut *cuts; /* by track and time */
	size_t cut_count;
	uint32_t *current;  /* by track: the innermost open row */
	int64_t *cursor_ns; /* by track: the end of its last node */
	size_t *cut;        /* by track: its next cut */
};

static void sweep_push(struct replay_sweep *sweep, uint32_t track, int64_t start_ns, int64_t end_ns, uint32_t row)
{
	struct replay_track *at = &sweep->replay->tracks[track];

	sweep->replay->nodes.items[at->first + at->count++] = (struct replay_node){
		.start_ns = start_ns, .end_ns = end_ns, .row = row, .previous = OPS_NONE, .edges = OPS_NONE, .track = track};
}

/* Assigns the time of a thread up to `time_ns` to a row. Time outside of rows is dropped, except on the thread of the
 * steps. */
static void sweep_to(struct replay_sweep *sweep, uint32_t track, int64_t time_ns, uint32_t row)
{
	int64_t start_ns = sweep->cursor_ns[track];

	if (time_ns <= start_ns)
		return;
	if (start_ns != INT64_MIN && (row != OPS_NONE || replay_is_main(sweep->replay, track))) {
		for (; sweep->cut[track] < sweep->cut_count && sweep->cuts[sweep->cut[track]].track == track &&
		       sweep->cuts[sweep->cut[track]].time_ns < time_ns;
		     sweep->cut[track]++) {
			int64_t cut_ns = sweep->cuts[sweep->cut[track]].time_ns;

			if (cut_ns <= start_ns)
				continue;
			sweep_push(sweep, track, start_ns, cut_ns, row);
			start_ns = cut_ns;
		}
		sweep_push(sweep, track, start_ns, time_ns, row);
	}
	sweep->cursor_ns[track] = time_ns;
}

/* Closes the open rows from the innermost up to `until`. */
static void sweep_close(struct replay_sweep *sweep, uint32_t track, uint32_t until)
{
	const struct ops_events *events = sweep->replay->events;

	while (sweep->current[track] != until && sweep->current[track] != OPS_NONE) {
		sweep_to(sweep, track, events->end_ns[sweep->current[track]], sweep->current[track]);
		sweep->current[track] = events->parent[sweep->current[track]];
	}
}

static void sweep_row(struct replay_sweep *sweep, const struct ops_track *tracks, uint32_t row)
{
	const struct ops_events *events = sweep->replay->events;
	uint32_t track = events->track[row];

	if (ops_kind_is_work(events->kind[row])) {
		sweep_push(sweep, track, events->start_ns[row], events->end_ns[row], row);
		return;
	}
	if (!replay_is_thread(&tracks[track]) || !replay_is_host_row(sweep->replay, row))
		return;
	sweep_close(sweep, track, events->parent[row]);
	sweep_to(sweep, track, events->start_ns[row], events->parent[row]);
	sweep->current[track] = row;
}

/* A row makes at most two nodes: the time before it, and its time after its children. */
static bool sweep_init(struct replay_sweep *sweep)
{
	struct replay *replay = sweep->replay;
	size_t count = replay->track_count, total = 0;

	sweep->current = ops_realloc_array(NULL, count + 1, sizeof(*sweep->current));
	sweep->cursor_ns = ops_realloc_array(NULL, count + 1, sizeof(*sweep->cursor_ns));
	sweep->cut = ops_alloc_zeroed(count + 1, sizeof(*sweep->cut));
	if (!sweep->current || !sweep->cursor_ns || !sweep->cut)
		return false;
	for (uint32_t track = 0; track < count; track++)
		replay->tracks[track].count = 0;
	for (uint32_t row = 0; row < replay->events->count; row++)
		replay->tracks[replay->events->track[row]].count += ops_kind_is_work(replay->events->kind[row]) ? 1 : 2;
	for (size_t i = 0; i < sweep->cut_count; i++)
		replay->tracks[sweep->cuts[i].track].count++;
	for (uint32_t track = 0; track < count; track++) {
		size_t low = 0;

		OPS_LOWER_BOUND(low, sweep->cut_count, i, sweep->cuts[i].track < track);
		sweep->cut[track] = low;
		sweep->current[track] = OPS_NONE;
		sweep->cursor_ns[track] = INT64_MIN;
		replay->tracks[track].first = (uint32_t)total;
		total += replay->tracks[track].count;
		replay->tracks[track].count = 0;
	}
	replay->nodes.count = 0;
	return total < UINT32_MAX && OPS_ARRAY_RESERVE(&replay->nodes, total + 1);
}

/* Moves the nodes of all tracks next to each other. */
static void sweep_pack(struct replay *replay)
{
	uint32_t used = 0;

	for (uint32_t track = 0; track < replay->track_count; track++) {
		struct replay_track *at = &replay->tracks[track];

		memmove(&replay->nodes.items[used], &replay->nodes.items[at->first], at->count * sizeof(*replay->nodes.items));
		at->first = used;
		for (uint32_t i = 1; i < at->count; i++)
			replay->nodes.items[used + i].previous = used + i - 1;
		used += at->count;
	}
	replay->nodes.count = used;
}

static bool replay_sweep_nodes(struct replay *replay, const struct replay_cut *cuts, size_t cut_count)
{
	struct replay_sweep sweep = {.replay = replay, .cuts = cuts, .cut_count = cut_count};
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(replay->trace, &count);
	bool done = sweep_init(&sweep);

	for (uint32_t row = 0; done && row < replay->events->count; row++)
		sweep_row(&sweep, tracks, row);
	for (uint32_t track = 0; done && track < count; track++)
		sweep_close(&sweep, track, OPS_NONE);
	if (done)
		sweep_pack(replay);
	ops_free(sweep.current);
	ops_free(sweep.cursor_ns);
	ops_free(sweep.cut);
	return done;
}

uint32_t replay_node_at(const struct replay *replay, uint32_t track, int64_t time_ns)
{
	const struct replay_track *at = &replay->tracks[track];
	size_t low = at->first;

	OPS_LOWER_BOUND(low, (size_t)at->first + at->count, i, replay->nodes.items[i].end_ns < time_ns);
	return low < (size_t)at->first + at->count && replay->nodes.items[low].start_ns < time_ns ? (uint32_t)low : OPS_NONE;
}

uint32_t replay_node_before(const struct replay *replay, uint32_t track, int64_t time_ns)
{
	const struct replay_track *at = &replay->tracks[track];
	size_t low = at->first;

	OPS_LOWER_BOUND(low, (size_t)at->first + at->count, i, replay->nodes.items[i].end_ns <= time_ns);
	return low > at->first ? (uint32_t)low - 1 : OPS_NONE;
}

bool replay_add_edge(struct replay *replay, uint32_t to, uint32_t source, int64_t lag_ns)
{
	struct replay_edge *edge = OPS_ARRAY_PUSH(&replay->edges);

	if (!edge)
		return false;
	*edge = (struct replay_edge){.lag_ns = lag_ns > 0 ? lag_ns : 0, .source = source, .next = replay->nodes.items[to].edges};
	replay->nodes.items[to].edges = (uint32_t)replay->edges.count - 1;
	return true;
}

/* --- cuts -------------------------------------------------------------------------------------------------------------- */

OPS_ORDER(compare_cuts, struct replay_cut, OPS_UP(track) OPS_UP(time_ns))

/* Cuts nodes where threads synchronise, and where derived steps begin and end. */
static bool replay_cut_nodes(struct replay *replay, const struct replay_joins *joins)
{
	const struct ops_steps *steps = replay->trace_steps;
	OPS_ARRAY(struct replay_cut) cuts = {0};
	bool done = OPS_ARRAY_RESERVE(&cuts, 2 * (joins->items.count + steps->list.count) + 1);

	for (size_t i = 0; done && i < joins->items.count; i++) {
		const struct replay_join *join = &joins->items.items[i];

		cuts.items[cuts.count++] = (struct replay_cut){join->from, join->from_ns};
		cuts.items[cuts.count++] = (struct replay_cut){join->to, join->to_ns};
	}
	for (size_t i = 0; done && i < steps->list.count; i++) {
		cuts.items[cuts.count++] = (struct replay_cut){steps->list.items[i].track, steps->list.items[i].start_ns};
		cuts.items[cuts.count++] = (struct replay_cut){steps->list.items[i].track, steps->list.items[i].end_ns};
	}
	if (done && cuts.count) {
		qsort(cuts.items, cuts.count, sizeof(*cuts.items), compare_cuts);
		done = replay_sweep_nodes(replay, cuts.items, cuts.count);
	}
	OPS_ARRAY_RELEASE(&cuts);
	return done;
}

/* --- steps ------------------------------------------------------------------------------------------------------------- */

static bool replay_add_step(struct replay *replay, int64_t number, uint32_t track, int64_t start_ns, int64_t end_ns)
{
	struct replay_step *step = OPS_ARRAY_PUSH(&replay->steps);

	if (!step)
		return false;
	*step = (struct replay_step){.number = number, .start_ns = start_ns, .end_ns = end_ns,
	                             .start = replay_node_before(replay, track, start_ns),
	                             .end = replay_node_before(replay, track, end_ns)};
	return true;
}

/* Uses the steps of the first process: the ranks of a merged trace take theirs together. */
static bool replay_find_steps(struct replay *replay)
{
	const struct ops_steps *steps = replay->trace_steps;
	uint32_t main = OPS_NONE;
	bool done = true;

	for (size_t i = 0; done && i < steps->list.count; i++) {
		const struct ops_step *step = &steps->list.items[i];

		main = main == OPS_NONE ? step->track : main;
		if (step->track == main)
			done = replay_add_step(replay, step->number, main, step->start_ns, step->end_ns);
	}
	for (uint32_t track = 0; main == OPS_NONE && done && track < replay->track_count; track++) {
		const struct replay_track *at = &replay->tracks[track];

		if (!replay_is_main(replay, track) || !at->count)
			continue;
		main = track;
		done = replay_add_step(replay, 0, track, replay->nodes.items[at->first].start_ns,
		                       replay->nodes.items[at->first + at->count - 1].end_ns);
	}
	return done;
}

/* Step i ends when its last work on a device ends. It begins at its start on the host, or when the work of step i - 1
 * ends, if that is later. */
static void measure_steps(struct replay *replay)
{
	int64_t before_ns = INT64_MIN;
	size_t count = replay->steps.count;

	for (size_t i = 0; i < count; i++)
		replay->steps.items[i].measured_ns = replay->steps.items[i].end_ns;
	for (size_t i = 0; i < replay->work.count; i++) {
		uint32_t step = replay->work_step[i];
		int64_t end_ns = replay->nodes.items[replay->work.items[i]].end_ns;

		if (step != OPS_NONE && end_ns > replay->steps.items[step].measured_ns)
			replay->steps.items[step].measured_ns = end_ns;
	}
	for (size_t i = 0; i < count; i++) {
		struct replay_step *step = &replay->steps.items[i];
		int64_t end_ns = step->measured_ns > before_ns ? step->measured_ns : before_ns;

		step->measured_ns = end_ns - (before_ns > step->start_ns ? before_ns : step->start_ns);
		before_ns = end_ns;
	}
}

/* --- construction ------------------------------------------------------------------------------------------------------ */

static void read_processors(struct replay *replay)
{
	struct ops_string json, key, value;
	struct ops_json_walk walk;

	if (!ops_trace_find_metadata(replay->trace, "machine", &json) || json.bytes[0] != '{')
		return;
	walk = ops_json_walk(json.bytes, json.size);
	while (ops_json_next_member(&walk, &key, &value))
		if (ops_string_is(key, "processors"))
			ops_json_parse_number(value, &replay->processors);
}

bool replay_init(struct replay *replay, const struct ops_trace *trace)
{
	struct replay_joins joins = {0};
	bool done;

	*replay = (struct replay){.trace = trace, .events = ops_trace_events(trace)};
	replay->launchers = ops_launchers(trace);
	replay->trace_steps = ops_steps_of(trace);
	read_processors(replay);
	done = replay->launchers && replay->trace_steps && replay_read_names(replay) && find_mains(replay) &&
	       replay_sweep_nodes(replay, NULL, 0) && replay_threads_find(replay, &joins) && replay_cut_nodes(replay, &joins) &&
	       replay_threads_link(replay, &joins) && replay_find_steps(replay) && replay_device_link(replay) &&
	       replay_loader_find(replay);
	if (done)
		measure_steps(replay);
	OPS_ARRAY_RELEASE(&joins.items);
	return done;
}

void replay_release(struct replay *replay)
{
	ops_free(replay->names);
	ops_free(replay->tracks);
	ops_free(replay->work_step);
	OPS_ARRAY_RELEASE(&replay->nodes);
	OPS_ARRAY_RELEASE(&replay->edges);
	OPS_ARRAY_RELEASE(&replay->steps);
	OPS_ARRAY_RELEASE(&replay->work);
	OPS_ARRAY_RELEASE(&replay->batches);
}

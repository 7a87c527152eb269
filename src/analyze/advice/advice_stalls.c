/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows waited, according to the operating system's scheduler. The names of calls do not show all waits: `with
 * lock:` makes no call that a recording contains, and no call waits for the global interpreter lock (GIL). Samples of
 * thread states show both.
 *
 *     step thread    ──[ train    ░░░░░░░░ waits for a lock ░░░░   ]──
 *     other thread   ──[ save         ▒▒ sleeps ▒▒▒                ]──   the only one that does not wait for a lock, so it holds it
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/search.h"
#include "derive/program.h"
#include "trace/track_rows.h"

struct stalls {
	struct advice *advice;
	struct ops_thread_states states;
	uint32_t *track_of;    /* by sampled thread; OPS_NONE: none */
	struct ops_track_rows rows;
	size_t *first_stack;   /* by sampled thread: index of its first sampled stack, if calls were not recorded */
};

static bool find_first_stacks(struct stalls *stalls)
{
	const struct ops_python_samples *samples = &stalls->advice->samples;

	stalls->first_stack = ops_realloc_array(NULL, stalls->states.threads.count + 1, sizeof(*stalls->first_stack));
	for (size_t i = 0; stalls->first_stack && i < stalls->states.threads.count; i++)
		stalls->first_stack[i] = samples->samples.count;
	/* Samples are grouped by thread. */
	for (size_t n = samples->samples.count; stalls->first_stack && n-- > 0;) {
		int64_t tid = samples->samples.items[n].tid;

		for (size_t i = 0; (!n || samples->samples.items[n - 1].tid != tid) && i < stalls->states.threads.count; i++)
			if (stalls->states.threads.items[i].tid == tid)
				stalls->first_stack[i] = n;
	}
	return stalls->first_stack;
}

/* --- other threads --------------------------------------------------------------------------------------------------- */

static bool stalls_find_tracks(struct stalls *stalls)
{
	size_t tracks;
	const struct ops_track *track = ops_trace_tracks(stalls->advice->trace, &tracks);

	stalls->track_of = ops_realloc_array(NULL, stalls->states.threads.count + 1, sizeof(*stalls->track_of));
	if (!ops_track_rows_init(&stalls->rows, stalls->advice->trace) || !stalls->track_of)
		return false;
	for (size_t i = 0; i < stalls->states.threads.count; i++) {
		stalls->track_of[i] = OPS_NONE;
		for (size_t t = 0; t < tracks; t++)
			if (track[t].kind == OPS_TRACK_THREAD && track[t].tid == stalls->states.threads.items[i].tid)
				stalls->track_of[i] = (uint32_t)t;
	}
	return true;
}

/* Returns the innermost row of a track at a time; OPS_NONE: none. */
static uint32_t row_at(const struct stalls *stalls, uint32_t track, int64_t time_ns)
{
	const struct ops_events *events = stalls->advice->events;
	size_t at = stalls->rows.first[track];
	uint32_t row;

	OPS_LOWER_BOUND(at, stalls->rows.first[track + 1], i, events->start_ns[stalls->rows.rows[i]] <= time_ns);
	row = at > stalls->rows.first[track] ? stalls->rows.rows[at - 1] : OPS_NONE;
	while (row != OPS_NONE && events->end_ns[row] <= time_ns)
		row = events->parent[row];
	return row;
}

static enum ops_thread_state state_at(const struct ops_thread_samples *thread, int64_t time_ns)
{
	size_t at = ops_thread_span_after(thread, time_ns);

	return at < thread->spans.count && thread->spans.items[at].start_ns <= time_ns ? thread->spans.items[at].state
	                                                                              : OPS_THREAD_STATES;
}

/* Finds the holder of a lock: for the GIL a thread that is in Python and can run, for another lock the only thread that
 * does not wait for a lock. */
static uint32_t find_holder(const struct stalls *stalls, const struct ops_thread_part *part)
{
	const struct ops_events *events = stalls->advice->events;
	int64_t time_ns = part->start_ns + (part->end_ns - part->start_ns) / 2;
	uint32_t holder = OPS_NONE;

	for (uint32_t i = 0; i < stalls->states.threads.count; i++) {
		enum ops_thread_state state = state_at(&stalls->states.threads.items[i], time_ns);
		uint32_t row = i != part->thread && stalls->track_of[i] != OPS_NONE ? row_at(stalls, stalls->track_of[i], time_ns)
		                                                                    : OPS_NONE;

		if (row == OPS_NONE || state == OPS_THREAD_STATES || state == OPS_THREAD_GIL || state == OPS_THREAD_LOCK)
			continue;
		if (part->state == OPS_THREAD_GIL &&
		    (events->kind[row] != OPS_EVENT_PYTHON_FUNCTION || state > OPS_THREAD_READY))
			continue;
		if (holder != OPS_NONE)
			return OPS_NONE;
		holder = row;
	}
	return holder;
}

/* --- places ---------------------------------------------------------------------------------------------------------- */

static bool is_step(const struct advice *advice, uint32_t row)
{
	return advice->views->parts[row] == VIEW_STEP;
}

static uint32_t stalls_line_of(const struct advice *advice, uint32_t row)
{
	return row != OPS_NONE && advice->events->call_line ? advice->events->call_line[row] : 0;
}

/* The self time of a function has no line, but lies between two of its calls. A block that waits first, such as `with
 * lock:`, is on the line before the next call. */
static bool stalls_place(struct advice *advice, const struct ops_thread_part *part, uint32_t *ret_site)
{
	uint32_t before = stalls_line_of(advice, part->before), line = stalls_line_of(advice, part->after), frame = part->row;

	/* The mark of a step is around calls of the function that contains it. */
	if (is_step(advice, frame) && advice->caller[frame] != OPS_NONE)
		frame = advice->caller[frame];
	*ret_site = advice_own_site(advice, frame);
	if (*ret_site == OPS_NONE)
		*ret_site = advice->site[frame];
	else if (line)
		return advice_add_site(advice, frame, line - 1 != before && line > 1 ? line - 1 : line, ret_site);
	else if (before)
		return advice_add_site(advice, frame, before + 1, ret_site);
	return true;
}

/* Returns the time of a part that a sampled stack of its row represents. A sample represents the time before it. */
static int64_t sampled_ns(const struct advice *advice, const struct ops_thread_part *part, size_t sample)
{
	const struct ops_python_sample *of = &advice->samples.samples.items[sample];
	int64_t start_ns = of->time_ns - of->weight_ns > part->start_ns ? of->time_ns - of->weight_ns : part->start_ns;
	int64_t end_ns = of->time_ns < part->end_ns ? of->time_ns : part->end_ns;

	return advice->sample_row[sample] == part->row && advice->sample_site[sample] != OPS_NONE && end_ns > start_ns ? end_ns - start_ns : 0;
}

static uint32_t stalls_site_of(const struct advice *advice, uint32_t row)
{
	uint32_t site = row == OPS_NONE ? OPS_NONE : advice_own_site(advice, row);

	return site != OPS_NONE || row == OPS_NONE ? site : advice->site[row];
}

/* Divides a stall among the lines in which samples of the row found the program. Adds it unchanged if there are none. */
static bool add_at_sampled_lines(const struct stalls *stalls, const struct ops_thread_part *part, struct advice_stall stall)
{
	struct advice *advice = stalls->advice;
	const struct ops_python_samples *samples = &advice->samples;
	size_t first = stalls->first_stack[part->thread], last;
	int64_t tid = stalls->states.threads.items[part->thread].tid, all_ns = 0, ns;

	OPS_LOWER_BOUND(first, samples->samples.count, i, samples->samples.items[i].tid == tid && samples->samples.items[i].time_ns <= part->start_ns);
	for (last = first; last < samples->samples.count && samples->samples.items[last].tid == tid; last++) {
		const struct ops_python_sample *of = &samples->samples.items[last];

		if (of->time_ns - of->weight_ns >= part->end_ns)
			break;
		all_ns += sampled_ns(advice, part, last);
	}
	if (all_ns <= 0)
		return OPS_ARRAY_APPEND(&advice->stalls, stall);
	ns = stall.ns;
	for (size_t i = first; i < last; i++) {
		stall.site = advice->sample_site[i];
		stall.ns = (int64_t)((double)ns * (double)sampled_ns(advice, part, i) / (double)all_ns);
		if (stall.ns > 0 && !OPS_ARRAY_APPEND(&advice->stalls, stall))
			return false;
	}
	return true;
}

static bool add_stall(void *context, const struct ops_thread_part *part)
{
	struct stalls *stalls = context;
	struct advice *advice = stalls->advice;
	struct advice_stall stall = {part->row, OPS_NONE, part->state, part->end_ns - part->start_ns, OPS_NONE, OPS_NONE};

	/* advice_waits.c has already subtracted ready time from the row. */
	if (part->state == OPS_THREAD_GIL || part->state == OPS_THREAD_LOCK)
		stall.ns -= ops_thread_states_starved_ns(&stalls->states, part->thread, part->start_ns, part->end_ns);

	if (part->state == OPS_THREAD_RUNNING || part->state == OPS_THREAD_READY || part->row == OPS_NONE ||
	    !advice_counts(advice, part->row) ||
	    (advice->events->kind[part->row] != OPS_EVENT_PYTHON_FUNCTION && !is_step(advice, part->row)))
		return true;
	advice->stalled_self_ns[part->row] = ops_sum(advice->stalled_self_ns[part->row], stall.ns);
	if (part->state == OPS_THREAD_GIL || part->state == OPS_THREAD_LOCK) {
		stall.holder = find_holder(stalls, part);
		stall.holder_site = stalls_site_of(advice, stall.holder);
	}
	return stalls_place(advice, part, &stall.site) && add_at_sampled_lines(stalls, part, stall);
}

bool advice_find_stalls(struct advice *advice)
{
	struct stalls stalls = {.advice = advice};
	bool done = ops_thread_states_read(&stalls.states, advice->trace);

	if (done && stalls.states.threads.count)
		done = stalls_find_tracks(&stalls) && find_first_stacks(&stalls) && ops_thread_states_walk(&stalls.states, advice->trace, add_stall, &stalls);
	advice->sampled = stalls.states.threads.count > 0;
	/* Samples are coarser than rows, and self times exclude the overhead of recording. */
	for (size_t i = 0; i < advice->stalls.count; i++) {
		struct advice_stall *stall = &advice->stalls.items[i];
		int64_t all_ns = advice->stalled_self_ns[stall->row], self_ns = advice->self_ns[stall->row];

		if (all_ns > self_ns)
			stall->ns = (int64_t)((double)stall->ns * (double)self_ns / (double)all_ns);
	}
	/* Walks from the last row to the first, since children come after their parents. */
	for (uint32_t row = (uint32_t)advice->events->count; done && row-- > 0;) {
		uint32_t parent = advice->events->parent[row];

		if (advice->stalled_self_ns[row] > advice->self_ns[row])
			advice->stalled_self_ns[row] = advice->self_ns[row];
		advice->stalled_ns[row] = ops_sum(advice->stalled_ns[row], advice->stalled_self_ns[row]);
		if (parent != OPS_NONE && advice->stalled_ns[row])
			advice->stalled_ns[parent] = ops_sum(advice->stalled_ns[parent], advice->stalled_ns[row]);
	}
	ops_track_rows_release(&stalls.rows);
	ops_free(stalls.track_of);
	ops_free(stalls.first_stack);
	ops_thread_states_release(&stalls.states);
	return done;
}

/* --- texts ----------------------------------------------------------------------------------------------------------- */

void advice_describe_holder(const struct advice *advice, enum ops_thread_state state, char *text, size_t size)
{
	int64_t *by_site = advice->stalls.count ? ops_alloc_zeroed(advice->sites.count + 1, sizeof(*by_site)) : NULL;
	int64_t all_ns = 0;
	const struct advice_stall *most = NULL;
	struct advice_where where;

	for (size_t i = 0; by_site && i < advice->stalls.count; i++) {
		const struct advice_stall *stall = &advice->stalls.items[i];

		if (stall->state != state || (advice->zone[stall->row] & ADVICE_IN_LOADER))
			continue;
		all_ns = ops_sum(all_ns, stall->ns);
		if (stall->holder_site == OPS_NONE)
			continue;
		by_site[stall->holder_site] = ops_sum(by_site[stall->holder_site], stall->ns);
		if (!most || by_site[stall->holder_site] > by_site[most->holder_site])
			most = stall;
	}
	*text = '\0';
	/* A place that occurs in less than a third of the time is coincidence. */
	if (most && by_site[most->holder_site] >= all_ns / 3) {
		where = advice_describe(advice, most->holder_site, most->holder);
		snprintf(text, size, " Meanwhile another thread is in %.*s (%.*s:%u).", (int)where.function.size,
		         where.function.bytes, (int)where.file.size, where.file.bytes, where.line);
	}
	ops_free(by_site);
}

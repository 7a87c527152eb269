/* SPDX-License-Identifier: Apache-2.0
 *
 * The extent of a trace, and its threads; see extent.h.
 */
#include "derive/extent.h"

#include "base/alloc.h"
#include "base/sum.h"

struct ops_interval ops_extent_of(const struct ops_trace *trace)
{
	return (struct ops_interval){ops_trace_origin(trace), ops_trace_end(trace)};
}

/* Marks the tracks that have events of the program. Returns NULL if out of memory. */
static uint8_t *extent_find_used(const struct ops_trace *trace, size_t track_count)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint8_t *used = ops_alloc_zeroed(track_count + 1, 1);

	for (size_t row = 0; used && row < events->count; row++)
		if (events->kind[row] != OPS_EVENT_TRACE && events->kind[row] != OPS_EVENT_MARK)
			used[events->track[row]] = 1;
	return used;
}

size_t ops_thread_count(const struct ops_trace *trace)
{
	size_t count, threads = 0;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	uint8_t *used = NULL;

	for (size_t i = 0; i < count; i++) {
		if (tracks[i].kind != OPS_TRACK_THREAD || tracks[i].flags & OPS_TRACK_COROUTINE)
			continue;
		if (tracks[i].flags & OPS_TRACK_PID_TEXT && !used)
			used = extent_find_used(trace, count);
		threads += !(tracks[i].flags & OPS_TRACK_PID_TEXT) || !used || used[i];
	}
	ops_free(used);
	return threads;
}

size_t ops_busiest_track(const struct ops_trace *trace, const int64_t *work_ns)
{
	int64_t process = ops_trace_info(trace)->pid;
	size_t count, most = 0, most_own = OPS_NONE;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	for (size_t i = 0; i < count; i++) {
		most = work_ns[i] > work_ns[most] ? i : most;
		if (work_ns[i] > 0 && tracks[i].pid == process && (most_own == OPS_NONE || work_ns[i] > work_ns[most_own]))
			most_own = i;
	}
	return most_own == OPS_NONE ? most : most_own;
}

bool ops_busiest_thread(const struct ops_trace *trace, bool of_operators, uint32_t *ret_track)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count, most;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);
	int64_t *work_ns = ops_alloc_zeroed(count + 1, sizeof(*work_ns));

	for (size_t row = 0; work_ns && row < events->count; row++)
		if (tracks[events->track[row]].kind == OPS_TRACK_THREAD && !(events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)) &&
		    (!of_operators || events->kind[row] == OPS_EVENT_CPU_OP))
			work_ns[events->track[row]] = ops_sum(work_ns[events->track[row]], events->self_ns[row]);
	most = work_ns ? ops_busiest_track(trace, work_ns) : 0;
	*ret_track = work_ns && work_ns[most] > 0 ? (uint32_t)most : OPS_NONE;
	ops_free(work_ns);
	return work_ns != NULL;
}

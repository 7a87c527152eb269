/* SPDX-License-Identifier: Apache-2.0
 *
 * When other threads of the process run Python. CPython runs one thread at a time (the GIL). If two threads are in
 * Python functions, one of them waits, and a trace does not show which.
 *
 *     step thread    ──[ collate                     ]──
 *     other thread   ──────────[ log                 ]──
 *                              ├─ one of both waits ─┤
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

struct walk {
	const struct advice *advice;
	uint32_t *current; /* by track: the innermost row that is open */
	int64_t *last_ns;  /* by track: end of the time processed so far */
	struct ops_intervals own, others; /* times at which the thread of the steps runs Python, and others do */
};

/* C functions may have released the lock. */
static bool runs_python(const struct advice *advice, uint32_t row)
{
	struct ops_function_text function;

	return advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && !(advice->zone[row] & ADVICE_WAITING) &&
	       ops_event_function(advice->trace, row, &function) && function.file.size;
}

/* Advances to a time, and gives open rows their self time up to it. */
static bool advice_interpreter_go_on(struct walk *walk, uint32_t track, int64_t time_ns)
{
	const struct ops_events *events = walk->advice->events;
	uint32_t *row = &walk->current[track];

	for (; *row != OPS_NONE; *row = events->parent[*row]) {
		int64_t until_ns = events->end_ns[*row] < time_ns ? events->end_ns[*row] : time_ns;
		bool parallel = walk->advice->zone[*row] & ADVICE_PARALLEL;

		if (until_ns > walk->last_ns[track]) {
			if (runs_python(walk->advice, *row) && (parallel || advice_counts(walk->advice, *row)) &&
			    !ops_intervals_push(parallel ? &walk->others : &walk->own, walk->last_ns[track], until_ns))
				return false;
			walk->last_ns[track] = until_ns;
		}
		if (events->end_ns[*row] > time_ns)
			break;
	}
	walk->last_ns[track] = time_ns;
	return true;
}

bool advice_find_shared_ns(const struct advice *advice, int64_t *ret_ns)
{
	const struct ops_events *events = advice->events;
	struct walk walk = {.advice = advice};
	struct ops_intervals both = {0};
	size_t tracks;
	bool done;

	ops_trace_tracks(advice->trace, &tracks);
	walk.current = ops_alloc_none(tracks + 1);
	walk.last_ns = ops_alloc_zeroed(tracks + 1, sizeof(*walk.last_ns));
	done = walk.current && walk.last_ns;
	for (uint32_t row = 0; done && row < events->count; row++) {
		if ((events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)) || advice_is_device_work(advice, row))
			continue;
		done = advice_interpreter_go_on(&walk, events->track[row], events->start_ns[row]);
		walk.current[events->track[row]] = row;
	}
	for (uint32_t track = 0; done && track < tracks; track++)
		done = advice_interpreter_go_on(&walk, track, INT64_MAX);
	ops_intervals_sort(&walk.own);
	ops_intervals_sort(&walk.others);
	done = done && ops_intervals_intersect(&walk.own, &walk.others, &both);
	if (done)
		*ret_ns = ops_intervals_length(&both);
	ops_intervals_release(&walk.own);
	ops_intervals_release(&walk.others);
	ops_intervals_release(&both);
	ops_free(walk.current);
	ops_free(walk.last_ns);
	return done;
}

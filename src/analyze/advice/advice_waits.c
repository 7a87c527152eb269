/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows had to wait for the processor. The kernel says of each step how long its thread was ready to run while other
 * programs had the processors ("machine" in the metadata), and not where. But most of that falls on few rows, for
 * milliseconds each, and those stand out among their like: rows of the same name at the same place of the tree, in other
 * rounds and other steps. From the one that stands out most on, the wait is taken out of them until it is used up; the rest
 * fell on all that ran, in proportion to its time.
 */
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Of fewer rows the median says nothing. */
#define LIKE_MIN 3
/* To be sent away from a processor and back takes some microseconds at least; what stands out less is noise. */
#define WAIT_NS_MIN 20000

struct own {
	uint64_t path; /* then the row's step */
	int64_t ns;    /* own time; then what it is beyond the median */
	uint32_t row;
};

static int by_path(const void *a, const void *b)
{
	const struct own *left = a, *right = b;

	if (left->path != right->path)
		return left->path < right->path ? -1 : 1;
	return (left->ns > right->ns) - (left->ns < right->ns);
}

static int by_step(const void *a, const void *b)
{
	const struct own *left = a, *right = b;

	if (left->path != right->path)
		return left->path < right->path ? -1 : 1;
	if (left->ns != right->ns)
		return left->ns > right->ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

/* The track that steps are marked on: the waits are that thread's. */
static uint32_t track_of_steps(const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->views->parts[row] == VIEW_STEP)
			return advice->events->track[row];
	return OPS_NONE;
}

/* By row: its place in the tree, by names and lines. Steps are alike whatever their number. */
static void find_paths(const struct advice *advice, uint64_t *paths)
{
	const struct ops_events *events = advice->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint64_t name = advice->views->parts[row] == VIEW_STEP ? OPS_NONE : events->name[row];
		uint64_t line = events->call_line ? events->call_line[row] : 0;
		uint64_t above = events->parent[row] == OPS_NONE ? 0 : paths[events->parent[row]];

		paths[row] = ((above ^ name) * 0x9e3779b97f4a7c15u ^ line) * 0xbf58476d1ce4e5b9u;
		paths[row] ^= paths[row] >> 31;
	}
}

/* The rows of steps on a track, `path` each's own; `steps` tells each's step. */
static size_t gather(const struct advice *advice, uint32_t track, const uint64_t *paths, struct own *rows, uint32_t *steps)
{
	const struct ops_events *events = advice->events;
	size_t count = 0, at = 0;

	for (uint32_t row = 0; row < events->count; row++) {
		at = advice_next_step(advice, at, events->start_ns[row]);
		if (events->track[row] != track || (events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)) ||
		    events->start_ns[row] < advice->views->steps.items[at].host_start_ns ||
		    events->start_ns[row] >= advice->views->steps.items[at].end_ns)
			continue;
		steps[row] = (uint32_t)at;
		rows[count++] = (struct own){paths[row], advice->self_ns[row], row};
	}
	return count;
}

/* Leaves of each row what its own time is beyond the median of its like. */
static void find_excess(struct own *rows, size_t count, const uint32_t *steps)
{
	qsort(rows, count, sizeof(*rows), by_path);
	for (size_t first = 0, next; first < count; first = next) {
		int64_t median_ns;

		for (next = first + 1; next < count && rows[next].path == rows[first].path; next++)
			;
		median_ns = next - first < LIKE_MIN ? INT64_MAX : rows[first + (next - first) / 2].ns;
		for (size_t i = first; i < next; i++)
			rows[i].ns = rows[i].ns > median_ns ? rows[i].ns - median_ns : 0;
	}
	for (size_t i = 0; i < count; i++)
		rows[i].path = steps[rows[i].row];
	qsort(rows, count, sizeof(*rows), by_step);
}

/* A step's rows, from the one that stands out most on. */
static void take_waits(struct advice *advice, const struct own *rows, size_t count, const struct ops_step_wait *wait)
{
	int64_t left_ns = wait->waited_ns, own_ns = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t ns = rows[i].ns < left_ns ? rows[i].ns : left_ns;

		if (ns >= WAIT_NS_MIN) {
			advice->lost_ns[rows[i].row] = ns;
			left_ns -= ns;
		}
		own_ns = ops_sum(own_ns, ops_difference(advice->self_ns[rows[i].row], advice->lost_ns[rows[i].row]));
	}
	/* What ran, and not what slept or waited for others, is what could be sent away. */
	if (left_ns <= 0 || wait->ran_ns < own_ns / 2 || left_ns >= own_ns)
		return;
	for (size_t i = 0; i < count; i++) {
		int64_t ns = ops_difference(advice->self_ns[rows[i].row], advice->lost_ns[rows[i].row]);

		advice->lost_ns[rows[i].row] += (int64_t)((double)ns * (double)left_ns / (double)own_ns);
	}
}

/* Below each row, as well: children stand behind their parents. */
static bool correct(struct advice *advice)
{
	int64_t *below_ns = ops_alloc_zeroed(advice->events->count + 1, sizeof(*below_ns));

	for (uint32_t row = (uint32_t)advice->events->count; below_ns && row-- > 0;) {
		uint32_t parent = advice->events->parent[row];

		below_ns[row] = ops_sum(below_ns[row], advice->lost_ns[row]);
		advice->self_ns[row] = ops_difference(advice->self_ns[row], advice->lost_ns[row]);
		advice->ns[row] = ops_difference(advice->ns[row], below_ns[row]);
		if (advice->ns[row] < 0)
			advice->ns[row] = 0;
		if (parent != OPS_NONE)
			below_ns[parent] = ops_sum(below_ns[parent], below_ns[row]);
	}
	ops_free(below_ns);
	return below_ns != NULL;
}

bool advice_take_out_waits(struct advice *advice)
{
	size_t rows_max = advice->events->count + 1, count;
	uint32_t track = track_of_steps(advice), *steps;
	uint64_t *paths;
	struct own *rows;
	bool done;

	/* Times of ranks are compared with each other, and a device has its own. */
	if (!advice->machine.has_waits || advice_is_oversubscribed(advice) || track == OPS_NONE ||
	    advice->views->device_events.count || advice->views->has_collectives)
		return true;
	paths = ops_realloc_array(NULL, rows_max, sizeof(*paths));
	steps = ops_realloc_array(NULL, rows_max, sizeof(*steps));
	rows = ops_realloc_array(NULL, rows_max, sizeof(*rows));
	done = paths && steps && rows;
	if (done) {
		find_paths(advice, paths);
		count = gather(advice, track, paths, rows, steps);
		find_excess(rows, count, steps);
		for (size_t first = 0, next; first < count; first = next) {
			for (next = first + 1; next < count && rows[next].path == rows[first].path; next++)
				;
			take_waits(advice, rows + first, next - first, &advice->machine.waits[rows[first].path]);
		}
		done = correct(advice);
	}
	ops_free(paths);
	ops_free(steps);
	ops_free(rows);
	return done;
}

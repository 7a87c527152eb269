/* SPDX-License-Identifier: Apache-2.0
 *
 * Data loaders with another number of workers. The workers make batches in turn, each at most two ahead of the step:
 *
 *     step       [  1  ][  2  ][  3  ]
 *     worker 1  [ 1   ][ 3   ][ 5   ]
 *     worker 2     [ 2   ][ 4   ][ 6   ]
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/replay/replay.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/waits.h"

#define AHEAD 2 /* prefetch_factor */
/* Steps wait for their batches if the waits exceed both this and a twentieth of the time between them. */
#define WAIT_NS 1000000

/* Each worker has a separate queue, which a thread of the main process feeds. */
static int64_t count_feeders(const struct replay *replay)
{
	uint8_t *feeds = ops_alloc_zeroed(replay->track_count + 1, 1);
	int64_t count = 0;

	for (uint32_t row = 0; feeds && row < replay->events->count; row++)
		if (replay->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION &&
		    ops_string_ends(ops_trace_string(replay->trace, replay->events->name[row]), ": Queue._feed"))
			feeds[replay->events->track[row]] = 1;
	for (size_t track = 0; feeds && track < replay->track_count; track++)
		count += feeds[track];
	ops_free(feeds);
	return count;
}

/* Returns how long a fetch waited: the time of Python calls that wait for a process or a queue if the trace has Python
 * calls, else INFINITY. */
static double waited_in(const struct replay *replay, uint32_t row, uint32_t last)
{
	bool python = false;
	double ns = 0;

	for (uint32_t at = last; at != OPS_NONE && replay->nodes.items[at].start_ns >= replay->events->start_ns[row];
	     at = replay->nodes.items[at].previous) {
		const struct replay_node *node = &replay->nodes.items[at];

		python |= replay->events->kind[node->row] == OPS_EVENT_PYTHON_FUNCTION;
		if (replay_name_is(replay, node->row, REPLAY_NAME_PROCESS | REPLAY_NAME_WAITS))
			ns += (double)(node->end_ns - node->start_ns);
	}
	return python ? ns : (double)INFINITY;
}

/* Measures the median wait, the rest of a fetch, and the median time from one fetch to the next. */
static bool measure_workers(struct replay *replay, const uint32_t *rows)
{
	size_t count = replay->batches.count;
	double *numbers = ops_alloc_zeroed(3 * count + 1, sizeof(*numbers)), least = INFINITY, wait;
	double *waits = numbers, *rests = numbers + count, *periods = rests + count;

	for (size_t i = 0; numbers && i < count; i++) {
		rests[i] = (double)(replay->events->end_ns[rows[i]] - replay->events->start_ns[rows[i]]);
		waits[i] = waited_in(replay, rows[i], replay->batches.items[i]);
		least = rests[i] < least ? rests[i] : least;
		if (i)
			periods[i - 1] = (double)(replay->events->end_ns[rows[i]] - replay->events->end_ns[rows[i - 1]]);
	}
	for (size_t i = 0; numbers && i < count; i++) {
		waits[i] = isinf(waits[i]) ? rests[i] - least : waits[i];
		rests[i] -= waits[i];
	}
	if (numbers && count > 1) {
		wait = ops_median(waits, count);
		replay->batch_ns = (int64_t)ops_median(rests, count);
		replay->batch_period_ns = (int64_t)ops_median(periods, count - 1);
		if (wait < WAIT_NS || wait < (double)replay->batch_period_ns / 20)
			replay->batches.count = 0; /* more workers have no effect */
	}
	ops_free(numbers);
	return numbers != NULL;
}

/* If the main process makes the batches, time of its steps in which it does not run counts as waits of the fetches: for
 * files, or sleep. */
static bool measure_processor(struct replay *replay, const uint32_t *rows)
{
	struct ops_step_waits waits = {0};
	bool done = ops_step_waits_read(&waits, replay->trace);
	int64_t idle_ns = 0, fetch_ns = 0;
	size_t cursor = 0;

	for (size_t i = 0; done && i < replay->steps.count; i++) {
		const struct replay_step *step = &replay->steps.items[i];
		const struct ops_step_wait *wait = ops_step_waits_find(&waits, step->number, &cursor);

		if (wait)
			idle_ns = ops_sum(idle_ns, step->end_ns - step->start_ns - wait->ran_ns - wait->waited_ns);
	}
	for (size_t i = 0; i < replay->batches.count; i++)
		fetch_ns = ops_sum(fetch_ns, replay->events->end_ns[rows[i]] - replay->events->start_ns[rows[i]]);
	if (idle_ns > 0 && fetch_ns > 0)
		replay->batch_cpu = idle_ns < fetch_ns ? 1 - (double)idle_ns / (double)fetch_ns : 0;
	ops_step_waits_release(&waits);
	return done;
}

/* Finds the outermost fetches on the threads of steps. */
bool replay_loader_find(struct replay *replay)
{
	OPS_ARRAY(uint32_t) rows = {0};
	bool in_process = true, done = true;
	int64_t until_ns = INT64_MIN;

	for (uint32_t row = 0; done && row < replay->events->count; row++) {
		uint32_t node, *batch, *added;

		if (!replay_name_is(replay, row, REPLAY_NAME_BATCH) || !replay_is_host_row(replay, row) ||
		    !replay_is_main(replay, replay->events->track[row]) || replay->events->start_ns[row] < until_ns)
			continue;
		node = replay_node_before(replay, replay->events->track[row], replay->events->end_ns[row]);
		if (node == OPS_NONE || replay->nodes.items[node].end_ns <= replay->events->start_ns[row])
			continue;
		until_ns = replay->events->end_ns[row];
		in_process &= replay_name_is(replay, row, REPLAY_NAME_IN_PROCESS);
		batch = OPS_ARRAY_PUSH(&replay->batches);
		added = OPS_ARRAY_PUSH(&rows);
		done = batch && added;
		if (done) {
			*batch = node;
			*added = row;
			replay->nodes.items[node].batch = 1;
		}
	}
	replay->batch_ns = REPLAY_BATCH_NS;
	replay->batch_cpu = 1;
	if (done && replay->batches.count && !in_process) {
		replay->workers = count_feeders(replay);
		done = measure_workers(replay, rows.items);
	} else if (done && replay->batches.count) {
		done = measure_processor(replay, rows.items);
	}
	OPS_ARRAY_RELEASE(&rows);
	return done;
}

/* Returns the number of computing workers per processor available to them, at least 1. The main process also occupies a
 * processor. */
static double crowd_of(const struct replay *replay, int64_t workers)
{
	double busy = (double)workers * replay->batch_cpu;

	return replay->processors > 1 && busy > replay->processors - 1 ? busy / (replay->processors - 1) : 1;
}

bool replay_loader_init(struct replay_loader *loader, const struct replay *replay, int64_t workers)
{
	*loader = (struct replay_loader){.count = workers};
	loader->crowd = crowd_of(replay, workers) / crowd_of(replay, replay->batch_period_ns ? replay->workers : 1);
	loader->free_ns = ops_alloc_zeroed((size_t)workers + 1, sizeof(*loader->free_ns));
	loader->delivered_ns = ops_alloc_zeroed(replay->batches.count + 1, sizeof(*loader->delivered_ns));
	return loader->free_ns && loader->delivered_ns;
}

void replay_loader_release(struct replay_loader *loader)
{
	ops_free(loader->free_ns);
	ops_free(loader->delivered_ns);
}

/* The workers begin at the first fetch, staggered as in the middle of a run. */
int64_t replay_loader_fetch(struct replay_loader *loader, const struct replay *replay, int64_t time_ns)
{
	size_t i = loader->next++, worker = i % (size_t)loader->count, ahead = AHEAD * (size_t)loader->count;
	int64_t make_ns = replay->batch_period_ns ? replay->batch_period_ns * replay->workers : loader->making_ns;
	int64_t begin_ns = loader->free_ns[worker], end_ns;

	make_ns = (int64_t)((double)make_ns * loader->crowd);
	loader->first_ns = i ? loader->first_ns : time_ns;
	if (i < (size_t)loader->count)
		begin_ns = loader->first_ns + (int64_t)((double)make_ns * (double)(i + 1) / (double)loader->count) - make_ns;
	else if (i >= ahead && loader->delivered_ns[i - ahead] > begin_ns)
		begin_ns = loader->delivered_ns[i - ahead];
	loader->free_ns[worker] = ops_sum(begin_ns, make_ns);
	end_ns = loader->free_ns[worker] > time_ns ? loader->free_ns[worker] : time_ns;
	end_ns = ops_sum(end_ns, replay->batch_ns);
	loader->delivered_ns[i] = end_ns;
	loader->making_ns = 0;
	return end_ns;
}

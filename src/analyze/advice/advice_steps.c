/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps: which of them are steady, and what belongs to each.
 */
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

size_t advice_next_step(const struct advice *advice, size_t at, int64_t ns)
{
	while (at + 1 < advice->views.steps.count && advice->views.steps.items[at + 1].host_start_ns <= ns)
		at++;
	return at;
}

static int compare_ns(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* A step that takes more than three times the median is none of the steady ones: it compiles, warms up or waits once. */
#define UNSTEADY 3

static bool median_step(const struct advice *advice, int64_t *ret_ns)
{
	size_t count = advice->views.steps.count;
	int64_t *times = ops_realloc_array(NULL, count + 1, sizeof(*times));

	if (!times)
		return false;
	for (size_t i = 0; i < count; i++)
		times[i] = advice->views.steps.items[i].end_ns - advice->views.steps.items[i].start_ns;
	qsort(times, count, sizeof(*times), compare_ns);
	*ret_ns = count ? times[count / 2] : 0;
	ops_free(times);
	return true;
}

/* A step that waited for the processor for more than a tenth is none of the steady ones: where the wait lies is an estimate
 * (advice_waits.c), and who waits finds its caches cold. When nearly all did, all have to do. */
#define WAITED_MAX 0.1
#define LEFT_MIN 4

static bool has_waited(const struct advice *advice, size_t i)
{
	const struct view_step *step = &advice->views.steps.items[i];

	return (double)advice->machine.waits[i].waited_ns > WAITED_MAX * (double)ops_difference(step->end_ns, step->start_ns);
}

static void leave_out_waiting(const struct advice *advice, uint8_t *steady)
{
	size_t steps = advice->views.steps.count, left = 0;

	for (size_t i = 0; i < steps; i++)
		left += steady[i] && !has_waited(advice, i);
	for (size_t i = 0; left >= LEFT_MIN && i < steps; i++)
		steady[i] &= !has_waited(advice, i);
}

/* Steps that make the same calls differ by what the machine does: caches that are cold in the first of them, clocks, other
 * programs. Then the quicker half is what the program takes. A step that waits for another process may take its time. */
#define SAME_CALLS 0.02

struct pace {
	size_t step;
	int64_t ns;
	uint64_t rows;
};

static int compare_paces(const void *a, const void *b)
{
	const struct pace *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? -1 : 1;
	return (left->step > right->step) - (left->step < right->step);
}

/* Of the steady steps; false when they do not make the same calls, or another process is waited for. */
static bool find_paces(const struct advice *advice, const uint8_t *steady, struct pace *paces)
{
	const struct ops_events *events = advice->events;
	size_t steps = advice->views.steps.count, at = 0;
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < steps; i++)
		paces[i] = (struct pace){i, ops_difference(advice->views.steps.items[i].end_ns,
		                                           advice->views.steps.items[i].start_ns), 0};
	for (uint32_t row = 0; row < events->count; row++) {
		at = advice_next_step(advice, at, events->start_ns[row]);
		paces[at].rows++;
		paces[at].ns = ops_difference(paces[at].ns, advice->lost_ns[row]);
		if (advice->views.parts[row] == VIEW_LOADER && advice_text_has(advice_name(advice, row), "_MultiProcessing"))
			return false;
	}
	for (size_t i = 0; i < steps; i++) {
		if (!steady[i])
			continue;
		least = paces[i].rows < least ? paces[i].rows : least;
		most = paces[i].rows > most ? paces[i].rows : most;
	}
	return (double)most <= (1 + SAME_CALLS) * (double)least;
}

static bool leave_out_slower(const struct advice *advice, uint8_t *steady)
{
	size_t steps = advice->views.steps.count, left = 0, kept = 0;
	struct pace *paces = ops_realloc_array(NULL, steps + 1, sizeof(*paces));

	for (size_t i = 0; i < steps; i++)
		left += steady[i];
	/* A device has its own pace, and ranks are compared step by step. */
	if (paces && steps && !advice->views.device_events.count && !advice->views.has_collectives && find_paces(advice, steady, paces)) {
		qsort(paces, steps, sizeof(*paces), compare_paces);
		for (size_t i = 0; i < steps; i++)
			if (steady[paces[i].step] && kept++ >= (left + 1) / 2 && kept > LEFT_MIN)
				steady[paces[i].step] = 0;
	}
	ops_free(paces);
	return paces != NULL;
}

/* By step; NULL when memory is out. */
static uint8_t *find_steady(const struct advice *advice)
{
	size_t steps = advice->views.steps.count;
	uint8_t *steady = ops_alloc_zeroed(steps + 1, 1);
	int64_t median_ns;

	if (!steady || !median_step(advice, &median_ns)) {
		ops_free(steady);
		return NULL;
	}
	for (size_t i = 0; i < steps; i++)
		steady[i] = ops_difference(advice->views.steps.items[i].end_ns, advice->views.steps.items[i].start_ns) /
		            UNSTEADY <= median_ns;
	if (advice->machine.has_waits && !advice_is_oversubscribed(advice))
		leave_out_waiting(advice, steady);
	if (!leave_out_slower(advice, steady)) {
		ops_free(steady);
		return NULL;
	}
	return steady;
}

bool advice_find_steps(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	size_t steps = advice->views.steps.count, at = 0;

	advice->steady = find_steady(advice);
	if (!advice->steady)
		return false;
	for (size_t i = 0; i < steps; i++) {
		const struct view_step *step = &advice->views.steps.items[i];

		if (!advice->steady[i])
			continue;
		advice->step_count++;
		advice->steps_ns = ops_sum(advice->steps_ns, ops_difference(step->end_ns, step->start_ns));
	}
	for (uint32_t row = 0; row < events->count; row++) {
		advice->step_of[row] = OPS_NONE;
		at = advice_next_step(advice, at, events->start_ns[row]);
		if (steps && advice->steady[at] && events->start_ns[row] >= advice->views.steps.items[at].host_start_ns &&
		    events->start_ns[row] < advice->views.steps.items[at].end_ns &&
		    !(events->flags[row] & OPS_EVENT_HIDDEN))
			advice->step_of[row] = (uint32_t)at;
		advice->real_steps |= advice->views.parts[row] == VIEW_STEP;
		if (advice->step_of[row] != OPS_NONE)
			advice->steps_ns = ops_difference(advice->steps_ns, ops_sum(advice_recording_ns(advice, row),
			                                                            advice->lost_ns[row]));
	}
	if (advice->steps_ns < 0)
		advice->steps_ns = 0;
	return true;
}

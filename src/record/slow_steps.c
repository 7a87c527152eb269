/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects slow steps; see slow_steps.h.
 */
#include <opstrobe/internal/slow_steps.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define MEDIAN_RATIO 1.5
#define MEDIAN_RATIO_EARLY 5.0 /* while few steps are known */
#define EARLY 64u
#define DEVIATIONS 10.0
#define TAIL_SHARE 10u /* one in this many steps belongs to the tail, */
#define TAIL_MIN 8u    /* but at least this number of steps */
#define FAR_TAIL_SHARE 25u
#define TAIL_CHANCE 1e-8
/* A step of this length is worth a report, whatever the tail. */
#define LIMIT_MOST_NS 10e9
#define LIMIT_MOST_RATIO 300
/* Steps, and time of steps, between two computations of the limit, once the window is long. */
#define UPDATE_EVERY 64u
#define UPDATE_NS 1e8
/* Factors within which lengths, and distances in steps, count as equal. */
#define SAME_LENGTH 2.0
#define SAME_DISTANCE 0.002

/* Estimates the length that one step in 1 / TAIL_CHANCE exceeds, from the longest `tail` of the sorted lengths of `count` steps.
 * With few of these their slope is uncertain, so standard deviations of it are added. */
static double slow_steps_tail_ns(const double *sorted, uint32_t count, uint32_t tail, double deviations)
{
	double from_ns = sorted[count - tail - 1], slope = 0;

	for (uint32_t i = count - tail; i < count; i++)
		slope += log(sorted[i] / from_ns);
	slope = slope / tail * (1 + deviations / sqrt(tail));
	return from_ns * pow((double)tail / count / TAIL_CHANCE, slope);
}

/* Returns the median of the distances from the median of sorted lengths. `spare` has space for as many. */
static double slow_steps_deviation(const double *sorted, uint32_t count, double median_ns, double *spare)
{
	uint32_t above = 0, below;

	while (above < count && sorted[above] < median_ns)
		above++;
	below = above;
	for (uint32_t i = 0; i <= count / 2 + 1 && i < count; i++) { /* the smaller half, in order */
		bool is_above = !below || (above < count && sorted[above] - median_ns < median_ns - sorted[below - 1]);

		spare[i] = is_above ? sorted[above] - median_ns : median_ns - sorted[below - 1];
		above += is_above;
		below -= !is_above;
	}
	return ops_quantile(spare, count, 0.5);
}

static void slow_steps_update(struct ops_slow_steps *steps)
{
	double sorted[OPS_SLOW_STEPS_WINDOW], spare[OPS_SLOW_STEPS_WINDOW], deviation_ns, tail_ns;
	uint64_t excess_ns = steps->min_excess_ns ? steps->min_excess_ns : OPS_SLOW_STEPS_MIN_EXCESS_NS;

	steps->stale = 0;
	steps->stale_ns = 0;
	steps->limit_ns = (double)INFINITY;
	if (!steps->used)
		return;
	memcpy(sorted, steps->window, steps->used * sizeof(*sorted));
	ops_sort_doubles(sorted, spare, steps->used);
	steps->median_ns = ops_quantile(sorted, steps->used, 0.5);
	if (steps->used < OPS_SLOW_STEPS_MIN)
		return;
	deviation_ns = OPS_DEVIATION_OF_MAD * slow_steps_deviation(sorted, steps->used, steps->median_ns, spare);
	steps->limit_ns = fmax(steps->median_ns * (steps->used < EARLY ? MEDIAN_RATIO_EARLY : MEDIAN_RATIO),
	                       fmax(steps->median_ns + DEVIATIONS * deviation_ns, steps->median_ns + (double)excess_ns));
	tail_ns = slow_steps_tail_ns(sorted, steps->used, steps->used / TAIL_SHARE > TAIL_MIN ? steps->used / TAIL_SHARE : TAIL_MIN, 1);
	if (steps->used / FAR_TAIL_SHARE > TAIL_MIN) /* a share of the steps may be of another, longer kind */
		tail_ns = fmin(tail_ns, slow_steps_tail_ns(sorted, steps->used, steps->used / FAR_TAIL_SHARE, 2));
	steps->limit_ns = fmax(steps->limit_ns, fmin(tail_ns, fmax(LIMIT_MOST_NS, LIMIT_MOST_RATIO * steps->median_ns)));
}

static void slow_steps_keep(struct ops_slow_steps *steps, double duration_ns)
{
	steps->window[steps->next] = duration_ns;
	steps->next = (steps->next + 1) % OPS_SLOW_STEPS_WINDOW;
	if (steps->used < OPS_SLOW_STEPS_WINDOW)
		steps->used++;
	steps->stale_ns += duration_ns;
	if ((++steps->stale >= UPDATE_EVERY && steps->stale_ns >= UPDATE_NS) || steps->used < EARLY)
		slow_steps_update(steps);
}

/* --- recurring long steps -------------------------------------------------------------------------------------------- */

static bool is_same_distance(double a, double b)
{
	return fabs(a - b) <= fmax(1, SAME_DISTANCE * fmax(a, b));
}

/* Returns whether two earlier long steps have the same length, and the three are at equal distances. Tries all pairs, since an
 * evaluation and a checkpoint may alternate. */
static bool slow_steps_comes_back(const struct ops_slow_steps *steps, const struct ops_long_step *step)
{
	uint32_t known = steps->remembered < OPS_SLOW_STEPS_REMEMBERED ? steps->remembered : OPS_SLOW_STEPS_REMEMBERED;

	for (uint32_t i = 0; i < known; i++)
		for (uint32_t j = 0; j < known; j++) {
			const struct ops_long_step *first = &steps->long_steps[i], *second = &steps->long_steps[j];
			double least_ns = fmin((double)first->duration_ns, (double)second->duration_ns);
			double most_ns = fmax((double)first->duration_ns, (double)second->duration_ns);

			if (first->number < second->number &&
			    is_same_distance((double)(second->number - first->number), (double)(step->number - second->number)) &&
			    (double)step->duration_ns <= SAME_LENGTH * least_ns && (double)step->duration_ns * SAME_LENGTH >= most_ns)
				return true;
		}
	return false;
}

/* --- new normal ------------------------------------------------------------------------------------------------------ */

/* Adds a step after a slow one. If most of these steps are long, too, the steps before are no longer relevant. */
static void slow_steps_add_settling(struct ops_slow_steps *steps, double duration_ns)
{
	steps->settled[--steps->settling] = duration_ns;
	steps->settling_long += duration_ns > steps->limit_ns;
	if (steps->settling)
		return;
	if (steps->settling_long > OPS_SLOW_STEPS_SETTLING / 2) {
		steps->used = steps->next = steps->remembered = 0;
		for (uint32_t i = 0; i < OPS_SLOW_STEPS_SETTLING; i++)
			slow_steps_keep(steps, steps->settled[i]);
	} else {
		for (uint32_t i = 0; i < OPS_SLOW_STEPS_SETTLING; i++)
			if (steps->settled[i] <= steps->limit_ns)
				slow_steps_keep(steps, steps->settled[i]);
	}
}

void ops_slow_steps_restart(struct ops_slow_steps *steps)
{
	steps->used = steps->next = steps->stale = steps->settling = steps->remembered = 0;
	steps->median_ns = steps->stale_ns = 0;
	steps->limit_ns = (double)INFINITY;
}

bool ops_slow_steps_add(struct ops_slow_steps *steps, uint64_t duration_ns)
{
	struct ops_long_step step = {++steps->count, duration_ns};
	double ns = duration_ns ? (double)duration_ns : 1;
	bool slow;

	if (step.number <= OPS_SLOW_STEPS_WARM_UP) {
		steps->limit_ns = (double)INFINITY;
		return false;
	}
	if (steps->settling) {
		slow_steps_add_settling(steps, ns);
		return false;
	}
	if (ns <= steps->limit_ns) {
		slow_steps_keep(steps, ns);
		return false;
	}
	slow_steps_update(steps); /* the limit may be some steps old */
	if (ns <= steps->limit_ns) {
		slow_steps_keep(steps, ns);
		return false;
	}
	slow = !slow_steps_comes_back(steps, &step);
	steps->long_steps[steps->remembered++ % OPS_SLOW_STEPS_REMEMBERED] = step;
	if (slow) {
		steps->settling = OPS_SLOW_STEPS_SETTLING;
		steps->settling_long = 0;
	}
	return slow;
}

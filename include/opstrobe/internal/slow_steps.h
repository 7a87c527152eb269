/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/slow_steps.h: which steps of a program are slow, decided step by step while it runs.
 *
 * A step is slow if it is far beyond what the steps before it make likely. "Far" has to mean the same for steps that hardly vary
 * and for those with a heavy tail, so the limit is the largest of
 *
 *     a multiple of the median, the median plus a number of deviations (by the median absolute deviation), and
 *     the length that one step in 10^8 would pass if the tail of the last steps went on as a power law (Hill's estimate),
 *
 * but no more than ten seconds or 300 medians, if that is longer.
 *
 * What is not slow although it is beyond the limit:
 *   - one of the first steps, which include warm-up and too few to judge by;
 *   - a step that follows a slow one closely: if the following steps are as long, they are the new normal;
 *   - a step that comes back: the third evaluation or checkpoint of about the same length after about as many steps.
 *
 * No allocation, no lock: one thread at a time may use it.
 */
#ifndef OPSTROBE_SLOW_STEPS_H
#define OPSTROBE_SLOW_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_SLOW_STEPS_WINDOW 512u   /* steps that a step is compared with */
#define OPS_SLOW_STEPS_WARM_UP 5u    /* the first steps, which are not */
#define OPS_SLOW_STEPS_MIN 16u       /* fewer steps show nothing */
#define OPS_SLOW_STEPS_SETTLING 8u   /* steps after a slow one that show whether it is the new normal */
#define OPS_SLOW_STEPS_REMEMBERED 8u /* steps beyond the limit that are remembered, to see whether they come back */

struct ops_long_step {
	uint64_t number;
	uint64_t duration_ns;
};

/* Zeros are a valid start. */
struct ops_slow_steps {
	uint64_t min_excess_ns; /* a step beyond the median by less is never slow; 0: OPS_SLOW_STEPS_MIN_EXCESS_NS */
	uint64_t count;         /* of all steps */
	double median_ns;
	double limit_ns; /* beyond which the next step is slow; infinite while that is unknown */
	uint32_t used;   /* of the window, */
	uint32_t next;   /* its oldest place, */
	uint32_t stale;  /* and steps since the limit was computed */
	uint32_t settling;       /* steps until it is known whether a slow step was the first of many; 0: none was */
	uint32_t settling_long;  /* steps beyond the limit since */
	uint32_t remembered;     /* steps beyond the limit in all */
	struct ops_long_step long_steps[OPS_SLOW_STEPS_REMEMBERED];
	double settled[OPS_SLOW_STEPS_SETTLING];
	double window[OPS_SLOW_STEPS_WINDOW];
};
#define OPS_SLOW_STEPS_MIN_EXCESS_NS 50000000u

/* Adds the step that has ended. Returns whether it is slow. */
bool ops_slow_steps_add(struct ops_slow_steps *steps, uint64_t duration_ns);

#ifdef __cplusplus
}
#endif
#endif

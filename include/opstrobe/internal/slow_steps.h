/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/slow_steps.h: detects slow steps of a program while it runs.
 *
 * A step is slow if it is much longer than the previous steps make likely. The limit must suit steps that hardly vary as well as
 * steps with a heavy tail, so it is the largest of
 *
 *     a multiple of the median, the median plus a number of deviations (by the median absolute deviation), and
 *     the length that one step in 10^8 would exceed if the tail of the last steps continued as a power law (Hill's estimate),
 *
 * but at most ten seconds or 300 medians, whichever is longer.
 *
 * These steps are not slow although they exceed the limit:
 *   - the first steps, which include warm-up and are too few to judge by;
 *   - a step soon after a slow one: if the following steps are as long, they are the new normal;
 *   - a recurring step: from the third evaluation or checkpoint of about the same length at about the same interval.
 *
 * Allocates nothing and takes no lock: one thread at a time may use it.
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
#define OPS_SLOW_STEPS_WARM_UP 5u    /* first steps, which are not compared */
#define OPS_SLOW_STEPS_MIN 16u       /* number of steps needed for a limit */
#define OPS_SLOW_STEPS_SETTLING 8u   /* steps after a slow one that show whether its length is the new normal */
#define OPS_SLOW_STEPS_REMEMBERED 8u /* remembered steps beyond the limit, to detect recurring ones */

struct ops_long_step {
	uint64_t number;
	uint64_t duration_ns;
};

/* Zeros are a valid initial state. */
struct ops_slow_steps {
	uint64_t min_excess_ns; /* a step that exceeds the median by less is never slow; 0: OPS_SLOW_STEPS_MIN_EXCESS_NS */
	uint64_t count;         /* number of all steps */
	double median_ns;
	double limit_ns; /* limit beyond which the next step is slow; infinite while unknown */
	uint32_t used;   /* used elements of the window */
	uint32_t next;   /* its oldest element */
	uint32_t stale;  /* steps since the limit was computed, and their time */
	double stale_ns;
	uint32_t settling;       /* steps until it is known whether a slow step was the first of many; 0: none pending */
	uint32_t settling_long;  /* steps beyond the limit since */
	uint32_t remembered;     /* number of all steps beyond the limit */
	struct ops_long_step long_steps[OPS_SLOW_STEPS_REMEMBERED];
	double settled[OPS_SLOW_STEPS_SETTLING];
	double window[OPS_SLOW_STEPS_WINDOW];
};
#define OPS_SLOW_STEPS_MIN_EXCESS_NS 50000000u

/* Forgets the lengths of earlier steps, because those of later ones are not comparable. */
void ops_slow_steps_restart(struct ops_slow_steps *steps);
/* Adds a step that has ended. Returns whether it is slow. */
bool ops_slow_steps_add(struct ops_slow_steps *steps, uint64_t duration_ns);

#ifdef __cplusplus
}
#endif
#endif

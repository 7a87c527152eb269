/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/shadow_steps.h: what recording costs, measured step by step while it goes on, and what is left out when that is
 * too much.
 *
 * In a shadow step, nothing is recorded that costs time in each operator. Each is compared with the steps on both sides:
 *
 *     steps   recorded │ recorded │ shadow │ recorded │ recorded
 *                       before_ns   shadow_ns  after_ns
 *
 * Which step is a shadow step is drawn at random, so that no period of the program, such as an evaluation after each hundredth step,
 * falls on them. The overhead is the median of the comparisons. Its interval is that between two of them (order statistics), which has
 * the median of all steps in it in 95 of 100 cases, however lengths of steps are distributed.
 *
 * If even the lower end of the interval is beyond the budget, the detail is reduced. It comes back when the upper end stays
 * under half of the budget for long, and each time it is reduced again that takes twice as long.
 *
 * No allocation, no lock: one thread at a time may use it, but ops_shadow_steps_measure works on a copy.
 */
#ifndef OPSTROBE_SHADOW_STEPS_H
#define OPSTROBE_SHADOW_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range of this name lies over a shadow step, so that nobody takes it for a gap. */
#define OPS_SHADOW_STEP_NAME "Opstrobe: shadow step"

#define OPS_SHADOW_PAIRS 1024u     /* comparisons that the overhead is measured from: the last ones */
#define OPS_SHADOW_PAIRS_MIN 8u    /* fewer show nothing */
#define OPS_SHADOW_WARM_UP 21u     /* the first steps */
#define OPS_SHADOW_EVERY 24u       /* one of so many steps is a shadow step, */
#define OPS_SHADOW_EVERY_KNOWN 192u /* and of so many once the overhead is known well */

/* How much is recorded, in order. */
enum ops_detail {
	OPS_DETAIL_NONE,    /* a shadow step: steps, allocations, garbage collections */
	OPS_DETAIL_MODULES, /* calls of modules in addition */
	OPS_DETAIL_ALL,     /* all that the session was started with */
};
/* "modules", "operators". */
const char *ops_detail_name(enum ops_detail detail);

/* What recording adds to a step: shares of a step, in millionths. Part of the layout of recording files. */
struct ops_overhead {
	uint32_t is_measured; /* 0: by no means, and nothing else counts */
	uint32_t pairs;       /* shadow steps that it was measured from; with fewer than OPS_SHADOW_PAIRS_MIN the next three are 0 */
	int32_t share_ppm, low_ppm, high_ppm;
	uint32_t budget_ppm;  /* 0: the detail stays as it is */
	uint32_t detail;      /* enum ops_detail that is recorded at present */
	int32_t exceeded_ppm; /* the overhead for which the detail was last reduced, 0: it was not */
};

struct ops_shadow_steps {
	/* Zeros, but for these: */
	uint32_t budget_ppm;
	uint64_t random; /* not 0 */

	enum ops_detail detail;
	uint64_t count;     /* of all steps */
	uint32_t until;     /* recorded steps before the next shadow step */
	bool is_shadow;     /* the step under way is one, */
	bool is_spoiled;    /* of which a part is recorded */
	bool is_after;      /* it follows one */
	uint64_t before_ns, shadow_ns;
	uint32_t every;
	uint32_t reductions;
	uint64_t pairs_since; /* the detail changed */
	int32_t exceeded_ppm;
	uint32_t used, next;
	float ratios[OPS_SHADOW_PAIRS]; /* of a recorded step to a shadow step, less 1 */
};

/* Begins with the full detail. */
void ops_shadow_steps_init(struct ops_shadow_steps *steps, uint32_t budget_ppm, uint64_t random);
/* A step has ended: how long it was, and how long the recorder then took to mark its end. Returns what the next one is to record. */
enum ops_detail ops_shadow_steps_end(struct ops_shadow_steps *steps, uint64_t duration_ns, uint64_t between_ns);
/* The shadow step under way is of interest, as it takes too long. Returns what is to be recorded from here on. */
enum ops_detail ops_shadow_steps_spoil(struct ops_shadow_steps *steps);
/* The overhead by the comparisons so far. Sorts them. */
void ops_shadow_steps_measure(struct ops_shadow_steps *copy, struct ops_overhead *ret_overhead);
/* Reduces or restores the detail, from the next step on, by what was measured. */
void ops_shadow_steps_decide(struct ops_shadow_steps *steps, struct ops_overhead *overhead);

#ifdef __cplusplus
}
#endif
#endif

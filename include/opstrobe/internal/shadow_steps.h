/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/shadow_steps.h: measures the overhead of recording step by step, and reduces the recorded detail if the
 * overhead is too high.
 *
 * In a shadow step, nothing is recorded that costs time in each operator or allocation, except for frees of known memory, which would
 * make live bytes wrong. Shadow steps do not show the marks of steps and the CPU time of the recorder's threads, which are added. Each
 * shadow step is compared with the steps on both sides:
 *
 *     steps   recorded │ recorded │ shadow │ recorded │ recorded
 *                       before_ns   shadow_ns  after_ns
 *
 * Shadow steps are chosen at random, so that they do not coincide with a period of the program, such as an evaluation every
 * hundred steps. The overhead is the median of the comparisons. Its interval is bounded by two of them (order statistics) and
 * contains the true median in 95 of 100 cases, for any distribution of step lengths.
 *
 * If even the lower end of a wider interval is above the budget, with few comparisons all of them, or the overhead once it is known
 * well, the detail is reduced. It is
 * restored when the upper end stays below half of the budget for long enough; each further reduction doubles that time. If steps
 * have become so long that what the detail took would be less than half of the budget, it is restored without that wait.
 *
 * Comparisons of steps that differ in length need many steps, so the first decision about a detail follows from the number of events
 * in a step: each takes a time that was measured in several programs. Detail that would exceed the budget by that is reduced, and
 * not restored while it would.
 *
 * Allocates nothing and takes no lock: one thread at a time may use it. ops_shadow_steps_measure works on a copy.
 */
#ifndef OPSTROBE_SHADOW_STEPS_H
#define OPSTROBE_SHADOW_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range of this name covers a shadow step, so that readers of the trace do not mistake it for a gap. */
#define OPS_SHADOW_STEP_NAME "Opstrobe: shadow step"

#define OPS_SHADOW_PAIRS 1024u     /* number of latest comparisons from which the overhead is measured */
#define OPS_SHADOW_PAIRS_MIN 8u    /* number of comparisons needed for a result */
#define OPS_OVERHEAD_WIDTH_PPM 10000 /* the overhead is known if half of its interval is at most this, or at most */
#define OPS_OVERHEAD_WIDTH_SHARE 0.5 /* this share of it */
#define OPS_SHADOW_WARM_UP 21u     /* first steps, without shadow steps */
#define OPS_SHADOW_PAIRS_DECIDE 16u /* number of comparisons needed for a decision, unless all of OPS_SHADOW_PAIRS_MIN agree */
#define OPS_SHADOW_COUNTED_AFTER 5u /* first steps, in which events are not counted */
#define OPS_SHADOW_COUNTED_FIRST 2u /* recorded steps of a detail after which its events are counted, */
#define OPS_SHADOW_COUNTED 4u      /* in this many */
#define OPS_SHADOW_EVERY_FIRST 4u  /* one shadow step in this many steps until a detail can be judged, */
#define OPS_SHADOW_EVERY 12u       /* in this many afterwards */
#define OPS_SHADOW_EVERY_KNOWN 192u /* and in this many once the overhead is known well */

/* How much is recorded, in increasing order. Garbage collections and sampled stacks are always recorded. */
enum ops_detail {
	OPS_DETAIL_STEPS,       /* steps. A shadow step has this detail, and frees if other steps have allocations */
	OPS_DETAIL_RANGES,      /* also ranges of torch and of the program */
	OPS_DETAIL_MODULES,     /* also calls of modules */
	OPS_DETAIL_ALLOCATIONS, /* also allocations and frees */
	OPS_DETAIL_ALL,         /* also operators: everything that the session was started with */
	OPS_DETAIL_COUNT
};
/* Returns "steps", "ranges", "modules", "allocations", "operators". */
const char *ops_detail_name(enum ops_detail detail);

/* What is compared. While a program marks no steps, these are the outermost calls of modules, such as those of a model that generates
 * tokens: then a "step" below is such a call. */
enum ops_overhead_unit {
	OPS_OVERHEAD_NONE, /* nothing: the overhead is not measured */
	OPS_OVERHEAD_STEP,
	OPS_OVERHEAD_CALL,
};

/* Overhead of recording as shares of a unit, in millionths. Part of the layout of recording files. */
struct ops_overhead {
	uint32_t unit;        /* enum ops_overhead_unit; with OPS_OVERHEAD_NONE the other members are not used */
	uint32_t pairs;       /* number of measured shadow steps; with fewer than OPS_SHADOW_PAIRS_MIN the next three are 0 */
	int32_t share_ppm, low_ppm, high_ppm;
	uint32_t budget_ppm;  /* 0: the detail does not change */
	uint32_t detail;      /* enum ops_detail that is recorded now */
	int32_t exceeded_ppm; /* the overhead at the last reduction of the detail, negative if it was expected from the number of events;
	                       * 0: it was not reduced */
};

struct ops_shadow_steps {
	/* Zeros, except for: */
	uint32_t budget_ppm;
	uint64_t random; /* nonzero */
	enum ops_overhead_unit unit;

	enum ops_detail detail;
	uint64_t count;     /* number of all steps */
	uint32_t until;     /* recorded steps before the next shadow step */
	bool is_shadow;     /* the current step is a shadow step */
	bool is_spoiled;    /* a part of the shadow step is recorded */
	bool is_after;      /* the current step follows a shadow step */
	uint64_t before_ns, shadow_ns;
	uint32_t every;
	uint32_t reductions;
	uint64_t pairs_since; /* comparisons since the last change of the detail */
	uint64_t recorded;    /* steps since then that are not shadow steps, and not among the first ones */
	double length_ns;     /* moving average of them, in which long ones count less */
	int32_t exceeded_ppm;
	double usual_ns;                 /* moving average of shadow steps, in which long ones count less */
	double cost_ns[OPS_DETAIL_COUNT]; /* overhead per step of each detail when it was switched off */
	double expected_ns[OPS_DETAIL_COUNT]; /* likewise, if it was expected from the number of events */
	double reduced_ns;               /* `usual_ns` at the last reduction */
	int32_t surely_ppm; /* in a copy that was measured: a bound that the overhead hardly ever is below, stricter than its interval */
	uint32_t used, next;
	float ratios[OPS_SHADOW_PAIRS]; /* a recorded step divided by a shadow step, minus 1 */
};

/* Starts with the full detail, and with comparing steps. */
void ops_shadow_steps_init(struct ops_shadow_steps *steps, uint32_t budget_ppm, uint64_t random);
/* Adds a step that has ended: its duration, and the time the recorder then took to mark its end. Returns the detail for the next
 * step. */
enum ops_detail ops_shadow_steps_end(struct ops_shadow_steps *steps, uint64_t duration_ns, uint64_t between_ns);
/* Marks the current step, if it is a shadow step, as partly recorded, because it takes too long to stay unrecorded. Returns the
 * detail from now on. */
enum ops_detail ops_shadow_steps_spoil(struct ops_shadow_steps *steps);
/* Returns whether the comparison that was added last makes a decision possible. */
bool ops_shadow_steps_is_due(const struct ops_shadow_steps *steps);
/* Returns whether enough steps have been recorded to begin or end the count of their events. */
bool ops_shadow_steps_is_counted(const struct ops_shadow_steps *steps);
/* Reduces the detail if this number of events in a step of that length, and the share that shadow steps do not show, would exceed the budget. */
void ops_shadow_steps_expect(struct ops_shadow_steps *steps, double events, double length_ns, double unseen);
/* Computes the overhead from the comparisons so far, and the share that shadow steps do not show. Sorts the comparisons. */
void ops_shadow_steps_measure(struct ops_shadow_steps *copy, double unseen, struct ops_overhead *ret_overhead);
/* Returns whether the interval is narrow enough to state the overhead. */
bool ops_overhead_is_known(const struct ops_overhead *overhead);
/* Reduces or restores the detail from the next step on, according to the measurement of a copy. */
void ops_shadow_steps_decide(struct ops_shadow_steps *steps, const struct ops_shadow_steps *copy, struct ops_overhead *overhead);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * When an accelerator had nothing to do in the steady steps, and why. A gap lies between two pieces of its work, on whatever
 * stream; what the host did then tells the cause:
 *
 *     host    ──[op launch]──[  synchronise  ]──[ Python ]──[op launch]────────────
 *     device  ─────────[kernel     ]                           [kernel    ]────────
 *                                  ├── gap, cause SYNC ────────┤
 *
 * The host's share of a gap ends with the launch of what ends it: what is queued longer waits for the device itself.
 */
#ifndef OPS_ANALYZE_ADVICE_IDLE_H
#define OPS_ANALYZE_ADVICE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

struct advice;

enum advice_idle_cause {
	ADVICE_IDLE_LOADER, /* the host waited for its batch */
	ADVICE_IDLE_SYNC,   /* a call had blocked the host until the device was done, or does so, and nothing was queued */
	ADVICE_IDLE_UPLOAD, /* likewise, for a copy to it that it had asked for */
	ADVICE_IDLE_LOAD,   /* a call loads code of the device before it launches */
	ADVICE_IDLE_WAIT,   /* the host waits for a lock, another thread or process, or sleeps */
	ADVICE_IDLE_LAUNCH, /* the host was on its way to the next launch, through operators and calls */
	ADVICE_IDLE_HOST,   /* the host computed, or did something else for long */
	ADVICE_IDLE_DEVICE, /* all was launched in time: kernels start up, streams wait for each other */
	ADVICE_IDLE_END,    /* nothing follows in the steps, or nobody knows who launched it */
	ADVICE_IDLE_CAUSES
};

struct advice_gap {
	int64_t start_ns;
	int64_t end_ns;
	int64_t host_end_ns; /* until then it is the host's, for lack of a launch; the rest is the device's */
	int64_t ns;     /* of it that has the cause, in steady steps */
	int64_t before_ns; /* the host's share of all gaps before, whole */
	uint32_t event; /* the device event that ends it, OPS_NONE */
	uint32_t row;   /* on the host: the blocking call, else what ran in the middle of its share; OPS_NONE nothing known */
	uint8_t cause;
};

struct advice_idle {
	OPS_ARRAY(struct advice_gap) gaps; /* in order of time */
	int64_t ns[ADVICE_IDLE_CAUSES];
	int64_t all_ns;
	int64_t exposed_ns; /* collectives run, and nothing else */
};

/* Works on a model that is ready but for this. False when memory is out. */
bool advice_idle_find(struct advice *advice);
void advice_idle_release(struct advice_idle *idle);
/* What of a gap behind a synchronising call goes with the call: no more than the host waited in it, since without the wait it
 * would be as much earlier at the next launch. */
int64_t advice_idle_saved_ns(const struct advice *advice, const struct advice_gap *gap);
/* For how long the device was idle until then, but for what is its own. */
int64_t advice_idle_before(const struct advice_idle *idle, int64_t ns);
/* What of the device's time shortens the steps when it is saved: all but what the host would then be waited for. */
double advice_busy_share(const struct advice *advice);

#endif

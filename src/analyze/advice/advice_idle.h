/* SPDX-License-Identifier: Apache-2.0
 *
 * Idle times of a device in the steady steps, and their causes. A gap is the time between two pieces of its work, on
 * any stream; the work of the host at that time determines the cause:
 *
 *     host    ──[op launch]──[  synchronise  ]──[ Python ]──[op launch]────────────
 *     device  ─────────[kernel     ]                           [kernel    ]────────
 *                                  ├── gap, cause SYNC ────────┤
 *
 * The host's share of a gap ends with the launch of the work that ends it. Work that is queued longer waits for the
 * device itself.
 */
#ifndef OPS_ANALYZE_ADVICE_IDLE_H
#define OPS_ANALYZE_ADVICE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

struct advice;

enum advice_idle_cause {
	ADVICE_IDLE_LOADER, /* the host waited for a batch */
	ADVICE_IDLE_SYNC,   /* a call blocked the host until the device had finished, and nothing was queued */
	ADVICE_IDLE_UPLOAD, /* the same, for a copy to the device that the host requested */
	ADVICE_IDLE_LOAD,   /* a call loaded device code before it launched */
	ADVICE_IDLE_WAIT,   /* the host waited for a lock, or another thread or process, or slept */
	ADVICE_IDLE_LAUNCH, /* the host was on its way to the next launch, through operators and calls */
	ADVICE_IDLE_HOST,   /* the host computed, or did something else for a long time */
	ADVICE_IDLE_DEVICE, /* everything was launched in time: kernels start up, streams wait for each other */
	ADVICE_IDLE_END,    /* nothing follows in the steps, or the launch of the next work is unknown */
	ADVICE_IDLE_CAUSES
};

struct advice_gap {
	int64_t start_ns;
	int64_t end_ns;
	int64_t host_end_ns; /* end of the time in which a launch by the host is missing; the rest of the gap belongs to
	                      * the device */
	int64_t ns;     /* part with this cause, in steady steps */
	int64_t before_ns; /* total host share of all earlier gaps */
	uint32_t event; /* the device event that ends it; OPS_NONE: none */
	uint32_t row;   /* host row: the blocking call, or else the row in the middle of the host's share; OPS_NONE:
	                 * unknown */
	uint8_t cause;
};

struct advice_idle {
	OPS_ARRAY(struct advice_gap) gaps; /* in order of time */
	int64_t ns[ADVICE_IDLE_CAUSES];
	int64_t all_ns;
	int64_t exposed_ns; /* time in which only collectives run */
};

/* The rest of the model must be ready. Returns false if out of memory. */
bool advice_idle_find(struct advice *advice);
void advice_idle_release(struct advice_idle *idle);
/* Adds the host's shares of the gaps of a cause to the innermost rows of the launching thread, or of the steps' thread, as far as these
 * count; only what disappears with the cause, see advice_idle_saved_ns(). ADVICE_IDLE_CAUSES: all of all gaps. `ns`: by row. Returns false
 * if out of memory. */
bool advice_idle_divide(const struct advice *advice, enum advice_idle_cause cause, int64_t *ns);
/* Returns the part of the host's share of a gap that disappears with its cause. After a synchronizing call it is at most the wait of the
 * host, since without the call the host reaches the next launch that much earlier. Reads in a loop over rows belong to the loop. */
int64_t advice_idle_saved_ns(const struct advice *advice, const struct advice_gap *gap);
/* Returns the idle time of the device up to a time, without the device's own share. */
int64_t advice_idle_before(const struct advice_idle *idle, int64_t ns);
/* Returns the share of saved device time that shortens the steps: all but the time during which the device would then
 * wait for the host. */
double advice_busy_share(const struct advice *advice);

#endif

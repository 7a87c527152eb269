/* SPDX-License-Identifier: Apache-2.0
 *
 * Idle times of a device in the steady steps, and their causes. A gap is the time between two pieces of its work, on any
 * stream; the work of the host at that time determines the cause:
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
	ADVICE_IDLE_SYNC,   /* a call blocked the host until the device was done, and nothing was queued */
	ADVICE_IDLE_UPLOAD, /* likewise, for a copy to it that the host requested */
	ADVICE_IDLE_LOAD,   /* a call loads code of the device before it launches */
	ADVICE_IDLE_WAIT,   /* the host waits for a lock, another thread or process, or sleeps */
	ADVICE_IDLE_LAUNCH, /* the host was on its way to the next launch, through operators and calls */
	ADVICE_IDLE_HOST,   /* the host computed, or did something else for long */
	ADVICE_IDLE_DEVICE, /* all was launched in time: kernels start up, streams wait for each other */
	ADVICE_IDLE_END,    /* nothing follows in the steps, or the launch of the next work is unknown */
	ADVICE_IDLE_CAUSES
};

struct advice_gap {
	int64_t start_ns;
	int64_t end_ns;
	int64_t host_end_ns; /* until then the gap lacks a launch of the host; the rest belongs to the device */
	int64_t ns;     /* part with this cause, in steady steps */
	int64_t before_ns; /* the complete share of the host in all gaps before */
	uint32_t event; /* the device event that ends it, OPS_NONE */
	uint32_t row;   /* on the host: the blocking call, or else the row in the middle of its share; OPS_NONE unknown */
	uint8_t cause;
};

struct advice_idle {
	OPS_ARRAY(struct advice_gap) gaps; /* in order of time */
	int64_t ns[ADVICE_IDLE_CAUSES];
	int64_t all_ns;
	int64_t exposed_ns; /* only collectives run */
};

/* The rest of the model must be ready. Returns false if memory is out. */
bool advice_idle_find(struct advice *advice);
void advice_idle_release(struct advice_idle *idle);
/* Part of a gap after a synchronizing call that disappears with the call: at most the wait of the host, since without it the
 * host would reach the next launch that much earlier. */
int64_t advice_idle_saved_ns(const struct advice *advice, const struct advice_gap *gap);
/* Idle time of the device until then, without its own share. */
int64_t advice_idle_before(const struct advice_idle *idle, int64_t ns);
/* Share of saved device time that shortens the steps: all but the time during which the device would then wait for the host. */
double advice_busy_share(const struct advice *advice);

#endif

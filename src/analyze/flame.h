/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a flame graph, for its writers.
 */
#ifndef OPS_ANALYZE_FLAME_H
#define OPS_ANALYZE_FLAME_H

#include "analyze/frames.h"

struct ops_flame {
	struct ops_frames frames;
	OPS_ARRAY(int64_t) self_ns; /* by chain. Negative where events of a file overlap each other; such frames are not
	                             * shown */
	OPS_ARRAY(int64_t) base_ns; /* by chain, for a difference: the other trace's self time; else empty. Both are per
	                             * step */
	int64_t waits_ns; /* left out: time in which helper threads wait; for a difference, that of the second trace, per
	                   * step */
};

/* Adds self time to a chain; OPS_NONE is none. Returns false if out of memory. */
bool ops_flame_add(struct ops_flame *flame, uint32_t chain, int64_t ns);

static inline bool ops_flame_is_diff(const struct ops_flame *flame)
{
	return flame->base_ns.count > 0;
}

/* Returns the change of the self time, from -1 to 1. Full colour is a change by a fiftieth of the longer step. */
static inline double ops_flame_shade(int64_t base_ns, int64_t self_ns, int64_t whole_ns)
{
	double shade = whole_ns > 0 ? 50 * (double)(self_ns - base_ns) / (double)whole_ns : 0;

	return shade > 1 ? 1 : shade < -1 ? -1 : shade;
}

#endif

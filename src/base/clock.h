/* SPDX-License-Identifier: Apache-2.0
 *
 * Time: ticks are read on the hot path (collector.h), clock pairs tie them to the monotonic and the wall clock at start
 * and stop, and a conversion maps ticks to nanoseconds since the Unix epoch.
 */
#ifndef OPS_BASE_CLOCK_H
#define OPS_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* One moment on three clocks. The wall and monotonic readings stand between two tick readings; the tightest of several
 * tries is kept. */
struct ops_clock_pair {
	uint64_t ticks;
	int64_t monotonic_ns;
	int64_t wall_ns;
	uint64_t width_ticks; /* distance of the two tick readings: the uncertainty of this pair */
};

/* 1 when the TSC is invariant and the kernel itself trusts it as clock source; decided once. OPSTROBE_CLOCK=monotonic
 * in the environment forces 0. */
bool ops_clock_tsc(void);
/* Why not, or "tsc"; static text for `opstrobe doctor`. */
const char *ops_clock_reason(void);

struct ops_clock_pair ops_clock_pair_now(void);
/* That of the moment when the library was loaded, in ticks of the TSC; zeros where there is none. */
struct ops_clock_pair ops_clock_first_pair(void);
/* In ticks of the TSC whatever ops_clock_tsc says; zeros where there is none. */
struct ops_clock_pair ops_clock_pair_of_tsc(void);

/* Ticks → ns since the epoch: wall_ns of the start + (ticks - start.ticks) * rate, the rate measured over the longest
 * base line known: from the process's first pair to the stop. */
struct ops_clock_map {
	uint64_t base_ticks;
	int64_t base_wall_ns;
	double ns_per_tick;
};
struct ops_clock_map ops_clock_map_between(struct ops_clock_pair start, struct ops_clock_pair stop);
static inline int64_t ops_clock_to_ns(const struct ops_clock_map *map, uint64_t ticks)
{
	return map->base_wall_ns + (int64_t)((double)(int64_t)(ticks - map->base_ticks) * map->ns_per_tick + 0.5);
}

#endif

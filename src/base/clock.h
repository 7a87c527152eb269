/* SPDX-License-Identifier: Apache-2.0
 *
 * Time. Ticks are read on the hot path (collector.h), clock pairs relate them to the monotonic and the wall clock at start and
 * stop, and a conversion maps ticks to nanoseconds since the Unix epoch.
 */
#ifndef OPS_BASE_CLOCK_H
#define OPS_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Readers refuse times beyond this, in nanoseconds, so that the sum of two does not overflow. */
#define OPS_TIME_MAX_NS (INT64_MAX / 4)

/* One moment on three clocks. The wall and monotonic clocks are read between two tick readings; the tightest of several tries is
 * kept. */
struct ops_clock_pair {
	uint64_t ticks;
	int64_t monotonic_ns;
	int64_t wall_ns;
	uint64_t width_ticks; /* distance of the two tick readings, which is the uncertainty of this pair */
};

/* Returns true if the TSC is invariant and the kernel trusts it as clock source; decided once. OPSTROBE_CLOCK=monotonic in the
 * environment forces false. */
bool ops_clock_tsc(void);
/* Returns "tsc", or the reason that it is not used; static text for `opstrobe doctor`. */
const char *ops_clock_reason(void);

struct ops_clock_pair ops_clock_pair_now(void);
/* Returns the pair of the time when the library was loaded, in ticks of the TSC; zeros without a TSC. */
struct ops_clock_pair ops_clock_first_pair(void);
/* Returns the current pair in ticks of the TSC, regardless of ops_clock_tsc; zeros without a TSC. */
struct ops_clock_pair ops_clock_pair_of_tsc(void);

/* Converts ticks to ns since the epoch: wall_ns of the start + (ticks - start.ticks) * rate. The rate is measured over the
 * longest known base line, from the process's first pair to the stop. */
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

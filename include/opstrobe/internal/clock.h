/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/clock.h: reading the clocks of the system.
 */
#ifndef OPSTROBE_CLOCK_H
#define OPSTROBE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define OPS_SECOND_NS INT64_C(1000000000)

/* Returns the time of a clock of clock_gettime(2) in nanoseconds. Async-signal-safe. */
static inline int64_t ops_clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * OPS_SECOND_NS + now.tv_nsec;
}

/* Converts nanoseconds to the struct timespec of POSIX functions. */
static inline struct timespec ops_clock_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / OPS_SECOND_NS), .tv_nsec = ns % OPS_SECOND_NS};
}

#endif

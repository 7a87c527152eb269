/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of threads; see limit.h.
 */
#include "base/limit.h"

#include <assert.h>
#include <time.h>

/* Reading the CPU time is a system call, so it is read at each large allocation, else no more often than this. Whether that time
 * has passed is seen on a coarse clock, which takes nanoseconds, at each allocation and in each of a few loop iterations: a
 * single iteration may take milliseconds. */
#define READING_NS 2000000u
#define ITERATIONS_A_GLANCE 16u
#define LARGE_BYTES 65536u

bool ops_limits_in_use;

static _Thread_local struct ops_limit *current;

static uint64_t limit_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return limit_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void ops_limit_begin(struct ops_limit *limit)
{
	assert(!current);
	limit->reached = OPS_LIMIT_NONE;
	limit->bytes = 0;
	limit->unchecked = 0;
	limit->next_ns = 0;
	limit->start_ns = cpu_ns();
	current = limit;
	__atomic_store_n(&ops_limits_in_use, true, __ATOMIC_RELAXED);
}

void ops_limit_end(void)
{
	current = NULL;
}

/* Returns whether the limit is not reached. */
static bool check_clock(struct ops_limit *limit)
{
	if (!limit->reached && cpu_ns() - limit->start_ns > limit->cpu_ns_max)
		limit->reached = OPS_LIMIT_TIME;
	return !limit->reached;
}

/* Like check_clock, if the last reading is old. */
static bool glance_at_clock(struct ops_limit *limit)
{
	uint64_t now_ns = limit_clock_ns(CLOCK_MONOTONIC_COARSE);

	limit->unchecked = ITERATIONS_A_GLANCE;
	if (now_ns < limit->next_ns)
		return !limit->reached;
	limit->next_ns = now_ns + READING_NS;
	return check_clock(limit);
}

bool ops_limit_reached(void)
{
	struct ops_limit *limit = current;

	if (!limit)
		return false;
	if (limit->unchecked) {
		limit->unchecked--;
		return limit->reached;
	}
	return !glance_at_clock(limit);
}

bool ops_limit_allows(size_t bytes)
{
	struct ops_limit *limit = current;

	if (!limit)
		return true;
	if (!glance_at_clock(limit) || (bytes >= LARGE_BYTES && !check_clock(limit)))
		return false;
	if (limit->bytes > limit->bytes_max || bytes > limit->bytes_max - limit->bytes)
		limit->reached = OPS_LIMIT_MEMORY;
	return !limit->reached;
}

void ops_limit_add(size_t bytes)
{
	if (current)
		current->bytes += bytes;
}

/* The work may free memory that was allocated before it began. */
void ops_limit_subtract(size_t bytes)
{
	if (current)
		current->bytes -= bytes < current->bytes ? bytes : current->bytes;
}

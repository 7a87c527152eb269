/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of threads; see limit.h.
 */
#include "base/limit.h"

#include <assert.h>
#include <time.h>

/* Reading the clock is a system call, so it is read once in this many calls, and at each large allocation. */
#define CALLS_A_READING 1024u
#define LARGE_BYTES 65536u

bool ops_limits_in_use;

static _Thread_local struct ops_limit *current;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ops_limit_begin(struct ops_limit *limit)
{
	assert(!current);
	limit->reached = OPS_LIMIT_NONE;
	limit->bytes = 0;
	limit->unchecked = 0;
	limit->start_ns = cpu_ns();
	current = limit;
	__atomic_store_n(&ops_limits_in_use, true, __ATOMIC_RELAXED);
}

void ops_limit_end(void)
{
	current = NULL;
}

static bool check_clock(struct ops_limit *limit)
{
	limit->unchecked = CALLS_A_READING;
	if (!limit->reached && cpu_ns() - limit->start_ns > limit->cpu_ns_max)
		limit->reached = OPS_LIMIT_TIME;
	return !limit->reached;
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
	return !check_clock(limit);
}

bool ops_limit_allows(size_t bytes)
{
	struct ops_limit *limit = current;

	if (!limit)
		return true;
	if (ops_limit_reached() || (bytes >= LARGE_BYTES && !check_clock(limit)))
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

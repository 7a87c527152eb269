/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether to use the TSC, and converts its ticks to nanoseconds; see clock.h.
 */
#include "base/clock.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/collector.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define TRIES 16

static struct ops_clock_pair clock_read_pair(uint32_t tsc)
{
	struct ops_clock_pair best = {.width_ticks = UINT64_MAX};

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = ops_ticks(tsc);
		int64_t monotonic_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
		int64_t wall_ns = ops_clock_read_ns(CLOCK_REALTIME);
		uint64_t width = ops_ticks(tsc) - before;

		if (width < best.width_ticks)
			best = (struct ops_clock_pair){before + width / 2, monotonic_ns, wall_ns, width};
	}
	return best;
}

static double rate_between(const struct ops_clock_pair *from, const struct ops_clock_pair *to)
{
	return (double)(to->monotonic_ns - from->monotonic_ns) / (double)(to->ticks - from->ticks);
}

/* --- choice of the clock ------------------------------------------------------------------------------------------- */

static pthread_once_t decided = PTHREAD_ONCE_INIT;
static const char *reason; /* "tsc", or why it is not used */
static struct ops_clock_pair first_pair; /* in TSC ticks, read when the library was loaded */

#if defined(__x86_64__)

/* Returns whether the processor guarantees a constant rate in all power states. */
static bool tsc_is_invariant(void)
{
	unsigned eax, ebx, ecx, edx;

	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8);
}

/* Returns whether the kernel trusts the TSC. The kernel watches the TSCs of all processors and removes "tsc" from its list once
 * they drift or jump. A virtual machine may use kvm-clock and still list it, which is sufficient. */
static bool tsc_is_listed(bool *ret_known)
{
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
	char text[256];
	char *rest = text;
	char *word;
	ssize_t length;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*ret_known = fd >= 0;
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	while ((word = strsep(&rest, " \n")))
		if (strcmp(word, "tsc") == 0)
			return true;
	return false;
}

/* Returns whether the TSC advances at a consistent, plausible rate in two measurements. */
static bool tsc_is_steady(void)
{
	const int64_t stretch_ns = 100000;
	struct ops_clock_pair pairs[3];
	double rates[2];

	pairs[0] = clock_read_pair(1);
	for (int i = 1; i < 3; i++) {
		do
			pairs[i] = clock_read_pair(1);
		while (pairs[i].monotonic_ns - pairs[i - 1].monotonic_ns < stretch_ns);
		if (pairs[i].ticks <= pairs[i - 1].ticks)
			return false;
		rates[i - 1] = rate_between(&pairs[i - 1], &pairs[i]);
	}
	/* Between 20 MHz and 20 GHz, and equal within 2 %, which tolerates an interrupted reading. */
	return rates[0] > 0.05 && rates[0] < 50 && rates[1] > rates[0] * 0.98 && rates[1] < rates[0] * 1.02;
}

static const char *judge_tsc(void)
{
	bool known;

	if (!tsc_is_invariant())
		return "monotonic: the processor does not report an invariant TSC";
	if (!tsc_is_listed(&known))
		return known ? "monotonic: the kernel does not trust the TSC"
		             : "monotonic: unknown whether the kernel trusts the TSC";
	/* Tries again, because the machine may have been halted for a moment. */
	for (int i = 0; i < 3; i++)
		if (tsc_is_steady())
			return "tsc";
	return "monotonic: the TSC does not advance evenly";
}

__attribute__((constructor)) static void read_first_pair(void)
{
	first_pair = clock_read_pair(1);
}

#else

static const char *judge_tsc(void)
{
	return "monotonic: this processor has no TSC";
}

#endif

static void decide(void)
{
	const char *wish = getenv("OPSTROBE_CLOCK");

	reason = wish && strcmp(wish, "monotonic") == 0 ? "monotonic: requested by OPSTROBE_CLOCK" : judge_tsc();
}

const char *ops_clock_reason(void)
{
	pthread_once(&decided, decide);
	return reason;
}

bool ops_clock_tsc(void)
{
	return strcmp(ops_clock_reason(), "tsc") == 0;
}

struct ops_clock_pair ops_clock_pair_now(void)
{
	return clock_read_pair(ops_clock_tsc());
}

struct ops_clock_pair ops_clock_first_pair(void)
{
	return first_pair;
}

struct ops_clock_pair ops_clock_pair_of_tsc(void)
{
#if defined(__x86_64__)
	return clock_read_pair(1);
#else
	return (struct ops_clock_pair){0};
#endif
}

/* --- conversion of ticks to nanoseconds ---------------------------------------------------------------------------- */

/* Measures the rate over the longest base line that can be trusted. The process's first pair gives the longer one. But while a
 * machine sleeps, the monotonic clock stops and the TSC may not; then the two rates differ by more than the width of the readings
 * explains. */
static double measure_rate(const struct ops_clock_pair *start, const struct ops_clock_pair *stop)
{
	bool process_known = first_pair.ticks < start->ticks && start->ticks <= stop->ticks;
	double process_rate;
	double session_rate;
	double tolerance;

	if (stop->ticks <= start->ticks)
		return process_known ? rate_between(&first_pair, stop) : 1.0;
	session_rate = rate_between(start, stop);
	if (!process_known)
		return session_rate;
	process_rate = rate_between(&first_pair, stop);
	tolerance = 100e-6 + (double)(start->width_ticks + stop->width_ticks) / (double)(stop->ticks - start->ticks);
	return fabs(process_rate / session_rate - 1) < tolerance ? process_rate : session_rate;
}

struct ops_clock_map ops_clock_map_between(struct ops_clock_pair start, struct ops_clock_pair stop)
{
	return (struct ops_clock_map){
		.base_ticks = start.ticks,
		.base_wall_ns = start.wall_ns,
		.ns_per_tick = ops_clock_tsc() ? measure_rate(&start, &stop) : 1.0,
	};
}

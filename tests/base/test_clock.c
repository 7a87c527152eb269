/* SPDX-License-Identifier: Apache-2.0
 *
 * base/clock: the conversion compared with the system's clocks. No limits on wall-clock time: each clock is read between two
 * readings of the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <opstrobe/internal/collector.h>

#include "base/clock.h"

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void the_reason_fits_the_choice(void **state)
{
	(void)state;
	assert_int_equal(ops_clock_tsc(), strcmp(ops_clock_reason(), "tsc") == 0);
	if (!ops_clock_tsc())
		assert_memory_equal(ops_clock_reason(), "monotonic: ", 11);
	if (getenv("OPSTROBE_CLOCK"))
		assert_string_equal(ops_clock_reason(), "monotonic: requested by OPSTROBE_CLOCK");
}

static void a_pair_lies_between_readings(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		uint64_t ticks = ops_ticks(ops_clock_tsc());
		int64_t monotonic = now_ns(CLOCK_MONOTONIC);
		struct ops_clock_pair pair = ops_clock_pair_now();

		assert_true(pair.ticks >= ticks && pair.ticks <= ops_ticks(ops_clock_tsc()));
		assert_true(pair.monotonic_ns >= monotonic && pair.monotonic_ns <= now_ns(CLOCK_MONOTONIC));
		assert_true(pair.width_ticks < UINT64_MAX);
	}
}

/* Ticks taken during a session land between the monotonic readings around them, on the line from the start's wall time. */
static void ticks_become_nanoseconds(void **state)
{
	struct {
		uint64_t ticks;
		int64_t before_ns, after_ns;
	} taken[20];
	struct ops_clock_pair start = ops_clock_pair_now();
	struct ops_clock_pair stop;
	struct ops_clock_map map;
	int64_t slack_ns;

	(void)state;
	for (int i = 0; i < 20; i++) {
		sleep_ms(2);
		taken[i].before_ns = now_ns(CLOCK_MONOTONIC);
		taken[i].ticks = ops_ticks(ops_clock_tsc());
		taken[i].after_ns = now_ns(CLOCK_MONOTONIC);
	}
	stop = ops_clock_pair_now();
	map = ops_clock_map_between(start, stop);
	/* The width of the two pairs, the tolerance of the rate (1e-4 of the session), one tick. */
	slack_ns = (int64_t)((double)(start.width_ticks + stop.width_ticks) * map.ns_per_tick) +
	           (stop.monotonic_ns - start.monotonic_ns) / 10000 + 2;
	for (int i = 0; i < 20; i++) {
		int64_t since_start = ops_clock_to_ns(&map, taken[i].ticks) - start.wall_ns;

		assert_true(since_start >= taken[i].before_ns - start.monotonic_ns - slack_ns);
		assert_true(since_start <= taken[i].after_ns - start.monotonic_ns + slack_ns);
	}
}

static void order_is_kept(void **state)
{
	struct ops_clock_pair start = ops_clock_pair_now();
	struct ops_clock_map map;
	int64_t last;

	(void)state;
	map = ops_clock_map_between(start, ops_clock_pair_now());
	last = ops_clock_to_ns(&map, start.ticks - 1000);
	for (uint64_t ticks = start.ticks - 999; ticks < start.ticks + 5000; ticks++) {
		int64_t ns = ops_clock_to_ns(&map, ticks);

		assert_true(ns >= last);
		last = ns;
	}
	assert_int_equal(ops_clock_to_ns(&map, start.ticks), start.wall_ns);
}

/* A stop that is the start, and one where the machine slept since the process began: the rate stays believable. */
static void odd_base_lines(void **state)
{
	struct ops_clock_pair start = ops_clock_pair_now();
	struct ops_clock_pair stop = start;
	double rate = ops_clock_map_between(start, stop).ns_per_tick;

	(void)state;
	assert_true(rate > 0.05 && rate < 50);
	if (!ops_clock_tsc()) {
		assert_true(rate == 1);
		return;
	}
	/* An hour asleep: the TSC went on, the monotonic clock did not; then a session of a second. */
	start.ticks += (uint64_t)(3600e9 / rate);
	stop.ticks = start.ticks + (uint64_t)(1e9 / rate);
	stop.monotonic_ns = start.monotonic_ns + 1000000000;
	assert_true(ops_clock_map_between(start, stop).ns_per_tick > rate * 0.999);
	assert_true(ops_clock_map_between(start, stop).ns_per_tick < rate * 1.001);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reason_fits_the_choice),
		cmocka_unit_test(a_pair_lies_between_readings),
		cmocka_unit_test(ticks_become_nanoseconds),
		cmocka_unit_test(order_is_kept),
		cmocka_unit_test(odd_base_lines),
	};

	/* The choice is made once a process: the second run of the same tests has the other clock. */
	if (argc > 1)
		setenv("OPSTROBE_CLOCK", argv[1], 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * record/slow_steps: a million normal steps, however they vary, have no slow one; slow ones are found; recurring ones, and a new
 * normal length, are reported a few times at most.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/slow_steps.h>

#define STEPS 1000000u
#define MS 1e6

static uint64_t random_state;

/* Between 0 and 1, neither of them. */
static double uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	double radius = sqrt(-2 * log(uniform()));

	return radius * cos(2 * 3.141592653589793 * uniform());
}

/* --- healthy steps --------------------------------------------------------------------------------------------------- */

typedef double healthy_length(uint32_t step);

static double steady(uint32_t step)
{
	(void)step;
	return 100 * MS * (1 + 0.01 * normal());
}

static double noisy(uint32_t step)
{
	(void)step;
	return 80 * MS * exp(0.3 * normal());
}

static double very_noisy(uint32_t step)
{
	(void)step;
	return 500 * MS * exp(0.7 * normal());
}

static double exponential_tail(uint32_t step)
{
	(void)step;
	return 60 * MS - 40 * MS * log(uniform());
}

static double power_tail(uint32_t step)
{
	(void)step;
	return 50 * MS * pow(uniform(), -1.0 / 4);
}

static double heavy_power_tail(uint32_t step)
{
	(void)step;
	return 50 * MS * pow(uniform(), -1.0 / 2.5);
}

/* Returns lengths with a slow wave and noise. */
static double drifting(uint32_t step)
{
	return 100 * MS * (1.5 + sin(step / 3000.0)) * exp(0.1 * normal());
}

/* Sequences of different lengths in turn. */
static double two_lengths(uint32_t step)
{
	return (step % 3 ? 100 : 350) * MS * exp(0.05 * normal());
}

/* One batch in twenty takes three times as long. */
static double some_long(uint32_t step)
{
	(void)step;
	return (uniform() < 0.05 ? 300 : 100) * MS * exp(0.05 * normal());
}

static double tiny(uint32_t step)
{
	(void)step;
	return 0.2 * MS * pow(uniform(), -1.0 / 3);
}

/* Nothing to estimate a deviation from. */
static double constant(uint32_t step)
{
	(void)step;
	return 100 * MS;
}

static const struct {
	const char *name;
	healthy_length *length;
} healthy[] = {
	{"steady", steady},
	{"noisy", noisy},
	{"very noisy", very_noisy},
	{"exponential tail", exponential_tail},
	{"power tail", power_tail},
	{"heavy power tail", heavy_power_tail},
	{"drifting", drifting},
	{"two lengths", two_lengths},
	{"some long", some_long},
	{"tiny", tiny},
	{"constant", constant},
};
#define HEALTHY (sizeof(healthy) / sizeof(healthy[0]))

static void healthy_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < HEALTHY; i++) {
		struct ops_slow_steps steps = {0};
		uint32_t slow = 0;

		random_state = 88172645463325252u + i;
		for (uint32_t step = 0; step < STEPS; step++) {
			double length = healthy[i].length(step);

			if (ops_slow_steps_add(&steps, (uint64_t)length)) {
				print_message("%s: step %u of %.1f ms, median %.1f ms\n", healthy[i].name, step, length / MS, steps.median_ns / MS);
				slow++;
			}
		}
		assert_int_equal(slow, 0);
	}
}

/* --- slow steps ------------------------------------------------------------------------------------------------------ */

/* Of the median. What is unlikely depends on how heavy the tail is. */
static const double planted_ratio[HEALTHY] = {2, 60, 5000, 200, 5000, 1000000, 20, 50, 50, 10000000, 2};

static void planted_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < HEALTHY; i++) {
		struct ops_slow_steps steps = {0};
		uint32_t found = 0, planted = 0;

		random_state = 362436069u + i;
		for (uint32_t step = 0; step < 200000; step++) {
			/* apart by different numbers of steps: what comes back is something else */
			bool is_planted = step > 1000 && planted < 20 && uniform() < 1e-3;
			double length = is_planted ? steps.median_ns * planted_ratio[i] * (1 + uniform()) : healthy[i].length(step);
			bool slow = !steps.settling && is_planted;

			planted += slow;
			assert_false(!is_planted && ops_slow_steps_add(&steps, (uint64_t)length));
			found += is_planted && ops_slow_steps_add(&steps, (uint64_t)length);
		}
		assert_true(planted >= 15);
		assert_true(2 * found > planted); /* the limit is careful where many of the usual steps are long */
		assert_true(found >= planted - 2 || healthy[i].length == some_long); /* gaps that are alike by chance */
	}
}

static void first_steps(void **state)
{
	struct ops_slow_steps steps = {0};

	(void)state;
	assert_false(ops_slow_steps_add(&steps, 60000 * (uint64_t)MS)); /* compiling */
	for (int i = 0; i < 20; i++)
		assert_false(ops_slow_steps_add(&steps, 20 * (uint64_t)MS));
	assert_false(ops_slow_steps_add(&steps, 45 * (uint64_t)MS)); /* not worth it */
	assert_true(ops_slow_steps_add(&steps, 800 * (uint64_t)MS));
}

static void new_normal(void **state)
{
	struct ops_slow_steps steps = {0};
	uint32_t slow = 0;

	(void)state;
	random_state = 42;
	for (uint32_t step = 0; step < 5000; step++)
		slow += ops_slow_steps_add(&steps, (uint64_t)((step < 1000 ? 1 : 4) * steady(step)));
	assert_int_equal(slow, 1);
	assert_true(steps.median_ns > 390 * MS && steps.median_ns < 410 * MS);
	assert_true(ops_slow_steps_add(&steps, 4000 * (uint64_t)MS));
}

/* An evaluation every 100 steps and a checkpoint every 250. */
static void periodic_steps(void **state)
{
	struct ops_slow_steps steps = {0};
	uint32_t slow = 0, slow_late = 0;

	(void)state;
	random_state = 43;
	for (uint32_t step = 1; step < 20000; step++) {
		double length = steady(step) * (step % 100 == 0 ? 30 : 1) + (step % 250 == 0 ? 9000 * MS : 0);

		if (!ops_slow_steps_add(&steps, (uint64_t)length))
			continue;
		slow++;
		slow_late += step > 2000;
	}
	assert_true(slow >= 1 && slow <= 6);
	assert_int_equal(slow_late, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_steps), cmocka_unit_test(planted_steps), cmocka_unit_test(first_steps),
		cmocka_unit_test(new_normal),    cmocka_unit_test(periodic_steps),
	};

	return cmocka_run_group_tests_name("slow_steps", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * record/shadow_steps: the overhead of simulated programs is within the computed interval, whatever their period; detail is
 * reduced if it exceeds the budget, is restored, and does not oscillate.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/internal/shadow_steps.h>

#define STEP_NS 1e6
#define BUDGET_PPM 10000u
#define DECIDE_EVERY 100u /* steps, as the watching thread does it each second; and when it is due */

/* What each detail adds to a step, and how its length varies. */
struct simulated {
	double ranges, modules, allocations, operators;
	double threads; /* share of the time that the recorder's threads take, also in shadow steps */
	double noise;
	double length; /* of steps without recording, in STEP_NS; 0: 1 */
	uint32_t period; /* each such step is five times as long; 0: none */
	uint64_t random;
	uint64_t steps;
	struct ops_shadow_steps shadow, copy;
	struct ops_overhead overhead;
	enum ops_detail recorded;
	uint64_t shadow_count, shadow_on_period, reductions, restorations;
};

static double shadow_uniform(struct simulated *program)
{
	program->random ^= program->random << 13;
	program->random ^= program->random >> 7;
	program->random ^= program->random << 17;
	return ((double)(program->random >> 11) + 0.5) / 9007199254740992.0;
}

static void program_begin(struct simulated *program, uint32_t budget_ppm)
{
	program->random = 88172645463325252u;
	program->recorded = OPS_DETAIL_ALL;
	ops_shadow_steps_init(&program->shadow, budget_ppm, 4711);
}

static void program_run(struct simulated *program, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++) {
		enum ops_detail before = program->shadow.detail;
		uint64_t pairs = program->shadow.pairs_since;
		bool is_long = program->period && ++program->steps % program->period == 0;
		double share = (program->recorded >= OPS_DETAIL_ALL ? program->operators : 0) +
		               (program->recorded >= OPS_DETAIL_MODULES ? program->modules : 0) +
		               (program->recorded >= OPS_DETAIL_RANGES ? program->ranges : 0) +
		               (program->recorded >= OPS_DETAIL_ALLOCATIONS ? program->allocations : 0);
		double ns = STEP_NS * (program->length > 0 ? program->length : 1) * (is_long ? 5 : 1) *
		            (1 + share / (program->length > 0 ? program->length : 1)) * (1 + program->noise * (shadow_uniform(program) - 0.5));

		program->shadow_count += program->recorded == OPS_DETAIL_STEPS;
		program->shadow_on_period += program->recorded == OPS_DETAIL_STEPS && is_long;
		program->recorded = ops_shadow_steps_end(&program->shadow, (uint64_t)ns, 0);
		if (i % DECIDE_EVERY && (pairs == program->shadow.pairs_since || !ops_shadow_steps_is_due(&program->shadow)))
			continue;
		program->copy = program->shadow;
		ops_shadow_steps_measure(&program->copy, program->threads, &program->overhead);
		ops_shadow_steps_decide(&program->shadow, &program->copy, &program->overhead);
		program->reductions += program->shadow.detail < before;
		program->restorations += program->shadow.detail > before;
	}
}

static void expect_overhead(const struct simulated *program, double share)
{
	assert_true(program->overhead.pairs >= OPS_SHADOW_PAIRS_MIN);
	assert_true(program->overhead.low_ppm <= share * 1e6 && share * 1e6 <= program->overhead.high_ppm);
	assert_true(program->overhead.low_ppm <= program->overhead.share_ppm && program->overhead.share_ppm <= program->overhead.high_ppm);
}

static void overhead_is_measured(void **state)
{
	static const uint32_t periods[] = {0, 10, 24, 100};

	(void)state;
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		struct simulated program = {.modules = 0.002, .operators = 0.028, .noise = 0.2, .period = periods[i]};

		program_begin(&program, 0);
		program_run(&program, 30000);
		expect_overhead(&program, 0.03);
		assert_int_equal(program.shadow.detail, OPS_DETAIL_ALL); /* without a budget nothing is left out */
		/* Not in phase: long steps are shadow steps as often as others. */
		if (periods[i] && periods[i] < 100)
			assert_true(fabs((double)program.shadow_on_period / (double)program.shadow_count - 1.0 / periods[i]) < 0.05);
	}
}

static void few_pairs_say_nothing(void **state)
{
	struct simulated program = {.operators = 0.5};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, OPS_SHADOW_WARM_UP);
	assert_int_equal(program.shadow_count, 0);
	program_run(&program, OPS_SHADOW_EVERY_FIRST * 3);
	assert_true(program.shadow_count > 0 && program.overhead.pairs < OPS_SHADOW_PAIRS_MIN);
	assert_int_equal(program.overhead.high_ppm, 0);
	assert_int_equal(program.overhead.unit, OPS_OVERHEAD_STEP);
}

static void wide_intervals_are_not_known(void **state)
{
	struct ops_overhead overhead = {.unit = 1, .pairs = OPS_SHADOW_PAIRS_MIN, .share_ppm = 4000, .low_ppm = -6000, .high_ppm = 14000};

	(void)state;
	assert_true(ops_overhead_is_known(&overhead)); /* half of it is 1 % of a step */
	overhead.high_ppm += 2;
	assert_false(ops_overhead_is_known(&overhead));
	overhead = (struct ops_overhead){.unit = 1, .pairs = OPS_SHADOW_PAIRS_MIN, .share_ppm = 300000, .low_ppm = 150000, .high_ppm = 450000};
	assert_true(ops_overhead_is_known(&overhead)); /* half of it is half of the overhead */
	overhead.low_ppm -= 2;
	assert_false(ops_overhead_is_known(&overhead));
	overhead.low_ppm = overhead.high_ppm = overhead.share_ppm;
	overhead.pairs--;
	assert_false(ops_overhead_is_known(&overhead));
}

static void cheap_recording_is_left_alone(void **state)
{
	struct simulated program = {.modules = 0.001, .operators = 0.004, .noise = 0.2};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, 500000);
	assert_int_equal(program.reductions, 0);
	expect_overhead(&program, 0.005);
	/* Once it is known, shadow steps are rare. */
	assert_true(program.shadow_count < 500000 / (OPS_SHADOW_EVERY_KNOWN / 2));
}

static void detail_goes_and_comes_back(void **state)
{
	struct simulated program = {.modules = 0.001, .operators = 0.03, .noise = 0.05};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, 2000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALLOCATIONS);
	assert_int_equal(program.overhead.detail, OPS_DETAIL_ALLOCATIONS);
	assert_true(program.overhead.exceeded_ppm > 20000 && program.overhead.exceeded_ppm < 40000);
	program_run(&program, 2000);
	expect_overhead(&program, 0.001);
	/* Steps became longer, so that operators cost little: they come back, and stay. */
	program.operators = 0.002;
	program_run(&program, 200000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALL);
	assert_int_equal(program.restorations, 1);
	assert_int_equal(program.reductions, 1);
}

/* Each detail that takes more than the budget is left out, until steps alone remain. */
static void everything_is_too_much(void **state)
{
	struct simulated program = {.ranges = 0.02, .modules = 0.02, .allocations = 0.02, .operators = 0.2, .noise = 0.05};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, 4000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_STEPS);
	assert_int_equal(program.reductions, 4);
	assert_in_range(program.overhead.exceeded_ppm, 15000, 30000); /* of ranges, measured by few steps */
	program.threads = 0.004;
	program.noise = 0.5;
	program_run(&program, 100000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_STEPS);
	assert_int_equal(program.overhead.low_ppm, 4000); /* without the noise of steps, because none differs */
	assert_int_equal(program.overhead.high_ppm, 4000);
}

/* Shadow steps do not show the time of the recorder's threads, but it counts. */
static void allocations_and_threads_count(void **state)
{
	struct simulated program = {.modules = 0.001, .allocations = 0.017, .threads = 0.003, .noise = 0.05};

	(void)state;
	program_begin(&program, 0);
	program_run(&program, 20000);
	expect_overhead(&program, 0.021);
	program_begin(&program, BUDGET_PPM);
	program_run(&program, 4000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_MODULES);
}

/* An overhead just above the budget is not below it. */
static void small_excess_is_found(void **state)
{
	struct simulated program = {.modules = 0.001, .operators = 0.0105, .noise = 0.05};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, 60000);
	assert_true(program.reductions >= 1);
}

/* When steps are much longer, what was too much becomes affordable, without the wait of a retry. */
static void longer_steps_have_detail_again(void **state)
{
	struct simulated program = {.modules = 0.001, .operators = 0.03, .noise = 0.02};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, 2000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALLOCATIONS);
	program.shadow.reductions = 9; /* a retry would take long */
	program.length = 10;
	program_run(&program, 8000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALL);
	assert_int_equal(program.restorations, 1);
}

static void detail_does_not_swing(void **state)
{
	struct simulated program = {.modules = 0.001, .operators = 0.03, .noise = 0.05};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, 1000000);
	assert_true(program.reductions >= 2 && program.reductions <= 7); /* each takes twice as long to be undone */
}

/* Programs with long steps need a long time for a few hundred of them. */
static void much_is_noticed_soon(void **state)
{
	struct simulated program = {.operators = 0.5, .noise = 0.05};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, OPS_SHADOW_WARM_UP + 2 * OPS_SHADOW_EVERY_FIRST * OPS_SHADOW_PAIRS_MIN);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALLOCATIONS);
	assert_in_range(program.shadow_count, OPS_SHADOW_PAIRS_MIN, OPS_SHADOW_PAIRS_MIN + 8);
}

/* The first comparisons decide nothing unless all of them exceed the budget. */
static void few_pairs_that_differ_decide_nothing(void **state)
{
	struct simulated program = {.operators = 0.03, .noise = 0.3};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	while (program.shadow.pairs_since < OPS_SHADOW_PAIRS_DECIDE - 1) {
		program_run(&program, 1); /* judges after each step */
		assert_int_equal(program.shadow.detail, OPS_DETAIL_ALL);
	}
	assert_true(program.overhead.low_ppm < 0);
	program_run(&program, 20000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALLOCATIONS);
}

static void spoiled_steps_do_not_count(void **state)
{
	struct ops_shadow_steps steps;
	uint32_t spoiled = 0;

	(void)state;
	ops_shadow_steps_init(&steps, BUDGET_PPM, 1);
	assert_int_equal(ops_shadow_steps_spoil(&steps), OPS_DETAIL_ALL); /* none is under way */
	for (int i = 0; i < 1000; i++)
		if (ops_shadow_steps_end(&steps, 1000000, 0) == OPS_DETAIL_STEPS) {
			assert_int_equal(ops_shadow_steps_spoil(&steps), OPS_DETAIL_ALL);
			spoiled++;
		}
	assert_true(spoiled > 20);
	assert_int_equal(steps.used, 0);
}

/* The number of events decides before steps have been compared, and prevents a retry that would end at once. */
static void events_decide_first(void **state)
{
	struct simulated program = {.modules = 0.001, .noise = 0.05};

	(void)state;
	program_begin(&program, BUDGET_PPM);
	program_run(&program, OPS_SHADOW_COUNTED_AFTER);
	assert_false(ops_shadow_steps_is_counted(&program.shadow));
	program_run(&program, OPS_SHADOW_COUNTED_FIRST);
	assert_true(ops_shadow_steps_is_counted(&program.shadow));
	ops_shadow_steps_expect(&program.shadow, 15, STEP_NS, 0.002); /* 0.75 % of a step, and 0.2 % */
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALL);
	ops_shadow_steps_expect(&program.shadow, 17, STEP_NS, 0.002);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALLOCATIONS);
	assert_int_equal(program.shadow.exceeded_ppm, -10500);
	program_run(&program, 500000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALLOCATIONS);
	program.length = 10;
	program_run(&program, 20000);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALL);
	ops_shadow_steps_init(&program.shadow, 0, 4711);
	ops_shadow_steps_expect(&program.shadow, 1e6, STEP_NS, 0);
	assert_int_equal(program.shadow.detail, OPS_DETAIL_ALL); /* without a budget */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overhead_is_measured),    cmocka_unit_test(few_pairs_say_nothing),
		cmocka_unit_test(wide_intervals_are_not_known), cmocka_unit_test(cheap_recording_is_left_alone), cmocka_unit_test(detail_goes_and_comes_back),
		cmocka_unit_test(everything_is_too_much),  cmocka_unit_test(allocations_and_threads_count),
		cmocka_unit_test(small_excess_is_found),   cmocka_unit_test(longer_steps_have_detail_again),
		cmocka_unit_test(detail_does_not_swing),   cmocka_unit_test(much_is_noticed_soon),
		cmocka_unit_test(few_pairs_that_differ_decide_nothing),
		cmocka_unit_test(spoiled_steps_do_not_count), cmocka_unit_test(events_decide_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * base/intervals, compared with sets of single nanoseconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "base/intervals.h"

#define TIME 64

/* Every span that a mask of bits holds. */
static struct ops_intervals spans_of(uint64_t mask)
{
	struct ops_intervals spans = {0};

	for (int i = 0; i < TIME; i++)
		if (mask >> i & 1)
			assert_true(ops_intervals_merge(&spans, i, i + 1));
	return spans;
}

static uint64_t mask_of(const struct ops_intervals *spans)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < spans->count; i++) {
		assert_true(spans->items[i].start_ns < spans->items[i].end_ns);
		assert_true(i == 0 || spans->items[i - 1].end_ns <= spans->items[i].start_ns);
		for (int64_t t = spans->items[i].start_ns; t < spans->items[i].end_ns; t++)
			mask |= UINT64_C(1) << t;
	}
	return mask;
}

static uint64_t random_mask(void)
{
	uint64_t mask = 0;

	for (int i = 0; i < 8; i++)
		mask = mask << 8 | (uint64_t)(rand() & 255);
	return rand() & 1 ? mask & mask << 1 : mask | mask << 3;
}

static void like_sets(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 2000; round++) {
		uint64_t a_mask = random_mask(), b_mask = random_mask();
		struct ops_intervals a = spans_of(a_mask), b = spans_of(b_mask), both = {0}, left = {0};
		struct ops_interval_sums sums;
		int64_t start = rand() % TIME, end = start + rand() % (TIME - (int)start);
		uint64_t window = end - start == 0 ? 0 : (UINT64_C(2) << (end - start - 1)) - 1;
		size_t cursor = 0;

		assert_true(ops_intervals_intersect(&a, &b, &both) && ops_intervals_subtract(&a, &b, &left));
		assert_int_equal(mask_of(&both), a_mask & b_mask);
		assert_int_equal(mask_of(&left), a_mask & ~b_mask);
		assert_int_equal(ops_intervals_length(&a), __builtin_popcountll(a_mask));
		assert_int_equal(ops_intervals_common(&a, &b), __builtin_popcountll(a_mask & b_mask));
		assert_true(ops_interval_sums_init(&sums, &a));
		assert_int_equal(ops_interval_sums_within(&sums, start, end), __builtin_popcountll(a_mask & window << start));
		ops_interval_sums_release(&sums);
		assert_int_equal(ops_intervals_within(&a, start, end, &cursor),
		                 __builtin_popcountll(a_mask & window << start));
		ops_intervals_release(&a);
		ops_intervals_release(&b);
		ops_intervals_release(&both);
		ops_intervals_release(&left);
	}
}

static void settles(void **state)
{
	struct ops_intervals spans = {0};

	(void)state;
	ops_intervals_sort(&spans);
	assert_int_equal(spans.count, 0);
	assert_true(ops_intervals_push(&spans, 10, 20));
	assert_true(ops_intervals_push(&spans, 30, 40));
	assert_true(ops_intervals_push(&spans, 5, 12));
	assert_true(ops_intervals_push(&spans, 20, 21));
	ops_intervals_sort(&spans);
	assert_int_equal(spans.count, 2);
	assert_int_equal(spans.items[0].start_ns, 5);
	assert_int_equal(spans.items[0].end_ns, 21);
	ops_intervals_release(&spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(like_sets), cmocka_unit_test(settles)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

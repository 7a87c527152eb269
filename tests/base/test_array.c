/* SPDX-License-Identifier: Apache-2.0
 *
 * base/array: growth, overflow, failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/map.h"
#include "base/order.h"
#include "failing.h"

static void grows_and_keeps(void **state)
{
	OPS_ARRAY(uint64_t) numbers = {0};

	(void)state;
	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t *number = OPS_ARRAY_PUSH(&numbers);

		assert_non_null(number);
		*number = i * i;
	}
	assert_int_equal(numbers.count, 10000);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(numbers.items[i], i * i);
	OPS_ARRAY_RELEASE(&numbers);
	assert_null(numbers.items);
	assert_int_equal(numbers.capacity, 0);
}

static void growth_is_geometric(void **state)
{
	OPS_ARRAY(char) bytes = {0};

	(void)state;
	ops_alloc_fail_at(0, false);
	for (int i = 0; i < 1000000; i++)
		*OPS_ARRAY_PUSH(&bytes) = 1;
	assert_true(ops_alloc_count() < 40);
	OPS_ARRAY_RELEASE(&bytes);
}

static void refuses_overflow_and_stays(void **state)
{
	OPS_ARRAY(uint64_t) numbers = {0};

	(void)state;
	*OPS_ARRAY_PUSH(&numbers) = 7;
	assert_false(OPS_ARRAY_RESERVE(&numbers, SIZE_MAX));
	assert_false(OPS_ARRAY_RESERVE(&numbers, SIZE_MAX / 8));
	assert_int_equal(numbers.count, 1);
	assert_int_equal(numbers.items[0], 7);
	OPS_ARRAY_RELEASE(&numbers);
}

static void appends_values_and_sorts(void **state)
{
	OPS_ARRAY(int64_t) numbers = {0};

	(void)state;
	OPS_ARRAY_SORT(&numbers, ops_compare_int64); /* none */
	for (int64_t i = 0; i < 100; i++)
		assert_true(OPS_ARRAY_APPEND(&numbers, i * 37 % 100));
	OPS_ARRAY_SORT(&numbers, ops_compare_int64);
	for (int64_t i = 0; i < 100; i++)
		assert_int_equal(numbers.items[i], i);
	numbers.capacity = numbers.count;
	ops_alloc_fail_at(1, false);
	assert_false(OPS_ARRAY_APPEND(&numbers, 100));
	assert_int_equal(numbers.count, 100);
	OPS_ARRAY_RELEASE(&numbers);
}

static void items_by_number(void **state)
{
	OPS_ARRAY(uint64_t) sums = {0};
	struct ops_map numbers = {0};

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t *sum = OPS_ARRAY_AT(&sums, ops_map_number(&numbers, i * i % 7)); /* 0, 1, 4, 2: in this order */

		assert_non_null(sum);
		*sum += 1;
	}
	assert_int_equal(sums.count, 4);
	assert_int_equal(sums.items[0], 43);
	assert_int_equal(sums.items[1] + sums.items[2] + sums.items[3], 257);
	assert_null(OPS_ARRAY_AT(&sums, OPS_NONE));
	ops_map_release(&numbers);
	OPS_ARRAY_RELEASE(&sums);
}

static void push_all(void *context)
{
	OPS_ARRAY(int) numbers = {0};
	size_t kept = 0;

	(void)context;
	for (int i = 0; i < 1000; i++) {
		int *number = OPS_ARRAY_PUSH(&numbers);

		if (number)
			*number = (int)kept++;
	}
	assert_int_equal(numbers.count, kept);
	for (size_t i = 0; i < kept; i++)
		assert_int_equal(numbers.items[i], i);
	OPS_ARRAY_RELEASE(&numbers);
}

static void survives_every_failure(void **state)
{
	(void)state;
	assert_true(fail_each(push_all, NULL) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_and_keeps),
		cmocka_unit_test(growth_is_geometric),
		cmocka_unit_test(refuses_overflow_and_stays),
		cmocka_unit_test(appends_values_and_sorts),
		cmocka_unit_test(items_by_number),
		cmocka_unit_test(survives_every_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

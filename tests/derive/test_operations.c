/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of several ranks: the nth one of a kind on each rank is the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "derive/operations.h"

static uint32_t number(struct ops_operations *operations, struct ops_map *rank, const char *kind)
{
	return ops_operations_number(operations, rank, kind, strlen(kind));
}

static void matches_the_nth_of_a_kind(void **state)
{
	struct ops_operations operations = {0};
	struct ops_map first = {0}, second = {0};
	uint32_t reduce, reduce_again, gather;

	(void)state;
	reduce = number(&operations, &first, "reduce");
	gather = number(&operations, &first, "gather");
	reduce_again = number(&operations, &first, "reduce");
	assert_int_equal(operations.numbers.count, 3);
	/* The order of different kinds does not matter. */
	assert_int_equal(number(&operations, &second, "gather"), gather);
	assert_int_equal(number(&operations, &second, "reduce"), reduce);
	assert_int_equal(number(&operations, &second, "reduce"), reduce_again);
	assert_int_equal(number(&operations, &second, "reduce"), 3); /* only this rank has a third one */
	ops_map_release(&first);
	ops_map_release(&second);
	ops_operations_release(&operations);
}

static void reports_failed_allocations(void **state)
{
	struct ops_operations operations = {0};
	struct ops_map rank = {0};

	(void)state;
	ops_alloc_fail_at(1, true);
	assert_int_equal(number(&operations, &rank, "reduce"), OPS_NONE);
	ops_alloc_fail_at(0, false);
	assert_int_equal(number(&operations, &rank, "reduce"), 0);
	ops_map_release(&rank);
	ops_operations_release(&operations);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_the_nth_of_a_kind),
		cmocka_unit_test(reports_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

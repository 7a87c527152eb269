/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary search: finds the first index that is not before, at every possible position.
 */
#include "base/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void test_every_place(void **state)
{
	(void)state;
	for (size_t count = 0; count < 20; count++) {
		for (size_t from = 0; from <= count; from++) {
			for (size_t place = 0; place <= count; place++) {
				size_t at = from, looks = 0;

				OPS_LOWER_BOUND(at, count, mid, (looks++, assert_in_range(mid, from, count - 1), mid < place));
				assert_int_equal(at, place > from ? place : from);
				assert_true(looks <= 5);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_place)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

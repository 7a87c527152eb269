/* SPDX-License-Identifier: Apache-2.0
 *
 * base/map: added keys are found, the first value is kept, and failures change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/trace.h>

#include "failing.h"
#include "base/map.h"

#define KEYS 5000u

static void finds(void **state)
{
	struct ops_map map = {0};

	(void)state;
	assert_int_equal(ops_map_find(&map, 0), OPS_NONE);
	for (uint32_t i = 0; i < KEYS; i++)
		assert_true(ops_map_add(&map, (uint64_t)i << 32, i));
	for (uint32_t i = 0; i < KEYS; i++) {
		assert_true(ops_map_add(&map, (uint64_t)i << 32, 7));
		assert_int_equal(ops_map_find(&map, (uint64_t)i << 32), i);
		assert_int_equal(ops_map_find(&map, (uint64_t)i << 32 | 1), OPS_NONE);
	}
	assert_int_equal(map.count, KEYS);
	*ops_map_slot(&map, UINT64_MAX, 3) += 1;
	assert_int_equal(ops_map_find(&map, UINT64_MAX), 4);
	ops_map_release(&map);
}

/* Of keys close together, some of which come again, and some that were not foreseen. */
static void keys_close_together(void **state)
{
	struct ops_map map = {0}, sparse = {0};
	struct ops_map_keys keys = {0}, far_apart = {0};

	(void)state;
	for (uint32_t i = 0; i < KEYS; i++) {
		ops_map_keys_add(&keys, UINT64_MAX - 3 * i);
		ops_map_keys_add(&far_apart, (uint64_t)i << 32);
	}
	assert_true(ops_map_expect(&map, &keys));
	assert_non_null(map.dense);
	assert_true(ops_map_expect(&sparse, &far_apart));
	assert_null(sparse.dense);
	for (uint32_t i = 0; i < KEYS; i++) {
		assert_true(ops_map_add(&map, UINT64_MAX - 3 * i, i));
		assert_true(ops_map_add(&map, UINT64_MAX - 3 * i, 7));
		assert_true(ops_map_add(&map, i, i + 1));
	}
	for (uint32_t i = 0; i < KEYS; i++) {
		assert_int_equal(ops_map_find(&map, UINT64_MAX - 3 * i), i);
		assert_int_equal(ops_map_find(&map, UINT64_MAX - 3 * i - 1), OPS_NONE);
		assert_int_equal(ops_map_find(&map, i), i + 1);
	}
	ops_map_release(&map);
	ops_map_release(&sparse);
}

static void fill(void *context)
{
	struct ops_map map = {0};
	size_t added = 0;

	(void)context;
	while (added < 200 && ops_map_add(&map, added, (uint32_t)added))
		added++;
	for (size_t i = 0; i < added; i++)
		assert_int_equal(ops_map_find(&map, i), i);
	ops_map_release(&map);
}

static void survives_failures(void **state)
{
	(void)state;
	assert_true(fail_each(fill, NULL) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(keys_close_together),
		cmocka_unit_test(survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

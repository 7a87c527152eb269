/* SPDX-License-Identifier: Apache-2.0
 *
 * The natural merge sort compared with a simple insertion sort.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/array.h"
#include "../trace/random.h"
#include "base/order.h"

#define ROWS 600

static bool less(const void *context, uint32_t a, uint32_t b)
{
	const uint32_t *keys = context;

	return keys[a] < keys[b];
}

/* Moves every row up past those with a larger key: plain and stable. */
static void sort_plainly(uint32_t *rows, size_t count, const uint32_t *keys)
{
	for (size_t i = 1; i < count; i++)
		for (size_t at = i; at > 0 && keys[rows[at]] < keys[rows[at - 1]]; at--) {
			uint32_t row = rows[at];

			rows[at] = rows[at - 1];
			rows[at - 1] = row;
		}
}

static void test_sorts_like_insertion(void **state)
{
	uint32_t keys[ROWS];
	uint32_t rows[ROWS];
	uint32_t expected[ROWS];

	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++) {
		struct random random = {seed};
		uint32_t count = random_below(&random, ROWS);
		uint32_t range = 1 + random_below(&random, seed % 2 ? 8 : 10000);
		uint32_t run = 1 + random_below(&random, 50); /* ascending stretches of this length */

		for (uint32_t i = 0; i < count; i++) {
			keys[i] = i % run ? keys[i - 1] + random_below(&random, 3) : random_below(&random, range);
			rows[i] = expected[i] = i;
		}
		sort_plainly(expected, count, keys);
		assert_true(ops_sort_rows(rows, count, less, keys));
		assert_memory_equal(rows, expected, count * sizeof(*rows));
	}
}

static void test_find_order(void **state)
{
	const uint32_t sorted[] = {1, 1, 2, 9};
	const uint32_t mixed[] = {3, 1, 2, 1};
	const uint32_t expected[] = {1, 3, 2, 0};
	uint32_t *order = (uint32_t *)(void *)state;
	uint16_t *items = malloc(4 * sizeof(*items));

	assert_true(ops_find_order(4, less, sorted, &order));
	assert_null(order);
	assert_true(ops_find_order(0, less, sorted, &order));
	assert_null(order);
	assert_true(ops_find_order(4, less, mixed, &order));
	assert_memory_equal(order, expected, sizeof(expected));
	memcpy(items, (uint16_t[]){30, 10, 20, 11}, 4 * sizeof(*items));
	assert_true(ops_reorder(&items, 4, sizeof(*items), order));
	assert_memory_equal(items, ((uint16_t[]){10, 11, 20, 30}), 4 * sizeof(*items));
	ops_free(items);
	ops_free(order);
}

static void test_reorder_of_any_size(void **state)
{
	const uint32_t order[] = {2, 0, 3, 1};

	(void)state;
	for (size_t size = 1; size <= 24; size++) {
		unsigned char *items = malloc(4 * size);

		for (size_t i = 0; i < 4 * size; i++)
			items[i] = (unsigned char)i;
		assert_true(ops_reorder(&items, 4, size, order));
		for (size_t i = 0; i < 4 * size; i++)
			assert_int_equal(items[i], order[i / size] * size + i % size);
		ops_free(items);
	}
}

struct item {
	uint32_t key, place;
};

static bool has_less(const void *context, uint32_t a, uint32_t b)
{
	const struct item *items = context;

	return items[a].key < items[b].key;
}

static void test_sort_stable(void **state)
{
	static const struct item sorted[] = {{1, 1}, {1, 3}, {2, 2}, {3, 0}};
	OPS_ARRAY(struct item) list = {0};

	(void)state;
	assert_true(OPS_ARRAY_SORT_STABLE(&list, has_less));
	for (uint32_t i = 0; i < 4; i++)
		assert_true(OPS_ARRAY_APPEND(&list, (struct item){(uint32_t[]){3, 1, 2, 1}[i], i}));
	ops_alloc_fail_at(1, true);
	assert_false(OPS_ARRAY_SORT_STABLE(&list, has_less));
	assert_int_equal(list.items[0].key, 3);
	ops_alloc_fail_at(0, false);
	assert_true(OPS_ARRAY_SORT_STABLE(&list, has_less));
	assert_memory_equal(list.items, sorted, sizeof(sorted));
	assert_true(OPS_ARRAY_APPEND(&list, (struct item){9, 9})); /* the capacity is that of the new memory */
	OPS_ARRAY_RELEASE(&list);
}

static void test_out_of_memory(void **state)
{
	uint32_t keys[ROWS];
	uint32_t rows[ROWS];
	uint32_t *order;

	(void)state;
	for (uint32_t i = 0; i < ROWS; i++) {
		keys[i] = ROWS - i;
		rows[i] = i;
	}
	ops_alloc_fail_at(1, true);
	assert_false(ops_sort_rows(rows, ROWS, less, keys));
	assert_true(ops_sort_rows(rows, 2, less, keys)); /* few rows need none */
	ops_alloc_fail_at(1, true);
	assert_false(ops_find_order(ROWS, less, keys, &order));
	assert_null(order);
	ops_alloc_fail_at(2, true);
	assert_false(ops_find_order(ROWS, less, keys, &order));
	assert_null(order);
	ops_alloc_fail_at(0, false);
}

static void test_sorts_doubles_like_qsort(void **state)
{
	double numbers[600], spare[600], expected[600];
	uint64_t random = 88172645463325252u;

	(void)state;
	for (size_t count = 0; count <= 600; count += count < 70 ? 1 : 53) {
		for (size_t i = 0; i < count; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			numbers[i] = expected[i] = (double)(random % (count / 2 + 1)) - 5; /* some are equal */
		}
		ops_sort_doubles(numbers, spare, count);
		qsort(expected, count, sizeof(*expected), ops_compare_double);
		for (size_t i = 0; i < count; i++)
			assert_true(numbers[i] == expected[i]);
	}
}

static void test_sorts_integers(void **state)
{
	int64_t numbers[] = {3, INT64_MIN, 3, INT64_MAX, -1, -1, 3};

	(void)state;
	assert_int_equal(ops_sort_to_middle(NULL, 0), 0);
	assert_int_equal(ops_sort_to_middle(numbers, 2), 3); /* of two the larger */
	assert_int_equal(ops_sort_to_middle(numbers, 7), 3);
	assert_int_equal(ops_sort_unique_int64(NULL, 0), 0);
	assert_int_equal(ops_sort_unique_int64(numbers, 7), 4);
	assert_memory_equal(numbers, ((int64_t[]){INT64_MIN, -1, 3, INT64_MAX}), 4 * sizeof(*numbers));
}

static uint32_t key_of(const void *keys, uint32_t item)
{
	return ((const uint32_t *)keys)[item];
}

static void test_groups(void **state)
{
	const uint32_t keys[] = {2, 0, UINT32_MAX, 2, 0}, first[] = {0, 2, 2, 4}, order[] = {1, 4, 0, 3};
	struct ops_groups groups;

	(void)state;
	assert_true(ops_groups_init(&groups, 5, 3, key_of, keys));
	assert_memory_equal(groups.first, first, sizeof(first));
	assert_memory_equal(groups.order, order, sizeof(order));
	ops_groups_release(&groups);
	assert_true(ops_groups_init(&groups, 0, 0, key_of, NULL));
	assert_int_equal(groups.first[0], 0);
	ops_groups_release(&groups);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		ops_alloc_fail_at(nth, false);
		assert_false(ops_groups_init(&groups, 5, 3, key_of, keys));
		ops_groups_release(&groups);
	}
	ops_alloc_fail_at(0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorts_like_insertion),
		cmocka_unit_test(test_find_order),
		cmocka_unit_test(test_reorder_of_any_size),
		cmocka_unit_test(test_sort_stable),
		cmocka_unit_test(test_sorts_doubles_like_qsort),
		cmocka_unit_test(test_sorts_integers),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

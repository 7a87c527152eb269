/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/heap.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"

static bool is_longer(const void *context, uint32_t a, uint32_t b)
{
	const int *lengths = context;

	return lengths[a] > lengths[b];
}

static void pops_in_order(void **state)
{
	static const int lengths[] = {3, 9, 4, 1, 7, 5, 8, 2, 6, 0};
	static const uint32_t in_order[] = {1, 6, 4, 8, 5, 2, 0, 7, 3, 9};
	uint32_t heap[10];
	size_t count = 0;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		ops_heap_push(heap, &count, i, is_longer, lengths);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(heap[0], in_order[i]);
		ops_heap_pop(heap, &count, is_longer, lengths);
	}
	assert_int_equal(count, 0);
}

static void mixes_both(void **state)
{
	static const int lengths[] = {1, 5, 3, 4};
	uint32_t heap[4];
	size_t count = 0;

	(void)state;
	ops_heap_push(heap, &count, 0, is_longer, lengths);
	ops_heap_push(heap, &count, 1, is_longer, lengths);
	ops_heap_pop(heap, &count, is_longer, lengths);
	ops_heap_push(heap, &count, 2, is_longer, lengths);
	ops_heap_push(heap, &count, 3, is_longer, lengths);
	assert_int_equal(heap[0], 3);
	ops_heap_pop(heap, &count, is_longer, lengths);
	assert_int_equal(heap[0], 2);
	assert_int_equal(count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pops_in_order),
		cmocka_unit_test(mixes_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

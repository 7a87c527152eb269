/* SPDX-License-Identifier: Apache-2.0
 *
 * base/arena: alignment, unchanged contents, failures, poisoning under AddressSanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/sanitizer.h"
#include "failing.h"

#if OPS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

#define COUNT 3000

static void allocations_are_apart_and_aligned(void **state)
{
	struct ops_arena arena = {0};
	unsigned char *made[COUNT];
	size_t sizes[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		sizes[i] = i % 500 == 499 ? 100000 : i * 7 % 300;
		made[i] = i % 3 ? ops_arena_alloc(&arena, sizes[i]) : NULL;
		if (made[i]) {
			assert_int_equal((uintptr_t)made[i] % 16, 0);
			memset(made[i], (int)(i % 251), sizes[i]);
		} else {
			char text[300];

			sizes[i] %= 300;
			memset(text, (int)(i % 251), sizes[i]);
			made[i] = (unsigned char *)ops_arena_copy(&arena, text, sizes[i]);
			assert_non_null(made[i]);
			assert_int_equal((uintptr_t)made[i] % 8, 0);
			assert_int_equal(made[i][sizes[i]], 0);
		}
	}
	for (size_t i = 0; i < COUNT; i++)
		for (size_t at = 0; at < sizes[i]; at++)
			assert_int_equal(made[i][at], i % 251);
	ops_arena_release(&arena);
	assert_null(arena.chunks);
	ops_arena_release(&arena);
}

static void a_large_one_does_not_waste_the_chunk(void **state)
{
	struct ops_arena arena = {0};
	char *before = ops_arena_alloc(&arena, 16);
	char *after;

	(void)state;
	assert_non_null(ops_arena_alloc(&arena, 8 << 20));
	after = ops_arena_alloc(&arena, 16);
	assert_true(after > before && after - before < 4096);
	ops_arena_release(&arena);
}

static void absurd_sizes_are_refused(void **state)
{
	struct ops_arena arena = {0};

	(void)state;
	assert_null(ops_arena_alloc(&arena, SIZE_MAX));
	assert_null(ops_arena_alloc(&arena, SIZE_MAX - 20));
	assert_null(ops_arena_copy(&arena, "", SIZE_MAX));
	assert_null(arena.chunks);
}

static void fill(void *context)
{
	struct ops_arena arena = {0};
	int failures = 0;

	(void)context;
	for (int i = 0; i < 2000; i++) {
		char *text = ops_arena_copy(&arena, "0123456789", 10);

		if (text)
			assert_string_equal(text, "0123456789");
		else
			failures++;
	}
	/* The next call allocates memory again. */
	assert_true(failures <= 1);
	ops_arena_release(&arena);
}

static void survives_every_failure(void **state)
{
	(void)state;
	assert_true(fail_each(fill, NULL) >= 3);
}

#if OPS_ADDRESS_SANITIZER
static void the_rest_is_poisoned(void **state)
{
	struct ops_arena arena = {0};
	char *first = ops_arena_alloc(&arena, 13);
	char *second = ops_arena_alloc(&arena, 8);

	(void)state;
	assert_null(__asan_region_is_poisoned(first, 13));
	assert_ptr_equal(__asan_region_is_poisoned(first, 14), first + 13);
	assert_null(__asan_region_is_poisoned(second, 8));
	assert_true(__asan_address_is_poisoned(second - 1));
	assert_true(__asan_address_is_poisoned(second + 8));
	ops_arena_release(&arena);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations_are_apart_and_aligned),
		cmocka_unit_test(a_large_one_does_not_waste_the_chunk),
		cmocka_unit_test(absurd_sizes_are_refused),
		cmocka_unit_test(survives_every_failure),
#if OPS_ADDRESS_SANITIZER
		cmocka_unit_test(the_rest_is_poisoned),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

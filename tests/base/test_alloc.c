/* SPDX-License-Identifier: Apache-2.0
 *
 * base/alloc: failures on request, overflow, pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"

static void fails_the_nth_alone(void **state)
{
	(void)state;
	for (int nth = 1; nth <= 4; nth++) {
		void *made[4];

		ops_alloc_fail_at((uint64_t)nth, false);
		made[0] = ops_alloc(8);
		made[1] = ops_alloc_zeroed(2, 4);
		made[2] = ops_realloc_array(NULL, 2, 4);
		made[3] = ops_pages_map(4096);
		assert_int_equal(ops_alloc_count(), 4);
		for (int i = 0; i < 4; i++)
			assert_int_equal(made[i] == NULL, i + 1 == nth);
		for (int i = 0; i < 3; i++)
			ops_free(made[i]);
		ops_pages_unmap(made[3], 4096);
	}
	ops_alloc_fail_at(0, false);
}

static void fails_all_after(void **state)
{
	void *first;

	(void)state;
	ops_alloc_fail_at(2, true);
	first = ops_alloc(1);
	assert_non_null(first);
	for (int i = 0; i < 10; i++)
		assert_null(ops_alloc(1));
	ops_alloc_fail_at(0, true);
	ops_free(first);
	first = ops_alloc(1);
	assert_non_null(first);
	ops_free(first);
}

static void refuses_sizes_that_overflow(void **state)
{
	(void)state;
	assert_null(ops_realloc_array(NULL, SIZE_MAX / 2, 3));
	assert_null(ops_alloc_zeroed(SIZE_MAX / 2, 3));
}

static void failed_growth_keeps_the_old(void **state)
{
	char *text = ops_realloc_array(NULL, 4, 1);

	(void)state;
	memcpy(text, "abc", 4);
	ops_alloc_fail_at(1, false);
	assert_null(ops_realloc_array(text, 8, 1));
	ops_alloc_fail_at(0, false);
	assert_string_equal(text, "abc");
	ops_free(text);
}

static void zero_bytes_are_an_allocation(void **state)
{
	void *memory = ops_alloc(0);

	(void)state;
	assert_non_null(memory);
	memory = ops_realloc_array(memory, 0, 8);
	assert_non_null(memory);
	ops_free(memory);
	ops_free(NULL);
}

static void arrays_of_none(void **state)
{
	uint32_t *numbers = ops_alloc_none(3);

	(void)state;
	assert_non_null(numbers);
	for (int i = 0; i < 3; i++)
		assert_int_equal(numbers[i], OPS_NONE);
	ops_free(numbers);
	assert_null(ops_alloc_none(SIZE_MAX / 2));
}

static void pages_are_aligned_and_zeroed(void **state)
{
	(void)state;
	for (size_t bytes = 4096; bytes <= 2u << 20; bytes *= 2) {
		char *pages[8];

		for (int i = 0; i < 8; i++) {
			pages[i] = ops_pages_map(bytes);
			assert_non_null(pages[i]);
			assert_int_equal((uintptr_t)pages[i] % bytes, 0);
			for (size_t at = 0; at < bytes; at += 512)
				assert_int_equal(pages[i][at], 0);
			memset(pages[i], 0xff, bytes);
		}
		for (int i = 0; i < 8; i++)
			ops_pages_unmap(pages[i], bytes);
	}
}

static void odd_sizes_of_pages(void **state)
{
	char *pages = ops_pages_map(12288);

	(void)state;
	assert_non_null(pages);
	pages[12287] = 1;
	ops_pages_unmap(pages, 12288);
	ops_pages_unmap(NULL, 4096);
}

/* Returns whether the system says of an address's mapping that large pages are wanted there. */
static bool wants_large_pages(const char *at)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	char line[1024];
	void *start, *end;
	bool here = false, wants = false;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%p-%p ", &start, &end) == 2)
			here = (char *)start <= at && at < (char *)end;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			wants = strstr(line, " hg") != NULL;
	}
	fclose(maps);
	return wants;
}

static void large_pages_keep_what_is_there(void **state)
{
	const size_t bytes = 6u << 20, large = 2u << 20;
	char *memory = ops_pages_map(bytes);

	(void)state;
	assert_non_null(memory);
	memset(memory, 0x5a, bytes);
	ops_pages_large(memory + 100, large - 1);
	assert_false(wants_large_pages(memory + 100));
	ops_pages_large(memory + 100, large);
	if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0) {
		assert_true(wants_large_pages(memory + 100));
		assert_true(wants_large_pages(memory + 99 + large));
		assert_false(wants_large_pages(memory + bytes - 1));
	}
	for (size_t at = 0; at < bytes; at++)
		assert_int_equal(memory[at], 0x5a);
	ops_pages_unmap(memory, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fails_the_nth_alone),
		cmocka_unit_test(fails_all_after),
		cmocka_unit_test(refuses_sizes_that_overflow),
		cmocka_unit_test(failed_growth_keeps_the_old),
		cmocka_unit_test(zero_bytes_are_an_allocation),
		cmocka_unit_test(arrays_of_none),
		cmocka_unit_test(pages_are_aligned_and_zeroed),
		cmocka_unit_test(odd_sizes_of_pages),
		cmocka_unit_test(large_pages_keep_what_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

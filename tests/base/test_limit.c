/* SPDX-License-Identifier: Apache-2.0
 *
 * base/limit: limits on memory and CPU time of one thread's work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/limit.h"

#define MB (UINT64_C(1) << 20)
#define LONG_NS UINT64_C(3600000000000)

static void memory_beyond_the_limit_is_refused(void **state)
{
	struct ops_limit limit = {.bytes_max = MB, .cpu_ns_max = LONG_NS};
	void *first, *pages;

	(void)state;
	ops_limit_begin(&limit);
	first = ops_alloc(MB / 2);
	pages = ops_pages_map(MB / 4);
	assert_non_null(first);
	assert_non_null(pages);
	assert_false(ops_limit_reached());
	assert_null(ops_alloc_zeroed(MB / 2, 1));
	assert_int_equal(limit.reached, OPS_LIMIT_MEMORY);
	assert_null(ops_alloc(1)); /* it stays reached */
	ops_free(first);
	ops_pages_unmap(pages, MB / 4);
	assert_null(ops_alloc(1));
	assert_true(ops_limit_reached());
	ops_limit_end();
	assert_false(ops_limit_reached());
	first = ops_alloc(2 * MB);
	assert_non_null(first);
	ops_free(first);
}

static void what_is_freed_counts_no_more(void **state)
{
	struct ops_limit limit = {.bytes_max = MB, .cpu_ns_max = LONG_NS};
	char *before = ops_alloc(8 * MB), *grown = NULL;
	void *kept;

	(void)state;
	ops_limit_begin(&limit);
	for (int i = 0; i < 100; i++) {
		void *memory = ops_alloc(MB / 2);

		assert_non_null(memory);
		ops_free(memory);
	}
	for (size_t size = 1; size <= 800000; size += 4000) {
		grown = ops_realloc_array(grown, size, 1);
		assert_non_null(grown);
	}
	ops_free(grown);
	grown = NULL;
	ops_free(before); /* was there before the limit, and makes no more space */
	kept = ops_alloc(900000);
	assert_non_null(kept);
	ops_free(kept);
	assert_null(ops_realloc_array(grown, 2 * MB, 1));
	assert_int_equal(limit.reached, OPS_LIMIT_MEMORY);
	ops_limit_end();
	ops_free(grown);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void compute(uint64_t ns)
{
	for (uint64_t until_ns = own_cpu_ns() + ns; own_cpu_ns() < until_ns;)
		;
}

/* Each iteration or allocation may follow milliseconds of work. */
static void long_iterations_are_seen_soon(void **state)
{
	struct ops_limit limit = {.bytes_max = UINT64_MAX, .cpu_ns_max = 10000000};
	int iterations = 0, allocations = 0;
	void *memory;

	(void)state;
	ops_limit_begin(&limit);
	for (; iterations < 1000 && !ops_limit_reached(); iterations++)
		compute(2000000);
	ops_limit_end();
	assert_true(iterations < 50);
	ops_limit_begin(&limit);
	for (; allocations < 1000 && (memory = ops_alloc(1)); allocations++) {
		ops_free(memory);
		compute(2000000);
	}
	ops_limit_end();
	assert_true(allocations < 50);
}

static void time_beyond_the_limit_is_refused(void **state)
{
	struct ops_limit limit = {.bytes_max = UINT64_MAX, .cpu_ns_max = 5000000};
	uint64_t calls = 0;
	void *memory;

	(void)state;
	ops_limit_begin(&limit);
	memory = ops_alloc(1);
	assert_non_null(memory);
	ops_free(memory);
	while (!ops_limit_reached())
		calls++;
	assert_true(calls > 0);
	assert_int_equal(limit.reached, OPS_LIMIT_TIME);
	assert_null(ops_alloc(1));
	ops_limit_end();
	ops_limit_begin(&limit); /* begins at 0 again */
	memory = ops_alloc(1);
	assert_non_null(memory);
	ops_free(memory);
	ops_limit_end();
}

static void *allocate(void *unused)
{
	void *memory = ops_alloc(MB);

	(void)unused;
	ops_free(memory);
	return memory ? (void *)"allocated" : NULL;
}

static void other_threads_are_not_limited(void **state)
{
	struct ops_limit limit = {.bytes_max = 1000, .cpu_ns_max = LONG_NS};
	pthread_t thread;
	void *result;

	(void)state;
	ops_limit_begin(&limit);
	assert_null(ops_alloc(MB));
	assert_int_equal(pthread_create(&thread, NULL, allocate, NULL), 0);
	pthread_join(thread, &result);
	ops_limit_end();
	assert_non_null(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_beyond_the_limit_is_refused),
		cmocka_unit_test(what_is_freed_counts_no_more),
		cmocka_unit_test(long_iterations_are_seen_soon),
		cmocka_unit_test(time_beyond_the_limit_is_refused),
		cmocka_unit_test(other_threads_are_not_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * record/counters: counts are right for each thread; counters that the kernel refuses are left out and reported.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <opstrobe/internal/counters.h>

#define PAGES 1024 /* many compared with what a sanitizer touches when a thread starts */

static const struct ops_counters *open_names(const char *const *names, size_t count, uint32_t *ret_refused)
{
	const struct ops_counters *counters = NULL;
	struct ops_error error;
	int os_errno = 0;

	assert_int_equal(ops_counters_open(names, count, &counters, ret_refused, &os_errno, &error), OPS_OK);
	assert_true(!*ret_refused == !os_errno);
	return counters;
}

static void touch_pages(void)
{
	char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		((volatile char *)pages)[i * 4096] = 1;
	munmap(pages, PAGES * 4096);
}

static void *count_in_thread(void *given)
{
	const struct ops_counters *counters = given;
	int64_t before[OPS_COUNTERS_MAX], after[OPS_COUNTERS_MAX];

	assert_true(counters->read(before));
	touch_pages();
	assert_true(counters->read(after));
	assert_true(after[0] - before[0] >= PAGES);
	return NULL;
}

static void page_faults_by_thread(void **state)
{
	const char *const names[] = {"pagefaults", "task-clock"};
	uint32_t refused;
	const struct ops_counters *counters = open_names(names, 2, &refused);
	int64_t before[OPS_COUNTERS_MAX], after[OPS_COUNTERS_MAX];
	pthread_t thread;

	(void)state;
	if (refused) /* a kernel without perf events: a refusal is all there is to see */
		return;
	assert_int_equal(counters->count, 2);
	assert_string_equal(counters->names[0], "pagefaults");
	count_in_thread((void *)counters);
	assert_true(counters->read(before));
	assert_int_equal(pthread_create(&thread, NULL, count_in_thread, (void *)counters), 0);
	pthread_join(thread, NULL);
	assert_true(counters->read(after));
	assert_true(after[0] - before[0] < PAGES); /* the other thread's are not among them */
	assert_true(after[1] >= before[1]);
	ops_counters_close();
	assert_false(counters->read(after));
}

static void refusal(void **state)
{
	const char *const names[] = {"pagefaults", "cycles"};
	uint32_t refused;
	const struct ops_counters *counters;
	int64_t values[OPS_COUNTERS_MAX];

	(void)state;
	ops_counters_refuse(EACCES);
	counters = open_names(names, 2, &refused);
	assert_int_equal(refused, 3);
	assert_int_equal(counters->count, 0);
	assert_false(counters->read(values));
	ops_counters_refuse(0);
	counters = open_names(names, 1, &refused);
	ops_counters_refuse(EMFILE); /* the thread's own descriptors */
	assert_false(counters->read(values));
	assert_false(counters->read(values));
	ops_counters_refuse(0);
	ops_counters_close();
}

static void names_that_are_wrong(void **state)
{
	const char *const unknown[] = {"pagefaults", "nonsense"};
	const char *const many[OPS_COUNTERS_MAX + 1] = {0};
	const struct ops_counters *counters = NULL;
	struct ops_error error;
	uint32_t refused;
	int os_errno;

	(void)state;
	assert_int_equal(ops_counters_open(unknown, 2, &counters, &refused, &os_errno, &error), OPS_INVALID);
	assert_non_null(strstr(error.text, "'nonsense'; known are cycles, instructions, pagefaults"));
	assert_non_null(strstr(error.text, "cpu-migrations"));
	assert_int_equal(ops_counters_open(many, OPS_COUNTERS_MAX + 1, &counters, &refused, &os_errno, &error), OPS_INVALID);
	assert_null(counters);
	assert_true(ops_counters_known("cycles", 6));
	assert_false(ops_counters_known("cycle", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_faults_by_thread),
		cmocka_unit_test(refusal),
		cmocka_unit_test(names_that_are_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

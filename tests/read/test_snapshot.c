/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: the last part of a recording that goes on, while threads record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/snapshot.h>
#include <opstrobe/record.h>

static char folder[64];
static char path[128];

static int snapshot_make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opstrobe-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/1.oprec", folder);
	return 0;
}

static int snapshot_remove_folder(void **state)
{
	(void)state;
	unlink(path);
	rmdir(folder);
	return 0;
}

static struct ops_session *start_filed(void)
{
	const struct ops_record_options options = {.size = sizeof(options), .spill_path = path};
	struct ops_session *session = NULL;
	struct ops_error error;

	if (ops_session_start(&options, &session, &error))
		fail_msg("%s", error.text);
	return session;
}

static struct ops_trace *take_snapshot(const struct ops_session *session, uint64_t last_ns)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_session_snapshot(session, last_ns, &trace, &error))
		fail_msg("%s", error.text);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static struct ops_range begin_named(const char *name)
{
	return ops_range_begin(name, strlen(name));
}

/* Events of a name, with these flags of those two. */
static size_t count_flagged(const struct ops_trace *trace, const char *name, uint16_t flags)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count = 0;

	for (size_t i = 0; i < events->count; i++) {
		struct ops_string text = ops_trace_string(trace, events->name[i]);

		count += text.size == strlen(name) && !memcmp(text.bytes, name, text.size) &&
		         (events->flags[i] & (OPS_EVENT_UNFINISHED | OPS_EVENT_CUT)) == flags;
	}
	return count;
}

static void test_open_is_unfinished(void **state)
{
	struct ops_session *session = start_filed();
	struct ops_range outer = begin_named("outer");
	struct ops_trace *first, *second;

	(void)state;
	ops_range_end(begin_named("inner"));
	first = take_snapshot(session, 0);
	ops_range_end(begin_named("inner"));
	ops_range_end(outer);
	second = take_snapshot(session, 0);
	assert_int_equal(count_flagged(first, "outer", OPS_EVENT_UNFINISHED), 1);
	assert_int_equal(count_flagged(first, "inner", 0), 1);
	assert_int_equal(count_flagged(second, "outer", 0), 1);
	assert_int_equal(count_flagged(second, "inner", 0), 2);
	ops_trace_unref(first);
	ops_trace_unref(second);
	ops_session_discard(session);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void test_window(void **state)
{
	struct ops_session *session = start_filed();
	struct ops_range outer = begin_named("outer"), ends = begin_named("ends");
	struct ops_trace *trace;
	const struct ops_trace_info *info;
	uint64_t middle_ns;

	(void)state;
	ops_range_end(begin_named("early"));
	usleep(20000);
	middle_ns = now_ns();
	usleep(20000);
	ops_range_end(ends);
	ops_range_end(begin_named("late"));
	trace = take_snapshot(session, now_ns() - middle_ns);
	info = ops_trace_info(trace);
	assert_int_equal(count_flagged(trace, "outer", OPS_EVENT_UNFINISHED | OPS_EVENT_CUT), 1);
	assert_int_equal(count_flagged(trace, "ends", OPS_EVENT_CUT), 1);
	assert_int_equal(count_flagged(trace, "late", 0), 1);
	assert_int_equal(count_flagged(trace, "early", 0), 0);
	assert_in_range(info->stop_ns - info->start_ns, 20000000, (int64_t)(now_ns() - middle_ns));
	ops_range_end(outer);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static uint64_t total_bytes;

static void report_memory(uint64_t address, int64_t bytes)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct ops_memory_slot *slot =
		(struct ops_memory_slot *)(void *)ops_reserve(collector, thread, ops_collector_epoch(collector), 0);

	assert_non_null(slot);
	total_bytes += (uint64_t)bytes;
	*slot = (struct ops_memory_slot){
		.address = address,
		.time_ticks = ops_ticks(collector->tsc),
		.bytes = bytes,
		.total_allocated = total_bytes,
		.device_index = -1,
		.kind = OPS_SLOT_MEMORY,
	};
	ops_publish(thread);
}

static void test_baseline(void **state)
{
	struct ops_session *session = start_filed();
	const struct ops_memory_record *records;
	struct ops_trace *trace;
	uint64_t middle_ns;
	size_t count;

	(void)state;
	total_bytes = 0;
	report_memory(0x1000, 100);
	report_memory(0x2000, 30);
	report_memory(0x1000, -100);
	report_memory(0x3000, 7);
	report_memory(0x1000, 50); /* another one, at an address that was free again */
	usleep(5000);
	middle_ns = now_ns();
	usleep(5000);
	report_memory(0x2000, -30);
	trace = take_snapshot(session, now_ns() - middle_ns);
	records = ops_trace_memory(trace, &count);
	assert_int_equal(count, 4);
	assert_int_equal(records[0].address, 0x2000);
	assert_int_equal(records[0].total_allocated, 30);
	assert_int_equal(records[1].address, 0x3000);
	assert_int_equal(records[2].address, 0x1000);
	assert_int_equal(records[2].bytes, 50);
	assert_int_equal(records[2].total_allocated, 87);
	assert_int_equal(records[3].bytes, -30);
	assert_int_equal(records[3].total_allocated, 57);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* --- threads --------------------------------------------------------------------------------------------------------- */

#define SNAPSHOT_THREADS 3

static int finish;
static int ready;

/* Numbers its ranges, so that gaps are seen. */
static void *record_numbers(void *number)
{
	char name[32];

	for (unsigned i = 0; !__atomic_load_n(&finish, __ATOMIC_RELAXED); i++) {
		size_t size = (size_t)snprintf(name, sizeof(name), "%zu:%u", (size_t)(uintptr_t)number, i);
		struct ops_range outer = ops_range_begin("outer", 5);

		ops_range_end(ops_range_begin(name, size));
		ops_range_end(outer);
		if (i == 0)
			__atomic_add_fetch(&ready, 1, __ATOMIC_RELAXED);
		if (i % 16 == 0)
			usleep(200);
	}
	return NULL;
}

/* Of each thread the numbers are 0, 1, 2, … or, if the first are left out, follow each other. */
static void check_numbers(const struct ops_trace *trace, bool from_the_start)
{
	const struct ops_events *events = ops_trace_events(trace);
	unsigned next[SNAPSHOT_THREADS] = {0};
	bool began[SNAPSHOT_THREADS] = {false};

	for (size_t i = 0; i < events->count; i++) {
		struct ops_string text = ops_trace_string(trace, events->name[i]);
		char name[32] = "";
		unsigned thread, number;

		memcpy(name, text.bytes, text.size < sizeof(name) ? text.size : 0);
		if (sscanf(name, "%u:%u", &thread, &number) != 2)
			continue;
		assert_true(thread < SNAPSHOT_THREADS);
		if (began[thread] || from_the_start)
			assert_int_equal(number, next[thread]);
		began[thread] = true;
		next[thread] = number + 1;
	}
	for (size_t i = 0; i < SNAPSHOT_THREADS; i++)
		assert_true(began[i]);
}

static void test_threads_go_on(void **state)
{
	struct ops_session *session = start_filed();
	pthread_t threads[SNAPSHOT_THREADS];

	(void)state;
	finish = ready = 0;
	for (size_t i = 0; i < SNAPSHOT_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_numbers, (void *)(uintptr_t)i), 0);
	while (__atomic_load_n(&ready, __ATOMIC_RELAXED) < SNAPSHOT_THREADS)
		usleep(100);
	for (int i = 0; i < 5; i++) {
		struct ops_trace *trace = take_snapshot(session, 0);

		check_numbers(trace, true);
		ops_trace_unref(trace);
		usleep(1000);
	}
	__atomic_store_n(&finish, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < SNAPSHOT_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	ops_session_discard(session);
}

static void test_refusals(void **state)
{
	struct ops_session *session = NULL;
	struct ops_trace *trace = NULL;
	struct ops_error error;

	(void)state;
	assert_int_equal(ops_session_start(NULL, &session, NULL), OPS_OK);
	assert_int_equal(ops_session_snapshot(session, 0, &trace, &error), OPS_STATE);
	assert_non_null(strstr(error.text, "no recording file"));
	ops_session_discard(session);
	assert_int_equal(ops_session_snapshot(session, 0, &trace, &error), OPS_STATE);
	assert_non_null(strstr(error.text, "not running"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_open_is_unfinished, snapshot_make_folder, snapshot_remove_folder),
		cmocka_unit_test_setup_teardown(test_window, snapshot_make_folder, snapshot_remove_folder),
		cmocka_unit_test_setup_teardown(test_baseline, snapshot_make_folder, snapshot_remove_folder),
		cmocka_unit_test_setup_teardown(test_threads_go_on, snapshot_make_folder, snapshot_remove_folder),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: the last part of a recording in progress, while threads record.
 */
#include <pthread.h>

#include "running.h"

static struct ops_session *start_filed(void)
{
	return start_recording(&(struct ops_record_options){.size = sizeof(struct ops_record_options), .spill_path = path});
}

static void test_open_is_unfinished(void **state)
{
	struct ops_session *session = start_filed();
	struct ops_range outer = begin_named("outer");
	struct ops_trace *first, *second;

	(void)state;
	ops_range_end(begin_named("inner"));
	first = snapshot_last(session, 0);
	ops_range_end(begin_named("inner"));
	ops_range_end(outer);
	second = snapshot_last(session, 0);
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
	trace = snapshot_last(session, now_ns() - middle_ns);
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

/* A program that hangs for longer than the requested part records only samples. */
static void test_window_of_a_hang(void **state)
{
	struct ops_session *session = start_filed();
	struct ops_trace *trace;

	(void)state;
	ops_range_end(begin_named("early"));
	usleep(60000);
	ops_range_end(begin_named("late"));
	usleep(60000);
	trace = snapshot_last(session, 30000000);
	assert_int_equal(count_flagged(trace, "late", 0), 1);
	assert_int_equal(count_flagged(trace, "early", 0), 0);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

/* --- copies --------------------------------------------------------------------------------------------------------- */

static struct ops_trace *read_trace(const char *file)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	if (ops_trace_read(file, NULL, &trace, &error))
		fail_msg("%s", error.text);
	if (ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	return trace;
}

static struct ops_trace *copy_and_read(struct ops_recording_copy *ret_copy)
{
	struct ops_trace *trace;
	struct ops_error error;
	char copied[sizeof(path) + 8];

	snprintf(copied, sizeof(copied), "%s.copy", path);
	if (ops_recording_copy(path, copied, ret_copy, &error))
		fail_msg("%s", error.text);
	usleep(20000);
	trace = read_trace(copied);
	unlink(copied);
	return trace;
}

/* What is recorded after the copy does not show in it, and what was open then ends at that moment. */
static void test_copy(void **state)
{
	struct ops_session *session = start_filed();
	struct ops_range outer = begin_named("outer");
	struct ops_recording_copy copy;
	struct ops_trace *trace, *current;
	const struct ops_trace_info *info;
	uint64_t before_ns;

	(void)state;
	total_bytes = 0;
	report_memory(0x1000, 100);
	ops_range_end(begin_named("inner"));
	usleep(20000);
	before_ns = now_ns();
	trace = copy_and_read(&copy);
	info = ops_trace_info(trace);
	assert_int_equal(copy.records, 3);
	assert_int_equal(copy.dropped, 0);
	assert_true(copy.seconds >= 0.02 && copy.seconds * 1e9 < (double)(now_ns() - before_ns) + 1e9);
	assert_int_equal(copy.black_box[0], '\0');
	assert_int_equal(count_flagged(trace, "outer", OPS_EVENT_UNFINISHED), 1);
	assert_int_equal(count_flagged(trace, "inner", 0), 1);
	assert_true(ops_trace_memory(trace, &(size_t){0}) != NULL);
	assert_int_equal(info->lost, 0);
	assert_in_range(info->stop_ns - info->start_ns, 20000000, (int64_t)(copy.seconds * 1e9) + 1000000);
	ops_range_end(outer);
	current = read_trace(path); /* the file itself, of a session that runs */
	assert_int_equal(count_flagged(current, "outer", 0), 1);
	assert_true(ops_trace_info(current)->stop_ns > info->stop_ns);
	ops_trace_unref(current);
	ops_trace_unref(trace);
	ops_session_discard(session);
}

static void test_copy_refusals(void **state)
{
	struct ops_session *session = start_filed();
	struct ops_recording_copy copy;
	char copied[sizeof(path) + 8];
	struct ops_error error;
	FILE *file;

	(void)state;
	assert_int_equal(ops_recording_copy("/nowhere/1.oprec", "/nowhere/2.oprec", &copy, &error), OPS_IO);
	assert_non_null(strstr(error.text, "cannot open '/nowhere/1.oprec'"));
	assert_int_equal(ops_recording_copy(path, "/nowhere/2.oprec", &copy, &error), OPS_IO);
	assert_non_null(strstr(error.text, "cannot create '/nowhere/2.oprec'"));
	ops_session_discard(session);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("text", file);
	fclose(file);
	snprintf(copied, sizeof(copied), "%s.copy", path);
	assert_int_equal(ops_recording_copy(path, copied, &copy, &error), OPS_CORRUPT);
	assert_non_null(strstr(error.text, "not a recording file"));
	assert_int_equal(access(copied, F_OK), -1);
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

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
	trace = snapshot_last(session, now_ns() - middle_ns);
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
	struct ops_recording_copy copy;
	pthread_t threads[SNAPSHOT_THREADS];

	(void)state;
	finish = ready = 0;
	for (size_t i = 0; i < SNAPSHOT_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_numbers, (void *)(uintptr_t)i), 0);
	while (__atomic_load_n(&ready, __ATOMIC_RELAXED) < SNAPSHOT_THREADS)
		usleep(100);
	for (int i = 0; i < 5; i++) {
		struct ops_trace *trace = snapshot_last(session, 0);

		check_numbers(trace, true);
		ops_trace_unref(trace);
		trace = copy_and_read(&copy);
		check_numbers(trace, true);
		ops_trace_unref(trace);
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
		cmocka_unit_test_setup_teardown(test_open_is_unfinished, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_window, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_window_of_a_hang, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_copy, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_copy_refusals, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_baseline, make_recording_folder, remove_recording_folder),
		cmocka_unit_test_setup_teardown(test_threads_go_on, make_recording_folder, remove_recording_folder),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

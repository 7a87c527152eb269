/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: start, pause, resume, stop, in every order; what outlives them.
 */
#include "harness.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/sanitizer.h"
#include "record/pool.h"

static void test_misuse(void **state)
{
	struct ops_session *first = start(), *other = NULL;
	struct ops_recording *recording = NULL, *none = NULL;
	struct ops_error error = {.code = OPS_OK};

	(void)state;
	assert_int_equal(ops_session_start(NULL, &other, &error), OPS_BUSY);
	assert_int_equal(error.code, OPS_BUSY);
	assert_non_null(strstr(error.text, "another one is recording"));
	assert_null(other);
	ops_session_pause(first);
	assert_int_equal(ops_session_start(NULL, &other, NULL), OPS_BUSY);
	recording = stop(first);
	assert_int_equal(ops_session_stop(first, &none, &error), OPS_STATE);
	assert_int_equal(error.code, OPS_STATE);
	assert_null(none);
	assert_int_equal(ops_session_stop(NULL, &none, NULL), OPS_STATE);
	ops_recording_free(recording);
	ops_recording_free(NULL);

	/* The old handle has no power over a new session. */
	other = start();
	ops_session_pause(first);
	assert_true(ops_recording_active());
	assert_int_equal(ops_session_stop(first, &none, NULL), OPS_STATE);
	ops_session_pause(other);
	ops_session_resume(first);
	ops_session_resume(NULL);
	assert_false(ops_recording_active());
	ops_recording_free(stop(other));
	ops_session_resume(other);
	assert_false(ops_recording_active());
}

static void test_end_of_the_window(void **state)
{
	struct ops_session *session = start();
	struct ops_range open = ops_range_begin("open", 4);
	struct ops_recording *recording;
	uint64_t stop_ticks;

	(void)state;
	ops_session_end_window(session);
	record_ranges(TEXT("late"), 1);
	ops_session_end_window(session);
	ops_range_end(open);
	recording = stop(session);
	stop_ticks = recording->stop.ticks;
	assert_true(find(recording, TEXT("open")).slot->start_ticks <= stop_ticks);
	assert_true(find(recording, TEXT("open")).slot->end_ticks >= stop_ticks);
	assert_true(find(recording, TEXT("late")).slot->start_ticks >= stop_ticks);
	ops_recording_free(recording);
	ops_session_end_window(session); /* over: nothing */
	recording = stop(start());
	assert_true(recording->stop.ticks >= stop_ticks);
	ops_recording_free(recording);
}

static void test_pause(void **state)
{
	struct ops_session *session = start();
	struct ops_range open = ops_range_begin("open", 4);
	struct ops_recording *recording;

	(void)state;
	ops_session_pause(session);
	ops_session_pause(session);
	assert_false(ops_recording_active());
	record_ranges(TEXT("paused"), 10);
	ops_range_end(open);
	ops_session_resume(session);
	ops_session_resume(session);
	record_ranges(TEXT("resumed"), 3);
	ops_session_pause(session);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 4);
	assert_int_equal(recording->lost, 0);
	assert_int_equal(count_named(recording, TEXT("resumed")), 3);
	assert_true(find(recording, TEXT("open")).slot->end_ticks != 0);
	ops_recording_free(recording);
}

static void *stop_there(void *session)
{
	ops_instant("before stop", 11);
	return stop(session);
}

static void *start_there(void *unused)
{
	(void)unused;
	return start();
}

static void test_from_other_threads(void **state)
{
	pthread_t thread;
	void *session, *recording;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, start_there, NULL), 0);
	assert_int_equal(pthread_join(thread, &session), 0);
	record_ranges(TEXT("here"), 5);
	assert_int_equal(pthread_create(&thread, NULL, stop_there, session), 0);
	assert_int_equal(pthread_join(thread, &recording), 0);
	assert_int_equal(count_named(recording, TEXT("here")), 5);
	assert_int_equal(count_named(recording, TEXT("before stop")), 1);
	assert_int_equal(((struct ops_recording *)recording)->share_count, 2);
	ops_recording_free(recording);
}

/* Ranges open at the stop: unfinished in the recording, closed later, in blocks of every kind. */
static void test_open_at_stop(void **state)
{
	struct ops_range early, late;
	struct ops_session *session = start();
	struct ops_recording *recording;

	(void)state;
	early = ops_range_begin("early", 5);
	record_ranges(TEXT("filler"), 3000);
	late = ops_range_begin("late", 4);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 3002);
	assert_int_equal(ops_slot_end(find(recording, TEXT("late")).slot), 0);
	assert_int_equal(ops_slot_end(find(recording, TEXT("early")).slot), 0);
	ops_range_end(early); /* its block went to the recording as it is */
	assert_true(ops_slot_end(find(recording, TEXT("early")).slot) > recording->stop.ticks);
	ops_range_end(late); /* its block was copied */
	assert_int_equal(ops_slot_end(find(recording, TEXT("late")).slot), 0);
	ops_recording_free(recording);

	/* Closed when the recording is gone already, and the memory in use again. */
	session = start();
	early = ops_range_begin("early", 5);
	record_ranges(TEXT("filler"), 3000);
	late = ops_range_begin("late", 4);
	ops_recording_free(stop(session));
	session = start();
	record_ranges(TEXT("filler"), 100000);
	ops_range_end(early);
	ops_range_end(late);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 100000);
	assert_int_equal(count_named(recording, TEXT("filler")), 100000);
	ops_recording_free(recording);
}

static void test_range_open_over_many_sessions(void **state)
{
	struct ops_session *session = start();
	struct ops_range open = ops_range_begin("long", 4);
	uint64_t mapped;

	(void)state;
	ops_recording_free(stop(session));
	mapped = ops_pool_mapped_bytes();
	for (int i = 0; i < 1000; i++) {
		session = start();
		record_ranges(TEXT("short"), 3);
		ops_recording_free(stop(session));
	}
	assert_true(ops_pool_mapped_bytes() <= mapped + (4u << 20));
	ops_range_end(open);
}

static void test_two_recordings(void **state)
{
	struct ops_recording *first, *second;
	struct ops_session *session = start();

	(void)state;
	record_ranges(TEXT("first"), 5000);
	first = stop(session);
	session = start();
	record_ranges(TEXT("second"), 5000);
	second = stop(session);
	assert_int_equal(count_named(first, TEXT("first")), 5000);
	assert_int_equal(first->slot_count, 5000);
	ops_recording_free(first);
	assert_int_equal(count_named(second, TEXT("second")), 5000);
	assert_int_equal(second->slot_count, 5000);
	ops_recording_free(second);
}

/* The reader takes blocks away one by one, and memory shrinks while it goes. */
static void test_dropping_blocks(void **state)
{
	struct ops_session *session = start();
	struct ops_recording *recording;
	uint64_t mapped, slots = 0;

	(void)state;
	record_ranges(TEXT("event"), 500000);
	recording = stop(session);
	mapped = ops_pool_mapped_bytes();
	assert_true(mapped > 32u << 20);
	while (recording->shares->blocks) {
		slots += recording->shares->blocks->count;
		ops_share_drop_block(recording->shares);
		assert_true(ops_pool_mapped_bytes() <= mapped - slots * sizeof(struct ops_slot) + (6u << 20));
	}
	assert_int_equal(slots, 500000);
	assert_true(ops_pool_mapped_bytes() <= 4u << 20);
	ops_recording_free(recording);
}

static void assert_name(const struct ops_share *share, struct text name)
{
	assert_non_null(share);
	assert_int_equal(share->name_size, name.size);
	assert_memory_equal(share->name, name.bytes, name.size + 1);
}

static void *record_one(void *tid)
{
	*(int64_t *)tid = own_tid();
	ops_instant("there", 5);
	return NULL;
}

static void test_thread_names(void **state)
{
	struct ops_session *session;
	struct ops_recording *recording;
	pthread_t thread;
	int64_t tid = 0;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "tester"), 0);
	ops_thread_name(0, "too early", 9);
	session = start();
	ops_instant("here", 4);
	assert_int_equal(pthread_create(&thread, NULL, record_one, &tid), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ops_thread_name(tid, "ended already", 13);
	for (int64_t other = 1; other < 5000; other++) /* more than there are lists of them */
		ops_thread_name(tid + other, "nobody", 6);
	recording = stop(session);
	assert_name(find_share(recording, own_tid()), TEXT("tester"));
	assert_name(find_share(recording, tid), TEXT("ended already"));
	ops_recording_free(recording);

	session = start();
	ops_thread_name(0, "first", 5);
	ops_thread_name(999999999, "nobody", 6);
	ops_thread_name(own_tid(), "a\0\"\xff", 4);
	ops_instant("here", 4);
	recording = stop(session);
	assert_name(find_share(recording, own_tid()), TEXT("a\0\"\xff"));
	ops_recording_free(recording);

	/* A name holds for its session. */
	session = start();
	ops_thread_name(0, "unused", 6);
	ops_recording_free(stop(session));
	session = start();
	ops_instant("here", 4);
	recording = stop(session);
	assert_name(find_share(recording, own_tid()), TEXT("tester"));
	ops_recording_free(recording);

	session = start();
	ops_instant("here", 4);
	ops_thread_name(0, NULL, 0);
	recording = stop(session);
	assert_name(find_share(recording, own_tid()), TEXT(""));
	ops_recording_free(recording);
}

static void cycle(size_t ranges)
{
	struct ops_session *session = start();

	ops_thread_name(0, "cycler", 6);
	record_ranges(TEXT("event"), ranges);
	ops_recording_free(stop(session));
}

static void *cycle_there(void *unused)
{
	(void)unused;
	cycle(20);
	return NULL;
}

static void test_many_cycles(void **state)
{
	uint64_t before = 0, after;
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		if (i % 100 == 7) {
			assert_int_equal(pthread_create(&thread, NULL, cycle_there, NULL), 0);
			assert_int_equal(pthread_join(thread, NULL), 0);
		} else {
			cycle(i % 1000 == 3 ? 60000 : 20);
		}
		if (i == 1010)
			before = resident_bytes();
	}
	after = resident_bytes();
#if !OPS_ADDRESS_SANITIZER && !OPS_THREAD_SANITIZER
	assert_true(after <= before + (1u << 20)); /* sanitizers keep what is freed */
#endif
	(void)before;
	(void)after;
	assert_true(ops_pool_mapped_bytes() <= 4u << 20);
}

static void test_prefault(void **state)
{
	struct ops_record_options options = {.size = sizeof(options), .prefault_bytes = 24u << 20};
	struct ops_session *session;
	uint64_t before = resident_bytes();

	(void)state;
	assert_int_equal(ops_session_start(&options, &session, NULL), OPS_OK);
	assert_true(resident_bytes() >= before + (20u << 20));
	assert_true(ops_pool_mapped_bytes() >= 24u << 20);
	record_ranges(TEXT("event"), 1000);
	ops_recording_free(stop(session));
	assert_true(ops_pool_mapped_bytes() <= 4u << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_misuse),         cmocka_unit_test(test_pause),
		cmocka_unit_test(test_end_of_the_window),
		cmocka_unit_test(test_from_other_threads), cmocka_unit_test(test_open_at_stop),
		cmocka_unit_test(test_range_open_over_many_sessions), cmocka_unit_test(test_two_recordings),
		cmocka_unit_test(test_dropping_blocks), cmocka_unit_test(test_thread_names),
		cmocka_unit_test(test_many_cycles),    cmocka_unit_test(test_prefault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

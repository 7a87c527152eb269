/* SPDX-License-Identifier: Apache-2.0
 *
 * Lack of room: limits, and out of memory at every single allocation. Every record is in the recording or counted as lost.
 */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

/* Ranges named "x" that a block holds: 56 bytes each for the slot, 8 for the name. */
#define PER_BLOCK ((OPS_BLOCK_BYTES - sizeof(struct ops_block)) / 64)

static void assert_kept(size_t blocks, uint64_t max_bytes)
{
	const size_t count = 5000;
	struct ops_session *session = start_bounded(max_bytes);
	struct ops_recording *recording;

	record_ranges(TEXT("x"), count);
	recording = stop(session);
	assert_int_equal(recording->slot_count, blocks * PER_BLOCK);
	assert_int_equal(recording->lost, count - blocks * PER_BLOCK);
	ops_recording_free(recording);
}

static void test_ceiling(void **state)
{
	struct ops_session *session;
	struct ops_recording *recording;

	(void)state;
	assert_kept(0, 1);
	assert_kept(0, OPS_BLOCK_BYTES - 1);
	assert_kept(1, OPS_BLOCK_BYTES);
	assert_kept(1, 2 * OPS_BLOCK_BYTES - 1);
	assert_kept(3, 3 * OPS_BLOCK_BYTES);
	/* The loss of one session is not that of the next. */
	session = start();
	record_ranges(TEXT("x"), 5000);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 5000);
	assert_int_equal(recording->lost, 0);
	ops_recording_free(recording);
}

static void *record_3000(void *unused)
{
	record_ranges(TEXT("x"), 3000);
	return unused;
}

static void test_ceiling_of_all_threads(void **state)
{
	pthread_t threads[4];
	struct ops_session *session = start_bounded(5 * OPS_BLOCK_BYTES);
	struct ops_recording *recording;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_3000, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	recording = stop(session);
	assert_int_equal(recording->slot_count + recording->lost, 4 * 3000);
	assert_true(recording->slot_count <= 5 * PER_BLOCK);
	assert_true(recording->slot_count >= 4 * PER_BLOCK);
	ops_recording_free(recording);
}

static void *record_10(void *unused)
{
	record_ranges(TEXT("x"), 10);
	return unused;
}

/* A thread that ends gives back the part of its block that it did not use. */
static void test_room_comes_back(void **state)
{
	struct ops_session *session = start_bounded(2 * OPS_BLOCK_BYTES);
	struct ops_recording *recording;
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pthread_create(&thread, NULL, record_10, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	recording = stop(session);
	assert_int_equal(recording->slot_count, 200);
	assert_int_equal(recording->lost, 0);
	ops_recording_free(recording);
}

static void test_names_count(void **state)
{
	char *name = calloc(1, 100000);
	struct ops_session *session = start_bounded(3 * 100000);
	struct ops_recording *recording;

	(void)state;
	assert_non_null(name);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 5; i++) {
			name[0] = (char)('a' + i);
			ops_range_end(ops_range_begin(name, 100000));
		}
	}
	recording = stop(session);
	assert_int_equal(recording->slot_count, 2 * 2); /* two names and a block find room */
	assert_int_equal(recording->lost, 2 * 3);
	ops_recording_free(recording);
	free(name);
}

/* --- every allocation fails once --------------------------------------------------------------------------------- */

static void *record_there(void *argument)
{
	struct text *huge = argument;

	record_ranges(TEXT("there"), 10);
	record_ranges(*huge, 1);
	return NULL;
}

/* Records 2 * 11 + 3000 + 2 ranges. */
#define WORKLOAD_RANGES 3024
static void workload(struct text huge)
{
	pthread_t thread;

	record_ranges(TEXT("here"), 10);
	record_ranges(huge, 1);
	ops_thread_name(0, "main", 4);
	if (pthread_create(&thread, NULL, record_there, &huge) != 0 || pthread_join(thread, NULL) != 0)
		_exit(10);
	record_ranges(TEXT("x"), 3000);
	ops_range_end(ops_range_begin_args("args", 4, huge.bytes, huge.size));
	ops_range_end(ops_range_begin_args("args", 4, "1", 1));
}

/* A stop without memory ends the recording and keeps it. */
static void test_stop_without_memory(void **state)
{
	struct ops_session *session = start();
	struct ops_recording *recording = NULL;
	struct ops_error error;

	(void)state;
	record_ranges(TEXT("here"), 10);
	ops_alloc_fail_at(1, true);
	assert_int_equal(ops_session_stop(session, &recording, &error), OPS_NO_MEMORY);
	ops_alloc_fail_at(0, false);
	assert_null(recording);
	assert_string_equal(error.text, "cannot stop the session: out of memory");
	ops_session_resume(session);
	record_ranges(TEXT("after"), 10);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 10);
	assert_int_equal(recording->lost, 0);
	ops_recording_free(recording);
}

static void test_discard_needs_no_memory(void **state)
{
	struct ops_session *session = start();
	struct ops_recording *recording = NULL;

	(void)state;
	record_ranges(TEXT("here"), 10);
	ops_alloc_fail_at(1, true);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_NO_MEMORY);
	ops_session_discard(session);
	ops_session_discard(session);
	ops_alloc_fail_at(0, false);
	assert_int_equal(ops_session_stop(session, &recording, NULL), OPS_STATE);
	session = start();
	record_ranges(TEXT("next"), 3);
	recording = stop(session);
	assert_int_equal(recording->slot_count, 3);
	ops_recording_free(recording);
}

enum { MORE = 0, DONE = 1 }; /* what the child found, as exit status; more is a failure */

static int torture_child(uint64_t nth, bool all_after)
{
	static char bytes[5000];
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	struct ops_error error = {.code = OPS_OK};
	bool reached, stopped_twice = false;

	ops_alloc_fail_at(nth, all_after);
	if (ops_session_start(NULL, &session, &error) == OPS_OK) {
		workload((struct text){bytes, sizeof(bytes)});
		while (ops_session_stop(session, &recording, &error) != OPS_OK) {
			if (error.code != OPS_NO_MEMORY)
				return 11;
			if (ops_session_start(NULL, &session, NULL) == OPS_OK)
				return 18;
			ops_range_end(ops_range_begin("after", 5)); /* is not recorded */
			ops_alloc_fail_at(0, false);
			stopped_twice = true;
		}
		if (recording->slot_count + recording->lost != WORKLOAD_RANGES)
			return 12;
	} else if (error.code != OPS_NO_MEMORY || session) {
		return 13;
	}
	reached = stopped_twice || ops_alloc_count() >= nth;
	ops_alloc_fail_at(0, false);
	if (!reached && (!recording || recording->lost))
		return 14;
	ops_recording_free(recording);

	/* It goes on as if nothing had been. */
	if (ops_session_start(NULL, &session, NULL) != OPS_OK)
		return 15;
	workload((struct text){bytes, sizeof(bytes)});
	if (ops_session_stop(session, &recording, NULL) != OPS_OK)
		return 16;
	if (recording->slot_count != WORKLOAD_RANGES || recording->lost)
		return 17;
	ops_recording_free(recording);
	return reached ? MORE : DONE;
}

static int torture(uint64_t nth, bool all_after)
{
	int status;
	pid_t child = fork(); /* a fresh process: nothing is warm, every allocation is made */

	assert_true(child >= 0);
	if (child == 0)
		_exit(torture_child(nth, all_after));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > DONE)
		fail_msg("allocation %d%s: status %#x", (int)nth, all_after ? " and later" : "", (unsigned)status);
	return WEXITSTATUS(status);
}

static void test_every_allocation_fails(void **state)
{
	(void)state;
	for (int all_after = 0; all_after < 2; all_after++) {
		uint64_t nth = 1;

		while (torture(nth, all_after) == MORE)
			nth++;
		assert_true(nth > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_allocation_fails), /* first: the process has not recorded yet */
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_ceiling_of_all_threads),
		cmocka_unit_test(test_room_comes_back),
		cmocka_unit_test(test_names_count),
		cmocka_unit_test(test_stop_without_memory),
		cmocka_unit_test(test_discard_needs_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
